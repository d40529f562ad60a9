"""Rows that keep their distance from all around them stand out however dense the region.

Efforts say how thin a region is, and a row between two dense groups, or one that breaks a relation
that all others keep, may lie in a region that is not thin by that measure. How far it lies from its
nearest rows, next to how far those lie from theirs, tells it: the rows that few others exceed
in that get something on top of their rarity.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mrot_scale.method.calibrate import LOG_EFFORT_STEP, Calibration, count_on_grid, fit_calibration
from mrot_scale.method.nearest import Found

Floats = NDArray[np.float64]

_COMMON_RARITY = 3.0
"""Rarity up to which being apart adds nothing: the loneliest twentieth of the rows are beyond."""

_LEAST_SHARE = 1e-3
"""Share of the usual squared reach that shorter ones count as: copies have none to divide by."""


@dataclass(frozen=True)
class Units:
    """What distances to neighbours are measured in."""

    logs: Floats
    """Log of each neighbour's squared reach."""

    least: float
    """What squared distances and reaches count as at least."""


def units_of(reach: Floats) -> Units:
    """Return the units that neighbours of this squared reach give; any where none has one."""
    positive = reach[reach > 0]
    usual = float(np.median(positive)) if len(positive) else 1.0
    least = max(_LEAST_SHARE * usual, float(np.finfo(np.float64).tiny))
    return Units(np.log(np.maximum(reach, least)), least)


@dataclass(frozen=True)
class Loneliness:
    """What rows get on top of their rarity for lying apart from their neighbours."""

    calibration: Calibration
    """Rarity of how far apart rows lie."""

    weight: float
    """What each unit of that rarity counts, beyond what is common."""

    def added(self, found: Found, units: Units) -> Floats:
        """Return what points with these neighbours get on top, (n,)."""
        rarity = self.calibration.neg_log_survival(apartness(found, units))
        return np.asarray(self.weight * np.maximum(rarity - _COMMON_RARITY, 0.0))


def fit_loneliness(found: Found, units: Units, weight: float) -> Loneliness:
    """Return what rows get on top, fitted to the neighbours of rows that are left out of them."""
    counts = count_on_grid(apartness(found, units), LOG_EFFORT_STEP)
    return Loneliness(fit_calibration(counts), weight)


def apartness(found: Found, units: Units) -> Floats:
    """Return the mean log of the distance to each neighbour in units of that neighbour's reach.

    One neighbour is left out where there are others: the nearest if it is at the very place, since
    a training row that is scored again finds itself, and the last if not. So such a row
    is as lonely as it was before it was seen.
    """
    ids, squared = found
    clipped = np.clip(squared, units.least, np.finfo(np.float64).max)
    pairs = zip(ids.T, clipped.T, strict=True)
    logs = [np.log(apart) - units.logs[place] for place, apart in pairs]
    if len(logs) == 1:
        return np.asarray(0.5 * logs[0])
    ends = np.where(squared[:, 0] == 0, logs[-1], logs[0])  # one of them is left out
    total = sum(logs[1:-1], start=ends)  # one by one: the same bits always
    return np.asarray(0.5 * total / (len(logs) - 1))
