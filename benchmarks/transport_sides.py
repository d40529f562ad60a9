"""Rows become scores with and without the mass constraint: same batches, same zones.

Every row must send its mass outside its zone. What differs is how much a place may receive:
exactly its own mass (transport), up to 2 or 4 times that, or any amount, which leaves every row its
cheapest place outside the zone: the distance to its (k+1)-th neighbour. k-NN is the distance to the
zone's edge, the k-th neighbour. "k-NN, double zone" asks whether a larger zone would have done as
well.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from mrot_scale.method.batches import BatchPlan, zone_count
from mrot_scale.method.cost import Bools, engineered_cost, nearest_zone, squared_distances
from mrot_scale.method.efforts import effort_floor, mean_log_efforts
from mrot_scale.method.transport import best_receivers

Floats = NDArray[np.float64]

ALPHA = 0.04
BATCH_ROWS = 256
REPEATS = 8

TRANSPORT, FREE, NEIGHBOUR = "transport", "no limit", "k-NN"
CAPACITIES: dict[str, int | None] = {
    TRANSPORT: 1,
    "capacity 2": 2,
    "capacity 4": 4,
    FREE: None,
}
"""How many times its own mass a place may receive; None for any amount."""

DOUBLE = "k-NN, double zone"
SIDES = (*CAPACITIES, NEIGHBOUR, DOUBLE)


def capacity_efforts(cost: Floats, capacity: int | None) -> Floats:
    """Return what each row pays when a place receives at most `capacity` times its own mass."""
    if capacity is None:
        return np.asarray(cost.min(axis=1))
    senders = np.arange(len(cost))
    if capacity == 1:
        return np.asarray(cost[senders, best_receivers(cost)])
    # A place that holds `capacity` masses is `capacity` places that hold one.
    _, copies = linear_sum_assignment(np.repeat(cost, capacity, axis=1))
    return np.asarray(cost[senders, copies // capacity])


def edge_distances(D: Floats, zone: Bools) -> Floats:
    """Return the squared distance of each row to the farthest row in its zone."""
    return np.asarray(np.where(zone, D, 0.0).max(axis=1))


def batch_sides(rows: Floats, alpha: float = ALPHA) -> dict[str, Floats]:
    """Return the effort of each row of one batch by every side."""
    D = squared_distances(rows, rows)
    k = zone_count(len(rows), alpha, None)
    zone = nearest_zone(D, k)
    cost = engineered_cost(D, zone)
    found = {name: capacity_efforts(cost, capacity) for name, capacity in CAPACITIES.items()}
    double = nearest_zone(D, min(2 * k, len(rows) - 1))
    return found | {NEIGHBOUR: edge_distances(D, zone), DOUBLE: edge_distances(D, double)}


def side_scores(
    rows: Floats, seed: int, *, batch_rows: int = BATCH_ROWS, repeats: int = REPEATS
) -> dict[str, Floats]:
    """Return the mean log effort of each row over its batches by every side."""
    efforts = {side: np.empty((len(rows), repeats)) for side in SIDES}
    for batch in BatchPlan(len(rows), min(batch_rows, len(rows)), repeats, seed):
        for side, found in batch_sides(rows[batch.rows]).items():
            efforts[side][batch.rows[batch.own], batch.repeat] = found[batch.own]
    return {side: mean_log_efforts(some, effort_floor(some)) for side, some in efforts.items()}
