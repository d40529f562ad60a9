"""From rows to a fitted model: sample, views, neighbours, efforts, anchors, calibrate, train.

Each stage is a short function over the pure modules; `fit_rows` is the list of them in order.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.config.method import MethodConfig
from mrot_scale.fitting.anchored import route_stage, view_anchors
from mrot_scale.fitting.assembled import assemble
from mrot_scale.fitting.batched import batch_stage, measure_neighbours
from mrot_scale.fitting.sampled import sample_rows, usable_sample
from mrot_scale.fitting.setup import Points, Setup, plan_fit, view_points
from mrot_scale.fitting.taught import Lesson, train_stage
from mrot_scale.method.company import Company
from mrot_scale.progress import Report
from mrot_scale.scoring import FittedModel
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


def geometric_means(standings: list[Standing]) -> Floats:
    """Return each row's mean effort in each view, 0 where sending its mass cost nothing."""
    means = [np.exp(s.mean_logs) for s in standings]
    nothing = [float(np.mean(np.log(s.fitted.floor))) for s in standings]
    never = [np.isclose(s.mean_logs, n, atol=1e-9) for s, n in zip(standings, nothing, strict=True)]
    return np.where(np.column_stack(never), 0.0, np.column_stack(means))


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


def company_stage(
    points: list[Points], standings: list[Standing], setup: Setup
) -> tuple[list[Standing], Company | None]:
    """Return the standings as rows share them in company, and that company if they keep any."""
    view = setup.config.company_view
    if view is None:
        return standings, None
    shared = share_rarity(points[view].rows, view, standings, setup.config, setup.threads)
    return with_shared(standings, shared.seen, shared.unseen), shared.company
