"""Which score model is trained: the one named, one given as an object, or the best of all."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.config.method import MethodConfig
from mrot_scale.errors import ConfigError
from mrot_scale.model.lightgbm_model import train_lightgbm
from mrot_scale.model.regressors import (
    Fit,
    ScoreModel,
    SklearnModel,
    out_of_fold,
    sklearn_regressor,
)

Floats = NDArray[np.float64]

CANDIDATES = ("lightgbm", "boosting", "svr", "knn")


def train_score_model(
    rows: Floats, targets: Floats, config: MethodConfig, regressor: Any, threads: int
) -> tuple[Fit, ScoreModel]:
    """Return how the model is fitted (to be repeated on folds) and the model itself."""
    kind: str = config.regressor
    if kind == "auto":
        kind = best_by_validation(rows, targets, config, threads)
    fit = fit_of(kind, config.seed, regressor)
    return fit, fit(rows, targets)


def best_by_validation(rows: Floats, targets: Floats, config: MethodConfig, threads: int) -> str:
    """Return the kind with the smallest squared error on unseen rows, the first of equals."""
    errors = {}
    for kind in CANDIDATES:
        fit = fit_of(kind, config.seed, None)
        unseen = out_of_fold(
            fit, rows, targets, folds=config.folds, seed=config.seed, threads=threads
        )
        # LightGBM answers in log-odds.
        shares = 1.0 / (1.0 + np.exp(-unseen)) if kind == "lightgbm" else unseen
        errors[kind] = float(np.mean((shares - targets) ** 2))
    return min(errors, key=lambda kind: errors[kind])


def fit_of(kind: str, seed: int, regressor: Any) -> Fit:
    """Return the function that fits a kind of score model."""
    if kind == "lightgbm":
        return partial(train_lightgbm, seed=seed)
    if kind == "custom":
        if regressor is None:
            raise ConfigError("regressor='custom' needs a scikit-learn regressor object.")
        return partial(SklearnModel, "custom", regressor)
    return partial(_fit_sklearn, kind, seed)


def _fit_sklearn(kind: str, seed: int, rows: Floats, targets: Floats) -> SklearnModel:
    return SklearnModel(kind, sklearn_regressor(kind, len(rows), seed), rows, targets)
