"""From values on any scale to how rare they are: a smooth, strictly increasing log-survival map.

The body is a Gaussian kernel estimate, the tail above it exponential, so every finite value has a
finite rarity and larger values stay larger however far they lie beyond what was seen. What is
summed up are integer counts on a fixed grid: merging them in any order gives the same bytes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from mrot_scale.errors import DataError

Floats = NDArray[np.float64]

LOG_EFFORT_STEP = 2.0**-8
"""Grid step for log efforts: .4% of an effort."""

TAIL_SHARE = 0.005
"""Share of the values that the tail is fitted to."""

_SCOTT_VALUES = 20_000
"""Values above which Scott's bandwidth narrows no further: how finely efforts are told apart would
otherwise depend on how many rows are labelled, and tables of few distinct rows rank differently."""

_SCORE_RESOLUTION = 1e-4
"""Survival below which scores stop being shares and are spread, so that float32 keeps order."""

_MAX_KNOTS = 4_096
_KNOTS_PER_BANDWIDTH = 4


@dataclass(frozen=True)
class GridCounts:
    """How many values fell into each cell of the grid `step * (cell + 1/2)`."""

    step: float
    cells: NDArray[np.int64]
    """Occupied cells, ascending."""

    counts: NDArray[np.int64]
    """Values in each of them."""

    @property
    def n_values(self) -> int:
        return int(self.counts.sum())

    @property
    def centers(self) -> Floats:
        return np.asarray((self.cells + 0.5) * self.step, dtype=np.float64)


@dataclass(frozen=True)
class Calibration:
    """The map from a value to -log(share of values above it)."""

    knots: Floats
    """Values at which the body is tabulated, ascending."""

    rarity: Floats
    """-log survival at the knots, strictly ascending."""

    tail_scale: float
    """Value units per unit of rarity above the last knot."""

    def neg_log_survival(self, values: Floats) -> Floats:
        """Return the rarity of each value: 0 for the commonest, ever larger for the rarest."""
        x = np.asarray(values, dtype=np.float64)
        body = np.interp(x, self.knots, self.rarity)
        beyond = np.maximum(x - self.knots[-1], 0.0) / self.tail_scale
        below = np.maximum(self.knots[0] - x, 0.0) / self.tail_scale
        # Below the first knot the rarity falls towards 0 without ever reaching it.
        return np.asarray((body + beyond) / (1.0 + below))

    def score(self, values: Floats) -> NDArray[np.float32]:
        """Return the share of values below each value, as the score a user sees."""
        return score_of_rarity(self.neg_log_survival(values))


def score_of_rarity(rarity: Floats) -> NDArray[np.float32]:
    """Return 1 - survival in [0, 1), still increasing where float32 would round it to 1."""
    deepest = -np.log(_SCORE_RESOLUTION)
    beyond = np.maximum(rarity - deepest, 0.0)
    survival = np.exp(-np.minimum(rarity, deepest)) / (1.0 + np.log1p(beyond))
    return np.asarray(1.0 - survival, dtype=np.float32)


def count_on_grid(values: Floats, step: float) -> GridCounts:
    """Return the counts of finite values on the grid of the given step."""
    x = np.asarray(values, dtype=np.float64)
    if x.size == 0 or not np.isfinite(x).all():
        raise DataError(f"Calibration needs finite values, got {x.size} with non-finite ones.")
    cells, counts = np.unique(np.floor(x / step).astype(np.int64), return_counts=True)
    return GridCounts(step, cells, counts.astype(np.int64))


def merge_counts(first: GridCounts, second: GridCounts) -> GridCounts:
    """Return the counts of both; the order of merging does not matter."""
    if first.step != second.step:
        raise DataError(f"Counts on grids of step {first.step} and {second.step} cannot be merged.")
    cells, position = np.unique(np.concatenate([first.cells, second.cells]), return_inverse=True)
    counts = np.zeros(len(cells), dtype=np.int64)
    np.add.at(counts, position, np.concatenate([first.counts, second.counts]))
    return GridCounts(first.step, cells, counts)


def fit_calibration(counts: GridCounts, *, smoothing: float = 1.0) -> Calibration:
    """Return the map fitted to the counts.

    `smoothing` multiplies Scott's bandwidth: 1 for a smooth density, less where the shares
    themselves must be met.
    """
    bandwidth = max(smoothing * _scott_bandwidth(counts), counts.step)
    start = _tail_start(counts)
    knots = _knots(counts, bandwidth, start)
    rarity = _body_rarity(counts, bandwidth, knots)
    return Calibration(knots, rarity, _tail_scale(counts, start, bandwidth))


def calibrate_values(values: Floats, *, smoothing: float = 0.25) -> Calibration:
    """Return the map fitted to values of any unit, on a grid chosen from their spread."""
    spread, largest = float(np.std(values)), float(np.max(np.abs(values), initial=0.0))
    is_flat = spread <= 1e-9 * largest  # equal but for rounding
    step = LOG_EFFORT_STEP if is_flat else 2.0 ** np.floor(np.log2(spread / 1024))
    return fit_calibration(count_on_grid(values, step), smoothing=smoothing)


def _scott_bandwidth(counts: GridCounts) -> float:
    n, x = counts.n_values, counts.centers
    mean = float((counts.counts * x).sum() / n)
    variance = float((counts.counts * (x - mean) ** 2).sum() / max(n - 1, 1))
    return float(np.sqrt(variance) * min(n, _SCOTT_VALUES) ** -0.2)


def _tail_start(counts: GridCounts) -> float:
    """Return the value above which the tail is fitted: the top share, but at least ten values."""
    n = counts.n_values
    wanted = max(int(np.ceil(TAIL_SHARE * n)), min(10, n // 4), 1)
    above = np.cumsum(counts.counts[::-1])[::-1]
    enough = np.flatnonzero(above >= wanted)
    return float(counts.centers[enough[-1]])


def _tail_scale(counts: GridCounts, start: float, bandwidth: float) -> float:
    """Return the mean excess over the start: the maximum-likelihood exponential tail."""
    above = counts.centers >= start
    excess = (counts.counts[above] * (counts.centers[above] - start)).sum()
    return float(max(excess / counts.counts[above].sum(), bandwidth))


def _knots(counts: GridCounts, bandwidth: float, stop: float) -> Floats:
    start = float(counts.centers[0]) - 4 * bandwidth
    n_steps = int(np.ceil(_KNOTS_PER_BANDWIDTH * (stop - start) / bandwidth))
    return np.linspace(start, stop, min(max(n_steps, 16), _MAX_KNOTS) + 1)


def _body_rarity(counts: GridCounts, bandwidth: float, knots: Floats) -> Floats:
    """Return -log of the kernel survival at the knots, nudged to be strictly increasing."""
    centers, shares = counts.centers, counts.counts / counts.n_values
    below = np.array([(shares * ndtr((x - centers) / bandwidth)).sum() for x in knots])
    rarity = -np.log1p(-np.minimum(below, 1.0 - 1e-15))
    # Gaps wider than the kernel reaches are flat: a slope too small to matter keeps the order.
    slope = 1e-6 * (1.0 + np.arange(len(knots))) / len(knots)
    return np.asarray(np.maximum.accumulate(rarity) + slope)
