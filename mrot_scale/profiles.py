"""How rows are spread: values of each feature, and scores, counted in the bins of a model.

A profile is of a sample of rows at even distances, so that it costs next to nothing and depends on
the rows and their order alone.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.errors import DamagedDataError
from mrot_scale.storing.schema import Column, Schema

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

LEVELS = (0.01, *(step / 20 for step in range(1, 20)), 0.99)
"""Quantiles of the training rows between which values are counted."""

SCORE_EDGES = np.array([*(step / 20 for step in range(1, 20)), 0.99, 0.999])
"""Scores are shares of the training rows, so that the same bins serve every model."""

SAMPLE_ROWS = 20_000
"""Rows looked at, at least, where there are so many: chance alone then moves a PSI by .002."""

CATEGORIES_COUNTED = 20
"""Categories of a column that are told apart: those that were most frequent in training."""


@dataclass(frozen=True)
class Bins:
    """Where a model's training rows lay."""

    edges: Floats
    """Upper ends of the bins of each feature, (features, edges); the last bin has none."""

    counts: Counts
    """Training rows in each bin, and last those without a value: (features, edges + 2)."""

    @classmethod
    def of(cls, rows: Floats) -> "Bins":
        """Return bins of about equal counts; rows may miss values."""
        edges = np.array([_edges(column) for column in rows.T]).reshape(rows.shape[1], len(LEVELS))
        return cls(edges, count_values(edges, rows))


def _edges(column: Floats) -> Floats:
    known = column[np.isfinite(column)]
    if len(known) == 0:
        return np.zeros(len(LEVELS))
    return np.asarray(np.quantile(known, LEVELS, method="lower"))


def count_values(edges: Floats, rows: Floats) -> Counts:
    """Return how many rows have each feature in each bin, and last those without a value."""
    n_bins = edges.shape[1] + 2
    found = np.empty((len(edges), n_bins), dtype=np.int64)
    for position, (ends, column) in enumerate(zip(edges, rows.T, strict=True)):
        bins = np.searchsorted(ends, column, side="left")
        bins[~np.isfinite(column)] = n_bins - 1
        found[position] = np.bincount(bins, minlength=n_bins)
    return found


def count_scores(scores: NDArray[np.float32]) -> Counts:
    """Return how many scores are in each bin, and last how many rows have none."""
    bins = np.searchsorted(SCORE_EDGES, scores, side="left")
    bins[np.isnan(scores)] = len(SCORE_EDGES) + 1
    return np.bincount(bins, minlength=len(SCORE_EDGES) + 2).astype(np.int64)


def sampled_rows(start: int, stop: int, n_rows: int) -> NDArray[np.int64]:
    """Return which of the rows from start to stop a profile of n_rows looks at, from start on."""
    step = max(n_rows // SAMPLE_ROWS, 1)
    return np.arange(-(-start // step) * step, stop, step) - start


@dataclass(frozen=True)
class Profile:
    """Some rows as one model sees them."""

    n_rows: int
    """Rows in all, not only those looked at."""

    values: Counts
    """As `count_values` gives them, for every feature of the model."""

    scores: Counts
    """As `count_scores` gives them."""

    categories: dict[str, Counts]
    """For each categorical column, rows of its usual categories, of all others, and of none."""

    def to_json(self) -> dict[str, Any]:
        return {
            "n_rows": self.n_rows,
            "values": self.values.tolist(),
            "scores": self.scores.tolist(),
            "categories": {name: counts.tolist() for name, counts in self.categories.items()},
        }

    @classmethod
    def from_json(cls, found: Any) -> "Profile":
        try:
            return cls(
                int(found["n_rows"]),
                np.array(found["values"], dtype=np.int64),
                np.array(found["scores"], dtype=np.int64),
                {str(n): np.array(c, dtype=np.int64) for n, c in found["categories"].items()},
            )
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise DamagedDataError(f"This is no profile of rows ({error!s:.200}).") from None


def category_profiles(model: Schema, stored: Schema) -> dict[str, Counts]:
    """Return the categories of stored rows, counted as the model's columns tell them apart."""
    mine = {column.name: column for _, column in stored.category_features()}
    known = [column for _, column in model.category_features() if column.name in mine]
    return {c.name: _count_categories(c, mine[c.name]) for c in known}


def _count_categories(model: Column, stored: Column) -> Counts:
    by_count = sorted(zip(model.vocabulary, model.counts, strict=True), key=lambda pair: -pair[1])
    counts = dict(zip(stored.vocabulary, stored.counts, strict=True))
    usual = [counts.get(value, 0) for value, _ in by_count[:CATEGORIES_COUNTED]]
    others = sum(counts.values()) - sum(usual) + stored.n_other
    return np.array([*usual, others, stored.n_missing], dtype=np.int64)
