"""The highest of many values: where they bend away from the rest, and how they would go on.

Beyond a high enough level, excesses of almost any values follow a generalised Pareto law (peaks
over threshold). Fitted to what was seen, it says what value one in 10,000 exceeds even where fewer
were seen.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TAIL_SHARE = 0.05
"""Share of the values that the law is fitted to."""

ELBOW_SHARE = 0.1
"""Share of the values, the highest, among which the bend is looked for."""

_FEWEST = 50
_SHAPES = (-0.5, 2.0)
"""Outside of these, likelihood has no maximum worth having, or no mean is left."""

_GRID = 400
_REFINED = 3


@dataclass(frozen=True)
class Tail:
    """A generalised Pareto law beyond a level."""

    level: float
    share: float
    """Share of all values beyond the level."""

    shape: float
    scale: float

    def value_exceeded_by(self, share: float) -> float:
        """Return the value that a share of all values, no larger than the tail's, exceeds."""
        rate = np.log(self.share / share)
        if abs(self.shape) < 1e-9:
            return float(self.level + self.scale * rate)
        return float(self.level + self.scale * np.expm1(self.shape * rate) / self.shape)


def fit_tail(values: Floats) -> Tail:
    """Return the law of the highest values: a twentieth of them, or the fewest that will do."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n = len(ordered)
    count = min(max(round(TAIL_SHARE * n), _FEWEST), max(n // 4, 1))
    level = float(ordered[n - count - 1]) if count < n else float(ordered[0])
    excess = ordered[n - count :] - level
    shape, scale = fit_excesses(excess[excess > 0])
    return Tail(level, count / n, shape, scale)


def fit_excesses(excess: Floats) -> tuple[float, float]:
    """Return shape and scale of greatest likelihood of positive excesses.

    For a given ratio of shape and scale both follow, so that one number has to be searched for.
    """
    if len(excess) == 0:
        return 0.0, float(np.finfo(np.float64).tiny)
    mean = float(excess.mean())
    y = excess / mean
    low, high = -(1.0 - 1e-9) / float(y.max()), 20.0
    ratios = np.concatenate([low * np.geomspace(1, 1e-6, _GRID), np.geomspace(1e-6, high, _GRID)])
    for _ in range(_REFINED):
        likelihood = np.array([_log_likelihood(y, ratio) for ratio in ratios])
        best = int(likelihood.argmax())
        low, high = ratios[max(best - 1, 0)], ratios[min(best + 1, len(ratios) - 1)]
        ratios = np.linspace(low, high, 101)
        ratios = ratios[ratios != 0]
    best_ratio = ratios[int(np.argmax([_log_likelihood(y, ratio) for ratio in ratios]))]
    if _log_likelihood(y, float(best_ratio)) <= -float(len(y)):  # the exponential law is as good
        return 0.0, mean
    shape = float(np.log1p(best_ratio * y).mean())
    return shape, float(mean * shape / best_ratio)


def _log_likelihood(y: Floats, ratio: float) -> float:
    shape = float(np.log1p(ratio * y).mean())
    if not _SHAPES[0] <= shape <= _SHAPES[1] or shape / ratio <= 0:
        return -np.inf
    return float(-len(y) * (np.log(shape / ratio) + shape + 1.0))


def elbow(values: Floats) -> float:
    """Return the value at which the highest ones bend: farthest from the line between their ends.

    The line leads from the highest value to the lowest of the tail, both axes scaled alike.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))[::-1]
    tail = ordered[: max(round(ELBOW_SHARE * len(ordered)), min(len(ordered), 3))]
    if len(tail) < 3 or tail[0] == tail[-1]:
        return float(tail[-1])
    height = (tail - tail[-1]) / (tail[0] - tail[-1])
    rank = np.linspace(0.0, 1.0, len(tail))
    return float(tail[int(np.argmax(1.0 - rank - height))])
