"""Training and test rows become scores, by the estimator as users call it."""

from functools import partial
from typing import Any

import numpy as np

import mrot_scale
from benchmarks.quality_families import Family, Floats, Scored, timed
from mrot_scale.config.scoring import Method

METHODS: tuple[Method, ...] = ("model", "effort")
SCALINGS = ("none", "standard", "robust")

DEFAULT, AVERAGE = "default", "average of scalings"
AVERAGE_ALPHA = 0.04
"""Zone mass at which the scalings are averaged."""

_SMALLEST_SURVIVAL = 2.0**-24
"""1 less the largest float32 score below 1."""


def both_methods(label_rows: int | None = None) -> Family:
    """Return the family of the estimator's two methods, which share a fit."""
    settings = {} if label_rows is None else {"label_rows": label_rows}
    return Family(METHODS, partial(score_both, settings))


def score_both(settings: dict[str, Any], train: Floats, test: Floats, seed: int) -> list[Scored]:
    """Fit once and score by both methods."""
    detector, fit_s = _fitted(settings, train, seed)
    return [_scored(method, detector, test, method, fit_s) for method in METHODS]


def single_name(scaling: str, alpha: float) -> str:
    return f"{scaling} {alpha:g}"


def headroom_families(alphas: tuple[float, ...], label_rows: int) -> list[Family]:
    """Return the default, and for each zone mass the single views; at one of them their average."""
    default = Family((DEFAULT,), partial(score_default, {"label_rows": label_rows}))
    return [default, *(_singles(alpha, label_rows) for alpha in alphas)]


def _singles(alpha: float, label_rows: int) -> Family:
    names = [single_name(scaling, alpha) for scaling in SCALINGS]
    more = [AVERAGE] if alpha == AVERAGE_ALPHA else []
    settings = {"alpha": alpha, "distrust": 0.0, "label_rows": label_rows}
    return Family((*names, *more), partial(score_singles, settings))


def score_default(settings: dict[str, Any], train: Floats, test: Floats, seed: int) -> list[Scored]:
    """Score by the effort of the default settings."""
    detector, fit_s = _fitted(settings, train, seed)
    return [_scored(DEFAULT, detector, test, "effort", fit_s)]


def score_singles(settings: dict[str, Any], train: Floats, test: Floats, seed: int) -> list[Scored]:
    """Score by the effort of each scaling alone, at one zone mass."""
    found = []
    for scaling in SCALINGS:
        detector, fit_s = _fitted({**settings, "views": [{"scaling": scaling}]}, train, seed)
        name = single_name(scaling, settings["alpha"])
        found.append(_scored(name, detector, test, "effort", fit_s))
    return [*found, _average(found)] if settings["alpha"] == AVERAGE_ALPHA else found


def mean_rarity(scores: list[Floats]) -> Floats:
    """Return the mean of -log(1 - score)."""
    rarities = [-np.log(np.maximum(1.0 - some, _SMALLEST_SURVIVAL)) for some in scores]
    return np.asarray(np.mean(rarities, axis=0))


def _average(found: list[Scored]) -> Scored:
    seconds = (sum(s.fit_s for s in found), sum(s.score_s for s in found))
    return Scored(AVERAGE, mean_rarity([s.scores for s in found]), *seconds)


def _fitted(settings: dict[str, Any], train: Floats, seed: int) -> tuple[mrot_scale.MROT, float]:
    detector = mrot_scale.MROT(**settings, random_state=seed)
    return timed(lambda: detector.fit(train))


def _scored(
    name: str, detector: mrot_scale.MROT, test: Floats, method: Method, fit_s: float
) -> Scored:
    scores, score_s = timed(lambda: detector.anomaly_score(test, method=method))
    return Scored(name, scores.astype(np.float64), fit_s, score_s)
