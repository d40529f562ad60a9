"""The normal rows that a row resembles in most columns, and how far it differs from them in each.

Nearest neighbours are the wrong rows to compare an odd row with: a few odd columns pull it towards
rows that are like it in nothing else. Here a column counts at most as much as a difference of a few
times the usual one, so that the columns that agree decide. Where more than half of them would be
at that limit, there is no majority to go by, and the limit is doubled.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.compiling import can_compile, compiled
from mrot_scale.method.cost import smallest_in_each_row

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

NORMAL_ROWS = 4_096
"""Most rows that others are compared with; more of them find little more, and take longer."""

WORTH_COMPILING = 1_000
"""Rows that array operations compare in about the time that compiling takes."""

COMPARED_ROWS = 64
"""Rows that array operations compare at a time: each is a matrix of its differences."""

_FIRST_LIMIT = 2.0
"""Differences, in usual ones, beyond which a column counts no further."""

_DOUBLINGS = 40
_LEAST_ALIKE = 8
_ALIKE_SHARE = 0.01
_MEASURED_ROWS = 512
_SMALLEST_SCALE = 1e-3


@dataclass(frozen=True)
class Resemblance:
    """What a row is like, and how it differs from that."""

    ids: Ids
    """Positions of the normal rows it resembles most, ascending, (n, k)."""

    mean: Floats
    """Their mean, (n, d)."""

    surprise: Floats
    """Squared difference from it, over what is usual there, (n, d): below 1 in most columns."""


@dataclass(frozen=True)
class NormalRows:
    """Rows that others are compared with, in units of the usual difference of each column."""

    rows: Floats
    """(m, d)."""

    scale: Floats
    """Usual difference of a normal row from those it resembles, (d,)."""

    @property
    def n_alike(self) -> int:
        """How many of them a row is compared with in the end."""
        wanted = max(_LEAST_ALIKE, round(_ALIKE_SHARE * len(self.rows)))
        return min(wanted, len(self.rows))

    def compare(self, points: Floats) -> Resemblance:
        """Return what points of the same coordinates are like; each alike whatever its company."""
        scaled = np.ascontiguousarray(points / self.scale)
        ids = self._alike(scaled)
        mean, variance = _mean_and_variance(self.rows, ids)
        surprise = np.square(scaled - mean) / (1.0 + variance)
        return Resemblance(ids, mean * self.scale, surprise)

    def _alike(self, scaled: Floats) -> Ids:
        if can_compile() and (len(scaled) >= WORTH_COMPILING or _is_compiled()):
            found = np.empty((len(scaled), self.n_alike), dtype=np.int64)
            columns = np.array(self.rows.T, order="C")
            compiled(_find_alike)(scaled, columns, _FIRST_LIMIT, _DOUBLINGS, found)
            return found
        blocks = range(0, len(scaled), COMPARED_ROWS)
        parts = [self._alike_in_block(scaled[s : s + COMPARED_ROWS]) for s in blocks]
        return np.concatenate(parts) if parts else np.zeros((0, self.n_alike), np.int64)

    def _alike_in_block(self, scaled: Floats) -> Ids:
        found = np.empty((len(scaled), self.n_alike), dtype=np.int64)
        left, limit = np.arange(len(scaled)), _FIRST_LIMIT**2
        for doubling in range(_DOUBLINGS):
            ids, at_limit = _alike_within(self.rows, scaled[left], limit, self.n_alike)
            done = 2 * at_limit <= self.n_alike * self.rows.shape[1]
            done |= doubling == _DOUBLINGS - 1
            found[left[done]] = ids[done]
            left, limit = left[~done], 4.0 * limit
            if len(left) == 0:
                break
        return found


@cache
def compile_comparison() -> None:
    """Compile the comparison before it is needed."""
    found = np.empty((1, 1), dtype=np.int64)
    compiled(_find_alike)(np.zeros((1, 1)), np.zeros((1, 1)), _FIRST_LIMIT, _DOUBLINGS, found)


def _is_compiled() -> bool:
    return compile_comparison.cache_info().currsize > 0


def normal_rows(points: Floats) -> NormalRows:
    """Return rows to compare with, the usual difference in each column measured among them.

    A column of one value among them has no usual difference: it gets a thousandth of the unit.
    """
    spread = points.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    wide = NormalRows(points / spread, spread)
    some = points[: min(_MEASURED_ROWS, len(points))]
    alike = wide.compare(some)
    # Each of them is among the rows it is compared with, at no distance.
    apart = (some - alike.mean) * wide.n_alike / max(wide.n_alike - 1, 1)
    usual = np.sqrt(np.mean(np.square(apart), axis=0))
    scale = np.maximum(usual, _SMALLEST_SCALE * spread)
    return NormalRows(points / scale, scale)


def _alike_within(rows: Floats, scaled: Floats, limit: float, count: int) -> tuple[Ids, Ids]:
    """Return the rows most alike, and how many of their differences are at the limit."""
    total, at_limit = (np.zeros((len(scaled), len(rows))) for _ in range(2))
    for x, column in zip(scaled.T, rows.T, strict=True):
        square = np.square(x[:, None] - column)
        total += np.minimum(square, limit)
        at_limit += square >= limit
    chosen = smallest_in_each_row(total, count)
    ids = np.nonzero(chosen)[1].reshape(len(scaled), count)
    return ids, np.take_along_axis(at_limit, ids, axis=1).sum(axis=1).astype(np.int64)


def _mean_and_variance(rows: Floats, ids: Ids) -> tuple[Floats, Floats]:
    """Return mean and variance of the rows of each list, added one by one: the same bits always."""
    total, squares = (np.zeros((len(ids), rows.shape[1])) for _ in range(2))
    for position in ids.T:
        total += rows[position]
    mean = total / ids.shape[1]
    for position in ids.T:
        squares += np.square(rows[position] - mean)
    return mean, squares / ids.shape[1]


def _find_alike(  # noqa: PLR0912 - one pass, compiled as a whole
    scaled: Any, columns: Any, first_limit: float, doublings: int, found: Any
) -> None:
    n_columns, n_rows = columns.shape
    count = found.shape[1]
    total, smallest = np.empty(n_rows), np.empty(count)
    for i in range(scaled.shape[0]):
        limit = first_limit * first_limit
        for _ in range(doublings):
            for j in range(n_rows):
                total[j] = 0.0
            for c in range(n_columns):
                x = scaled[i, c]
                for j in range(n_rows):
                    step = x - columns[c, j]
                    total[j] += min(step * step, limit)
            for k in range(count):
                smallest[k] = np.inf
            for j in range(n_rows):
                value = total[j]
                if value < smallest[count - 1]:
                    k = count - 1
                    while k > 0 and smallest[k - 1] > value:
                        smallest[k] = smallest[k - 1]
                        k -= 1
                    smallest[k] = value
            edge, room = smallest[count - 1], 0
            for k in range(count):
                if smallest[k] == edge:
                    room += 1
            place, at_limit = 0, 0
            for j in range(n_rows):
                if total[j] > edge or (total[j] == edge and room == 0):
                    continue
                if total[j] == edge:
                    room -= 1
                found[i, place] = j
                place += 1
                for c in range(n_columns):
                    step = scaled[i, c] - columns[c, j]
                    if step * step >= limit:
                        at_limit += 1
            if 2 * at_limit <= count * n_columns:
                break
            limit *= 4.0
