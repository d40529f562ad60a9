"""Anchors that stand for all regions alike.

Which rows happen to be anchors decides whether a small group holds more of them than a zone does.
So rows are parted into as many regions of equal size as a set has anchors, and each set takes one
row from every region: sets differ in which row it is, hardly in how many lie where.
"""

import numpy as np
from numpy.typing import NDArray

from mrot_scale.method.cost import squared_distances
from mrot_scale.seeds import generator

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


def draw_evenly(points: Floats, n_drawn: int, n_sets: int, seed: int, *counters: int) -> list[Ids]:
    """Return the rows of each set, ascending: one of each region, disjoint as far as rows allow."""
    if n_drawn == len(points):
        return [np.arange(n_drawn)] * n_sets
    rng = generator(seed, "strata", *counters)
    regions = equal_regions(points, n_drawn, rng.permutation(len(points)))
    n_rounds = min(map(len, regions))
    sets: list[Ids] = []
    while len(sets) < n_sets:
        shuffled = [rng.permutation(region)[:n_rounds] for region in regions]
        sets += list(np.sort(np.transpose(shuffled)))
    return sets[:n_sets]


def draw_by_column(points: Floats, columns: Ids, n_drawn: int, seed: int) -> list[Ids]:
    """Return the rows of each set, drawn evenly in the one column that it sees."""
    distinct = np.unique(columns).tolist()
    n_alike = len(columns) // len(distinct)
    drawn = {c: iter(draw_evenly(points[:, [c]], n_drawn, n_alike, seed, 1 + c)) for c in distinct}
    return [next(drawn[c]) for c in columns.tolist()]


def equal_regions(points: Floats, n_regions: int, order: Ids) -> list[Ids]:
    """Return the rows of each region; rows that are alike fall to either side as they are ordered.

    A region is parted between two rows far from each other, by which of them is nearer.
    """
    regions, left = [], [(order, n_regions)]
    while left:
        rows, n_parts = left.pop()
        if n_parts == 1:
            regions.append(rows)
            continue
        lower = n_parts // 2
        cut = round(len(rows) * lower / n_parts)
        ranked = rows[np.argsort(_nearer_one_end(points[rows]), kind="stable")]
        left += [(ranked[cut:], n_parts - lower), (ranked[:cut], lower)]
    return regions


def _nearer_one_end(points: Floats) -> Floats:
    """Return how much nearer each point is to one of two far ends: by it they are parted."""
    if points.shape[1] == 1:
        return np.asarray(points[:, 0])
    center = points.mean(axis=0, keepdims=True)
    one = points[[squared_distances(points, center)[:, 0].argmax()]]
    to_one = squared_distances(points, one)[:, 0]
    other = points[[to_one.argmax()]]
    return np.asarray(to_one - squared_distances(points, other)[:, 0])
