"""What a store holds: columns, their kinds, categories and statistics, and what was left out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mrot_scale.errors import DamagedDataError
from mrot_scale.storing.summaries import ColumnSummary

Kind = Literal["number", "boolean", "category", "datetime", "date", "time", "vector"]

LARGEST_WIDTH = 4_096
"""Values a vector may have to become features."""

MISSING_CODE = -1
OTHER_CODE = -2
"""Codes of a missing category, and of one beyond the vocabulary."""

_DAY, _WEEK = (".day_sin", ".day_cos"), (".week_sin", ".week_cos")
_PARTS: Mapping[str, tuple[str, ...]] = {
    "number": ("",),
    "boolean": ("",),
    "category": ("",),
    "datetime": ("", *_DAY, *_WEEK),
    "date": ("", *_WEEK),
    "time": _DAY,
}


@dataclass(frozen=True)
class Column:
    """One column of the source and the features made of it."""

    name: str
    kind: Kind
    width: int = 1
    """Values in each row of a vector column."""

    vocabulary: tuple[str, ...] = ()
    """Categories by code, in order of first appearance."""

    counts: tuple[int, ...] = ()
    """Rows of each category."""

    n_missing: int = 0
    """Rows without a category."""

    n_other: int = 0
    """Rows whose category came after the vocabulary was full."""

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features this column becomes."""
        if self.kind == "vector":
            return tuple(f"{self.name}[{i}]" for i in range(self.width))
        return tuple(f"{self.name}{part}" for part in _PARTS[self.kind])


@dataclass(frozen=True)
class Schema:
    """The columns of a store in order, with all that reading them back needs."""

    columns: tuple[Column, ...]
    origin: tuple[float, ...]
    """Subtracted from each feature before it became float32."""

    n_rows: int
    id_column: str
    """Name of the row identifiers; `row` counts rows where the source has no key."""

    carried: tuple[str, ...] = ()
    """Columns kept beside the identifiers as they were, partition keys among them."""

    partition_keys: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    """Columns of the source that are not features, with the reason."""

    statistics: tuple[ColumnSummary, ...] = ()
    """Of each feature, over all rows."""

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(name for column in self.columns for name in column.features)

    @property
    def origins(self) -> NDArray[np.float64]:
        return np.array(self.origin, dtype=np.float64)

    def category_features(self) -> list[tuple[int, Column]]:
        """Return the position of each categorical feature, with its column."""
        return [(self.position(c), c) for c in self.columns if c.kind == "category"]

    def position(self, column: Column) -> int:
        """Return the place of a column's first feature; names of features may be alike."""
        before = self.columns[: self.columns.index(column)]
        return sum(len(c.features) for c in before)

    def without_rows(self) -> "Schema":
        """Return what a model keeps: columns with their categories, and origins."""
        return replace(self, statistics=(), left_out=(), carried=(), partition_keys=())

    def to_json(self) -> dict[str, Any]:
        return {
            "columns": [_column_json(c) for c in self.columns],
            "origin": list(self.origin),
            "n_rows": self.n_rows,
            "id_column": self.id_column,
            "carried": list(self.carried),
            "partition_keys": list(self.partition_keys),
            "left_out": [list(pair) for pair in self.left_out],
            "statistics": [s.to_json() for s in self.statistics],
        }

    @classmethod
    def from_bytes(cls, content: bytes, name: str) -> "Schema":
        """Return the schema of a JSON file."""
        try:
            return cls.from_json(json.loads(content), name)
        except (ValueError, RecursionError) as error:
            if isinstance(error, DamagedDataError):
                raise
            raise DamagedDataError(f"{name} is not a schema ({error!s:.200}).") from None

    @classmethod
    def from_json(cls, found: Any, name: str) -> "Schema":
        """Return the schema written by `to_json`, or say that it is none."""
        try:
            schema = cls(
                columns=tuple(_column_of(c) for c in found["columns"]),
                origin=tuple(float(v) for v in found["origin"]),
                n_rows=int(found["n_rows"]),
                id_column=str(found["id_column"]),
                carried=_names(found["carried"]),
                partition_keys=_names(found["partition_keys"]),
                left_out=tuple((str(n), str(why)) for n, why in found["left_out"]),
                statistics=tuple(ColumnSummary.from_json(s) for s in found["statistics"]),
            )
            n_features = len(schema.features)
            sound = n_features == len(schema.origin) and bool(np.isfinite(schema.origin).all())
            sound = sound and len(schema.statistics) in (0, n_features)
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise DamagedDataError(f"{name} is not a schema ({error!s:.200}).") from None
        if not sound or schema.n_rows < 0 or not schema.columns:
            raise DamagedDataError(f"{name} is not a schema: its parts do not fit together.")
        return schema


def _names(found: Sequence[Any]) -> tuple[str, ...]:
    if not isinstance(found, list):
        raise TypeError("a list of names is none")
    return tuple(str(name) for name in found)


def _column_json(column: Column) -> dict[str, Any]:
    found: dict[str, Any] = {"name": column.name, "kind": column.kind}
    if column.kind == "vector":
        found["width"] = column.width
    if column.kind == "category":
        found["categories"] = list(column.vocabulary)
        found["counts"] = list(column.counts)
        found["missing"], found["other"] = column.n_missing, column.n_other
    return found


def _column_of(found: Any) -> Column:
    kind = found["kind"]
    if kind not in get_args(Kind):
        raise ValueError(f"column kind {kind!r}")
    if kind == "vector":
        width = int(found["width"])
        if not 0 < width <= LARGEST_WIDTH:
            raise ValueError(f"a vector of width {width}")
        return Column(str(found["name"]), kind, width=width)
    if kind != "category":
        return Column(str(found["name"]), kind)
    vocabulary, counts = _names(found["categories"]), tuple(int(n) for n in found["counts"])
    if len(counts) != len(vocabulary) or min(counts, default=0) < 0:
        raise ValueError(f"column {found['name']!r} does not count each of its categories")
    return Column(
        str(found["name"]),
        kind,
        vocabulary=vocabulary,
        counts=counts,
        n_missing=int(found["missing"]),
        n_other=int(found["other"]),
    )
