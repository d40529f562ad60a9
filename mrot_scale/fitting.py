"""From rows to a fitted model: sample, views, neighbours, efforts, anchors, calibrate, train.

Each stage is a short function over the pure modules; `fit_rows` is the list of them in order.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.config import Method, MethodConfig, NonFinite, ViewConfig
from mrot_scale.errors import DataError
from mrot_scale.method.anchors import AnchorSet, draw_anchor_batches, fit_anchor_set, route_matrix
from mrot_scale.method.batches import BatchPlan, fitting_batch_rows, zone_count
from mrot_scale.method.calibrate import (
    LOG_EFFORT_STEP,
    Calibration,
    calibrate_values,
    count_on_grid,
    fit_calibration,
)
from mrot_scale.method.combine import combine_views
from mrot_scale.method.efforts import Problem, effort_floor, mean_log_efforts, solve_batches
from mrot_scale.method.neighbours import Radii, ReferenceIndex
from mrot_scale.method.views import View, ViewSpec, fit_view
from mrot_scale.model.choose import train_score_model
from mrot_scale.model.regressors import ScoreModel, out_of_fold
from mrot_scale.progress import Report
from mrot_scale.rows import column_medians, fill_non_finite
from mrot_scale.scoring import FittedModel, FittedView, problem_of
from mrot_scale.seeds import generator

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

TRAINING_SCORES_KEPT = 10_001


@dataclass(frozen=True)
class Fit:
    """A fitted model and what was learnt about the labelled rows on the way."""

    model: FittedModel
    labelled_rows: Ids
    """Row numbers that were given efforts, ascending."""

    efforts: Floats
    """Geometric mean effort of each labelled row in each view, shape (n, views)."""

    recall: float
    """Smallest recall of the neighbour index over the views; 1 when exhaustive or unused."""


@dataclass(frozen=True)
class Setup:
    """What every stage shares: the settings and the plan that follows from them."""

    config: MethodConfig
    problem: Problem
    plan: BatchPlan
    threads: int
    report: Report

    @property
    def is_whole_table(self) -> bool:
        return self.plan.batch_rows == self.plan.n_rows

    @property
    def measures_zones(self) -> bool:
        """Whether the reach of zones is measured by reference, not made in each batch."""
        config = self.config
        fixed = config.k is not None or config.radius is not None or config.cost == "coulomb"
        return not (fixed or config.zone == "batch" or self.is_whole_table)

    def count_steps(self, stage: str, n_steps: int) -> Callable[[], None]:
        """Return a function to call after each of the stage's steps."""
        steps = itertools.count(1)
        self.report(stage, 0, n_steps)
        return lambda: self.report(stage, next(steps), n_steps)


@dataclass(frozen=True)
class Points:
    """The sample in the coordinates of one view."""

    view: View
    rows: Floats
    radii: Radii | None = None
    """Reach of each row's zone; None where zones are made in the batch."""

    @property
    def name(self) -> str:
        return f"view {self.view.spec.name}, "

    def radii_of(self, rows: Ids) -> Floats | None:
        return None if self.radii is None else self.radii.squared[rows]


@dataclass(frozen=True)
class Standing:
    """How rare the sample's rows are in one view, by each way of measuring them."""

    fitted: FittedView
    mean_logs: Floats
    """Mean log mini-batch effort."""

    of_efforts: Calibration
    """Rarity of mini-batch efforts."""

    target_rarity: Floats
    """From mini-batch efforts: what the score model learns."""

    seen_rarity: Floats
    """From anchors, as scoring the training rows again gives it."""

    unseen_rarity: Floats
    """From anchors, as rows never seen would get it."""


def fit_rows(
    rows: Floats,
    config: MethodConfig,
    *,
    feature_names: tuple[str, ...] | None = None,
    origin: Floats | None = None,
    regressor: Any = None,
    threads: int = 1,
    progress: Report | None = None,
) -> Fit:
    """Fit the method to rows in memory.

    `origin` is what the model shifts rows by before it rounds them as these were rounded;
    `regressor` is the object behind `regressor: custom`.
    """
    labelled = sample_rows(len(rows), config.label_rows, config.seed)
    sample, fill, complete = usable_sample(rows[labelled], config.non_finite)
    setup = plan_fit(len(sample), config, threads, progress)
    points = [view_points(sample, view) for view in config.views]
    points = measure_neighbours(points, setup)
    efforts = batch_stage(points, setup)
    anchors = anchor_stage(points, setup)
    routes = route_stage(points, anchors, setup)
    standings = [
        calibrate_view(p.view, solved, sets, routed, setup)
        for p, solved, sets, routed in zip(points, efforts, anchors, routes, strict=True)
    ]
    targets = fit_targets(np.column_stack([s.target_rarity for s in standings]))
    shares = targets.shares(np.column_stack([s.target_rarity for s in standings]))
    score_model, unseen = train_stage(sample, shares, setup, regressor)
    model = assemble(sample, config, fill, standings, score_model, unseen)
    model = replace(model, feature_names=feature_names, origin=origin)
    recall = min(1.0 if p.radii is None else p.radii.recall for p in points)
    return Fit(model, labelled[complete], geometric_means(efforts, standings), recall)


def usable_sample(sample: Floats, policy: NonFinite) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return the rows to learn from, the value that fills each column, and which rows they are."""
    fill, complete = column_medians(sample), np.ones(len(sample), dtype=bool)
    if policy == "score-nan":
        complete = np.asarray(np.isfinite(sample).all(axis=1))
    usable = fill_non_finite(sample[complete], fill)
    if len(usable) < 2:
        raise DataError(f"Only {len(usable)} of {len(sample)} rows are finite; give more.")
    return usable, fill, complete


def geometric_means(efforts: list[Floats], standings: list[Standing]) -> Floats:
    """Return each row's mean effort in each view, 0 where sending its mass cost nothing."""
    means = np.exp(np.column_stack([s.mean_logs for s in standings]))
    never = np.column_stack([(e == 0).all(axis=1) for e in efforts])
    return np.where(never, 0.0, means)


def sample_rows(n_rows: int, wanted: int, seed: int) -> Ids:
    """Return the row numbers to label, ascending: a function of size and seed alone."""
    if n_rows <= wanted:
        return np.arange(n_rows)
    return np.sort(generator(seed, "sample").choice(n_rows, wanted, replace=False))


def plan_fit(n_rows: int, config: MethodConfig, threads: int, progress: Report | None) -> Setup:
    """Return the batch plan and problem the settings give for a sample of this size."""
    size = fitting_batch_rows(n_rows, config.batch_rows, config.alpha, config.k)
    if size == n_rows and config.row_limit is not None and n_rows > config.row_limit:
        raise DataError(
            f"One problem of all rows is limited to {config.row_limit:,} rows, got {n_rows:,}: it "
            "needs a matrix of rows x rows. Use mini-batches (batch_rows=256), or force=True."
        )
    repeats = 1 if size == n_rows else config.repeats
    plan = BatchPlan(n_rows, size, repeats, config.seed)
    report = progress or (lambda stage, done, total: None)
    return Setup(config, problem_of(config), plan, threads, report)


def view_points(sample: Floats, config: ViewConfig) -> Points:
    """Return the sample in a view fitted to it."""
    view = fit_view(ViewSpec(config.scaling, config.columns, config.whiten), sample)
    return Points(view, view.apply(sample))


def measure_neighbours(points: list[Points], setup: Setup) -> list[Points]:
    """Return the points with the reach of each row's zone, where it is measured by reference."""
    if not setup.measures_zones:
        return points
    done = setup.count_steps("neighbours", len(points))
    measured = []
    for p in points:
        ids = np.arange(setup.plan.n_rows)
        radii = zone_radii(reference_index(p.rows, setup), p.rows, ids, setup)
        measured.append(replace(p, radii=radii))
        done()
    return measured


def reference_index(rows: Floats, setup: Setup) -> ReferenceIndex:
    """Return the index of the reference rows drawn from the sample's points."""
    order = generator(setup.config.seed, "reference").permutation(setup.plan.n_rows)
    reference = np.sort(order[: setup.config.reference_rows])
    return ReferenceIndex(rows[reference], reference)


def zone_radii(index: ReferenceIndex, rows: Floats, ids: Ids, setup: Setup) -> Radii:
    """Return the reach of the zones of some rows; `ids` are their numbers in the sample."""
    batch_rows = setup.plan.batch_rows
    alpha = zone_count(batch_rows, setup.config.alpha, None) / batch_rows
    return index.radii(rows, ids, alpha, threads=setup.threads)


def batch_stage(points: list[Points], setup: Setup) -> list[Floats]:
    """Return for each view the effort of each row in each of its batches, (n, repeats)."""
    done = setup.count_steps("efforts", setup.plan.n_batches * len(points))
    return [
        solve_batches(
            p.rows,
            setup.plan,
            setup.problem,
            name=p.name,
            squared_radii=None if p.radii is None else p.radii.squared,
            threads=setup.threads,
            on_batch=done,
        )
        for p in points
    ]


def anchor_stage(points: list[Points], setup: Setup) -> list[tuple[AnchorSet, ...]]:
    """Return for each view its solved anchor sets; all views share the anchor rows."""
    return [view_anchors(p, setup) for p in points]


def view_anchors(points: Points, setup: Setup) -> tuple[AnchorSet, ...]:
    """Return the anchor sets of one view, solved."""
    plan = setup.plan
    drawn = draw_anchor_batches(plan.n_rows, plan.batch_rows, plan.repeats, plan.seed)
    return tuple(
        fit_anchor_set(
            points.rows[b.rows],
            b.rows,
            setup.problem,
            f"{points.name}anchor set {i}",
            points.radii_of(b.rows),
        )
        for i, b in enumerate(drawn)
    )


def route_stage(
    points: list[Points], anchors: list[tuple[AnchorSet, ...]], setup: Setup
) -> list[Floats]:
    """Return for each view the effort of each row against each anchor set, (n, sets)."""
    done = setup.count_steps("anchors", sum(len(sets) for sets in anchors))
    return [
        route_matrix(sets, p.rows, setup.problem, threads=setup.threads, on_set=done)
        for p, sets in zip(points, anchors, strict=True)
    ]


def calibrate_view(
    view: View, efforts: Floats, anchors: tuple[AnchorSet, ...], routes: Floats, setup: Setup
) -> Standing:
    """Return the view ready for scoring, and the rarity of the sample's rows in it."""
    sign, floor = setup.problem.effort_sign, effort_floor(efforts)
    mean_logs = mean_log_efforts(efforts, floor)
    unseen = sign * mean_log_efforts(unseen_routes(routes, anchors, mean_logs), floor)
    fitted = FittedView(view, anchors, floor, _log_calibration(unseen))
    values = effort_values(efforts, floor, setup)
    if setup.config.calibration == "raw-effort":
        of_efforts = calibrate_values(values, smoothing=1.0)
    else:
        of_efforts = _log_calibration(values)
    return Standing(
        fitted,
        mean_logs,
        of_efforts,
        of_efforts.neg_log_survival(values),
        seen_rarity=fitted.rarity(routes, setup.problem),
        unseen_rarity=fitted.calibration.neg_log_survival(unseen),
    )


def effort_values(efforts: Floats, floor: float, setup: Setup) -> Floats:
    """Return what is calibrated of the rows' mini-batch efforts, higher = more anomalous."""
    sign = setup.problem.effort_sign
    if setup.config.calibration == "raw-effort":
        return np.asarray(sign * efforts.mean(axis=1))
    return np.asarray(sign * mean_log_efforts(efforts, floor))


@dataclass(frozen=True)
class Targets:
    """The map from a row's rarities to what the score model learns."""

    calibration: Calibration | None
    """Of the combined rarity; None for one view, which is its own ranking."""

    def shares(self, rarity: Floats) -> Floats:
        """Return the share of rows less anomalous, in (0, 1), for rarities (n, views)."""
        if self.calibration is None:
            return np.asarray(-np.expm1(-rarity[:, 0]))
        combined = self.calibration.neg_log_survival(combine_views(rarity))
        return np.asarray(-np.expm1(-combined))


def fit_targets(rarity: Floats) -> Targets:
    """Return the targets fitted to the sample's rarities in each view."""
    if rarity.shape[1] == 1:
        return Targets(None)
    return Targets(calibrate_values(combine_views(rarity), smoothing=1.0))


def unseen_routes(routes: Floats, anchors: tuple[AnchorSet, ...], mean_logs: Floats) -> Floats:
    """Return the efforts as a row never seen would get them: without the sets it belongs to.

    A row that is an anchor in every set keeps the effort of its own plans instead.
    """
    unseen = routes.copy()
    for column, anchor_set in enumerate(anchors):
        unseen[anchor_set.ids, column] = np.nan
    everywhere = np.isnan(unseen).all(axis=1)
    unseen[everywhere] = np.exp(mean_logs[everywhere])[:, None]
    return unseen


def _log_calibration(logs: Floats) -> Calibration:
    return fit_calibration(count_on_grid(logs, LOG_EFFORT_STEP))


def train_stage(
    sample: Floats, targets: Floats, setup: Setup, regressor: Any
) -> tuple[ScoreModel, Floats]:
    """Return the score model and the outputs that models like it gave on rows they had not seen."""
    config = setup.config
    done = setup.count_steps("train", 2)
    fit, model = train_score_model(sample, targets, config, regressor, setup.threads)
    done()
    unseen = out_of_fold(
        fit, sample, targets, folds=config.folds, seed=config.seed, threads=setup.threads
    )
    done()
    return model, unseen


def assemble(
    sample: Floats,
    config: MethodConfig,
    fill: Floats,
    standings: list[Standing],
    score_model: ScoreModel,
    unseen: Floats,
) -> FittedModel:
    """Return the parts together, with the last map of each scoring method."""
    seen_effort = combine_views(np.column_stack([s.seen_rarity for s in standings]))
    unseen_effort = combine_views(np.column_stack([s.unseen_rarity for s in standings]))
    last: dict[Method, Calibration] = {
        "model": calibrate_values(unseen),
        "effort": calibrate_values(unseen_effort),
    }
    training: dict[Method, NDArray[np.float32]] = {
        "model": thinned(last["model"].score(score_model.predict(sample))),
        "effort": thinned(last["effort"].score(seen_effort)),
    }
    return FittedModel(
        config,
        None,
        fill,
        views=tuple(s.fitted for s in standings),
        score_model=score_model,
        last=last,
        training_scores=training,
    )


def thinned(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the scores ascending, at most `TRAINING_SCORES_KEPT` of them, ends included."""
    ordered = np.sort(scores)
    if len(ordered) <= TRAINING_SCORES_KEPT:
        return ordered
    kept = np.linspace(0, len(ordered) - 1, TRAINING_SCORES_KEPT).round().astype(np.int64)
    return ordered[kept]
