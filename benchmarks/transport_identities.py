"""What capacity does to the transport problem, checked by a general linear program.

Independent of the assignment solver and of the sorting of distances: all variables of the plan,
with sums of rows fixed and sums of columns bounded, given to SciPy's `linprog`.
"""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import eye_array, kron

from benchmarks.transport_sides import ALPHA, CAPACITIES, FREE, Floats, capacity_efforts
from mrot_scale.method.batches import zone_count
from mrot_scale.method.cost import engineered_cost, nearest_zone, squared_distances
from mrot_scale.seeds import generator

N_ROWS, N_COLUMNS = 40, 3


def program_efforts(cost: Floats, capacity: int | None) -> Floats:
    """Return what each row pays by the linear program; None lets a place receive any amount."""
    n_rows = len(cost)
    ones = np.ones((1, n_rows))
    sent = kron(eye_array(n_rows), ones, format="csr")
    received = kron(ones, eye_array(n_rows), format="csr")
    bound = {} if capacity is None else {"A_ub": received, "b_ub": np.full(n_rows, float(capacity))}
    solved = linprog(cost.ravel(), A_eq=sent, b_eq=np.ones(n_rows), **bound, method="highs")
    plan = np.asarray(solved.x).reshape(n_rows, n_rows)
    return np.asarray((plan * cost).sum(axis=1))


def sorted_neighbour(D: Floats, rank: int) -> Floats:
    """Return the squared distance of each row to its `rank`-th nearest other row."""
    others = np.sort(np.where(np.eye(len(D), dtype=bool), -1.0, D), axis=1)
    return np.asarray(others[:, rank])


def identity_gaps(seed: int = 0) -> dict[str, float]:
    """Return the largest differences, in median costs, between things that should be equal."""
    rows = generator(seed, "identities").normal(size=(N_ROWS, N_COLUMNS))
    D = squared_distances(rows, rows)
    k = zone_count(N_ROWS, ALPHA, None)
    cost, unit = engineered_cost(D, nearest_zone(D, k)), float(np.median(D))
    program = {name: program_efforts(cost, bound) for name, bound in CAPACITIES.items()}
    gaps = {
        f"{name}: total by assignment and by linear program": abs(
            capacity_efforts(cost, bound).sum() - program[name].sum()
        )
        for name, bound in CAPACITIES.items()
    }
    free = np.abs(program[FREE] - sorted_neighbour(D, k + 1)).max()
    gaps["no limit: each row by linear program and its (k+1)-th neighbour"] = free
    return {name: float(gap) / unit for name, gap in gaps.items()}
