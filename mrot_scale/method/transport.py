"""From a cost matrix to a plan and to the effort of each row. The only importer of POT.

Solvers return plausible numbers for bad input and stop early in silence, so every cost is checked
before and every plan after the call; what cannot be trusted is a `SolverError` naming the batch.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import ot
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from mrot_scale.errors import DataError, SolverError

Floats = NDArray[np.float64]

MARGINAL_TOLERANCE = 1e-6
"""Largest accepted total difference between a plan's marginals and the weights."""

_OPTIMAL = 1
_NETWORK_SIMPLEX_LIMIT = 5_000_000
_SINKHORN_LIMIT = 10_000


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


def efforts_of(
    cost: Floats, *, eps: float = 0.0, weights: Floats | None = None, name: str = "batch"
) -> Floats:
    """Return the effort of each row by the fastest route that is exact for the settings."""
    if eps == 0.0 and weights is None:
        return _assignment_efforts(cost, name)
    return plan_efforts(solve_plan(cost, eps=eps, weights=weights, name=name), cost)


def solve_plan(
    cost: Floats, *, eps: float = 0.0, weights: Floats | None = None, name: str = "batch"
) -> Plan:
    """Return the plan that sends the weights to themselves at least cost.

    `eps` is relative to the median positive cost, so that one far row does not change its meaning.
    """
    _check_cost(cost, name)
    masses = normalised_weights(weights, len(cost))
    plan = _exact(cost, masses, name) if eps == 0.0 else _entropic(cost, eps, masses, name)
    _check_marginals(plan.matrix, masses, name)
    return plan


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


def _assignment_efforts(cost: Floats, name: str) -> Floats:
    # With uniform weights an optimal plan is a permutation: SciPy's solver finds it 1.2 to 3 times
    # faster than network simplex at 128 to 256 rows (python -m benchmarks.solvers).
    _check_cost(cost, name)
    senders, receivers = linear_sum_assignment(cost)
    return np.asarray(cost[senders, receivers], dtype=np.float64)


def _exact(cost: Floats, masses: Floats, name: str) -> Plan:
    for limit in (_NETWORK_SIMPLEX_LIMIT, 10 * _NETWORK_SIMPLEX_LIMIT):
        matrix, log = _network_simplex(cost, masses, limit)
        if log["result_code"] == _OPTIMAL:
            return Plan(matrix, log["u"], log["v"])
    raise SolverError(
        f"Exact plan of {name} ({len(cost)} rows) is not optimal after {limit:,} iterations "
        f"({log['warning']}). Use a smaller batch."
    )


def _network_simplex(cost: Floats, masses: Floats, limit: int) -> tuple[Floats, dict[str, Any]]:
    # The solver loses accuracy far from 1, so costs are scaled and the duals scaled back.
    scale = float(cost.max()) or 1.0
    with np.errstate(all="ignore"):
        matrix, log = ot.emd(
            masses, masses, cost / scale, numItermax=limit, log=True, check_marginals=False
        )
    return matrix, {**log, "u": log["u"] * scale, "v": log["v"] * scale}


def _entropic(cost: Floats, eps: float, masses: Floats, name: str) -> Plan:
    scale = robust_scale(cost)
    for limit in (_SINKHORN_LIMIT, 10 * _SINKHORN_LIMIT):
        matrix, log = ot.bregman.sinkhorn_log(
            masses, masses, cost / scale, eps, numItermax=limit, stopThr=1e-10, log=True, warn=False
        )
        if np.isfinite(matrix).all() and _marginal_error(matrix, masses) <= MARGINAL_TOLERANCE:
            reg = eps * scale
            return Plan(matrix, log["log_u"] * reg, log["log_v"] * reg, reg)
    raise SolverError(
        f"Entropic plan of {name} did not converge in {limit:,} iterations at eps={eps:g}. "
        "Raise eps, or use eps=0 for the exact plan."
    )


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
