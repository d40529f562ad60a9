"""Rows become efforts, and efforts rarity: by views, batches, anchors and company."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.fitting.anchored import view_anchors
from mrot_scale.fitting.batched import reference_index, zone_radii
from mrot_scale.fitting.setup import Points, view_points
from mrot_scale.jobs.labelled import EFFORT_BLOCK_BATCHES, ROUTE_BLOCK_ROWS
from mrot_scale.jobs.packing import (
    anchors_from,
    put_anchors,
    put_company,
    put_standing,
    put_view,
    view_from,
)
from mrot_scale.jobs.sample_tasks import method_of, setup_of
from mrot_scale.jobs.validation import effort_stability
from mrot_scale.jobs.view_records import ViewRecords
from mrot_scale.method.anchors import route_matrix
from mrot_scale.method.efforts import batch_efforts
from mrot_scale.method.neighbours import Radii
from mrot_scale.running.commit import Record
from mrot_scale.running.tasks import Work
from mrot_scale.scoring import problem_of
from mrot_scale.standing import order_of_trust, share_rarity, stand_by_batches, stand_by_routes

Floats = NDArray[np.float64]
Json = Any

_NO_ID = -1


def learn_view(work: Work, *, part: Json, method: str, view: int) -> Record:
    """Fit one view to the sample."""
    points = view_points(work.array(part, "rows"), method_of(method).views[view])
    put_view(work.attempt, points.view)
    return work.attempt.record(name=points.view.name)


def _points(work: Work, part: Json, method: str, view: int, learnt: Json) -> Points:
    config = method_of(method).views[view]
    fitted = view_from(work, learnt, config)
    return Points(fitted, config, fitted.apply(work.array(part, "rows")))


def measure_zones(
    work: Work, *, part: Json, first: Json, method: str, view: int, learnt: Json
) -> Record:
    """Measure how far the zone of each row of a part reaches, by the sample's reference rows."""
    setup = setup_of(first, method)
    sample = _points(work, first, method, view, learnt)
    points = sample if part == first else _points(work, part, method, view, learnt)
    n_rows = len(points.rows)
    ids = np.arange(n_rows) if part == first else np.full(n_rows, _NO_ID)
    radii = zone_radii(reference_index(sample.rows, setup), points.rows, ids, setup)
    work.attempt.put_array("radii", radii.squared)
    return work.attempt.record(recall=radii.recall)


def solve_efforts(
    work: Work,
    *,
    part: Json,
    method: str,
    view: int,
    learnt: Json,
    zones: Json | None,
    repeat: int,
    block: int,
) -> Record:
    """Solve some batches of one repeat; efforts are kept in the order of the batches."""
    setup = setup_of(part, method)
    points = _points(work, part, method, view, learnt)
    radii = None if zones is None else work.array(zones, "radii")
    first = block * EFFORT_BLOCK_BATCHES
    found = []
    for batch in setup.plan.repeat_batches(repeat):
        if first <= batch.number < first + EFFORT_BLOCK_BATCHES:
            reach = None if radii is None else radii[batch.rows]
            name = f"{points.name}{batch}"
            efforts = batch_efforts(points.rows[batch.rows], setup.problem, name, reach)
            found.append(efforts[batch.own])
    work.attempt.put_array("efforts", np.concatenate(found))
    return work.attempt.record()


def efforts_by_row(work: Work, part: Json, method: str, blocks: list[Json]) -> Floats:
    """Return the efforts of all repeats of one view, put back by row: shape (n, repeats)."""
    plan = setup_of(part, method).plan
    solved = np.concatenate([work.array(block, "efforts") for block in blocks])
    efforts = np.empty((plan.n_rows, plan.repeats))
    start = 0
    for batch in plan:
        own = batch.rows[batch.own]
        efforts[own, batch.repeat] = solved[start : start + len(own)]
        start += len(own)
    return efforts


def trust_rows(work: Work, *, part: Json, method: str, efforts: list[list[Json]]) -> Record:
    """Order the rows by how far they may be trusted as anchors, by the first pass over them."""
    setup = setup_of(part, method)
    found = [efforts_by_row(work, part, method, blocks) for blocks in efforts]
    order = order_of_trust(found, setup.config, setup.problem)
    work.attempt.put_array("order", order)
    return work.attempt.record(rows=len(order))


def solve_anchors(
    work: Work,
    *,
    part: Json,
    method: str,
    view: int,
    learnt: Json,
    zones: Json | None,
    trust: Json | None,
) -> Record:
    """Solve the anchor sets of one view."""
    points = _points(work, part, method, view, learnt)
    if zones is not None:
        radii = Radii(work.array(zones, "radii"), zones["facts"]["recall"])
        points = replace(points, radii=radii)
    order = None if trust is None else work.array(trust, "order")
    put_anchors(work.attempt, view_anchors(points, setup_of(part, method), order))
    return work.attempt.record()


def route_rows(
    work: Work, *, part: Json, method: str, view: int, learnt: Json, anchors: Json, block: int
) -> Record:
    """Send a block of a part's rows to the anchors."""
    rows = work.array(part, "rows")[block * ROUTE_BLOCK_ROWS : (block + 1) * ROUTE_BLOCK_ROWS]
    config = method_of(method)
    points = view_from(work, learnt, config.views[view]).apply(rows)
    problem = problem_of(config, config.views[view])
    work.attempt.put_array("routes", route_matrix(anchors_from(work, anchors), points, problem))
    return work.attempt.record()


def calibrate(
    work: Work,
    *,
    part: Json,
    method: str,
    view: int,
    learnt: Json,
    anchors: Json,
    efforts: list[Json] | None,
    routes: list[Json],
) -> Record:
    """Find how rare each effort of one view is."""
    config, sets = method_of(method), anchors_from(work, anchors)
    fitted = view_from(work, learnt, config.views[view])
    routed = _routes(work, routes)
    measured, average = routed, config.average
    if efforts is None:
        standing = stand_by_routes(fitted, sets, routed, problem_of(config, config.views[view]))
    else:
        measured, average = efforts_by_row(work, part, method, efforts), "mean"
        problem = setup_of(part, method).problem
        standing = stand_by_batches(fitted, measured, sets, routed, config, problem)
    put_standing(work.attempt, standing)
    # Sets that see different columns are not to agree.
    stability = None if config.views[view].separate else effort_stability(measured, average)
    return work.attempt.record(stability=stability, maps=len(standing.fitted.maps))


def _routes(work: Work, blocks: list[Json]) -> Floats:
    return np.concatenate([work.array(block, "routes") for block in blocks])


def share_company(work: Work, *, part: Json, method: str, fitted: Json) -> Record:
    """Average the rarity of the sample's rows with that of their neighbours."""
    config = method_of(method)
    standings = ViewRecords(**fitted).standings(work, config)
    view = config.company_view
    assert view is not None  # there is no such task otherwise
    points = standings[view].fitted.view.apply(work.array(part, "rows"))
    shared = share_rarity(points, view, standings, config)
    put_company(work.attempt, shared.company)
    work.attempt.put_array("seen", shared.seen)
    work.attempt.put_array("unseen", shared.unseen)
    return work.attempt.record()
