"""Rows are sent to anchors: sets drawn among the trusted, solved once for all."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mrot_scale.config.method import MethodConfig
from mrot_scale.config.views import ViewConfig
from mrot_scale.fitting.setup import Points, Setup
from mrot_scale.method.anchors import (
    AnchorSet,
    fit_anchor_set,
    route_matrix,
    separate_columns,
)
from mrot_scale.method.batches import fitting_batch_rows
from mrot_scale.method.strata import draw_by_column, draw_evenly
from mrot_scale.method.trust import trusted_rows

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


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
        # Scaled by auto, it has the coordinates of the gentle view: other anchors tell more.
        others = (1,) if points.view.is_scaled_by_choice else ()
        drawn = draw_evenly(rows_left, size, plan.n_sets, seed, *others)
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


def route_stage(
    points: list[Points], anchors: list[tuple[AnchorSet, ...]], setup: Setup
) -> list[Floats]:
    """Return for each view the effort of each row against each anchor set, (n, sets)."""
    done = setup.count_steps("anchors", sum(len(sets) for sets in anchors))
    return [
        route_matrix(sets, p.rows, setup.problem_in(p), threads=setup.threads, on_set=done)
        for p, sets in zip(points, anchors, strict=True)
    ]
