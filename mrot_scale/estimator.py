"""The scikit-learn face of the method."""

import warnings
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from mrot_scale.config.method import MethodConfig
from mrot_scale.config.scoring import Method
from mrot_scale.errors import (
    ConfigError,
    DamagedModelError,
    InputTypeError,
    MrotError,
    NoContrastWarning,
)
from mrot_scale.explaining import can_explain, column_contributions
from mrot_scale.fitting.in_memory import fit_rows
from mrot_scale.model.persist import load_model, save_model
from mrot_scale.parameters import config_from_parameters
from mrot_scale.precision import column_origins, from_stored, to_stored
from mrot_scale.progress import Report
from mrot_scale.rows import check_values, explained
from mrot_scale.scoring import in_blocks
from mrot_scale.storing.location import Location
from mrot_scale.threads import one_native_thread, resolve_threads

Floats = NDArray[np.float64]


class NotFittedYetError(MrotError, NotFittedError):
    """The estimator was asked for scores before `fit`."""


class MROT(OutlierMixin, BaseEstimator):
    """Anomaly detector by Mass Repulsing Optimal Transport.

    Every row must send its mass outside its own neighbourhood; rows in thin regions have to send it
    far. That effort, averaged over mini-batches and views and mapped through its distribution, is
    the score. A regression model extends it to rows never seen.

    `score_samples` and `decision_function` follow scikit-learn (lower = more abnormal);
    `anomaly_score` is in [0, 1], higher = more anomalous, and .99 means that one in a hundred
    such rows scores higher.

    Parameters
    ----------
    method : {"model", "effort"}
        Score unseen rows by the regression model (fast) or by their own transport effort against
        anchor rows (slower, better on local anomalies). May be changed after fitting.
    contamination : float
        Share of the training rows that `predict` flags. May be changed after fitting.
    alpha : float
        Zone mass: share of all rows that a row may not send its mass to.
    k : int, optional
        Number of other rows in the zone of every transport problem; overrides `alpha`.
    radius : float, optional
        Radius of an open ball as the zone; overrides `alpha`.
    zone : {"reference", "batch"}
        Measure zones of mass `alpha` in a reference sample (FAISS) or within each batch.
    ceiling : {"max", "zone"} or float
        Cost inside the zone: the largest of the row, the largest in the zone, or a number.
    cost : {"engineered", "coulomb"}
        The method's cost or the paper's repulsive baseline.
    eps : float
        Entropic regularisation relative to the median cost; 0 solves exactly.
    batch_rows : int or None
        Rows in one transport problem; None puts all rows into one (exact, quadratic memory).
    repeats : int
        Batches every labelled row takes part in.
    anchor_rows : int or None
        Anchor rows in one set; None, or a zone of `k` rows, takes as many as a batch has.
    anchor_sets : int
        Sets of anchor rows in each view that efforts are averaged over. More of them make scores
        depend less on `random_state`, and take longer.
    average : {"middle", "mean"}
        Sets that count for a row: the half of them in the middle of its efforts, or all.
    views : sequence of str or dict, optional
        Scalings ("none", "standard", "robust", "gentle", "auto"), or dicts with `scaling`,
        `columns`, `whiten`, `separate`, `alpha`, `relative`, `distrust` and `tables`. The default
        looks at the rows as they are (if columns share the variance evenly), gently scaled, and
        column by column; in 128 columns or more at efforts next to those around; without
        `distrust` at three scalings.
    distrust : float
        Share of the rows, by a first pass the hardest to move, that are no anchors: so that groups
        of anomalies cannot hide behind themselves. 0 makes do with a single pass.
    first_alpha : float
        Zone mass of the first pass.
    company : int
        Neighbours in the sample whose rarity counts beside a row's own: single rows are noisy
        witnesses. A row that stands alone keeps its own. 0 averages with none.
    loneliness : float
        What lying apart from those neighbours counts on top: .5 finds more rows that break a
        relation or lie between dense groups, and fewer where anomalies are many.
    label_rows : int
        Rows that are given an effort to learn from.
    regressor : str or scikit-learn regressor
        "lightgbm", "boosting", "svr", "knn", "auto" (k-fold validation), or an object.
    hybrid : {"auto", "never", "always"}
        Give the trees the efforts against anchors as columns: "auto" where trees over plain columns
        lose more than half a point of AUC or of rank correlation. Scoring is slower then.
    non_finite : {"reject", "impute", "score-nan"}
        What to do with NaN and infinity: an error, column medians, or NaN scores for such rows.
    preset : {"paper"}, optional
        The method as published; settings that differ from their defaults win over it.
    config : MethodConfig, optional
        Settings as loaded from a file; settings that differ from their defaults win over it.
    force : bool
        Allow one problem of more than 8,000 rows.
    n_jobs : int, optional
        Threads; the scores do not depend on it.
    random_state : int, RandomState or None
        Seed of every random choice.

    Attributes
    ----------
    efforts_ : ndarray of shape (n_labelled, n_views)
        Geometric mean, over the anchor sets that count (or batches, in a single pass), of the
        effort of each labelled row in each view.
    labelled_rows_ : ndarray of shape (n_labelled,)
        Row numbers that were given efforts.
    offset_ : float
        `decision_function` is `score_samples - offset_`.

    Limits: distances over columns of wholly different meaning need scaled views (the default has
    them); the model method extrapolates no further than its training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mrot_scale import MROT
    >>> rows = np.random.default_rng(0).normal(size=(500, 3))
    >>> rows[0] = 8.0
    >>> detector = MROT().fit(rows)
    >>> int(detector.anomaly_score(rows).argmax())
    0
    """

    def __init__(
        self,
        *,
        method: Method = "model",
        contamination: float = 0.01,
        alpha: float = 0.04,
        k: int | None = None,
        radius: float | None = None,
        zone: str = "reference",
        ceiling: str | float = "max",
        cost: str = "engineered",
        eps: float = 0.0,
        batch_rows: int | None = 256,
        repeats: int = 8,
        anchor_rows: int | None = 512,
        anchor_sets: int = 16,
        average: str = "middle",
        views: Any = None,
        distrust: float = 0.1,
        first_alpha: float = 0.16,
        company: int = 12,
        loneliness: float = 0.0,
        label_rows: int = 20_000,
        regressor: Any = "lightgbm",
        hybrid: str = "auto",
        non_finite: str = "reject",
        preset: str | None = None,
        config: MethodConfig | None = None,
        force: bool = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.method = method
        self.contamination = contamination
        self.alpha = alpha
        self.k = k
        self.radius = radius
        self.zone = zone
        self.ceiling = ceiling
        self.cost = cost
        self.eps = eps
        self.batch_rows = batch_rows
        self.repeats = repeats
        self.anchor_rows = anchor_rows
        self.anchor_sets = anchor_sets
        self.average = average
        self.views = views
        self.distrust = distrust
        self.first_alpha = first_alpha
        self.company = company
        self.loneliness = loneliness
        self.label_rows = label_rows
        self.regressor = regressor
        self.hybrid = hybrid
        self.non_finite = non_finite
        self.preset = preset
        self.config = config
        self.force = force
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, progress: Report | None = None) -> Self:
        """Learn the scores of the rows of `X` (NumPy, pandas, polars or pyarrow)."""
        self._check_threshold_settings()
        config = self._config()
        rows = self._rows(X, reset=True, config=config)
        origin = column_origins(rows)
        threads = resolve_threads(self.n_jobs)
        with one_native_thread():
            fit = fit_rows(
                from_stored(to_stored(rows, origin), origin),
                config,
                feature_names=self._names(),
                origin=origin,
                regressor=None if isinstance(self.regressor, str) else self.regressor,
                threads=threads,
                progress=progress,
            )
        self.model_ = fit.model
        self.efforts_ = fit.efforts
        self.labelled_rows_ = fit.labelled_rows
        self.recall_ = fit.recall
        self._warn_without_contrast()
        return self

    def _warn_without_contrast(self) -> None:
        scores = self.model_.training_scores[self.method]
        if scores[0] == scores[-1]:
            warnings.warn(
                "Every training row gets the same score: the rows are identical, or too few or too "
                "coarse to tell apart.",
                NoContrastWarning,
                stacklevel=3,
            )

    def anomaly_score(self, X: Any, method: Method | None = None) -> NDArray[np.float32]:
        """Return the score of each row in [0, 1], higher = more anomalous."""
        self._check_is_fitted()
        method = self._check_threshold_settings(method)
        rows = self.model_.rounded(self._rows(X, reset=False, config=self.model_.config))
        with one_native_thread():
            return self.model_.score_by_policy(rows, method, resolve_threads(self.n_jobs))

    def score_samples(self, X: Any) -> Floats:
        """Return the opposite of the anomaly score: lower = more abnormal."""
        return -self.anomaly_score(X).astype(np.float64)

    def decision_function(self, X: Any) -> Floats:
        """Return `score_samples` shifted so that flagged rows are negative."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return -1 for flagged rows, 1 for the others, rows without a score among them."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    @property
    def offset_(self) -> float:
        """The `score_samples` value below which the share `contamination` of training rows lie."""
        self._check_is_fitted()
        method = self._check_threshold_settings()
        return -self.model_.threshold(method, self.contamination)

    def explain(self, X: Any) -> Floats:
        """Return how much of each row's rarity each column accounts for, (n, d).

        The rarity of a row is -log of the share of rows that score higher: 4.6 is one in a hundred.
        Contributions are never negative and sum to it.
        """
        self._check_is_fitted()
        if not can_explain(self.model_):
            raise ConfigError(
                "explain needs a view with all columns that is not whitened, or "
                f"regressor='lightgbm'; this is {self.model_.score_model.kind!r}."
            )
        rows = self.model_.rounded(self._rows(X, reset=False, config=self.model_.config))
        contribute = partial(column_contributions, self.model_, method=self.method)
        contributions = in_blocks(contribute, rows, resolve_threads(self.n_jobs))
        if self.model_.config.non_finite == "score-nan":
            contributions[~np.isfinite(rows).all(axis=1)] = np.nan
        return contributions

    def save(self, path: str | Path) -> None:
        """Write the fitted model as a new directory of JSON, text and `.npy` files."""
        self._check_is_fitted()
        settings = {"method": self.method, "contamination": float(self.contamination)}
        save_model(self.model_, Location(path), settings)

    @classmethod
    def load(cls, path: str | Path, *, n_jobs: int | None = None) -> Self:
        """Return the estimator saved at `path`; it scores, but holds no training efforts."""
        model, settings = load_model(Location(path))
        loaded = cls(config=model.config, n_jobs=n_jobs)
        loaded.method = settings.get("method", "none")
        loaded.contamination = settings.get("contamination", 0.0)
        try:
            loaded._check_threshold_settings()
        except ConfigError as error:
            raise DamagedModelError(f"{path}: {error} Copy or fit the model again.") from None
        loaded.model_ = model
        loaded.n_features_in_ = model.n_features
        if model.feature_names is not None:
            loaded.feature_names_in_ = np.array(model.feature_names, dtype=object)
        return loaded

    def _config(self) -> MethodConfig:
        return config_from_parameters(self.get_params(deep=False))

    def _rows(self, X: Any, *, reset: bool, config: MethodConfig) -> Floats:
        """Return `X` as a float64 matrix, checked by scikit-learn's rules and by ours."""
        try:
            checked = validate_data(
                self,
                X,
                reset=reset,
                dtype=np.float64,
                ensure_all_finite=False,
                ensure_min_samples=2 if reset else 1,
            )
        except MrotError:
            raise
        except ValueError as error:
            raise explained(error, X) from None
        except TypeError as error:
            raise InputTypeError(str(error)) from None
        rows: Floats = np.ascontiguousarray(checked)
        check_values(rows, self._names(), config.non_finite)
        return rows

    def _names(self) -> tuple[str, ...] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(str(name) for name in names)

    def _check_is_fitted(self) -> None:
        try:
            check_is_fitted(self, "model_")
        except NotFittedError as error:
            raise NotFittedYetError(str(error)) from None

    def _check_threshold_settings(self, method: Method | None = None) -> Method:
        chosen = self.method if method is None else method
        if chosen not in ("model", "effort"):
            raise ConfigError(f"method must be 'model' or 'effort', got {chosen!r}.")
        if not _is_share(self.contamination):
            raise ConfigError(f"contamination must be in (0, 0.5], got {self.contamination!r}.")
        return chosen

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.non_finite in ("impute", "score-nan")
        return tags


def _is_share(value: Any) -> bool:
    return type(value) is not bool and isinstance(value, Real) and 0 < float(value) <= 0.5
