"""The regressors of the paper, behind one small interface, and the choice between them.

A regressor learns targets in (0, 1) from columns and predicts values of the same order; only the
order matters, since a calibration follows. Saved ones keep their training rows and are fitted
again when loaded: that needs no pickle and gives the same bytes with the same versions.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mrot_scale.errors import ConfigError

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


class ScoreModel(Protocol):
    """A fitted regression from columns to a raw score."""

    kind: str

    def predict(self, rows: Floats) -> Floats: ...

    def prepare(self, n_rows: int) -> None:
        """Get ready for many rows."""


class SklearnModel:
    """A scikit-learn regressor together with the rows it learnt from."""

    def __init__(self, kind: str, regressor: Any, rows: Floats, targets: Floats) -> None:
        self.kind, self.rows, self.targets = kind, rows, targets
        from sklearn.base import clone

        self._regressor = clone(regressor).fit(rows, targets)

    def prepare(self, n_rows: int) -> None:
        """Nothing makes it faster."""

    def predict(self, rows: Floats) -> Floats:
        return np.asarray(self._regressor.predict(rows), dtype=np.float64)


def sklearn_regressor(kind: str, n_rows: int, seed: int) -> Any:
    """Return the unfitted regressor of one of the paper's kinds."""
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    if kind == "boosting":
        return GradientBoostingRegressor(random_state=seed % 2**32)
    if kind == "svr":
        return make_pipeline(StandardScaler(), SVR())
    if kind == "knn":
        return make_pipeline(StandardScaler(), KNeighborsRegressor(min(5, n_rows)))
    raise ConfigError(f"regressor must be lightgbm, boosting, svr, knn or auto, got {kind!r}.")


Fit = Callable[[Floats, Floats], ScoreModel]


Labelled = tuple[Floats, Floats]
"""Rows and their targets."""


def out_of_fold(
    fit: Fit,
    rows: Floats,
    targets: Floats,
    *,
    folds: int,
    seed: int,
    threads: int = 1,
    extra: Labelled | None = None,
) -> Floats:
    """Return for each row the prediction of a model that did not see it."""

    def predict(fold: int) -> Floats:
        return predict_fold(fit, (rows, targets), extra, folds=folds, seed=seed, fold=fold)

    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(predict, range(n_folds(len(rows), folds))))
    return fold_predictions(found, len(rows), folds=folds, seed=seed)


def n_folds(n_rows: int, folds: int) -> int:
    """Return how many folds there are: no more than rows."""
    return min(folds, n_rows)


def predict_fold(
    fit: Fit, labelled: Labelled, extra: Labelled | None, *, folds: int, seed: int, fold: int
) -> Floats:
    """Return what a model taught with all other folds, and extra rows, predicts for one fold."""
    rows, targets = labelled
    seen, unseen = _splits(len(rows), folds, seed)[fold]
    taught_rows, taught = rows[seen], targets[seen]
    if extra is not None:
        taught_rows = np.concatenate([taught_rows, extra[0]])
        taught = np.concatenate([taught, extra[1]])
    return fit(taught_rows, taught).predict(rows[unseen])


def fold_predictions(found: list[Floats], n_rows: int, *, folds: int, seed: int) -> Floats:
    """Return the predictions of all folds, put back by row."""
    predictions = np.empty(n_rows)
    for (_, unseen), values in zip(_splits(n_rows, folds, seed), found, strict=True):
        predictions[unseen] = values
    return predictions


def _splits(n_rows: int, folds: int, seed: int) -> list[tuple[Ids, Ids]]:
    from sklearn.model_selection import KFold

    splits = KFold(n_folds(n_rows, folds), shuffle=True, random_state=seed % 2**32)
    return list(splits.split(np.zeros((n_rows, 1))))
