"""From rows at rest to the numbers the method sees: origins added, categories by rarity.

A category stands for how much rarer it is than what is usual in its column: 0 for every common one,
so that having many categories is no noise, and more the rarer it is. One that was never seen is
rarer than any that was.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mrot_scale.errors import ModelMismatchError
from mrot_scale.precision import Stored, from_stored
from mrot_scale.storing.schema import OTHER_CODE, Column, Schema

Floats = NDArray[np.float64]

COMMON_FACTOR = 4.0
"""Categories at least this share (1 in 4) as frequent as the usual one count as common."""

LARGEST_OTHER_SHARE = 0.01
"""Rows beyond the vocabulary from which on a column says nothing about rarity."""

_UNSEEN_COUNT = 0.5
_SMALLEST_LEVEL = 0.5
"""Levels below this count as common: scaled to unit variance, a tiny one would look large."""


@dataclass(frozen=True)
class CategoryLevels:
    """The number each category of a fitted column stands for."""

    of_value: dict[str, float]
    missing: float
    other: float
    unseen: float

    def table(self, vocabulary: Sequence[str]) -> Floats:
        """Return the level of each code of a store, from `OTHER_CODE` and `MISSING_CODE` up."""
        levels = [self.of_value.get(value, self.unseen) for value in vocabulary]
        return np.array([self.other, self.missing, *levels])

    @property
    def rare(self) -> Floats:
        """Levels above zero, ascending: what a column can say beyond 'common'."""
        found = {*self.of_value.values(), self.missing, self.other, self.unseen}
        return np.array(sorted(level for level in found if level > 0))


def category_levels(column: Column, n_rows: int) -> CategoryLevels:
    """Return the levels a column's counts give."""
    counts = np.array([*column.counts, column.n_missing, column.n_other], dtype=np.float64)
    if column.n_other > LARGEST_OTHER_SHARE * n_rows:  # too many categories to be counted
        return CategoryLevels(dict.fromkeys(column.vocabulary, 0.0), 0.0, 0.0, 0.0)
    rarity = -np.log(np.maximum(counts, _UNSEEN_COUNT) / n_rows)
    usual = _weighted_median(rarity, counts) + np.log(COMMON_FACTOR)
    levels = np.where(rarity - usual < _SMALLEST_LEVEL, 0.0, rarity - usual)
    unseen = max(-np.log(_UNSEEN_COUNT / n_rows) - usual, 0.0)
    by_value = dict(zip(column.vocabulary, levels[:-2].tolist(), strict=True))
    return CategoryLevels(by_value, float(levels[-2]), float(levels[-1]), float(unseen))


def _weighted_median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])


class Decoder:
    """Turns rows of one store into what a model fitted on another expects."""

    def __init__(self, model: Schema, store: Schema) -> None:
        check_fits(model, store)
        self._origin = store.origins
        fitted = dict(model.category_features())
        self._tables = [
            (position, category_levels(fitted[position], model.n_rows).table(column.vocabulary))
            for position, column in store.category_features()
        ]

    def rows(self, stored: Stored) -> Floats:
        """Return the rows in float64; numbers may be missing, categories never are."""
        rows = from_stored(stored, self._origin)
        for position, table in self._tables:
            rows[:, position] = table[stored[:, position].astype(np.int64) - OTHER_CODE]
        return rows


def category_counts(schema: Schema, stored: Stored) -> NDArray[np.int64]:
    """Return how many rows have each code of each categorical feature, one after the other."""
    counts = [np.zeros(0, dtype=np.int64)]
    for position, column in schema.category_features():
        codes = stored[:, position].astype(np.int64) - OTHER_CODE
        counts.append(np.bincount(codes, minlength=len(column.vocabulary) - OTHER_CODE))
    return np.concatenate(counts).astype(np.int64)


def recounted(schema: Schema, counts: NDArray[np.int64], n_rows: int) -> Schema:
    """Return what a model keeps of a schema: its columns, with the rows it learnt from counted."""
    columns, start = [], 0
    for column in schema.columns:
        if column.kind == "category":
            stop = start + len(column.vocabulary) - OTHER_CODE
            other, missing, *known = counts[start:stop].tolist()
            column = replace(column, counts=tuple(known), n_missing=missing, n_other=other)
            start = stop
        columns.append(column)
    return replace(schema.without_rows(), columns=tuple(columns), n_rows=n_rows)


def rare_levels(schema: Schema) -> dict[int, Floats]:
    """Return the levels above zero of each categorical feature, by position."""
    levels = {p: category_levels(c, schema.n_rows).rare for p, c in schema.category_features()}
    return {position: found for position, found in levels.items() if len(found)}


def check_fits(model: Schema, store: Schema) -> None:
    """Refuse a store whose columns are not those of the model, saying which differ."""
    wanted = [(c.name, c.kind, c.width) for c in model.columns]
    found = [(c.name, c.kind, c.width) for c in store.columns]
    if wanted == found:
        return
    missing = [f"{n!r} ({k})" for n, k, w in wanted if (n, k, w) not in found]
    extra = [f"{n!r} ({k})" for n, k, w in found if (n, k, w) not in wanted]
    parts = [f"missing {', '.join(missing)}"] if missing else []
    parts += [f"not in the model {', '.join(extra)}"] if extra else []
    what = "; ".join(parts) or "the same columns in another order"
    raise ModelMismatchError(f"Store and model differ: {what}. Ingest with --like MODEL.")
