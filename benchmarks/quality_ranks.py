"""Whether methods differ over data sets: ranks, Friedman's test, Nemenyi's critical difference."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.stats import friedmanchisquare, rankdata, studentized_range

Floats = NDArray[np.float64]

SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class Ranking:
    """Methods compared over data sets."""

    mean_ranks: dict[str, float]
    """1 is best; best first."""

    n_sets: int
    p_value: float | None
    """Friedman's: how likely ranks so uneven are if all methods are alike; None below 3 methods."""

    critical_difference: float | None
    """Mean ranks nearer than this are not told apart by Nemenyi's test; None below 2 methods."""


def rank_methods(points: dict[str, dict[str, float | None]]) -> Ranking:
    """Rank methods by points for each set (higher is better; None, a failure, is last).

    `points` holds the sets of each method; only sets that every method was tried on count.
    """
    shared = set.intersection(*(set(sets) for sets in points.values())) if points else set()
    table = _table(points, sorted(shared))
    ranks = _ranks(table)
    means = dict(zip(points, ranks.mean(axis=0).tolist(), strict=True)) if shared else {}
    n_sets, n_methods = table.shape
    return Ranking(
        dict(sorted(means.items(), key=lambda item: item[1])),
        n_sets,
        _friedman(ranks),
        critical_difference(n_methods, n_sets) if n_methods > 1 and n_sets else None,
    )


def _table(points: dict[str, dict[str, float | None]], sets: list[str]) -> Floats:
    """Return points by set and method, minus infinity for failures."""
    rows = [[points[method][name] for method in points] for name in sets]
    filled = [[-np.inf if value is None else value for value in row] for row in rows]
    return np.array(filled, dtype=np.float64).reshape(len(sets), len(points))


def _ranks(table: Floats) -> Floats:
    """Return the rank of each method on each set; equals share the mean of their ranks."""
    return np.asarray(rankdata(-table, axis=1)) if table.size else table


def _friedman(ranks: Floats) -> float | None:
    n_sets, n_methods = ranks.shape
    if n_methods < 3 or n_sets < 2 or (ranks == ranks[0, 0]).all():
        return None
    return float(friedmanchisquare(*ranks.T).pvalue)


def critical_difference(n_methods: int, n_sets: int) -> float:
    """Return Nemenyi's critical difference of mean ranks."""
    quantile = studentized_range.ppf(1 - SIGNIFICANCE, n_methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))


def alike_groups(mean_ranks: dict[str, float], difference: float) -> list[tuple[float, float]]:
    """Return lowest and highest mean rank of each largest group within the difference."""
    ranks = sorted(mean_ranks.values())
    spans = [(low, max(r for r in ranks if r - low < difference)) for low in ranks]
    largest = spans[:1] + [later for earlier, later in pairwise(spans) if later[1] > earlier[1]]
    return [(low, high) for low, high in largest if high > low]
