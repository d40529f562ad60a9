"""An effort for any row, without a new plan.

A plan between `m` anchor rows leaves a price `v` at each anchor. A new row goes to the anchor
outside its zone where distance less price is smallest, and its effort is the distance it travels.

Where values repeat, prices make whole groups of anchors equally good: a value that many rows have
must fill a rarer one next to it, and each of those rows may as well be the one to go there or to
stay among its copies. Then it goes to the nearest; rounding does not decide.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mrot_scale.method.batches import zone_count
from mrot_scale.method.cost import (
    Bools,
    coulomb_cost,
    engineered_cost,
    nearest_zone,
    smallest_in_each_row,
    squared_distances,
)
from mrot_scale.method.efforts import Problem
from mrot_scale.method.neighbours import LiftedAnchors
from mrot_scale.method.relative import (
    log_levels,
    relative_efforts,
    routes_and_sums,
    sums_over_zones,
)
from mrot_scale.method.routing import WORTH_COMPILING, can_route, routes_outside_nearest
from mrot_scale.method.transport import Plan, plan_efforts, robust_scale, solve_plan
from mrot_scale.seeds import generator

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
Search = Literal["auto", "dense", "lifted", "compiled"]

LIFT_LIMIT = 100.0
"""Largest price range, in median squared distances, at which float32 still ranks well."""

LIFT_COLUMNS = 1_024
"""Fewest columns at which the lifted search is the faster one (python -m benchmarks.solvers)."""

SEPARATE_COLUMNS = 128
"""Most columns that are looked at one by one: all of a table that is not wide."""

SLACK = 1e-9
"""Routes are equally good up to this share of the range of the prices, which is rounding."""

_BLOCK_ROWS = 4_096
_CANDIDATE_BLOCK = 512
_SPARE_HITS = 8
_FLOAT32_MARGIN = 1e-5


@dataclass(frozen=True)
class AnchorSet:
    """Anchor rows in a view's coordinates, with the prices their plan left."""

    rows: Floats
    """Anchors, shape (m, q)."""

    v: Floats
    """Price of each anchor, shape (m,)."""

    ids: Ids
    """Row number of each anchor in the sample it was drawn from, shape (m,)."""

    eps: float
    """Entropic regularisation of the plan, in units of squared distance; 0 for exact."""

    columns: Ids | None = None
    """Coordinates of the view this set lives in; all when omitted."""

    efforts: Floats | None = None
    """Effort of each anchor among the others, shape (m,): what the efforts of rows sent here are
    relative to. None where efforts stand for themselves."""

    slack: float = 0.0
    """Difference between priced routes that is rounding; 0 in models of before."""

    def among(self, rows: Floats) -> Floats:
        """Return rows of the view in the coordinates of this set."""
        return rows if self.columns is None else np.ascontiguousarray(rows[:, self.columns])

    @cached_property
    def price_range(self) -> float:
        """Range of the prices in median squared distances."""
        unit = robust_scale(squared_distances(self.rows, self.rows))
        return float(self.v.max() - self.v.min()) / unit


def separate_columns(n_columns: int, n_sets: int) -> Ids:
    """Return the column of each anchor set where columns are looked at one by one.

    Each column has as many sets as the others, together at least `n_sets`. Of very many columns it
    is a draw, another one for each number of them: a column that happens not to vary changes it.
    """
    drawn = generator(0, "columns").permutation(n_columns)[:SEPARATE_COLUMNS]
    return np.tile(np.sort(drawn), -(-n_sets // len(drawn)))


def fit_anchor_set(
    rows: Floats,
    ids: Ids,
    problem: Problem,
    name: str,
    squared_radii: Floats | None = None,
    columns: Ids | None = None,
) -> AnchorSet:
    """Solve the problem between the anchors and keep what routing a new row needs."""
    points = rows if columns is None else np.ascontiguousarray(rows[:, columns])
    cost = problem.cost(points, squared_radii=squared_radii)
    plan = solve_plan(cost, eps=problem.eps, name=name)
    slack = SLACK * float(np.ptp(plan.v))
    solved = AnchorSet(points, plan.v, ids, plan.eps, columns, slack=slack)
    if not problem.relative:
        return solved
    return replace(solved, efforts=_own_efforts(solved, plan, cost, problem))


def _own_efforts(anchors: AnchorSet, plan: Plan, cost: Floats, problem: Problem) -> Floats:
    """Return the effort of each anchor in their plan, by its best way out if it stays in its zone.

    Of many equal anchors a few are left no place outside and pay the ceiling, which says nothing
    of where they are.
    """
    D = squared_distances(anchors.rows, anchors.rows)
    zone = nearest_zone(D, _zone_count(len(D), problem))
    stays = (plan.matrix * zone).sum(axis=1) > plan.matrix.sum(axis=1) / 2
    return np.where(stays, _routes_by_zone(D, zone, anchors, problem), plan_efforts(plan, cost))


def route_matrix(
    anchor_sets: Sequence[AnchorSet],
    rows: Floats,
    problem: Problem,
    *,
    threads: int = 1,
    on_set: Callable[[], None] | None = None,
) -> Floats:
    """Return the effort of each row against each anchor set, shape (n, sets)."""

    many = len(rows) * len(anchor_sets) >= WORTH_COMPILING

    def column(anchors: AnchorSet) -> Floats:
        points, search = anchors.among(rows), _search_for(anchors, problem, many=many)
        if points.shape[1] > 1:
            return route_costs(anchors, points, problem, search=search)
        # In one column equal values go the same way, and a column may hold few different ones.
        values, place = np.unique(points, return_inverse=True)
        found = route_costs(anchors, values[:, None], problem, search=search)
        return found[place.reshape(-1)]

    efforts = np.empty((len(rows), len(anchor_sets)))
    with ThreadPoolExecutor(threads) as pool:
        for position, found in enumerate(pool.map(column, anchor_sets)):
            efforts[:, position] = found
            if on_set:
                on_set()
    return efforts


def _search_for(anchors: AnchorSet, problem: Problem, *, many: bool) -> Search:
    """Return the fastest way to the same bits."""
    if lifted_search_is_safe(anchors, problem):
        return "lifted"
    return "compiled" if many and can_be_compiled(anchors, problem) and can_route() else "dense"


def route_costs(
    anchors: AnchorSet,
    rows: Floats,
    problem: Problem,
    *,
    search: Search = "auto",
) -> Floats:
    """Return the effort of each row against the anchors, shape (n,)."""
    if search == "auto":
        search = _search_for(anchors, problem, many=False)
    if search == "lifted":
        return _lifted_routes(anchors, rows, problem)
    if search == "compiled":
        count = _zone_count(len(anchors.rows), problem)
        if anchors.efforts is None:
            return routes_outside_nearest(rows, anchors.rows, anchors.v, count, anchors.slack)
        levels = log_levels(anchors.efforts)
        found, sums = routes_and_sums(rows, anchors.rows, anchors.v, count, anchors.slack, levels)
        return relative_efforts(found, sums, count, anchors.efforts)
    blocks = range(0, len(rows), _BLOCK_ROWS)
    parts = [_dense_routes(anchors, rows[s : s + _BLOCK_ROWS], problem) for s in blocks]
    return np.concatenate(parts) if parts else np.zeros(0)


def lifted_search_is_safe(anchors: AnchorSet, problem: Problem) -> bool:
    """Tell whether one FAISS search in an extra dimension ranks anchors well, and pays."""
    by_rank = problem.kind == "engineered" and problem.radius is None and problem.ceiling == "max"
    if not by_rank or anchors.eps > 0 or anchors.rows.shape[1] < LIFT_COLUMNS:
        return False
    return anchors.price_range < LIFT_LIMIT


def _dense_routes(anchors: AnchorSet, rows: Floats, problem: Problem) -> Floats:
    D = squared_distances(rows, anchors.rows)
    if problem.kind == "coulomb":
        return _routes_at(coulomb_cost(D), anchors)
    zone = zone_among_anchors(D, problem)
    efforts = _routes_by_zone(D, zone, anchors, problem)
    if anchors.efforts is None:
        return efforts
    zone_ids = np.nonzero(zone)[1].reshape(len(D), _zone_count(D.shape[1], problem))
    return _relative(efforts, zone_ids, anchors.efforts)


def _relative(efforts: Floats, zone_ids: Ids, anchor_efforts: Floats) -> Floats:
    sums = sums_over_zones(log_levels(anchor_efforts), zone_ids)
    return relative_efforts(efforts, sums, zone_ids.shape[1], anchor_efforts)


def _routes_by_zone(D: Floats, zone: Bools, anchors: AnchorSet, problem: Problem) -> Floats:
    if problem.ceiling == "max" and anchors.eps == 0:
        return _routes_outside(D, zone, anchors)
    if problem.ceiling == "zone":  # staying put is optimal: the effort is the zone's reach
        return np.asarray(np.where(zone, D, 0.0).max(axis=1))
    return _routes_at(engineered_cost(D, zone, problem.ceiling), anchors)


def _routes_outside(D: Floats, zone: Bools, anchors: AnchorSet) -> Floats:
    """Return the cost of each row's cheapest route after prices to an anchor outside its zone.

    A row that is no anchor cannot stay put. Where all anchors are in the zone, it pays the ceiling.
    """
    priced = D - anchors.v
    priced[zone] = np.inf
    shut_in = np.isinf(priced.min(axis=1))
    return np.where(shut_in, D.max(axis=1), shortest_of_best(D, priced, anchors.slack))


def shortest_of_best(cost: Floats, priced: Floats, slack: float) -> Floats:
    """Return the least cost among each row's routes that are best after prices, but for slack."""
    return np.take_along_axis(cost, best_targets(cost, priced, slack)[:, None], axis=1)[:, 0]


def best_targets(cost: Floats, priced: Floats, slack: float) -> Ids:
    """Return where each row goes: of the routes best after prices, but for slack, the shortest."""
    best = priced.min(axis=1, keepdims=True)
    return np.asarray(np.where(priced <= best + slack, cost, np.inf).argmin(axis=1))


def _routes_at(cost: Floats, anchors: AnchorSet) -> Floats:
    """Return the cost of each row's route: the cheapest after prices, or their soft mean."""
    if anchors.eps > 0:
        return _soft_routes(cost, anchors)
    return shortest_of_best(cost, cost - anchors.v, anchors.slack)


def zone_among_anchors(D: Floats, problem: Problem) -> Bools:
    """Return which anchors are in the zone of each row that is none of them."""
    if problem.radius is not None:
        return np.asarray(problem.radius**2 > D)
    n_anchors = D.shape[1]
    return smallest_in_each_row(D, _zone_count(n_anchors, problem))


def _zone_count(n_anchors: int, problem: Problem) -> int:
    """Return how many anchors are in the zone of a row that is none of them."""
    return min(zone_count(n_anchors, problem.alpha, problem.k), n_anchors - 1)


def can_be_compiled(anchors: AnchorSet, problem: Problem) -> bool:
    """Tell whether routes are of the plain kind that compiled code knows."""
    plain = problem.kind == "engineered" and problem.radius is None and problem.ceiling == "max"
    return plain and anchors.eps == 0 and _zone_count(len(anchors.rows), problem) > 0


def _soft_routes(cost: Floats, anchors: AnchorSet) -> Floats:
    """Return the mean cost under the entropic plan's conditional law over anchors."""
    logits = (anchors.v - cost) / anchors.eps
    logits -= logits.max(axis=1, keepdims=True)
    shares = np.exp(logits)
    return np.asarray((shares * cost).sum(axis=1) / shares.sum(axis=1))


def _lifted_routes(anchors: AnchorSet, rows: Floats, problem: Problem) -> Floats:
    """Route by FAISS: its hits are candidates, zone and route are decided among them in float64.

    Rows for which float32 may have missed a candidate (ties, near ties) are routed densely.
    """
    index = LiftedAnchors(anchors.rows, anchors.v)
    count = min(zone_count(len(anchors.rows), problem.alpha, problem.k), len(anchors.rows) - 1)
    efforts = np.empty(len(rows))
    for start in range(0, len(rows), _CANDIDATE_BLOCK):
        block = rows[start : start + _CANDIDATE_BLOCK]
        found, doubtful = _routes_among_hits(anchors, index, block, count)
        if doubtful.any():
            found[doubtful] = _dense_routes(anchors, block[doubtful], problem)
        efforts[start : start + len(block)] = found
    return efforts


def _routes_among_hits(
    anchors: AnchorSet, index: LiftedAnchors, rows: Floats, count: int
) -> tuple[Floats, Bools]:
    """Return the route costs by FAISS's hits, and which of them float32 leaves in doubt."""
    fetched = min(count + 1 + _SPARE_HITS, len(anchors.rows))
    # Ascending ids, so that ties go to the lower one as everywhere.
    near = np.sort(index.nearest(rows, fetched), axis=1)
    hits = np.sort(index.cheapest(rows, fetched), axis=1)
    near_D, hit_D = _distances_to(rows, anchors.rows, near), _distances_to(rows, anchors.rows, hits)
    inside = smallest_in_each_row(near_D, count)
    zone_ids = near[inside].reshape(len(rows), count)
    in_zone = (hits[:, :, None] == zone_ids[:, None, :]).any(axis=2)
    priced = hit_D - anchors.v[hits]
    open_priced = np.where(in_zone, np.inf, priced)
    best = open_priced.min(axis=1)
    reach, farthest = np.where(inside, near_D, 0.0).max(axis=1), near_D.max(axis=1)
    margin = _FLOAT32_MARGIN * (farthest + np.abs(priced).max(axis=1))
    doubtful = (farthest - reach < margin) | (priced.max(axis=1) - best < margin + anchors.slack)
    doubtful &= fetched < len(anchors.rows)
    found = shortest_of_best(hit_D, open_priced, anchors.slack)
    if anchors.efforts is not None:
        found = _relative(found, zone_ids, anchors.efforts)
    return found, doubtful | np.isinf(best)


def _distances_to(rows: Floats, anchors: Floats, ids: Ids) -> Floats:
    """Return the squared distance of each row to its own candidates, in the usual bits."""
    pairs = zip(rows[:, None, :], ids, strict=True)
    return np.concatenate([squared_distances(row, anchors[some]) for row, some in pairs])
