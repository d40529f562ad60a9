"""Settings, training rows and test rows become scores."""

import json
from functools import partial

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.preprocessing import StandardScaler

import mrot_scale
from benchmarks.ablation_factors import MEDIAN_RADIUS, Changes
from benchmarks.quality_families import Family, Floats, Scored, timed
from benchmarks.quality_sets import at_most
from mrot_scale.config.method import MethodConfig, method_config
from mrot_scale.config.scoring import Method

_RADIUS_ROWS = 1_000
"""Rows that the radius of a ball is measured on."""


def changed_family(changes: str, methods: tuple[Method, ...]) -> Family:
    """Return the estimator with these changes of its settings, given as JSON."""
    return Family(methods, partial(score_changed, changes, methods))


def score_changed(
    changes: str, methods: tuple[Method, ...], train: Floats, test: Floats, seed: int
) -> list[Scored]:
    """Fit in memory with the changed settings and score the test rows by each method."""
    config = changed_config(json.loads(changes), train, seed)
    detector, fit_s = timed(lambda: mrot_scale.MROT(config=config).fit(train))
    found = []
    for method in methods:
        scores, score_s = timed(partial(detector.anomaly_score, test, method=method))
        found.append(Scored(method, scores.astype(np.float64), fit_s, score_s))
    return found


def changed_config(changes: Changes, train: Floats, seed: int) -> MethodConfig:
    """Return the changed settings; a radius that depends on the data is filled in."""
    if changes.get("radius") == MEDIAN_RADIUS:
        alpha = changes.get("alpha", MethodConfig().alpha)
        changes = {**changes, "radius": median_radius(train, alpha, seed)}
    return method_config(**changes, seed=seed)


def median_radius(train: Floats, alpha: float, seed: int) -> float:
    """Return the radius within which the median row has the share alpha of the others.

    In standardised coordinates. Where so many rows are equal that it is 0, the smallest distance
    between different rows.
    """
    rows = at_most(StandardScaler().fit_transform(train), _RADIUS_ROWS, seed)
    distances = cdist(rows, rows)
    others = distances[~np.eye(len(rows), dtype=bool)].reshape(len(rows), -1)
    radius = float(np.median(np.quantile(others, alpha, axis=1)))
    return radius if radius > 0 else float(distances[distances > 0].min(initial=1.0))
