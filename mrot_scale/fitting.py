"""From rows to a fitted model: sample, views, neighbours, efforts, anchors, calibrate, train.

Each stage is a short function over the pure modules; `fit_rows` is the list of them in order.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.config.method import MethodConfig, NonFinite
from mrot_scale.config.scoring import Method
from mrot_scale.config.views import ViewConfig
from mrot_scale.errors import DataError
from mrot_scale.imagined import mixed_rows
from mrot_scale.method.anchors import (
    AnchorSet,
    fit_anchor_set,
    route_matrix,
    separate_columns,
)
from mrot_scale.method.batches import BatchPlan, fitting_batch_rows, zone_count
from mrot_scale.method.calibrate import Calibration, calibrate_values
from mrot_scale.method.combine import combine_views
from mrot_scale.method.company import Company
from mrot_scale.method.efforts import Problem, solve_batches
from mrot_scale.method.neighbours import Radii, ReferenceIndex
from mrot_scale.method.strata import draw_by_column, draw_evenly
from mrot_scale.method.trust import trusted_rows
from mrot_scale.method.views import View, ViewSpec, fit_view
from mrot_scale.model.choose import train_score_model
from mrot_scale.model.hybrid import (
    HybridModel,
    distillation_loss,
    mean_of_copies,
    wants_hybrid,
)
from mrot_scale.model.regressors import ScoreModel, out_of_fold
from mrot_scale.progress import Report
from mrot_scale.rows import column_medians, fill_non_finite
from mrot_scale.scoring import FittedModel, problem_of, view_rarities
from mrot_scale.seeds import generator
from mrot_scale.standing import (
    Standing,
    fit_targets,
    order_of_trust,
    share_rarity,
    stand_by_batches,
    stand_by_routes,
    with_shared,
)

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
    """What rows meet in batches with: wider zones where that is the first of two passes."""

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

    def problem_in(self, points: "Points") -> Problem:
        """Return the problem between the anchors of a view."""
        return problem_of(self.config, points.config)

    def count_steps(self, stage: str, n_steps: int) -> Callable[[], None]:
        """Return a function to call after each of the stage's steps."""
        steps = itertools.count(1)
        self.report(stage, 0, n_steps)
        return lambda: self.report(stage, next(steps), n_steps)


@dataclass(frozen=True)
class Points:
    """The sample in the coordinates of one view."""

    view: View
    config: ViewConfig
    rows: Floats
    radii: Radii | None = None
    """Reach of each row's zone; None where zones are made in the batch."""

    @property
    def name(self) -> str:
        return f"view {self.view.name}, "

    def radii_of(self, rows: Ids) -> Floats | None:
        return None if self.radii is None else self.radii.squared[rows]


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
    config = config.for_columns(rows.shape[1])
    labelled = sample_rows(len(rows), config.label_rows, config.seed)
    sample, fill, complete = usable_sample(rows[labelled], config.non_finite)
    setup = plan_fit(len(sample), config, threads, progress)
    points = [view_points(sample, view) for view in config.views]
    met = measure_neighbours([points[view] for view in config.batch_views], setup)
    efforts = batch_stage(met, setup)
    standings = stand_stage(points if config.two_passes else met, efforts, setup)
    standings, company = company_stage(points, standings, setup)
    rarity = np.column_stack([s.target_rarity for s in standings])
    targets = fit_targets(rarity, shared=company is not None)
    taught = Lesson(sample, targets.shares(rarity), rarity)
    score_model, unseen = train_stage(taught, setup, regressor, standings, company)
    model = assemble(taught, config, fill, standings, company, score_model, unseen)
    model = replace(model, feature_names=feature_names, origin=origin)
    recall = min(1.0 if p.radii is None else p.radii.recall for p in met)
    return Fit(model, labelled[complete], geometric_means(standings), recall)


def usable_sample(sample: Floats, policy: NonFinite) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return the rows to learn from, the value that fills each column, and which rows they are."""
    fill, complete = column_medians(sample), np.ones(len(sample), dtype=bool)
    if policy == "score-nan":
        complete = np.asarray(np.isfinite(sample).all(axis=1))
    usable = fill_non_finite(sample[complete], fill)
    if len(usable) < 2:
        raise DataError(f"Only {len(usable)} of {len(sample)} rows are finite; give more.")
    return usable, fill, complete


def geometric_means(standings: list[Standing]) -> Floats:
    """Return each row's mean effort in each view, 0 where sending its mass cost nothing."""
    means = [np.exp(s.mean_logs) for s in standings]
    nothing = [float(np.mean(np.log(s.fitted.floor))) for s in standings]
    never = [np.isclose(s.mean_logs, n, atol=1e-9) for s, n in zip(standings, nothing, strict=True)]
    return np.where(np.column_stack(never), 0.0, np.column_stack(means))


def sample_rows(n_rows: int, wanted: int, seed: int) -> Ids:
    """Return the row numbers to label, ascending: a function of size and seed alone."""
    if n_rows <= wanted:
        return np.arange(n_rows)
    return np.sort(generator(seed, "sample").choice(n_rows, wanted, replace=False))


def plan_fit(n_rows: int, config: MethodConfig, threads: int, progress: Report | None) -> Setup:
    """Return the plan and problem that a sample of this size meets in batches with."""
    given, config = config, config.for_batches
    size = fitting_batch_rows(n_rows, config.batch_rows, config.alpha, config.k)
    if size == n_rows and config.row_limit is not None and n_rows > config.row_limit:
        raise DataError(
            f"One problem of all rows is limited to {config.row_limit:,} rows, got {n_rows:,}: it "
            "needs a matrix of rows x rows. Use mini-batches (batch_rows=256), or force=True."
        )
    repeats = 1 if size == n_rows else config.repeats
    plan = BatchPlan(n_rows, size, repeats, config.seed)
    report = progress or (lambda stage, done, total: None)
    return Setup(given, problem_of(config), plan, threads, report)


def view_points(sample: Floats, config: ViewConfig) -> Points:
    """Return the sample in a view fitted to it."""
    view = fit_view(ViewSpec(config.scaling, config.columns, config.whiten), sample)
    return Points(view, config, view.apply(sample))


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
    alpha = zone_count(batch_rows, setup.problem.alpha, None) / batch_rows
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


def stand_stage(points: list[Points], efforts: list[Floats], setup: Setup) -> list[Standing]:
    """Return for each view how rare the rows' efforts are in it."""
    two_passes = setup.config.two_passes
    order = order_of_trust(efforts, setup.config, setup.problem) if two_passes else None
    anchors = [view_anchors(p, setup, order) for p in points]
    routes = route_stage(points, anchors, setup)
    if two_passes:
        return [
            stand_by_routes(p.view, sets, routed, setup.problem_in(p))
            for p, sets, routed in zip(points, anchors, routes, strict=True)
        ]
    return [
        stand_by_batches(p.view, solved, sets, routed, setup.config, setup.problem)
        for p, solved, sets, routed in zip(points, efforts, anchors, routes, strict=True)
    ]


def view_anchors(points: Points, setup: Setup, order: Ids | None = None) -> tuple[AnchorSet, ...]:
    """Return the anchor sets of one view, solved, drawn from the rows trusted in it.

    `order` has the rows from the easiest to the hardest to move; all are trusted if it is None.
    """
    ids = np.arange(setup.plan.n_rows)
    if order is not None:
        ids = trusted_rows(order, setup.config.distrust_in(points.config))
    # A constant column says nothing, and would count as much as the others.
    varying = varying_columns(points.rows)
    plan = anchor_plan(len(ids), len(varying), points.config, setup.config)
    seen = None if plan.columns is None else varying[plan.columns]
    rows_left, size, seed = points.rows[ids], plan.anchor_rows, setup.plan.seed
    if plan.columns is None:
        drawn = draw_evenly(rows_left, size, plan.n_sets, seed)
    else:
        drawn = draw_by_column(rows_left[:, varying], plan.columns, size, seed)
    return tuple(
        fit_anchor_set(
            points.rows[ids[rows]],
            ids[rows],
            setup.problem_in(points),
            f"{points.name}anchor set {i}",
            points.radii_of(ids[rows]),
            None if seen is None else seen[i : i + 1],
        )
        for i, rows in enumerate(drawn)
    )


def varying_columns(rows: Floats) -> Ids:
    """Return the columns that hold more than one value; all of them if none does."""
    varying = np.flatnonzero(np.ptp(rows, axis=0) > 0)
    return varying if len(varying) else np.arange(rows.shape[1])


@dataclass(frozen=True)
class AnchorPlan:
    """How many anchors there are in one view, and what each set of them sees."""

    anchor_rows: int
    n_sets: int
    columns: Ids | None
    """Column of each set, counted among those that vary; None where every set sees all."""


def anchor_plan(
    n_trusted: int, n_columns: int, view: ViewConfig, config: MethodConfig
) -> AnchorPlan:
    """Return the anchors that so many trusted rows give in a view of so many coordinates."""
    alpha = config.alpha if view.alpha is None else view.alpha
    size = fitting_batch_rows(n_trusted, config.set_rows, alpha, config.k)
    # Sets of all the trusted rows would be copies of each other.
    n_sets = 1 if size == n_trusted else config.anchor_sets
    if view.separate:
        columns = separate_columns(n_columns, n_sets)
        return AnchorPlan(size, len(columns), columns)
    return AnchorPlan(size, n_sets, None)


def route_stage(
    points: list[Points], anchors: list[tuple[AnchorSet, ...]], setup: Setup
) -> list[Floats]:
    """Return for each view the effort of each row against each anchor set, (n, sets)."""
    done = setup.count_steps("anchors", sum(len(sets) for sets in anchors))
    return [
        route_matrix(sets, p.rows, setup.problem_in(p), threads=setup.threads, on_set=done)
        for p, sets in zip(points, anchors, strict=True)
    ]


def company_stage(
    points: list[Points], standings: list[Standing], setup: Setup
) -> tuple[list[Standing], Company | None]:
    """Return the standings as rows share them in company, and that company if they keep any."""
    view = setup.config.company_view
    if view is None:
        return standings, None
    shared = share_rarity(points[view].rows, view, standings, setup.config, setup.threads)
    return with_shared(standings, shared.seen, shared.unseen), shared.company


@dataclass(frozen=True)
class Lesson:
    """What the score model is taught with."""

    rows: Floats
    shares: Floats
    """Target of each row."""

    rarity: Floats
    """Rarity of each row in each view, (n, views): columns of a hybrid model."""

    @property
    def hybrid_rows(self) -> Floats:
        return np.column_stack([self.rows, self.rarity])


def train_stage(
    taught: Lesson,
    setup: Setup,
    regressor: Any,
    standings: list[Standing],
    company: Company | None,
) -> tuple[ScoreModel, Floats]:
    """Return the score model and the outputs that models like it gave on rows they had not seen."""
    config, threads = setup.config, setup.threads
    folds, seed = config.folds, config.seed
    done = setup.count_steps("train", 2)
    fit, model = train_score_model(taught.rows, taught.shares, config, regressor, threads)
    done()
    rows, shares = taught.rows, taught.shares
    unseen = out_of_fold(fit, rows, shares, folds=folds, seed=seed, threads=threads)
    if wants_hybrid(config, model.kind, distillation_loss(unseen, mean_of_copies(rows, shares))):
        rows, mixed = taught.hybrid_rows, mixed_lesson(taught, config, standings, company)
        extra = (mixed.hybrid_rows, mixed.shares)
        trees = fit(np.concatenate([rows, extra[0]]), np.concatenate([shares, extra[1]]))
        model = HybridModel(trees, model)
        unseen = out_of_fold(
            fit, rows, shares, folds=folds, seed=seed, threads=threads, extra=extra
        )
    done()
    return model, unseen


def mixed_lesson(
    taught: Lesson, config: MethodConfig, standings: list[Standing], company: Company | None
) -> Lesson:
    """Return made-up rows with the targets that their efforts against anchors give."""
    rows = mixed_rows(taught.rows, taught.shares, config.seed)
    return lesson_of(rows, config, standings, company)


def lesson_of(
    rows: Floats, config: MethodConfig, standings: list[Standing], company: Company | None
) -> Lesson:
    """Return any rows with the targets that their efforts against anchors give."""
    unseen = np.column_stack([s.unseen_rarity for s in standings])
    rarity = view_rarities([s.fitted for s in standings], config, rows, company)
    targets = fit_targets(unseen, shared=company is not None)
    return Lesson(rows, targets.shares(rarity), rarity)


def assemble(
    taught: Lesson,
    config: MethodConfig,
    fill: Floats,
    standings: list[Standing],
    company: Company | None,
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
    rows = taught.rows
    if score_model.kind == "hybrid":
        rows = np.column_stack([rows, *(s.seen_rarity for s in standings)])
    training: dict[Method, NDArray[np.float32]] = {
        "model": thinned(last["model"].score(score_model.predict(rows))),
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
        company=company,
    )


def thinned(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the scores ascending, at most `TRAINING_SCORES_KEPT` of them, ends included."""
    ordered = np.sort(scores)
    if len(ordered) <= TRAINING_SCORES_KEPT:
        return ordered
    kept = np.linspace(0, len(ordered) - 1, TRAINING_SCORES_KEPT).round().astype(np.int64)
    return ordered[kept]
