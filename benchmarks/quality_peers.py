"""Other detectors, with their default settings, on the features as they are."""

import warnings
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.quality_families import Family, Floats, Scored, timed

QUADRATIC_ROWS = 20_000
"""Training rows of peers whose time grows with the square of them."""

BLOCK_ROWS = 10_000
"""Rows scored at a time, to bound memory."""


@dataclass(frozen=True)
class Peer:
    """How to make one detector."""

    name: str
    home: str
    """module:Class, imported by the process that runs it."""

    seeded: bool = False
    quadratic: bool = False
    by_block: bool = True
    """Whether a row's score is the same whatever rows are scored with it."""

    options: dict[str, Any] = field(default_factory=dict)


_PEERS = {
    "iforest": Peer("IsolationForest", "sklearn.ensemble:IsolationForest", seeded=True),
    "ocsvm": Peer("OCSVM", "pyod.models.ocsvm:OCSVM", quadratic=True),
    "knn": Peer("k-NN", "pyod.models.knn:KNN", quadratic=True),
    # By default it divides by the variance of components that have none (constant or dependent
    # columns) and scores infinity: all of the variance but a millionth leaves those out.
    "pca": Peer("PCA", "pyod.models.pca:PCA", seeded=True, options={"n_components": 0.999999}),
    "lof": Peer("LOF", "pyod.models.lof:LOF", quadratic=True),
    "cblof": Peer("CBLOF", "pyod.models.cblof:CBLOF", seeded=True),
    # These two put training and test rows together to find a test row's place among them.
    "ecod": Peer("ECOD", "pyod.models.ecod:ECOD", by_block=False),
    "copod": Peer("COPOD", "pyod.models.copod:COPOD", by_block=False),
    "loda": Peer("LODA", "pyod.models.loda:LODA", seeded=True),
    "bagging": Peer(
        "FeatureBagging", "pyod.models.feature_bagging:FeatureBagging", seeded=True, quadratic=True
    ),
    "hbos": Peer("HBOS", "pyod.models.hbos:HBOS"),
    # PyOD has no DTE. Its authors say that the non-parametric estimator ranks rows as their mean
    # distance to the five nearest neighbours does, so that is what stands for it.
    "dte-np": Peer(
        "DTE-NP",
        "pyod.models.knn:KNN",
        quadratic=True,
        options={"method": "mean", "n_neighbors": 5},
    ),
}


def _run(peer: Peer, train: Floats, test: Floats, seed: int) -> list[Scored]:
    """Fit one detector and score the test rows."""
    with warnings.catch_warnings():
        # What a peer warns of is its own business; what it raises is recorded.
        warnings.simplefilter("ignore")
        detector = _made(peer, seed)
        _, fit_s = timed(lambda: detector.fit(train))
        scores, score_s = timed(lambda: _scores(peer, detector, test))
    return [Scored(peer.name, scores, fit_s, score_s)]


def _made(peer: Peer, seed: int) -> Any:
    module, name = peer.home.split(":")
    seeds = {"random_state": seed} if peer.seeded else {}
    return getattr(import_module(module), name)(**peer.options, **seeds)


def _scores(peer: Peer, detector: Any, test: Floats) -> Floats:
    step = BLOCK_ROWS if peer.by_block else len(test)
    blocks = [test[start : start + step] for start in range(0, len(test), step)]
    # PyOD says higher = more anomalous, scikit-learn the opposite.
    if peer.home.startswith("sklearn."):
        return np.concatenate([-detector.score_samples(block) for block in blocks])
    return np.concatenate([detector.decision_function(block) for block in blocks])


PEERS = {
    key: Family((peer.name,), partial(_run, peer), QUADRATIC_ROWS if peer.quadratic else None)
    for key, peer in _PEERS.items()
}
"""The peers by the names the command line uses."""
