"""A fitted model as plain parts, and the score of any row."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mrot_scale.config.method import MethodConfig, NonFinite
from mrot_scale.config.scoring import Method
from mrot_scale.config.views import ViewConfig
from mrot_scale.method.anchors import AnchorSet, route_matrix
from mrot_scale.method.calibrate import Calibration
from mrot_scale.method.combine import combine_views
from mrot_scale.method.company import Company
from mrot_scale.method.efforts import Problem, log_efforts_over_sets, mean_log_efforts
from mrot_scale.method.resemblance import NORMAL_ROWS, NormalRows, normal_rows
from mrot_scale.method.views import View
from mrot_scale.model.regressors import ScoreModel
from mrot_scale.precision import from_stored, to_stored
from mrot_scale.profiles import Bins
from mrot_scale.rows import fill_non_finite, surely_finite
from mrot_scale.storing.schema import Schema

Floats = NDArray[np.float64]

RARITY_ROWS = 65_536
"""Most rows sent to the anchors at a time."""

_RARITY_VALUES = 2**21
"""Efforts of them at a time: each row has one for every set of a view."""


@dataclass(frozen=True)
class FittedView:
    """One view with the anchors solved in it and the rarity of their efforts."""

    view: View
    anchors: tuple[AnchorSet, ...]
    floor: Floats
    """Efforts below this count as this: for each anchor set, or one for all."""

    maps: tuple[Calibration, ...]
    """Rarity of log efforts averaged over sets; or of the log efforts of each set, where they see
    different columns."""

    def routes(self, rows: Floats, problem: Problem, threads: int) -> Floats:
        """Return the effort of each row against each anchor set, shape (n, sets)."""
        return route_matrix(self.anchors, self.view.apply(rows), problem, threads=threads)

    def log_efforts(self, routes: Floats, problem: Problem) -> Floats:
        """Return the log effort of each row, averaged over the sets, shape (n,)."""
        if self.anchors[0].columns is None:
            return log_efforts_over_sets(routes, self.floor, problem.average)
        return mean_log_efforts(routes, self.floor)

    def rarity(self, routes: Floats, problem: Problem) -> Floats:
        """Return how rare the rows' efforts are in this view, shape (n,)."""
        return mean_rarity(routes, problem, self.floor, self.maps)


def mean_rarity(
    routes: Floats, problem: Problem, floor: Floats, maps: tuple[Calibration, ...]
) -> Floats:
    """Return how rare the rows' efforts against the anchor sets are; NaN routes are left out.

    Sets alike are averaged by log effort, over the middle half of them or all. Sets that see
    different columns are averaged by how rare the efforts are in each: the more columns, the less
    one of them counts.
    """
    if len(maps) == 1:
        logs = log_efforts_over_sets(routes, floor, problem.average)
        return maps[0].neg_log_survival(problem.effort_sign * logs)
    logs = problem.effort_sign * np.log(np.maximum(routes, floor))
    found = [of_set.neg_log_survival(x) for of_set, x in zip(maps, logs.T, strict=True)]
    return np.asarray(np.nanmean(found, axis=0))


def view_rarities(
    views: Sequence[FittedView],
    config: MethodConfig,
    rows: Floats,
    company: Company | None,
    threads: int = 1,
) -> Floats:
    """Return how rare the rows' efforts against anchors are in each view, (n, views).

    Where rows keep company, it is shared.
    """
    found = np.empty((len(rows), len(views)))
    size = rarity_rows(max(len(view.anchors) for view in views))
    for start in range(0, len(rows), size):
        block = slice(start, start + size)
        for number, (view, settings) in enumerate(zip(views, config.views, strict=True)):
            problem = problem_of(config, settings)
            routes = view.routes(rows[block], problem, threads)
            found[block, number] = view.rarity(routes, problem)
        if company is not None:
            points = views[company.view].view.apply(rows[block])
            found[block] = company.shared(points, found[block], threads=threads)
    return found


def rarity_rows(n_sets: int) -> int:
    """Return how many rows are sent at a time to the anchors of a view of so many sets."""
    return min(RARITY_ROWS, _RARITY_VALUES // n_sets)


@dataclass(frozen=True)
class FittedModel:
    """Everything scoring needs."""

    config: MethodConfig
    feature_names: tuple[str, ...] | None
    fill: Floats
    """Column medians, used in place of non-finite values by the policy 'impute'."""

    views: tuple[FittedView, ...]
    score_model: ScoreModel
    last: dict[Method, Calibration]
    """For each method, the map from its raw value to the score."""

    training_scores: dict[Method, NDArray[np.float32]]
    """For each method, scores of the training rows, ascending and thinned: what thresholds need."""

    origin: Floats | None = None
    """What columns are shifted by before rounding to float32; None leaves rows as they are."""

    schema: Schema | None = None
    """Columns as a store has them; None for models of rows in memory."""

    company: Company | None = None
    """Rows of the sample that others share their rarity with; None where they do not, and for
    models of before."""

    bins: Bins | None = None
    """How the training rows were spread; None for models of rows in memory, and for old ones."""

    @property
    def n_features(self) -> int:
        return len(self.fill)

    @property
    def is_hybrid(self) -> bool:
        """Whether the trees are given the rarity in each view beside the columns."""
        return self.score_model.kind == "hybrid"

    def rounded(self, rows: Floats) -> Floats:
        """Return rows in memory as they would come out of a store."""
        return (
            rows if self.origin is None else from_stored(to_stored(rows, self.origin), self.origin)
        )

    def raw_values(self, rows: Floats, method: Method, threads: int = 1) -> Floats:
        """Return the uncalibrated value of finite rows: higher is more anomalous."""
        if method == "effort":
            return combine_views(self.rarity(rows, threads))
        self.score_model.prepare(len(rows))
        if self.is_hybrid:
            rows = np.column_stack([rows, self.rarity(rows, threads)])
        return in_blocks(self.score_model.predict, rows, threads)

    def rarity(self, rows: Floats, threads: int = 1) -> Floats:
        """Return how rare the rows' efforts against anchors are in each view, (n, views)."""
        return view_rarities(self.views, self.config, rows, self.company, threads)

    def score(self, rows: Floats, method: Method, threads: int = 1) -> NDArray[np.float32]:
        """Return the score of finite rows: the share of such rows that are less anomalous."""
        return self.last[method].score(self.raw_values(rows, method, threads))

    def score_by_policy(
        self, rows: Floats, method: Method, threads: int = 1, policy: NonFinite | None = None
    ) -> NDArray[np.float32]:
        """Return the score of rows that may miss values, which are filled or leave no score."""
        if len(rows) and surely_finite(rows):  # as most are: spares a copy of them
            return self.score(rows, method, threads)
        if (policy or self.config.non_finite) == "impute":
            rows = fill_non_finite(rows, self.fill)
        finite = np.isfinite(rows).all(axis=1)
        scores = np.full(len(rows), np.nan, dtype=np.float32)
        if finite.any():
            scores[finite] = self.score(rows[finite], method, threads)
        return scores

    @cached_property
    def whole_view(self) -> FittedView | None:
        """A view in which every column can be told apart, the most robust one, if there is any."""
        whole = [v for v in self.views if v.view.keeps_columns and v.anchors[0].columns is None]
        whole.sort(key=lambda v: not v.view.squash.all())  # as they come, but robust ones first
        return whole[0] if whole else None

    @cached_property
    def normal(self) -> NormalRows | None:
        """Normal rows that others are compared with: anchors of the whole view."""
        if self.whole_view is None:
            return None
        sets = self.whole_view.anchors
        ids = np.concatenate([anchors.ids for anchors in sets])
        first = np.sort(np.unique(ids, return_index=True)[1])[:NORMAL_ROWS]
        return normal_rows(np.concatenate([anchors.rows for anchors in sets])[first])

    def rarity_of(self, rows: Floats, method: Method, threads: int = 1) -> Floats:
        """Return -log of the share of rows that are more anomalous than each of these."""
        return self.last[method].neg_log_survival(self.raw_values(rows, method, threads))

    def threshold(self, method: Method, contamination: float) -> float:
        """Return the score that the share `contamination` of the training rows exceed."""
        return float(np.quantile(self.training_scores[method], 1.0 - contamination))


def in_blocks(predict: Callable[[Floats], Floats], rows: Floats, threads: int) -> Floats:
    """Return the predictions, each thread having made those of one block of rows."""
    if threads == 1:
        return predict(rows)
    blocks = np.array_split(rows, max(1, min(threads, len(rows))))
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(predict, blocks)))


def problem_of(config: MethodConfig, view: ViewConfig | None = None) -> Problem:
    """Return the transport problem the settings describe, in one of their views."""
    own = None if view is None else view.alpha
    return Problem(
        alpha=config.alpha if own is None else own,
        k=config.k,
        radius=config.radius,
        ceiling=config.ceiling,
        kind=config.cost,
        eps=config.eps,
        relative=view is not None and view.relative,
        average=config.average,
    )
