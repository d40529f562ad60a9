"""How far two spreads of values are apart.

PSI, the population stability index, is the sum over bins of (p - q) log(p / q). KS is the largest
difference of the two distribution functions, at the ends of the bins. Both see only what moves
rows from one bin to another.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.profiles import Profile, category_profiles, count_scores
from mrot_scale.scoring import FittedModel
from mrot_scale.storing.schema import Schema

Counts = NDArray[np.int64]

SCORE = "score"

_SMALLEST_SHARE = 1e-4
"""What an empty bin counts as, at least: no finite index could tell it otherwise."""

_SMALLEST_COUNT = 0.5
"""Rows that an empty bin counts as: with few rows, more of them are empty by chance."""


@dataclass(frozen=True)
class Drift:
    """How far the values of one feature, or the scores, have moved."""

    name: str
    psi: float
    ks: float
    chance: float
    """The PSI that as few rows would give by chance alone."""

    nulls: float
    """Share of rows without a value, less the share there was before."""

    nulls_chance: float = 0.0
    """What that reaches by chance alone: three standard deviations."""

    is_score: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def drift_of(name: str, before: Counts, now: Counts, *, is_score: bool = False) -> Drift:
    """Compare counts in the same bins, the last of which are rows without a value."""
    p, q = _shares(before), _shares(now)
    floor = max(_SMALLEST_SHARE, _SMALLEST_COUNT / max(min(before.sum(), now.sum()), 1))
    smoothed = [np.maximum(share, floor) for share in (p, q)]
    psi = float(((smoothed[1] - smoothed[0]) * np.log(smoothed[1] / smoothed[0])).sum())
    known = [_shares(counts[:-1]) for counts in (before, now)]
    ks = float(np.abs(np.cumsum(known[1]) - np.cumsum(known[0])).max(initial=0.0))
    used = int(np.count_nonzero(before + now))
    per_row = 1 / max(before.sum(), 1) + 1 / max(now.sum(), 1)
    missing = (before[-1] + now[-1]) / max(before.sum() + now.sum(), 1)
    by_chance = 3 * float(np.sqrt(missing * (1 - missing) * per_row))
    chance = float(max(used - 1, 0) * per_row)
    return Drift(name, psi, ks, chance, float(q[-1] - p[-1]), by_chance, is_score)


def _shares(counts: Counts) -> NDArray[np.float64]:
    return np.asarray(counts / max(counts.sum(), 1), dtype=np.float64)


def profile_drift(schema: Schema, before: Profile, now: Profile) -> list[Drift]:
    """Compare rows with other rows: each feature, and the score last."""
    is_category = dict(schema.category_features())
    found = []
    for position, name in enumerate(schema.features):
        column = is_category.get(position)
        if column is None:
            found.append(drift_of(name, before.values[position], now.values[position]))
        elif name in before.categories and name in now.categories:
            found.append(drift_of(name, before.categories[name], now.categories[name]))
    return [*found, drift_of(SCORE, before.scores, now.scores, is_score=True)]


def training_profile(model: FittedModel, schema: Schema, method: Any) -> Profile | None:
    """Return the rows a model was fitted on; None for one that does not know them any more."""
    if model.bins is None:
        return None
    scores = count_scores(model.training_scores[method])
    categories = category_profiles(schema, schema)
    return Profile(schema.n_rows, model.bins.counts, scores, categories)


def largest(drifts: Iterable[Drift]) -> Drift | None:
    """Return what has moved most beyond chance."""
    return max(drifts, key=lambda drift: drift.psi - drift.chance, default=None)
