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

_LANES, _ZONE_IN_LANES, _STEP = 16, 10, 8
"""So many lanes for so many anchors in a zone; numbers that processors compare in one step."""


def routes_outside_nearest(
    rows: Floats, anchors: Floats, prices: Floats, zone_count: int, slack: float
) -> Floats:
    """Return the cost of each row's cheapest route to an anchor that is not among its nearest.

    Of those that are the cheapest after prices, but for slack, it is the shortest.
    """
    found = np.empty(len(rows))
    points = np.require(rows, requirements=["C", "W"])  # one kind of array: compiled once
    columns, owned = np.array(anchors.T, order="C"), np.array(prices)
    compiled(_route)(points, columns, owned, zone_count, slack, found)
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


def _route(  # noqa: PLR0912, PLR0915 - one pass, compiled as a whole
    rows: Any, columns: Any, prices: Any, zone_count: int, slack: float, found: Any
) -> None:
    n_anchors, n_columns = columns.shape[1], columns.shape[0]
    n_lanes = _LANES * (1 + (zone_count - 1) // _ZONE_IN_LANES)
    n_rounds = n_anchors // n_lanes
    distance, lane = np.empty(n_anchors), np.empty(n_lanes)
    near, n_below = np.empty(n_anchors + _STEP), np.empty(n_anchors + n_lanes + _STEP, np.int64)
    for i in range(rows.shape[0]):
        for j in range(n_anchors):
            distance[j] = 0.0
        # Columns for all anchors: many at a time, and added in SciPy's order. Four in one go, so
        # that sums are read and written once for them.
        for c in range(0, n_columns - 3, 4):
            x0, x1, x2, x3 = rows[i, c], rows[i, c + 1], rows[i, c + 2], rows[i, c + 3]
            y0, y1, y2, y3 = columns[c], columns[c + 1], columns[c + 2], columns[c + 3]
            for j in range(n_anchors):
                s0, s1, s2, s3 = x0 - y0[j], x1 - y1[j], x2 - y2[j], x3 - y3[j]
                distance[j] = (((distance[j] + s0 * s0) + s1 * s1) + s2 * s2) + s3 * s3
        for c in range(n_columns - n_columns % 4, n_columns):
            x, y = rows[i, c], columns[c]
            for j in range(n_anchors):
                step = x - y[j]
                distance[j] += step * step
        # Anchors in lanes, the least of each: so many of these leave few candidates for the zone.
        for k in range(n_lanes):
            lane[k], n_below[k] = np.inf, 0
        for first in range(0, n_rounds * n_lanes, n_lanes):
            part = distance[first : first + n_lanes]
            for k in range(n_lanes):
                lane[k] = part[k] if part[k] < lane[k] else lane[k]
        for j in range(n_lanes):
            value = lane[j]
            for k in range(n_lanes):
                n_below[k] += np.int64(value < lane[k])
        bound = 0.0
        for k in range(n_lanes):
            value = lane[k] if n_below[k] < zone_count else 0.0
            bound = value if value > bound else bound
        count = np.uint32(0)
        for j in range(n_anchors):
            near[count] = distance[j]
            count += np.uint32(distance[j] <= bound)
        # The last of the zone is the largest with fewer below it than the zone holds.
        n_near = np.int64(count)
        filled = (n_near + _STEP - 1) // _STEP * _STEP
        for k in range(n_near, filled):
            near[k] = np.inf
        for k in range(filled):
            n_below[k] = 0
        for j in range(n_near):
            value = near[j]
            for k in range(filled):
                n_below[k] += np.int64(value < near[k])
        edge = 0.0
        for k in range(n_near):
            value = near[k] if n_below[k] < zone_count else 0.0
            edge = value if value > edge else edge
        room, at_edge = zone_count, 0  # anchors at the edge in the zone: those of lower position
        for k in range(n_near):
            room -= int(near[k] < edge)
            at_edge += int(near[k] == edge)
        best, shortest = np.inf, np.inf
        if at_edge == room:  # the zone is all up to the edge: no anchor needs a look of its own
            for k in range(n_lanes):
                lane[k] = np.inf
            for first in range(0, n_rounds * n_lanes, n_lanes):
                part, paid = distance[first : first + n_lanes], prices[first : first + n_lanes]
                for k in range(n_lanes):
                    value = part[k] - paid[k] if part[k] > edge else np.inf
                    lane[k] = value if value < lane[k] else lane[k]
            for k in range(n_lanes):
                best = min(best, lane[k])
            for j in range(n_rounds * n_lanes, n_anchors):
                if distance[j] > edge:
                    best = min(best, distance[j] - prices[j])
            limit = best + slack
            for k in range(n_lanes):
                if lane[k] > limit:  # as most are: no anchor in it is among the best
                    continue
                for j in range(k, n_rounds * n_lanes, n_lanes):
                    if distance[j] > edge and distance[j] - prices[j] <= limit:
                        shortest = min(shortest, distance[j])
            for j in range(n_rounds * n_lanes, n_anchors):
                if distance[j] > edge and distance[j] - prices[j] <= limit:
                    shortest = min(shortest, distance[j])
        else:
            for j in range(n_anchors):
                if distance[j] == edge and room > 0:
                    room -= 1
                    distance[j] = -1.0  # in the zone, like all that is below the edge
                elif distance[j] >= edge:
                    best = min(best, distance[j] - prices[j])
            for j in range(n_anchors):
                if distance[j] >= edge and distance[j] - prices[j] <= best + slack:
                    shortest = min(shortest, distance[j])
        found[i] = shortest
        if np.isinf(best):  # nowhere to go: the ceiling
            found[i] = edge
            for j in range(n_anchors):
                found[i] = max(found[i], distance[j])
