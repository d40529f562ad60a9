"""Routes of new rows against a loop, the prices they follow, and the two ways of searching."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import spearmanr

from mrot_scale.errors import SolverError
from mrot_scale.method import anchors as anchors_module
from mrot_scale.method.anchors import (
    LIFT_COLUMNS,
    AnchorSet,
    Search,
    fit_anchor_set,
    lifted_search_is_safe,
    route_costs,
)
from mrot_scale.method.efforts import Problem, transport_efforts
from mrot_scale.method.strata import draw_evenly
from mrot_scale.method.transport import solve_plan
from tests import oracle
from tests.strategies import any_clouds, clouds, examples, seeds

Floats = NDArray[np.float64]


def _fit(points: Floats, problem: Problem) -> AnchorSet:
    return fit_anchor_set(points, np.arange(len(points)), problem, "anchor set 0")


def _gaussian(seed: int, n_rows: int, n_columns: int) -> Floats:
    return np.random.default_rng(seed).normal(size=(n_rows, n_columns))


def _slow_route(anchors: AnchorSet, row: Floats, k: int) -> float:
    """Return the distance to the cheapest anchor after prices, the k nearest being closed."""
    distance = [oracle.pair_distance(row, anchor) for anchor in anchors.rows]
    order = sorted(range(len(distance)), key=lambda j: (distance[j], j))
    best, target = np.inf, -1
    for j in sorted(order[k:]):
        if distance[j] - anchors.v[j] < best:
            best, target = distance[j] - anchors.v[j], j
    return distance[target]


# --- routes against loops ------------------------------------------------------------------------


@examples(60)
@given(clouds(min_rows=8, max_rows=20), st.integers(1, 5), seeds)
def test_routes_are_those_of_a_loop(points: Floats, k: int, seed: int) -> None:
    problem = Problem(k=k)
    anchors = _fit(points, problem)
    rows = _gaussian(seed, 5, points.shape[1]) * 2
    expected = [_slow_route(anchors, row, k) for row in rows]
    np.testing.assert_allclose(route_costs(anchors, rows, problem), expected, rtol=1e-12)


@pytest.mark.parametrize(("alpha", "k"), [(0.04, 2), (0.1, 3), (0.3, 9)])
def test_the_zone_holds_a_share_of_the_anchors(alpha: float, k: int) -> None:
    anchors = _fit(_gaussian(0, 30, 3), Problem(alpha=alpha))
    rows = _gaussian(1, 6, 3)
    expected = [_slow_route(anchors, row, k) for row in rows]
    found = route_costs(anchors, rows, Problem(alpha=alpha))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_prices_change_routes() -> None:
    anchors = _fit(_gaussian(2, 40, 2), Problem(k=3))
    free = AnchorSet(anchors.rows, np.zeros(40), anchors.ids, 0.0)
    rows = _gaussian(3, 50, 2)
    priced, unpriced = (
        route_costs(anchors, rows, Problem(k=3)),
        route_costs(free, rows, Problem(k=3)),
    )
    assert (priced >= unpriced).all()
    assert (priced > unpriced).sum() > 10
    table = np.array([[oracle.pair_distance(row, a) for a in anchors.rows] for row in rows])
    np.testing.assert_allclose(unpriced, np.sort(table, axis=1)[:, 3], rtol=1e-12)


@pytest.mark.parametrize("search", ["dense", "lifted"])
def test_no_price_opens_the_zone(search: Literal["dense", "lifted"]) -> None:
    """A row that is no anchor cannot stay put, however well an anchor in its zone would pay."""
    rows = np.arange(8.0)[:, None]
    prices = np.array([1e4, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    anchors = AnchorSet(rows, prices, np.arange(8), 0.0)
    near, far = np.array([[0.1]]), np.array([[5.1]])
    assert route_costs(anchors, near, Problem(k=2), search=search)[0] == pytest.approx(1.9**2)
    assert route_costs(anchors, far, Problem(k=2), search=search)[0] == pytest.approx(5.1**2)


def test_routes_in_a_ball_avoid_the_open_ball_and_may_find_nothing_outside() -> None:
    points = _gaussian(4, 12, 2)
    problem = Problem(radius=1.5)
    anchors = _fit(points, problem)
    on_the_edge = points[0] + np.array([1.5, 0.0])
    rows = np.vstack([_gaussian(5, 5, 2), on_the_edge, [[50.0, 50.0]]])
    for row, found in zip(rows, route_costs(anchors, rows, problem), strict=True):
        distance = np.array([oracle.pair_distance(row, a) for a in points])
        outside = np.flatnonzero(distance >= 1.5**2)
        target = outside[np.argmin(distance[outside] - anchors.v[outside])]
        assert found == pytest.approx(distance[target], rel=1e-12)
    everywhere = Problem(radius=1e3)  # all anchors are inside: the ceiling is what is left
    found = route_costs(anchors, rows, everywhere)
    furthest = [max(oracle.pair_distance(row, a) for a in points) for row in rows]
    np.testing.assert_allclose(found, furthest, rtol=1e-12)


def test_the_sup_over_the_zone_gives_the_distance_to_the_kth_anchor() -> None:
    problem = Problem(k=4, ceiling="zone")
    anchors = _fit(_gaussian(6, 25, 3), problem)
    rows = _gaussian(7, 8, 3)
    table = np.array([[oracle.pair_distance(row, a) for a in anchors.rows] for row in rows])
    np.testing.assert_allclose(
        route_costs(anchors, rows, problem), np.sort(table, axis=1)[:, 3], rtol=1e-12
    )


def test_a_given_ceiling_may_be_paid_to_stay_in_the_zone() -> None:
    problem = Problem(k=4, ceiling=0.5)
    anchors = _fit(_gaussian(8, 25, 3), problem)
    rows = _gaussian(9, 40, 3)
    found = route_costs(anchors, rows, problem)
    for row, effort in zip(rows, found, strict=True):
        distance = np.array([oracle.pair_distance(row, a) for a in anchors.rows])
        cost = distance.copy()
        cost[np.argsort(distance)[:4]] = 0.5
        assert effort == pytest.approx(cost[np.argmin(cost - anchors.v)], rel=1e-12)
    assert (found == 0.5).any()


def test_coulomb_routes() -> None:
    problem = Problem(kind="coulomb")
    anchors = _fit(_gaussian(10, 25, 3), problem)
    rows = _gaussian(11, 20, 3)
    for row, effort in zip(rows, route_costs(anchors, rows, problem), strict=True):
        distance = np.array([oracle.pair_distance(row, a) for a in anchors.rows])
        cost = 1 / (1 + np.sqrt(distance))
        assert effort == pytest.approx(cost[np.argmin(cost - anchors.v)], rel=1e-12)


def test_entropic_routes_are_means_under_the_plans_law() -> None:
    problem = Problem(k=4, eps=0.3)
    anchors = _fit(_gaussian(12, 25, 3), problem)
    assert anchors.eps > 0
    rows = _gaussian(13, 10, 3)
    for row, effort in zip(rows, route_costs(anchors, rows, problem), strict=True):
        distance = np.array([oracle.pair_distance(row, a) for a in anchors.rows])
        cost = distance.copy()
        cost[np.argsort(distance)[:4]] = distance.max()
        shares = np.exp((anchors.v - cost) / anchors.eps)
        assert effort == pytest.approx(float(shares @ cost / shares.sum()), rel=1e-9)


def test_entropic_routes_of_far_rows_are_finite() -> None:
    anchors = _fit(_gaussian(14, 25, 2), Problem(k=4, eps=0.1))
    efforts = route_costs(anchors, np.array([[1e3, 0.0], [1e6, 0.0]]), Problem(k=4, eps=0.1))
    assert np.isfinite(efforts).all()
    assert efforts[0] < efforts[1]


def test_routes_do_not_depend_on_the_other_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    anchors = _fit(_gaussian(15, 20, 3), Problem(k=3))
    rows = _gaussian(16, 50, 3)
    whole = route_costs(anchors, rows, Problem(k=3))
    alone = np.array([route_costs(anchors, row[None], Problem(k=3))[0] for row in rows])
    np.testing.assert_array_equal(whole, alone)
    monkeypatch.setattr(anchors_module, "_BLOCK_ROWS", 7)
    np.testing.assert_array_equal(route_costs(anchors, rows, Problem(k=3)), whole)


@pytest.mark.parametrize("search", ["dense", "lifted", "auto"])
def test_no_rows_have_no_routes(search: Literal["dense", "lifted", "auto"]) -> None:
    anchors = _fit(_gaussian(17, 20, 70), Problem(k=3))
    found = route_costs(anchors, np.zeros((0, 70)), Problem(k=3), search=search)
    assert found.shape == (0,)


# --- prices --------------------------------------------------------------------------------------


@examples(80)
@given(any_clouds(), st.integers(1, 3))
def test_prices_are_dual_feasible_and_tight_on_the_plan(points: Floats, k: int) -> None:
    problem = Problem(k=k)
    cost = problem.cost(points)
    plan = solve_plan(cost)
    anchors = _fit(points, problem)
    np.testing.assert_array_equal(anchors.v, plan.v)
    slack = cost - (plan.u[:, None] + anchors.v)
    tolerance = 1e-9 * max(float(cost.max()), 1.0)
    assert slack.min() >= -tolerance
    assert np.abs(slack[plan.matrix > 1e-9]).max() <= tolerance
    assert anchors.eps == 0.0


def test_prices_lead_the_anchors_themselves_along_their_plan() -> None:
    """With the zones of the plan, following prices costs each anchor what the plan costs it."""
    points = _gaussian(18, 30, 3)
    cost = Problem(k=3).cost(points)
    assert oracle.has_one_optimum(cost)
    anchors = _fit(points, Problem(k=3))
    priced = cost - anchors.v
    efforts = transport_efforts(points, Problem(k=3))
    cheapest = priced.min(axis=1, keepdims=True)
    for i in range(30):
        tight = cost[i][priced[i] <= cheapest[i] + 1e-9]
        assert np.isclose(tight, efforts[i], rtol=1e-9).any()


def test_routes_rank_unseen_rows_like_their_own_plan() -> None:
    """Spearman against the effort in a plan that contains the row (the method page: above .94)."""
    rng = np.random.default_rng(19)
    train, rows = rng.standard_t(4, size=(2_000, 4)), rng.standard_t(4, size=(60, 4))
    problem = Problem(k=5)
    logs, matched = [], []
    for ids in draw_evenly(train, 128, 8, 0):
        chosen = train[ids]
        anchors = fit_anchor_set(chosen, ids, problem, "set")
        logs.append(np.log(route_costs(anchors, rows, problem)))
        own = [transport_efforts(np.vstack([chosen, row]), problem)[-1] for row in rows]
        matched.append(np.log(own))
    routes, plans = np.mean(logs, axis=0), np.mean(matched, axis=0)
    assert spearmanr(routes, plans).statistic > 0.94


def test_an_anchor_set_keeps_its_rows_and_ids() -> None:
    points, ids = _gaussian(20, 12, 2), np.arange(100, 112)
    anchors = fit_anchor_set(points, ids, Problem(k=2), "anchor set 0")
    np.testing.assert_array_equal(anchors.rows, points)
    np.testing.assert_array_equal(anchors.ids, ids)


def test_an_anchor_set_can_be_solved_with_radii() -> None:
    points = _gaussian(21, 15, 2)
    radii = np.linspace(0.2, 3.0, 15)
    D = oracle.distances(points)
    cost = oracle.repelling_cost(D, oracle.open_ball_zone(D, radii))
    anchors = fit_anchor_set(points, np.arange(15), Problem(), "anchor set 0", radii)
    np.testing.assert_allclose(anchors.v, solve_plan(cost).v, rtol=1e-9, atol=1e-9)


def test_a_spoilt_anchor_set_is_refused_by_name() -> None:
    points = _gaussian(22, 12, 2)
    points[4, 0] = np.nan
    with pytest.raises(SolverError, match="anchor set 3"):
        fit_anchor_set(points, np.arange(12), Problem(k=2), "anchor set 3")


# --- lifted search -------------------------------------------------------------------------------


SEARCHES: tuple[Search, ...] = ("dense", "compiled", "lifted")


def _wide(law: str, seed: int, n_rows: int, n_columns: int) -> Floats:
    rng = np.random.default_rng(seed)
    if law == "binary":
        return (rng.random((n_rows, n_columns)) < 0.1).astype(np.float64)
    rows = rng.normal(size=(n_rows, n_columns))
    return rows + 30.0 * rng.integers(0, 4, n_rows)[:, None] if law == "clusters" else rows + 1e3


@pytest.mark.parametrize("law", ["gaussian", "clusters", "binary"])
@pytest.mark.parametrize("n_columns", [64, 300])
def test_lifted_search_equals_dense(law: str, n_columns: int) -> None:
    anchors = _fit(_wide(law, 23, 256, n_columns), Problem(k=10))
    rows = np.vstack([_wide(law, 24, 700, n_columns), anchors.rows])
    dense = route_costs(anchors, rows, Problem(k=10), search="dense")
    lifted = route_costs(anchors, rows, Problem(k=10), search="lifted")
    np.testing.assert_array_equal(lifted, dense)


def test_lifted_search_is_used_on_wide_rows() -> None:
    anchors = _fit(_gaussian(23, 40, LIFT_COLUMNS), Problem(k=5))
    assert lifted_search_is_safe(anchors, Problem(k=5))
    rows = _gaussian(24, 30, LIFT_COLUMNS)
    np.testing.assert_array_equal(
        route_costs(anchors, rows, Problem(k=5)),
        route_costs(anchors, rows, Problem(k=5), search="dense"),
    )


@pytest.mark.parametrize(
    ("n_columns", "problem", "reach"),
    [
        pytest.param(8, Problem(k=5), 1.0, id="narrow"),
        pytest.param(LIFT_COLUMNS, Problem(k=5), 1e3, id="one-isolated-anchor"),
        pytest.param(LIFT_COLUMNS, Problem(radius=3.0), 1.0, id="ball"),
        pytest.param(LIFT_COLUMNS, Problem(k=5, ceiling="zone"), 1.0, id="sup-over-the-zone"),
        pytest.param(LIFT_COLUMNS, Problem(k=5, ceiling=9.0), 1.0, id="given-ceiling"),
        pytest.param(LIFT_COLUMNS, Problem(kind="coulomb"), 1.0, id="coulomb"),
        pytest.param(LIFT_COLUMNS, Problem(k=5, eps=0.5), 1.0, id="entropic"),
    ],
)
def test_lifted_search_is_left_alone_where_it_would_be_wrong(
    n_columns: int, problem: Problem, reach: float
) -> None:
    points = _gaussian(25, 100, n_columns)
    points[0] *= reach
    anchors = _fit(points, problem)
    assert not lifted_search_is_safe(anchors, problem)
    rows = _gaussian(26, 20, n_columns)
    np.testing.assert_array_equal(
        route_costs(anchors, rows, problem), route_costs(anchors, rows, problem, search="dense")
    )


# --- routes that are equally good ----------------------------------------------------------------


def _two_values(share: float, n_anchors: int = 100) -> Floats:
    """A value that most anchors have, and a rarer one that the others must fill."""
    return (np.arange(n_anchors) < share * n_anchors).astype(np.float64)[:, None]


@pytest.mark.parametrize("search", ["dense", "compiled"])
def test_a_common_value_stays_among_its_copies(search: Literal["dense", "compiled"]) -> None:
    """Some of its anchors fill the rarer value, at prices that make both ways equally good."""
    anchors = _fit(_two_values(0.06), Problem(alpha=0.1))
    rows = np.array([[0.0], [1.0]])
    np.testing.assert_array_equal(
        route_costs(anchors, rows, Problem(alpha=0.1), search=search), [0.0, 1.0]
    )


@examples(60)
@given(st.integers(2, 5), st.integers(30, 90), seeds)
def test_routes_of_repeated_values_do_not_hang_on_rounding(
    n_values: int, n_anchors: int, seed: int
) -> None:
    """Prices with other last bits lead the same way."""
    rng = np.random.default_rng(seed)
    points = rng.integers(0, n_values, (n_anchors, 2)).astype(np.float64)
    rows, problem = np.unique(points, axis=0), Problem(alpha=0.1)
    anchors = _fit(points, problem)
    rounding = 1e-13 * np.ptp(anchors.v) * rng.uniform(-1, 1, n_anchors)
    found = route_costs(replace(anchors, v=anchors.v + rounding), rows, problem)
    np.testing.assert_array_equal(found, route_costs(anchors, rows, problem))


def test_the_shortest_of_equal_routes_is_the_same_by_every_search() -> None:
    rng = np.random.default_rng(27)
    points, rows = (rng.integers(0, 3, (n, 6)).astype(np.float64) for n in (128, 400))
    anchors = _fit(points, Problem(k=6))
    dense, compiled, lifted = (
        route_costs(anchors, rows, Problem(k=6), search=search) for search in SEARCHES
    )
    np.testing.assert_array_equal(compiled, dense)
    np.testing.assert_array_equal(lifted, dense)
