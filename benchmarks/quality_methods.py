"""Every method a quality benchmark compares, by the names the command line uses.

Only the public face of mrot_scale is used: what is measured is what users get.
"""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import mrot_scale
from benchmarks.quality_families import Family, Floats, Scored, timed
from benchmarks.quality_peers import PEERS, QUADRATIC_ROWS
from mrot_scale.config.scoring import Method

EXACT_ROWS = 6_000
"""Training rows of one exact problem: its memory grows with the square of them."""

REFERENCE = "IsolationForest"
"""The method that the others are compared with."""

MARKS = {EXACT_ROWS: "†", QUADRATIC_ROWS: "‡"}
"""Sign in tables of methods that train on at most so many rows."""

SETTINGS = {"exact_rows": EXACT_ROWS, "quadratic_rows": QUADRATIC_ROWS}
"""What cells must agree on to stand in one table."""


def by_pipeline(train: Floats, test: Floats, seed: int) -> list[Scored]:
    """Score through stores on disk: ingest, fit, then score by both methods."""
    settings = {"seed": seed, "cluster": {"kind": "inline"}}
    with TemporaryDirectory(prefix="quality-") as name:
        folder = Path(name)

        def fit() -> None:
            mrot_scale.ingest(train, folder / "train")
            mrot_scale.fit(folder / "train", folder / "model", settings)

        _, fit_s = timed(fit)
        mrot_scale.ingest(test, folder / "test", like=folder / "model")
        found = []
        for method in _METHODS:
            scores, score_s = timed(partial(_published_scores, folder, settings, method))
            found.append(Scored(f"mrot-scale {method}", scores, fit_s, score_s))
    return found


_METHODS: tuple[Method, ...] = ("model", "effort")


def _published_scores(folder: Path, settings: dict[str, Any], method: Method) -> Floats:
    """Score the stored test rows and return their scores in order."""
    table = folder / f"{method}-table"
    model, store, out = folder / "model", folder / "test", folder / f"{method}-scores"
    mrot_scale.score(model, store, out, settings, method=method, parquet=table)
    published = mrot_scale.open_scores(table).to_table(columns=["row", "score"])
    scores = np.empty(len(published))
    scores[published["row"].to_numpy()] = published["score"].to_numpy()
    return scores


def in_memory(train: Floats, test: Floats, seed: int) -> list[Scored]:
    """Score by the estimator, by both methods."""
    detector, fit_s = timed(lambda: mrot_scale.MROT(random_state=seed).fit(train))
    names = {"model": "mrot-scale in memory", "effort": "mrot-scale in memory effort"}
    return [_scored(names[method], detector, test, method, fit_s) for method in _METHODS]


def as_published(name: str, cost: str, train: Floats, test: Floats, seed: int) -> list[Scored]:
    """Score by the paper's settings: one exact problem, its regressor for the test rows."""
    detector = mrot_scale.MROT(preset="paper", cost=cost, random_state=seed)
    _, fit_s = timed(lambda: detector.fit(train))
    return [_scored(name, detector, test, "model", fit_s)]


def neighbours_of_anchors(train: Floats, test: Floats, seed: int) -> list[Scored]:
    """Score by the zone's reach alone: same anchors, views and combination, no transport.

    A ceiling at the zone's own largest cost leaves every row the cheapest way out: the distance to
    the edge of its zone.
    """
    # Only efforts are looked at: trees that learn them twice would be for nothing.
    detector = mrot_scale.MROT(ceiling="zone", hybrid="never", random_state=seed)
    _, fit_s = timed(lambda: detector.fit(train))
    return [_scored("k-NN, same anchors", detector, test, "effort", fit_s)]


def _scored(
    name: str, detector: mrot_scale.MROT, test: Floats, method: Method, fit_s: float
) -> Scored:
    scores, score_s = timed(lambda: detector.anomaly_score(test, method=method))
    return Scored(name, scores.astype(np.float64), fit_s, score_s)


OURS = {
    "pipeline": Family(("mrot-scale model", "mrot-scale effort"), by_pipeline),
    "memory": Family(("mrot-scale in memory", "mrot-scale in memory effort"), in_memory),
    "exact": Family(("exact MROT",), partial(as_published, "exact MROT", "engineered"), EXACT_ROWS),
    "coulomb": Family(("Coulomb OT",), partial(as_published, "Coulomb OT", "coulomb"), EXACT_ROWS),
    "anchors": Family(("k-NN, same anchors",), neighbours_of_anchors),
}

FAMILIES = OURS | PEERS
"""All methods, in the order they are run and listed."""


def marks(families: dict[str, Family]) -> dict[str, str]:
    """Return the sign of each method that is not given all training rows."""
    return {
        method: MARKS[family.row_limit]
        for family in families.values()
        if family.row_limit is not None
        for method in family.methods
    }
