"""Efforts next to those around: how much harder a row is to move than the anchors in its zone.

In many columns distances are much alike, and regions differ in them more than rows of one region
do. Whether a row belongs then shows only next to its neighbours. Equal rows can have no effort at
all: those count as a small share of the anchors' median, on both sides.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.compiling import compiled
from mrot_scale.method.efforts import effort_floor

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


def log_levels(anchor_efforts: Floats) -> Floats:
    """Return the log effort of each anchor among the others."""
    return np.asarray(np.log(np.maximum(anchor_efforts, effort_floor(anchor_efforts))))


def sums_over_zones(values: Floats, zone_ids: Ids) -> Floats:
    """Return the sum of the anchors' values over the zone of each row, ids of shape (n, k)."""
    sums = np.zeros(len(zone_ids))
    for place in range(zone_ids.shape[1]):  # one after the other, as compiled code adds
        sums += values[zone_ids[:, place]]
    return sums


def relative_efforts(
    efforts: Floats, level_sums: Floats, zone_count: int, anchor_efforts: Floats
) -> Floats:
    """Return each row's effort over the geometric mean of those of the anchors in its zone."""
    least = np.maximum(efforts, effort_floor(anchor_efforts))
    return np.asarray(least / np.exp(level_sums / zone_count))


def routes_and_sums(
    rows: Floats,
    anchors: Floats,
    prices: Floats,
    zone_count: int,
    slack: float,
    values: Floats,
) -> tuple[Floats, Floats]:
    """Return the cost of each row's route, and the sum of the anchors' values over its zone.

    By compiled code, to the last bit what array operations give.
    """
    found, sums = np.empty(len(rows)), np.empty(len(rows))
    points = np.require(rows, requirements=["C", "W"])  # one kind of array: compiled once
    columns = np.array(anchors.T, order="C")
    kernel = compiled(_route_and_sum)
    kernel(points, columns, np.array(prices), zone_count, slack, np.array(values), found, sums)
    return found, sums


def _route_and_sum(  # noqa: PLR0912 - one pass, compiled as a whole
    rows: Any,
    columns: Any,
    prices: Any,
    zone_count: int,
    slack: float,
    values: Any,
    found: Any,
    sums: Any,
) -> None:
    n_anchors = columns.shape[1]
    distance, nearest = np.empty(n_anchors), np.empty(zone_count)
    for i in range(rows.shape[0]):
        for j in range(n_anchors):
            distance[j] = 0.0
        for c in range(rows.shape[1]):  # of many columns: nearly all of the time
            x = rows[i, c]
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
        best, shortest, farthest, total = np.inf, np.inf, 0.0, 0.0
        for j in range(n_anchors):
            value = distance[j]
            farthest = max(farthest, value)
            in_zone = value < edge
            if value == edge and room > 0:
                room -= 1
                in_zone = True
            if in_zone:
                total += values[j]
                distance[j] = -1.0
            else:
                best = min(best, value - prices[j])
        for j in range(n_anchors):
            if distance[j] >= 0.0 and distance[j] - prices[j] <= best + slack:
                shortest = min(shortest, distance[j])
        found[i] = farthest if np.isinf(best) else shortest
        sums[i] = total
