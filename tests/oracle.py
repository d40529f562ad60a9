"""What the package must agree with, written apart from it: this module never imports mrot_scale.

Everything here is plain and slow: loops over pairs, SciPy's assignment solver for uniform weights,
SciPy's HiGHS on the transport linear program for given weights. Zones are given to both sides where
only the transport is compared.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, linprog

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


def pair_distance(a: Floats, b: Floats) -> float:
    """Return the squared distance of two points."""
    return float(sum((float(s) - float(t)) ** 2 for s, t in zip(a, b, strict=True)))


def distances(points: Floats) -> Floats:
    """Return all squared distances between points."""
    n = len(points)
    table = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            table[i, j] = pair_distance(points[i], points[j])
    return table


def ranked_others(table: Floats, row: int) -> list[int]:
    """Return the other rows from near to far, equally far ones by position."""
    others = [j for j in range(table.shape[1]) if j != row]
    return sorted(others, key=lambda j: (float(table[row, j]), j))


def k_zone(table: Floats, k: int) -> Bools:
    """Return the zone made of each row and its k nearest others."""
    zone = np.eye(len(table), dtype=bool)
    for i in range(len(table)):
        for j in ranked_others(table, i)[:k]:
            zone[i, j] = True
    return zone


def share_zone(table: Floats, alpha: float, weights: Floats) -> Bools:
    """Return the zone that takes others, nearest first, until their mass reaches alpha."""
    zone = np.eye(len(table), dtype=bool)
    shares = weights / weights.sum()
    for i in range(len(table)):
        held = 0.0
        for j in ranked_others(table, i):
            if held > alpha - 1e-10:
                break
            zone[i, j] = True
            held += float(shares[j])
    return zone


def open_ball_zone(table: Floats, squared_radii: Floats) -> Bools:
    """Return the zone made of each row and the others strictly nearer than its radius."""
    zone = np.eye(len(table), dtype=bool)
    for i in range(len(table)):
        for j in range(len(table)):
            if table[i, j] < squared_radii[i]:
                zone[i, j] = True
    return zone


def repelling_cost(table: Floats, zone: Bools, ceiling: str | float = "max") -> Floats:
    """Return the engineered cost of a given zone."""
    cost = np.array(table, dtype=np.float64)
    for i in range(len(table)):
        if ceiling == "max":
            level = max(float(x) for x in table[i])
        elif ceiling == "zone":
            level = max(float(x) for x, inside in zip(table[i], zone[i], strict=True) if inside)
        else:
            level = float(ceiling)
        for j in range(table.shape[1]):
            if zone[i, j]:
                cost[i, j] = level
    return cost


def neighbour_distance(points: Floats, k: int) -> Floats:
    """Return the squared distance of each point to its k-th nearest other."""
    table = distances(points)
    return np.array([table[i, ranked_others(table, i)[k - 1]] for i in range(len(table))])


def assignment_total(cost: Floats) -> float:
    """Return the least cost of sending uniform mass to itself."""
    senders, receivers = linear_sum_assignment(cost)
    return float(cost[senders, receivers].sum()) / len(cost)


def program_total(cost: Floats, weights: Floats) -> float:
    """Return the least cost of sending the weights to themselves."""
    return _transport_program(cost, weights)[0]


def program_prices(cost: Floats, weights: Floats) -> Floats:
    """Return optimal prices of the receivers, the last one 0."""
    return _transport_program(cost, weights)[1]


def _transport_program(cost: Floats, weights: Floats) -> tuple[float, Floats]:
    """Solve the transport linear program with HiGHS: total cost and receivers' prices."""
    n = len(cost)
    shares = weights / weights.sum()
    equations = np.zeros((2 * n, n * n))
    for i in range(n):
        for j in range(n):
            equations[i, i * n + j] = 1.0
            equations[n + j, i * n + j] = 1.0
    unit = float(cost.max()) or 1.0
    answer = linprog(
        (cost / unit).ravel(),
        A_eq=equations[:-1],  # the last equation follows from the others
        b_eq=np.concatenate([shares, shares])[:-1],
        bounds=(0, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if answer.status != 0 or answer.fun is None:
        raise AssertionError(f"The oracle itself failed: {answer.message}")
    prices = np.append(np.asarray(answer.eqlin.marginals)[n:], 0.0)
    return float(answer.fun) * unit, prices * unit


def has_one_optimum(cost: Floats, relative_gap: float = 1e-6) -> bool:
    """Tell whether every assignment but the best costs more, by forbidding its pairs one by one.

    Random points are not enough: distances are symmetric, so an odd cycle of an optimal assignment
    costs the same in both directions, and which one is found depends on the order of the rows.
    """
    senders, receivers = linear_sum_assignment(cost)
    best = float(cost[senders, receivers].sum())
    for i, j in zip(senders, receivers, strict=True):
        forbidden = cost.copy()
        forbidden[i, j] = 2.0 * len(cost) * float(cost.max()) + 1.0
        rows, columns = linear_sum_assignment(forbidden)
        if float(cost[rows, columns].sum()) <= best * (1.0 + relative_gap):
            return False
    return True


def lone_efforts(cost: Floats) -> Floats:
    """Return what each row pays in the best assignment (its own only where that is unique)."""
    senders, receivers = linear_sum_assignment(cost)
    efforts = np.zeros(len(cost))
    for i, j in zip(senders, receivers, strict=True):
        efforts[i] = cost[i, j]
    return efforts


def middle_half(values: list[float]) -> float:
    """Count each value as four quarters, leave out as many quarters at either end as there are
    values, and take the mean of the others."""
    quarters = sorted(v for v in values for _ in range(4))
    kept = quarters[len(values) : -len(values)]
    return sum(kept) / len(kept)
