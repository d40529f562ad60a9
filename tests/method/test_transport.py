"""Plans and efforts against an oracle written apart from the package, and what must be refused."""

import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mrot_scale.errors import ConfigError, DataError, SolverError
from mrot_scale.method import transport
from mrot_scale.method.cost import (
    Ceiling,
    ball_zone,
    engineered_cost,
    nearest_zone,
    squared_distances,
)
from mrot_scale.method.efforts import Problem
from mrot_scale.method.transport import (
    best_receivers,
    efforts_of,
    normalised_weights,
    plan_efforts,
    robust_scale,
    solve_plan,
)
from tests import oracle
from tests.strategies import any_clouds, clouds, examples, weighted_clouds

Floats = NDArray[np.float64]

ceilings = st.sampled_from(["max", "max", "zone", 2.5])


def _cost(points: Floats, k: int) -> Floats:
    """Return the oracle's cost, for tests in which the package's cost is not the matter."""
    D = oracle.distances(points)
    return oracle.repelling_cost(D, oracle.k_zone(D, min(k, len(D) - 2)))


def _random_cost(seed: int, n_rows: int = 8) -> Floats:
    return _cost(np.random.default_rng(seed).normal(size=(n_rows, 2)), 2)


def _assert_total(found: float, expected: float, relative: float) -> None:
    assert found == pytest.approx(expected, rel=relative, abs=1e-12)


# --- the total cost of exact plans, against the oracle -------------------------------------------


@examples(300)
@given(any_clouds(), st.integers(1, 4), ceilings)
def test_exact_total_with_uniform_weights(points: Floats, k: int, ceiling: Ceiling) -> None:
    """Network simplex and assignment solver against the oracle, the same zones given to both."""
    D = squared_distances(points, points)
    zone = nearest_zone(D, min(k, len(D) - 2))
    expected = oracle.assignment_total(oracle.repelling_cost(D, zone, ceiling))
    cost = engineered_cost(D, zone, ceiling)
    plan = solve_plan(cost)
    _assert_total(float((plan.matrix * cost).sum()), expected, 1e-9)
    _assert_total(float(efforts_of(cost).mean()), expected, 1e-9)


@examples(150)
@given(weighted_clouds(max_rows=9), st.integers(1, 4), ceilings)
def test_exact_total_with_given_weights(
    table: tuple[Floats, Floats], k: int, ceiling: Ceiling
) -> None:
    points, weights = table
    D = squared_distances(points, points)
    zone = nearest_zone(D, min(k, len(D) - 2))
    expected = oracle.program_total(oracle.repelling_cost(D, zone, ceiling), weights)
    cost = engineered_cost(D, zone, ceiling)
    plan = solve_plan(cost, weights=weights)
    _assert_total(float((plan.matrix * cost).sum()), expected, 1e-7)
    efforts = efforts_of(cost, weights=weights)
    _assert_total(float(efforts @ (weights / weights.sum())), expected, 1e-7)


@examples(100)
@given(any_clouds(), st.data())
def test_exact_total_with_ball_zones(points: Floats, data: Any) -> None:
    D = squared_distances(points, points)
    radii = D[np.arange(len(D)), data.draw(st.permutations(range(len(D))))]
    zone = ball_zone(D, radii)
    expected = oracle.assignment_total(oracle.repelling_cost(D, zone))
    cost = engineered_cost(D, zone)
    _assert_total(float((solve_plan(cost).matrix * cost).sum()), expected, 1e-9)
    _assert_total(float(efforts_of(cost).mean()), expected, 1e-9)


@pytest.mark.parametrize("unit", [1e-12, 1e-3, 1e6, 1e15])
def test_exact_total_in_any_unit(unit: float) -> None:
    for seed in range(10):
        cost = _random_cost(seed, 12) * unit
        expected = oracle.assignment_total(cost)
        plan = solve_plan(cost)
        assert float((plan.matrix * cost).sum()) == pytest.approx(expected, rel=1e-9)
        duals = float((plan.u + plan.v).mean())
        assert duals == pytest.approx(expected, rel=1e-9)


@examples(60)
@given(any_clouds(), st.integers(1, 4))
def test_best_receivers_are_a_cheapest_permutation(points: Floats, k: int) -> None:
    cost = _cost(points, k)
    receivers = best_receivers(cost)
    assert sorted(receivers.tolist()) == list(range(len(cost)))
    found = float(cost[np.arange(len(cost)), receivers].mean())
    _assert_total(found, oracle.assignment_total(cost), 1e-9)


def test_tables_too_large_for_the_assignment_route_cost_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cost = _random_cost(1, 30)
    by_assignment = efforts_of(cost)
    monkeypatch.setattr(transport, "ASSIGNMENT_ROWS", 29)
    monkeypatch.setattr(transport, "best_receivers", None)
    by_plan = efforts_of(cost)
    np.testing.assert_allclose(np.sort(by_plan), np.sort(by_assignment), rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_both_exact_routes_agree_on_larger_problems(seed: int) -> None:
    points = np.random.default_rng(seed).standard_t(2, size=(120, 3))
    D = squared_distances(points, points)
    cost = engineered_cost(D, nearest_zone(D, 5))
    plan = solve_plan(cost)
    expected = oracle.assignment_total(cost)
    assert float((plan.matrix * cost).sum()) == pytest.approx(expected, rel=1e-9)
    assert float(efforts_of(cost).mean()) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("route", ["assignment", "plan"])
@pytest.mark.parametrize("reach", [1e2, 1e4, 1e6, 1e8])
def test_one_far_row_does_not_spoil_the_efforts_of_the_others(reach: float, route: str) -> None:
    """A total that the far row dominates says nothing about them: look at what they pay."""
    for seed in range(5):
        points = np.random.default_rng(seed).normal(size=(60, 3))
        points[0] *= reach
        cost = _cost(points, 3)
        efforts = (
            efforts_of(cost) if route == "assignment" else plan_efforts(solve_plan(cost), cost)
        )
        # The far row and those who serve it apart; sums, since odd cycles have two directions.
        found, expected = np.sort(efforts)[:-4], np.sort(oracle.lone_efforts(cost))[:-4]
        assert float(found.sum()) == pytest.approx(float(expected.sum()), rel=1e-6)


@pytest.mark.parametrize("reach", [1e2, 1e4, 1e6, 1e8])
def test_one_far_row_does_not_spoil_the_prices_between_the_others(reach: float) -> None:
    for seed in range(5):
        points = np.random.default_rng(seed).normal(size=(60, 3))
        points[0] *= reach
        cost = _cost(points, 3)
        plan = solve_plan(cost)
        slack = cost[1:, 1:] - (plan.u[1:, None] + plan.v[1:])
        assert slack.min() >= -1e-4  # where ordinary distances are about 1


# --- marginals, efforts and duals ----------------------------------------------------------------


@examples(100)
@given(weighted_clouds(), st.integers(1, 4), st.sampled_from([0.0, 0.2, 1.0]))
def test_plans_move_the_right_mass(table: tuple[Floats, Floats], k: int, eps: float) -> None:
    points, weights = table
    plan = solve_plan(_cost(points, k), weights=weights, eps=eps)
    shares = weights / weights.sum()
    assert (plan.matrix >= 0).all()
    np.testing.assert_allclose(plan.matrix.sum(axis=1), shares, atol=1e-6, rtol=0)
    np.testing.assert_allclose(plan.matrix.sum(axis=0), shares, atol=1e-6, rtol=0)
    if eps == 0:
        np.testing.assert_allclose(plan.matrix.sum(axis=1), shares, rtol=1e-9)
        np.testing.assert_allclose(plan.matrix.sum(axis=0), shares, rtol=1e-9)


@examples(100)
@given(weighted_clouds(), st.integers(1, 4), st.sampled_from([0.0, 0.2, 1.0]))
def test_efforts_sum_to_the_transport_cost(
    table: tuple[Floats, Floats], k: int, eps: float
) -> None:
    points, weights = table
    cost = _cost(points, k)
    plan = solve_plan(cost, weights=weights, eps=eps)
    total = float((plan.matrix * cost).sum())
    efforts = efforts_of(cost, weights=weights, eps=eps)
    assert efforts.shape == (len(points),)
    assert float(efforts @ (weights / weights.sum())) == pytest.approx(total, rel=1e-5, abs=1e-12)


def test_an_effort_is_the_mean_cost_of_a_unit_of_the_rows_own_mass() -> None:
    plan = transport.Plan(np.array([[0.2, 0.2], [0.0, 0.1]]), np.zeros(2), np.zeros(2))
    np.testing.assert_allclose(plan_efforts(plan, np.array([[1.0, 3.0], [5.0, 7.0]])), [2.0, 7.0])


@examples(60)
@given(clouds(max_rows=10), st.integers(1, 3))
def test_assignment_efforts_are_what_each_row_pays(points: Floats, k: int) -> None:
    cost = _cost(points, k)
    if oracle.has_one_optimum(cost):
        expected = oracle.lone_efforts(cost)
        np.testing.assert_allclose(efforts_of(cost), expected, rtol=1e-12)
        np.testing.assert_allclose(plan_efforts(solve_plan(cost), cost), expected, rtol=1e-9)


@examples(100)
@given(weighted_clouds(), st.integers(1, 4))
def test_duals_prove_the_exact_plan(table: tuple[Floats, Floats], k: int) -> None:
    points, weights = table
    cost = _cost(points, k)
    plan = solve_plan(cost, weights=weights)
    slack = cost - (plan.u[:, None] + plan.v)
    tolerance = 1e-9 * max(float(cost.max()), 1.0)
    assert slack.min() >= -tolerance
    assert np.abs(slack[plan.matrix > 1e-12]).max() <= tolerance
    assert plan.eps == 0.0


# --- entropic plans ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_the_entropic_total_falls_to_the_exact_one(seed: int) -> None:
    cost = _random_cost(seed, 7)
    exact = oracle.assignment_total(cost)
    totals = []
    for eps in (1.0, 0.3, 0.1, 0.02, 1e-3, 1e-5):
        plan = solve_plan(cost, eps=eps)
        total = float((plan.matrix * cost).sum())
        # The entropy of a plan of n rows is worth at most eps log n.
        assert exact - 1e-6 <= total <= exact + eps * robust_scale(cost) * np.log(7) + 1e-6
        totals.append(total)
    assert all(more > less - 1e-6 for more, less in pairwise(totals))
    assert totals[0] > 1.05 * exact
    assert totals[-1] == pytest.approx(exact, rel=1e-5)


@examples(60)
@given(any_clouds(max_rows=10), st.integers(1, 3), st.sampled_from([0.01, 0.1, 1.0]))
def test_an_entropic_plan_is_the_one_sinkhorns_fixed_point_names(
    points: Floats, k: int, eps: float
) -> None:
    """Marginals and Gibbs form together single the plan out: no reference solver is needed."""
    cost = _cost(points, k)
    plan = solve_plan(cost, eps=eps)
    share = 1 / len(cost)
    np.testing.assert_allclose(plan.matrix.sum(axis=0), share, atol=1e-8)
    np.testing.assert_allclose(plan.matrix.sum(axis=1), share, atol=1e-8)
    gibbs = np.exp((plan.u[:, None] + plan.v - cost) / plan.eps)
    np.testing.assert_allclose(plan.matrix, gibbs, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("eps", [0.1, 0.5, 2.0])
def test_the_entropic_plan_is_the_gibbs_law_of_its_duals(eps: float) -> None:
    weights = np.array([0.5, 1.0, 2.0, 1.0, 0.7, 0.3, 1.1, 0.9])
    cost = _random_cost(3)
    plan = solve_plan(cost, eps=eps, weights=weights)
    assert plan.eps == pytest.approx(eps * float(np.median(cost[cost > 0])), rel=1e-12)
    gibbs = np.exp((plan.u[:, None] + plan.v - cost) / plan.eps)
    np.testing.assert_allclose(gibbs, plan.matrix, rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_eps_means_the_same_in_every_unit(unit: float) -> None:
    cost = _random_cost(5)
    plan, scaled = solve_plan(cost, eps=0.2), solve_plan(cost * unit, eps=0.2)
    np.testing.assert_allclose(scaled.matrix, plan.matrix, rtol=1e-6)
    np.testing.assert_allclose(scaled.v, plan.v * unit, rtol=1e-6, atol=1e-6 * unit)


def test_eps_is_stated_in_median_positive_costs() -> None:
    assert robust_scale(np.array([[0.0, 1.0, 5.0], [0.0, 0.0, 1e12]])) == 5.0
    assert robust_scale(np.zeros((2, 2))) == 1.0


# --- what must be refused, never answered --------------------------------------------------------


def _efforts(cost: Floats, **settings: Any) -> Any:
    return efforts_of(cost, **settings)


def _plan(cost: Floats, **settings: Any) -> Any:
    return solve_plan(cost, **settings)


def _with_entry(value: float) -> Floats:
    cost = _random_cost(0, 5)
    cost[2, 3] = value
    return cost


ROUTES: list[Any] = [
    pytest.param(_efforts, {}, id="assignment"),
    pytest.param(_efforts, {"weights": np.ones(5)}, id="efforts-weights"),
    pytest.param(_efforts, {"eps": 0.5}, id="efforts-entropic"),
    pytest.param(_plan, {}, id="plan"),
    pytest.param(_plan, {"eps": 0.5}, id="plan-entropic"),
]


@pytest.mark.parametrize(("solve", "settings"), ROUTES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_cost_that_is_not_finite_is_refused(
    solve: Callable[..., Any], settings: dict[str, Any], value: float
) -> None:
    with pytest.raises(SolverError, match=r"repeat 3, batch 7.*rows 2 and 3"):
        solve(_with_entry(value), name="repeat 3, batch 7", **settings)


@pytest.mark.parametrize(("solve", "settings"), ROUTES)
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (5, 4), (4, 5), (5,), (5, 5, 1)])
def test_a_cost_that_is_not_square_is_refused(
    solve: Callable[..., Any], settings: dict[str, Any], shape: tuple[int, ...]
) -> None:
    with pytest.raises(SolverError, match=r"repeat 3, batch 7.*square"):
        solve(np.ones(shape), name="repeat 3, batch 7", **settings)


@pytest.mark.parametrize("solve", [_efforts, _plan])
@pytest.mark.parametrize("eps", [0.0, 0.5])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_weights_that_are_not_positive_are_refused(
    solve: Callable[..., Any], eps: float, value: float
) -> None:
    weights = np.array([1.0, 2.0, value, 1.0, 1.0])
    with pytest.raises(DataError, match=r"positive and finite.*at row 2"):
        solve(_random_cost(0, 5), weights=weights, eps=eps)


@pytest.mark.parametrize("solve", [_efforts, _plan])
@pytest.mark.parametrize("weights", [np.ones(4), np.ones(6), np.ones((5, 1)), np.ones(0)])
def test_weights_of_the_wrong_length_are_refused(
    solve: Callable[..., Any], weights: Floats
) -> None:
    with pytest.raises(DataError, match=r"shape \(5,\)"):
        solve(_random_cost(0, 5), weights=weights)


def test_weights_are_normalised() -> None:
    np.testing.assert_allclose(normalised_weights(np.array([1, 3]), 2), [0.25, 0.75])
    np.testing.assert_allclose(normalised_weights(None, 4), [0.25] * 4)


@pytest.mark.parametrize("solve", [_efforts, _plan])
@pytest.mark.parametrize("eps", [1e-12, 1e-300])
def test_an_unconverged_entropic_plan_is_refused(solve: Callable[..., Any], eps: float) -> None:
    with pytest.raises(SolverError, match=r"repeat 3, batch 7 did not converge.*eps="):
        solve(_random_cost(0), eps=eps, name="repeat 3, batch 7")


def test_an_entropic_plan_that_stops_early_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_NEWTON_LIMIT", 0)
    with pytest.raises(SolverError, match=r"repeat 3, batch 7 did not converge.*eps=0\.02"):
        solve_plan(_random_cost(0), eps=0.02, name="repeat 3, batch 7")


@pytest.mark.parametrize("solve", [_efforts, _plan])
@pytest.mark.parametrize("eps", [-1.0, -1e-3, np.nan, np.inf])
def test_an_eps_without_meaning_is_refused(solve: Callable[..., Any], eps: float) -> None:
    with pytest.raises(ConfigError, match="eps"):
        solve(_random_cost(0), eps=eps)


def test_an_exact_plan_that_stops_early_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_NETWORK_SIMPLEX_LIMIT", 2)
    with pytest.raises(SolverError, match=r"repeat 3, batch 7 \(40 rows\) is not optimal"):
        solve_plan(_random_cost(0, 40), name="repeat 3, batch 7")


def test_an_exact_plan_that_stops_early_is_tried_again_in_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cost = _random_cost(0, 40)
    expected = oracle.assignment_total(cost)
    needed = next(limit for limit in range(10, 10_000, 10) if _is_optimal(cost, limit))
    monkeypatch.setattr(transport, "_NETWORK_SIMPLEX_LIMIT", max(needed // 5, 1))
    plan = solve_plan(cost)
    assert float((plan.matrix * cost).sum()) == pytest.approx(expected, rel=1e-9)


def _is_optimal(cost: Floats, limit: int) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, log = transport._network_simplex(cost, np.full(len(cost), 1 / len(cost)), limit)
    return bool(log["result_code"] == 1)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda m: m * 1.001, id="too-much"),
        pytest.param(lambda m: np.roll(m, 1, axis=0), id="senders-exchanged"),
        pytest.param(lambda m: np.roll(m, 1, axis=1), id="receivers-exchanged"),
        pytest.param(lambda m: m * np.nan, id="nan"),
    ],
)
def test_a_plan_that_moves_the_wrong_mass_is_refused(
    spoil: Callable[[Floats], Floats], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the solver says of itself, its marginals are looked at."""
    weights = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    honest = transport._network_simplex

    def lying(cost: Floats, masses: Floats, limit: int) -> tuple[Floats, dict[str, Any]]:
        matrix, log = honest(cost, masses, limit)
        return spoil(matrix), log

    monkeypatch.setattr(transport, "_network_simplex", lying)
    with pytest.raises(SolverError, match=r"repeat 3, batch 7 moves the wrong mass"):
        solve_plan(_random_cost(0, 5), weights=weights, name="repeat 3, batch 7")


def test_refusals_are_also_the_builtin_errors_that_fit() -> None:
    with pytest.raises(ArithmeticError):
        efforts_of(np.full((2, 2), np.nan))
    with pytest.raises(ValueError):
        efforts_of(np.ones((2, 2)), weights=np.zeros(2))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_both_exact_routes_agree_at_the_size_of_real_batches(seed: int) -> None:
    points = np.random.default_rng(seed).standard_cauchy(size=(256, 6)).clip(-1e3, 1e3)
    D = squared_distances(points, points)
    cost = engineered_cost(D, nearest_zone(D, 10))
    plan = solve_plan(cost)
    expected = oracle.assignment_total(cost)
    assert float((plan.matrix * cost).sum()) == pytest.approx(expected, rel=1e-9)
    assert float(efforts_of(cost).mean()) == pytest.approx(expected, rel=1e-9)
    entropic = solve_plan(cost, eps=1e-2)
    assert float((entropic.matrix * cost).sum()) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("law", ["lognormal", "pareto", "cauchy"])
def test_heavy_tails_have_proved_plans(law: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    draws: dict[str, Callable[[], Floats]] = {
        "lognormal": lambda: rng.lognormal(0.0, 5.0, (256, 4)),
        "pareto": lambda: rng.pareto(0.5, (256, 3)),
        "cauchy": lambda: rng.standard_cauchy((256, 3)) ** 2,
    }
    cost = Problem().cost(draws[law]())
    plan = solve_plan(cost)
    assert float((plan.matrix * cost).sum()) == pytest.approx(
        oracle.assignment_total(cost), rel=1e-9
    )
    small = np.sort(efforts_of(cost))[:128].sum()
    assert np.sort(plan_efforts(plan, cost))[:128].sum() == pytest.approx(small, rel=1e-3)
