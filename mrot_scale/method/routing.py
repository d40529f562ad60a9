"""Routes of many rows by compiled code: to the last bit what array operations give, but faster.

For each row its distance to every anchor, the nearest of them left out, and the cheapest of the
others after prices: in one pass, without writing the distances down.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from mrot_scale.compiling import can_compile, compiled

Floats = NDArray[np.float64]

WORTH_COMPILING = 100_000
"""Routes that array operations find in about half the time that compiling takes."""


def routes_outside_nearest(
    rows: Floats, anchors: Floats, prices: Floats, zone_count: int
) -> Floats:
    """Return the cost of each row's cheapest route to an anchor that is not among its nearest."""
    found = np.empty(len(rows))
    points = np.require(rows, requirements=["C", "W"])  # one kind of array: compiled once
    columns, owned = np.array(anchors.T, order="C"), np.array(prices)
    compiled(_route)(points, columns, owned, zone_count, found)
    return found


@cache
def can_route() -> bool:
    """Tell whether compiled code gives SciPy's bits here: SciPy may be built to add otherwise."""
    if not can_compile():
        return False
    rng = np.random.default_rng(0)
    for n_columns in (2, 7, 32):
        rows, others = rng.normal(size=(40, n_columns)), rng.normal(size=(9, n_columns))
        found = np.empty((40, 9))
        compiled(_distances)(rows, np.ascontiguousarray(others.T), found)
        if not np.array_equal(found, cdist(rows, others, "sqeuclidean")):
            return False
    return True


def _distances(rows: Any, columns: Any, found: Any) -> None:
    for i in range(rows.shape[0]):
        for j in range(columns.shape[1]):
            found[i, j] = 0.0
        for c in range(rows.shape[1]):
            x = rows[i, c]
            for j in range(columns.shape[1]):
                step = x - columns[c, j]
                found[i, j] += step * step


def _route(  # noqa: PLR0912 - one pass, compiled as a whole
    rows: Any, columns: Any, prices: Any, zone_count: int, found: Any
) -> None:
    n_anchors = columns.shape[1]
    distance, nearest = np.empty(n_anchors), np.empty(zone_count)
    for i in range(rows.shape[0]):
        for j in range(n_anchors):
            distance[j] = 0.0
        for c in range(rows.shape[1]):
            x = rows[i, c]
            # Column after column for all anchors: many at a time, and added in SciPy's order.
            for j in range(n_anchors):
                step = x - columns[c, j]
                distance[j] += step * step
        for k in range(zone_count):
            nearest[k] = np.inf
        for j in range(n_anchors):
            value = distance[j]
            if value < nearest[zone_count - 1]:
                k = zone_count - 1
                while k > 0 and nearest[k - 1] > value:
                    nearest[k] = nearest[k - 1]
                    k -= 1
                nearest[k] = value
        edge = nearest[zone_count - 1]
        room = 0  # anchors at the edge that are still in the zone: those of lower position
        for k in range(zone_count):
            if nearest[k] == edge:
                room += 1
        best, target, farthest = np.inf, -1, 0.0
        for j in range(n_anchors):
            value = distance[j]
            farthest = max(farthest, value)
            if value < edge:
                continue
            if value == edge and room > 0:
                room -= 1
                continue
            if value - prices[j] < best:
                best, target = value - prices[j], j
        found[i] = farthest if target < 0 else distance[target]
