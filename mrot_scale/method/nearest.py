"""The nearest of many rows, exactly: the same whatever other points are asked for.

Rows are kept in regions of near ones, and a region is passed over whose box lies farther away than
what was found already. Boxes are measured as rows are, column after column, and rounding never
turns a smaller number into a larger one: none that counts is missed, whatever the last bit. (FAISS
answers in float32, rounded by how many points are asked for at once.)
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.compiling import compiled
from mrot_scale.method.cost import smallest_in_each_row, squared_distances
from mrot_scale.method.routing import can_route

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
Found = tuple[Ids, Floats]

WORTH_COMPILING = 1_000
"""Points that array operations search for among 20,000 rows in about the time compiling takes."""

_USUAL_ROWS = 20_000
_BLOCK_ROWS = 128

_REGION_ROWS = 64
_FIRST_REGIONS = 4


@dataclass(frozen=True)
class NearestRows:
    """Rows to be searched, shape (m, q)."""

    rows: Floats

    def search(self, points: Floats, count: int, *, threads: int = 1) -> Found:
        """Return the positions of the nearest rows and their squared distances, both (n, count).

        Nearest first; of rows as near, those of lower position.
        """
        if len(points) * len(self.rows) >= WORTH_COMPILING * _USUAL_ROWS and can_route():
            compile_search()
        find = self._by_regions if _is_compiled() else self._by_all
        n_blocks = min(threads, len(points) // WORTH_COMPILING)
        if n_blocks <= 1:
            return find(points, count)
        blocks, _ = np.array_split(points, n_blocks), self._regions  # made once, before threads ask
        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(lambda block: find(block, count), blocks))
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def _by_all(self, points: Floats, count: int) -> Found:
        """Search by array operations."""
        found, squared = np.empty((len(points), count), np.int64), np.empty((len(points), count))
        size = block_rows(len(self.rows))
        for start in range(0, len(points), size):
            block = slice(start, start + size)
            D = squared_distances(points[block], self.rows)
            ids = np.nonzero(smallest_in_each_row(D, count))[1].reshape(len(D), count)
            near = np.take_along_axis(D, ids, axis=1)
            order = np.argsort(near, axis=1, kind="stable")
            found[block] = np.take_along_axis(ids, order, axis=1)
            squared[block] = np.take_along_axis(near, order, axis=1)
        return found, squared

    def _by_regions(self, points: Floats, count: int) -> Found:
        """Search by compiled code, to the same bits."""
        found, squared = np.empty((len(points), count), np.int64), np.empty((len(points), count))
        asked = np.require(points, requirements=["C", "W"])  # one kind of array: compiled once
        compiled(_search)(asked, *self._regions, found, squared)
        return found, squared

    @cached_property
    def _regions(self) -> tuple[Ids, Floats, Ids, Floats, Floats]:
        """Positions of the rows region by region, their columns, starts of regions, and boxes."""
        parts = regions(self.rows, max(1, len(self.rows) // _REGION_ROWS))
        order = np.concatenate(parts)
        starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        low = np.array([self.rows[part].min(axis=0) for part in parts])
        high = np.array([self.rows[part].max(axis=0) for part in parts])
        columns = np.array(self.rows[order].T, order="C")
        return order, columns, starts, np.array(low.T, order="C"), np.array(high.T, order="C")


def block_rows(n_rows: int) -> int:
    """Return how many points array operations search for at a time: each has all its distances.

    As many distances as among the usual number of rows at most, so that memory stays the same.
    """
    return max(1, min(_BLOCK_ROWS, _BLOCK_ROWS * _USUAL_ROWS // n_rows))


def regions(rows: Floats, count: int) -> list[Ids]:
    """Return the positions of the rows in so many regions of near ones, as many rows in each.

    Rows are halved again and again, each time along the column in which they vary most.
    """
    if count <= 1 or len(rows) < 2:
        return [np.arange(len(rows))]
    left = count // 2
    cut = len(rows) * left // count
    with np.errstate(over="ignore"):  # any column will do where squares are beyond float64
        along = int(np.var(rows, axis=0).argmax())
    order = np.argsort(rows[:, along], kind="stable")
    halves = (np.sort(order[:cut]), left), (np.sort(order[cut:]), count - left)
    return [half[part] for half, n in halves for part in regions(rows[half], n)]


@cache
def compile_search() -> None:
    """Compile the search before it is needed."""
    one = np.zeros((1, 1))
    find: Callable[..., Any] = compiled(_search)
    starts = np.array([0, 1], dtype=np.int64)
    find(one, np.zeros(1, np.int64), one, starts, one, one, np.empty((1, 1), np.int64), one.copy())


def _is_compiled() -> bool:
    return compile_search.cache_info().currsize > 0


def _search(  # noqa: PLR0912 - one pass, compiled as a whole
    points: Any,
    order: Any,
    columns: Any,
    starts: Any,
    low: Any,
    high: Any,
    found: Any,
    squared: Any,
) -> None:
    n_columns, n_regions, count = columns.shape[0], low.shape[1], found.shape[1]
    longest = 0
    for r in range(n_regions):
        longest = max(longest, starts[r + 1] - starts[r])
    bound, distance, seen = np.empty(n_regions), np.empty(longest), np.empty(n_regions, np.bool_)
    for i in range(points.shape[0]):
        for r in range(n_regions):
            bound[r], seen[r] = 0.0, False
        for c in range(n_columns):
            x, least, most = points[i, c], low[c], high[c]
            for r in range(n_regions):
                gap = max(max(least[r] - x, x - most[r]), 0.0)
                bound[r] += gap * gap
        near, ids = squared[i], found[i]
        for k in range(count):
            near[k], ids[k] = np.inf, columns.shape[1]
        # The regions likely to hold the nearest first: they leave little to look at elsewhere.
        for visit in range(_FIRST_REGIONS + n_regions):
            chosen = visit - _FIRST_REGIONS
            if visit < _FIRST_REGIONS:
                chosen, best = -1, np.inf
                for r in range(n_regions):
                    if not seen[r] and bound[r] <= best:
                        chosen, best = r, bound[r]
            if chosen < 0 or seen[chosen] or bound[chosen] > near[count - 1]:
                continue
            seen[chosen] = True
            first, size = starts[chosen], starts[chosen + 1] - starts[chosen]
            for j in range(size):
                distance[j] = 0.0
            for c in range(n_columns):
                x, y = points[i, c], columns[c, first : first + size]
                for j in range(size):
                    step = x - y[j]
                    distance[j] += step * step
            for j in range(size):
                value, place = distance[j], order[first + j]
                last = near[count - 1]
                if value > last or (value == last and place > ids[count - 1]):
                    continue
                k = count - 1
                while k > 0 and (
                    near[k - 1] > value or (near[k - 1] == value and ids[k - 1] > place)
                ):
                    near[k], ids[k] = near[k - 1], ids[k - 1]
                    k -= 1
                near[k], ids[k] = value, place
