"""Entropic prices by Newton steps against plain Sinkhorn iterations."""

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from mrot_scale.method.newton import newton_prices, sender_prices
from tests import oracle
from tests.strategies import examples, weighted_clouds

Floats = NDArray[np.float64]


def _cost(points: Floats, k: int = 2) -> Floats:
    D = oracle.distances(points)
    return oracle.repelling_cost(D, oracle.k_zone(D, k))


def _plan(K: Floats, log_u: Floats, log_v: Floats) -> Floats:
    return np.asarray(np.exp(log_u[:, None] + log_v - K))


def _sinkhorn_plan(K: Floats, masses: Floats, n_iterations: int) -> Floats:
    kernel = np.exp(-K)
    v = np.ones(len(masses))
    for _ in range(n_iterations):
        u = masses / (kernel @ v)
        v = masses / (kernel.T @ u)
    return np.asarray(u[:, None] * kernel * v)


@examples(60)
@given(weighted_clouds())
def test_every_row_sends_its_mass_at_any_receiver_prices(table: tuple[Floats, Floats]) -> None:
    points, weights = table
    masses = weights / weights.sum()
    K = _cost(points)
    log_v = np.random.default_rng(0).normal(size=len(K))
    plan = _plan(K, sender_prices(K, masses, log_v), log_v)
    np.testing.assert_allclose(plan.sum(axis=1), masses, rtol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_newton_finds_the_plan_sinkhorn_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cost = _cost(rng.normal(size=(9, 2)))
    masses = rng.dirichlet(np.ones(9) * 5)
    K = cost / np.median(cost)
    log_u, log_v = newton_prices(K, masses, np.zeros(9), tolerance=1e-12, max_steps=50)
    expected = _sinkhorn_plan(K, masses, 5_000)
    np.testing.assert_allclose(_plan(K, log_u, log_v), expected, rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("reach", [1.0, 30.0, 1e3])
def test_newton_arrives_from_exact_prices_where_sinkhorn_underflows(reach: float) -> None:
    points = np.random.default_rng(7).normal(size=(20, 2))
    points[0] *= reach
    cost, masses = _cost(points), np.full(20, 0.05)
    unit = 0.1 * float(np.median(cost))
    start = oracle.program_prices(cost, masses) / unit
    K = cost / unit
    log_u, log_v = newton_prices(K, masses, start, tolerance=1e-9, max_steps=500)
    plan = _plan(K, log_u, log_v)
    assert np.abs(plan.sum(axis=0) - masses).sum() <= 1e-8
    np.testing.assert_allclose(plan.sum(axis=1), masses, rtol=1e-8)
    exact, total = oracle.program_total(cost, masses), float((plan * cost).sum())
    # The entropy of a plan of n rows is worth at most the regularisation times log n.
    assert exact * (1 - 1e-6) <= total <= exact * (1 + 1e-6) + unit * np.log(20)


def test_newton_stops_when_the_tolerance_is_met_and_not_before() -> None:
    cost = _cost(np.random.default_rng(8).normal(size=(20, 2)))
    K, masses = cost / (0.1 * np.median(cost)), np.full(20, 0.05)
    errors = []
    for steps in (0, 1, 2, 4, 8, 50):
        log_u, log_v = newton_prices(K, masses, np.zeros(20), tolerance=1e-12, max_steps=steps)
        errors.append(float(np.abs(_plan(K, log_u, log_v).sum(axis=0) - masses).sum()))
    assert errors[0] > 1e-2
    assert errors[-1] <= 1e-12
    _, loose = newton_prices(K, masses, np.zeros(20), tolerance=10.0, max_steps=50)
    np.testing.assert_array_equal(loose, np.zeros(20))


def test_every_step_raises_the_dual_objective() -> None:
    cost = _cost(np.random.default_rng(9).normal(size=(20, 2)))
    K, masses = cost / (0.02 * np.median(cost)), np.full(20, 0.05)
    values = []
    for steps in range(8):
        log_u, log_v = newton_prices(K, masses, np.zeros(20), tolerance=1e-12, max_steps=steps)
        values.append(float(masses @ (log_u + log_v)))
    assert (np.diff(values) > -1e-12 * abs(values[-1])).all()
    assert values[-1] > values[0]
