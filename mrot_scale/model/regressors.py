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
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from mrot_scale.errors import ConfigError

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


class ScoreModel(Protocol):
    """A fitted regression from columns to a raw score."""

    kind: str

    def predict(self, rows: Floats) -> Floats: ...


class SklearnModel:
    """A scikit-learn regressor together with the rows it learnt from."""

    def __init__(self, kind: str, regressor: Any, rows: Floats, targets: Floats) -> None:
        self.kind, self.rows, self.targets = kind, rows, targets
        self._regressor = clone(regressor).fit(rows, targets)

    def predict(self, rows: Floats) -> Floats:
        return np.asarray(self._regressor.predict(rows), dtype=np.float64)


def sklearn_regressor(kind: str, n_rows: int, seed: int) -> Any:
    """Return the unfitted regressor of one of the paper's kinds."""
    if kind == "boosting":
        return GradientBoostingRegressor(random_state=seed % 2**32)
    if kind == "svr":
        return make_pipeline(StandardScaler(), SVR())
    if kind == "knn":
        return make_pipeline(StandardScaler(), KNeighborsRegressor(min(5, n_rows)))
    raise ConfigError(f"regressor must be lightgbm, boosting, svr, knn or auto, got {kind!r}.")


Fit = Callable[[Floats, Floats], ScoreModel]


def out_of_fold(
    fit: Fit, rows: Floats, targets: Floats, *, folds: int, seed: int, threads: int = 1
) -> Floats:
    """Return for each row the prediction of a model that did not see it."""
    splits = KFold(min(folds, len(rows)), shuffle=True, random_state=seed % 2**32)
    predictions = np.empty(len(rows))

    def predict_fold(split: tuple[Ids, Ids]) -> None:
        seen, unseen = split
        predictions[unseen] = fit(rows[seen], targets[seen]).predict(rows[unseen])

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(predict_fold, splits.split(rows)))
    return predictions
