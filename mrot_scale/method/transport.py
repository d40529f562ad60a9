"""From a cost matrix to a plan and to the effort of each row. The only importer of POT.

Solvers return plausible numbers for bad input and stop early in silence, so every cost is checked
before and every plan after the call; what cannot be trusted is a `SolverError` naming the batch.
"""

import warnings
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from mrot_scale.errors import ConfigError, DataError, SolverError
from mrot_scale.method.newton import newton_prices

Floats = NDArray[np.float64]

MARGINAL_TOLERANCE = 1e-6
"""Largest accepted total difference between a plan's marginals and the weights."""

PRICE_TOLERANCE = 1e-6
"""Largest accepted slack of a plan's prices, relative to the median cost."""

ASSIGNMENT_ROWS = 1_024
"""With uniform weights an optimal plan is a permutation. Up to this many rows an assignment solver
finds it faster than network simplex (python -m benchmarks.solvers and benchmarks.speed)."""

_WARNING_FILTERS = Lock()
_OPTIMAL = 1
_NETWORK_SIMPLEX_LIMIT = 5_000_000
_SINKHORN_ITERATIONS = 50
_NEWTON_LIMIT = 50
_ENTROPIC_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Plan:
    """A transport plan and the dual potentials that prove it."""

    matrix: Floats
    """Mass sent from row i to row j, shape (n, n)."""

    u: Floats
    """Dual potential of each sending row, in units of the cost."""

    v: Floats
    """Dual potential of each receiving row, in units of the cost."""

    eps: float = 0.0
    """Entropic regularisation in units of the cost; 0 for an exact plan."""


@cache
def _pot() -> Any:
    """Return POT, loaded when first needed: scoring by trees does without its many imports."""
    import ot

    return ot


def efforts_of(
    cost: Floats, *, eps: float = 0.0, weights: Floats | None = None, name: str = "batch"
) -> Floats:
    """Return the effort of each row by the fastest route that is exact for the settings."""
    if eps == 0.0 and weights is None and len(cost) <= ASSIGNMENT_ROWS:
        _check_cost(cost, name)
        return np.asarray(cost[np.arange(len(cost)), best_receivers(cost)])
    return plan_efforts(solve_plan(cost, eps=eps, weights=weights, name=name), cost)


def solve_plan(
    cost: Floats, *, eps: float = 0.0, weights: Floats | None = None, name: str = "batch"
) -> Plan:
    """Return the plan that sends the weights to themselves at least cost.

    `eps` is relative to the median positive cost, so that one far row does not change its meaning.
    """
    _check_cost(cost, name)
    masses = normalised_weights(weights, len(cost))
    return _exact(cost, masses, name) if eps == 0.0 else _entropic(cost, eps, masses, name)


def plan_efforts(plan: Plan, cost: Floats) -> Floats:
    """Return what each row pays on average for a unit of its mass."""
    sent: Floats = plan.matrix.sum(axis=1)
    return np.asarray((plan.matrix * cost).sum(axis=1) / sent)


def normalised_weights(weights: Floats | None, n_rows: int) -> Floats:
    """Return positive weights of sum 1, uniform when none are given."""
    if weights is None:
        return np.full(n_rows, 1.0 / n_rows)
    masses = np.asarray(weights, dtype=np.float64)
    if masses.shape != (n_rows,):
        raise DataError(f"weights must have shape ({n_rows},), got {masses.shape}.")
    if not (np.isfinite(masses).all() and (masses > 0).all()):
        bad = int(np.flatnonzero(~(np.isfinite(masses) & (masses > 0)))[0])
        raise DataError(f"weights must be positive and finite, got {masses[bad]} at row {bad}.")
    return np.asarray(masses / masses.sum())


def best_receivers(cost: Floats) -> NDArray[np.int64]:
    """Return the receiver of each row in the cheapest one-to-one assignment.

    SciPy's solver starts from zero prices; taking the cheapest sender off each column first leaves
    the optimum where it is and shortens the way to it.
    """
    reduced = cost - cost.min(axis=0)
    reduced -= reduced.min(axis=1, keepdims=True)
    return np.asarray(linear_sum_assignment(reduced)[1])


def _exact(cost: Floats, masses: Floats, name: str) -> Plan:
    plan = _network_simplex_plan(cost, masses, name)
    if not _prices_prove(plan, cost) and (masses == masses[0]).all():
        plan = _assignment_plan(cost)
    if not _prices_prove(plan, cost):
        raise SolverError(
            f"Exact plan of {name} is not proved optimal by its prices: some rows lie so far out "
            "that the solver cannot tell the others apart. Leave them out, or use only views that "
            "draw them in: views=('robust',)."
        )
    return plan


def _prices_prove(plan: Plan, cost: Floats) -> bool:
    """Tell whether no route is cheaper than its prices, and every route used is exactly that."""
    slack = cost - plan.u[:, None] - plan.v
    used = np.where(plan.matrix > 0, cost, 0.0)
    # A price is known only as well as the routes it comes from.
    known = cost + used.max(axis=1, keepdims=True) + used.max(axis=0)
    tolerance = PRICE_TOLERANCE * (robust_scale(cost) + 1e-3 * known)
    return bool((slack >= -tolerance).all() and (slack <= tolerance)[plan.matrix > 0].all())


def _assignment_plan(cost: Floats) -> Plan:
    """Return the plan of the assignment solver, with prices worked out from it.

    Network simplex works to an accuracy set by the largest cost. Where rows lie so far out that the
    others drown in it, an assignment is still found, and its prices are shortest ways: to take the
    receiver `j` from another row must not pay. They start in the thick of the rows, so that the
    many prices there are small numbers, and the few far ones are large.
    """
    n_rows = len(cost)
    senders, receivers = np.arange(n_rows), best_receivers(cost)
    paid = cost[senders, receivers]
    rounding = 1e-12 * (cost + paid[:, None])  # it must not make going round in circles pay
    step = cost - paid[:, None] + rounding
    v = np.full(n_rows, np.inf)
    v[np.median(cost, axis=0).argmin()] = 0.0
    for _ in range(n_rows):
        cheaper = np.minimum(v, (v[receivers][:, None] + step).min(axis=0))
        if (cheaper == v).all():
            break
        v = cheaper
    matrix = np.zeros(cost.shape)
    matrix[senders, receivers] = 1.0 / n_rows
    return Plan(matrix, paid - v[receivers], v)


def _network_simplex_plan(cost: Floats, masses: Floats, name: str) -> Plan:
    for limit in (_NETWORK_SIMPLEX_LIMIT, 10 * _NETWORK_SIMPLEX_LIMIT):
        matrix, log = _network_simplex(cost, masses, limit)
        if log["result_code"] == _OPTIMAL:
            _check_marginals(matrix, masses, name)
            return Plan(matrix, log["u"], log["v"])
    raise SolverError(
        f"Exact plan of {name} ({len(cost)} rows) is not optimal after {limit:,} iterations "
        f"({log['warning']}). Use a smaller batch."
    )


def _network_simplex(cost: Floats, masses: Floats, limit: int) -> tuple[Floats, dict[str, Any]]:
    # The solver loses accuracy far from 1, so costs are scaled and the duals scaled back.
    scale = float(cost.max()) or 1.0
    # Its warnings are checked as result codes; filters are the process's, so one thread at a time.
    with _WARNING_FILTERS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matrix, log = _pot().emd(
            masses, masses, cost / scale, numItermax=limit, log=True, check_marginals=False
        )
    return matrix, {**log, "u": log["u"] * scale, "v": log["v"] * scale}


def _entropic(cost: Floats, eps: float, masses: Floats, name: str) -> Plan:
    if not 0 < eps < np.inf:
        raise ConfigError(f"eps must be 0 or positive and finite, got {eps}.")
    reg = eps * robust_scale(cost)
    scaled = cost / reg
    # The exact prices are close to the entropic ones, Sinkhorn gets closer, Newton arrives.
    log_v = _sinkhorn_prices(scaled, masses, _exact(cost, masses, name), reg)
    for limit in (_NEWTON_LIMIT, 10 * _NEWTON_LIMIT):
        log_u, log_v = _newton(scaled, masses, log_v, limit)
        matrix = np.exp(log_u[:, None] + log_v - scaled)
        if _marginal_error(matrix, masses) <= MARGINAL_TOLERANCE:
            return Plan(matrix, log_u * reg, log_v * reg, reg)
    raise SolverError(
        f"Entropic plan of {name} did not converge in {limit:,} steps at eps={eps:g}. "
        "Raise eps, or use eps=0 for the exact plan."
    )


def _sinkhorn_prices(scaled: Floats, masses: Floats, exact: Plan, reg: float) -> Floats:
    with np.errstate(all="ignore"):  # what is not finite fails the check that follows
        _, log = _pot().bregman.sinkhorn_log(
            masses,
            masses,
            scaled,
            1.0,
            numItermax=_SINKHORN_ITERATIONS,
            stopThr=_ENTROPIC_TOLERANCE,
            log=True,
            warn=False,
            warmstart=(exact.u / reg, exact.v / reg),
        )
    return np.asarray(log["log_v"])


def _newton(scaled: Floats, masses: Floats, log_v: Floats, limit: int) -> tuple[Floats, Floats]:
    with np.errstate(all="ignore"):  # what is not finite fails the check that follows
        return newton_prices(scaled, masses, log_v, tolerance=_ENTROPIC_TOLERANCE, max_steps=limit)


def robust_scale(cost: Floats) -> float:
    """Return the median positive cost (1 when there is none): the unit in which eps is stated."""
    positive = cost[cost > 0]
    return float(np.median(positive)) if positive.size else 1.0


def _check_cost(cost: Floats, name: str) -> None:
    if cost.ndim != 2 or cost.shape[0] != cost.shape[1] or cost.size == 0:
        raise SolverError(f"Cost of {name} must be square and not empty, got shape {cost.shape}.")
    if not np.isfinite(cost).all():
        row, column = np.argwhere(~np.isfinite(cost))[0]
        raise SolverError(
            f"Cost of {name} is not finite between its rows {row} and {column}: "
            "look for non-finite or extreme values in those rows."
        )


def _check_marginals(matrix: Floats, masses: Floats, name: str) -> None:
    error = _marginal_error(matrix, masses)
    if not error <= MARGINAL_TOLERANCE:
        raise SolverError(
            f"Plan of {name} moves the wrong mass: its marginals differ by {error:.2g} in total."
        )


def _marginal_error(matrix: Floats, masses: Floats) -> float:
    sent = np.abs(matrix.sum(axis=1) - masses).sum()
    received = np.abs(matrix.sum(axis=0) - masses).sum()
    return float(max(sent, received))
