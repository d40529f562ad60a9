"""What the columns of a stream of rows look like, gathered in one pass.

Blocks are counted from the first row of the stream, however the stream is cut when it arrives, and
merged in order: the same rows always give the same bytes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mrot_scale.seeds import generator
from mrot_scale.storing.summaries import BAD_ROWS_KEPT, QUANTILE_LEVELS, ColumnSummary

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]
Wide = NDArray[np.longdouble]

BLOCK_ROWS = 65_536
"""Rows per block, as long as a block stays within `_BLOCK_VALUES`."""

_BLOCK_VALUES = 2**20
"""Most values in a block: wide tables get shorter blocks, so that memory stays bounded."""

_DISTINCT_EVERY = 16
"""Distinct values are counted in every so-manieth block: sorting is slow."""

_DISTINCT_ROWS = 4_096
"""Rows in a row whose values must stay apart; among more of them some meet by mere chance."""

_SAFE_TO_SQUARE = (1e-130, 1e130)
"""Magnitudes between which sums of squared deviations keep to the range of float64."""


@dataclass
class _Moments:
    """Count, mean and sum of squared deviations of each column."""

    count: Integers
    # Wider than float64, so that no finite column has an infinite spread.
    mean: Wide
    squares: Wide

    def merged(self, later: "_Moments") -> "_Moments":
        """Return the moments of both, by Chan, Golub and LeVeque's formula."""
        count = self.count + later.count
        share = later.count / np.maximum(count, 1)
        step = later.mean - self.mean
        squares = self.squares + later.squares + step * step * self.count * share
        return _Moments(count, self.mean + step * share, squares)


class ColumnStatistics:
    """Gathers the summaries of all columns while rows stream by."""

    def __init__(self, n_columns: int, *, sample_rows: int = 10_000) -> None:
        self._block_rows = min(BLOCK_ROWS, max(_BLOCK_VALUES // max(n_columns, 1), 1))
        # One line per column: sums and sorts along it are fast, and the sums pairwise.
        self._values = np.empty((n_columns, self._block_rows))
        self._stored = np.empty((n_columns, self._block_rows), dtype=np.float32)
        self._n_buffered = 0
        self._n_blocks = 0
        none = np.zeros(n_columns, dtype=np.int64)
        self._missing, self._infinite = none, none
        self._distinct, self._distinct_stored = none, none
        self._moments = _Moments(none, none.astype(np.longdouble), none.astype(np.longdouble))
        self._min, self._max = np.full(n_columns, np.inf), np.full(n_columns, -np.inf)
        self._bad_rows: list[list[int]] = [[] for _ in range(n_columns)]
        self._sample = _RowSample(n_columns, sample_rows, self._block_rows)

    def add(self, rows: Floats, stored: Singles) -> None:
        """Take the next rows (n, d) as read and, less their origin, as written."""
        n_columns = len(self._values)
        if rows.shape != stored.shape or rows.shape[1:] != (n_columns,):
            raise ValueError(
                f"Rows of shape {rows.shape}, stored as {stored.shape}, do not fit statistics "
                f"of {n_columns} columns."
            )
        start = 0
        while start < len(rows):
            start += self._fill_block(rows[start:], stored[start:])
            if self._n_buffered == self._block_rows:
                self._take_block()

    def finish(self) -> list[ColumnSummary]:
        """Return the summary of each column; no row may follow."""
        if self._n_buffered:
            self._take_block()
        sample = self._sample.columns()
        return [self._summary(column, sample[column]) for column in range(len(self._values))]

    @property
    def _counts_distinct(self) -> bool:
        return self._n_blocks % _DISTINCT_EVERY == 0

    def _fill_block(self, rows: Floats, stored: Singles) -> int:
        """Buffer as many rows as the block still needs, and return how many."""
        start = self._n_buffered
        stop = min(start + len(rows), self._block_rows)
        self._values[:, start:stop] = rows[: stop - start].T
        if self._counts_distinct:
            self._stored[:, start:stop] = stored[: stop - start].T
        self._n_buffered = stop
        return stop - start

    def _take_block(self) -> None:
        values = self._values[:, : self._n_buffered]
        is_finite = np.isfinite(values)
        self._sample.add(values, self._n_blocks)
        if is_finite.all():
            self._measure(values, values, values, None)
        else:
            self._count_bad(values, is_finite)
            low, high = np.where(is_finite, values, np.inf), np.where(is_finite, values, -np.inf)
            self._measure(values, low, high, is_finite)
        if self._counts_distinct:
            for start in range(0, self._n_buffered, _DISTINCT_ROWS):
                some = slice(start, min(start + _DISTINCT_ROWS, self._n_buffered))
                known, stored = is_finite[:, some], self._stored[:, some]
                self._distinct = self._distinct + _count_distinct(values[:, some], known)
                self._distinct_stored = self._distinct_stored + _count_distinct(stored, known)
        self._n_blocks += 1
        self._n_buffered = 0

    def _count_bad(self, values: Floats, is_finite: Truths) -> None:
        n_bad = np.count_nonzero(~is_finite, axis=1)
        n_missing = np.count_nonzero(np.isnan(values), axis=1)
        self._missing = self._missing + n_missing
        self._infinite = self._infinite + (n_bad - n_missing)
        first_row = self._n_blocks * self._block_rows
        for column in np.flatnonzero(n_bad):
            known = self._bad_rows[column]
            if len(known) < BAD_ROWS_KEPT:
                bad = np.flatnonzero(~is_finite[column])[: BAD_ROWS_KEPT - len(known)]
                known.extend((first_row + bad).tolist())

    def _measure(self, values: Floats, low: Floats, high: Floats, is_finite: Truths | None) -> None:
        block_min, block_max = low.min(axis=1), high.max(axis=1)
        self._min = np.minimum(self._min, block_min)
        self._max = np.maximum(self._max, block_max)
        largest = np.maximum(np.abs(block_min), np.abs(block_max))
        is_usual = (largest > _SAFE_TO_SQUARE[0]) & (largest < _SAFE_TO_SQUARE[1])
        if (is_usual | (largest == 0) | np.isinf(largest)).all():
            block = _moments(values, is_finite)
        else:
            block = _moments(values.astype(np.longdouble), is_finite)
        self._moments = self._moments.merged(block)

    def _summary(self, column: int, sample: Floats) -> ColumnSummary:
        count, distinct = int(self._moments.count[column]), int(self._distinct[column])
        n_lost = distinct - int(self._distinct_stored[column])
        return ColumnSummary(
            count=count,
            missing=int(self._missing[column]),
            infinite=int(self._infinite[column]),
            first_bad_rows=tuple(self._bad_rows[column]),
            **self._spread(column, count),
            quantiles=_quantiles(sample[np.isfinite(sample)]),
            lost_share=n_lost / distinct if distinct else 0.0,
        )

    def _spread(self, column: int, count: int) -> dict[str, float | None]:
        if count == 0:
            return dict.fromkeys(("min", "max", "mean", "deviation"))
        # Which zero is the smallest depends on the processor: + 0.0 makes both the positive one.
        low, high = float(self._min[column]) + 0.0, float(self._max[column]) + 0.0
        mean = float(self._moments.mean[column])
        deviation = float(np.sqrt(self._moments.squares[column] / count))
        return {
            "min": low,
            "max": high,
            # Rounding may not carry the mean out of the values, nor make equal values differ.
            "mean": min(max(mean, low), high),
            "deviation": deviation if low < high else 0.0,
        }


class _RowSample:
    """A uniform sample of rows: those with the smallest random keys of all."""

    def __init__(self, n_columns: int, n_kept: int, block_rows: int) -> None:
        self._n_kept = n_kept
        self._limit = np.uint64(2**64 - 1)
        """Rows with a larger key are not in the sample."""

        self._n_held = 0
        # One buffer: arrays that grow leave holes in memory that nothing else fits into.
        self._keys = np.empty(2 * n_kept + block_rows, dtype=np.uint64)
        self._rows = np.empty((len(self._keys), n_columns))

    def add(self, values: Floats, block: int) -> None:
        """Take the next block (d, n), by its number."""
        draws = generator(0, "statistics", block)
        keys = draws.integers(0, 2**64, size=(values.shape[1],), dtype=np.uint64)
        chosen = np.flatnonzero(keys <= self._limit)
        held = slice(self._n_held, self._n_held + len(chosen))
        self._keys[held], self._rows[held] = keys[chosen], values[:, chosen].T
        self._n_held = held.stop
        if self._n_held > 2 * self._n_kept:
            self._prune()

    def columns(self) -> Floats:
        """Return the sample (d, n)."""
        self._prune()
        return self._rows[: self._n_held].T

    def _prune(self) -> None:
        # Stable: of equal keys the earlier row stays, as it stands before the later one.
        order = np.argsort(self._keys[: self._n_held], kind="stable")[: self._n_kept]
        self._n_held = len(order)
        self._keys[: self._n_held] = self._keys[order]
        self._rows[: self._n_held] = self._rows[order]
        if 0 < self._n_kept == self._n_held:
            self._limit = np.max(self._keys[: self._n_held])


def _moments(values: Floats | Wide, is_finite: Truths | None) -> _Moments:
    """Return the moments of one block (d, n), by a mean corrected for its own rounding."""
    n_columns, n_rows = values.shape
    count = np.full(n_columns, n_rows)
    if is_finite is not None:
        count = np.count_nonzero(is_finite, axis=1)
        values = np.where(is_finite, values, 0.0)
    divisor = np.maximum(count, 1)
    mean = values.sum(axis=1) / divisor
    shifted = values - mean[:, None]
    if is_finite is not None:
        shifted[~is_finite] = 0.0
    correction = shifted.sum(axis=1) / divisor
    squares = np.square(shifted, out=shifted).sum(axis=1) - count * correction**2
    wide = mean.astype(np.longdouble) + correction  # float64 would round the correction away
    return _Moments(count, wide, np.maximum(squares, 0).astype(np.longdouble))


def _count_distinct(values: Floats | Singles, is_finite: Truths) -> Integers:
    """Return how many different values each line has where it is finite."""
    ordered = np.sort(np.where(is_finite, values, np.nan), axis=1)  # NaN comes last
    is_new = (ordered[:, 1:] != ordered[:, :-1]) & ~np.isnan(ordered[:, 1:])
    return np.asarray(np.count_nonzero(is_new, axis=1) + ~np.isnan(ordered[:, 0]))


def _quantiles(values: Floats) -> tuple[float, ...]:
    if len(values) == 0:
        return ()
    # Halved where the difference of two values might overflow; elsewhere halving could round.
    factor = 0.5 if np.abs(values).max() > 1e300 else 1.0
    found = np.quantile(values * factor, QUANTILE_LEVELS) / factor
    return tuple((found + 0.0).tolist())
