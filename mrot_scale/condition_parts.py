"""What conditions are made of: each part says of every row of a table whether it is true there.

A comparison with a missing value is neither true nor false, and so is its negation.
"""

from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from mrot_scale.comparing import (
    Value,
    compare_columns,
    compare_value,
    constantly,
    floats,
    kind_of,
    nulls,
)
from mrot_scale.errors import ConfigError

Table: TypeAlias = "pa.Table | pa.RecordBatch"


@dataclass(frozen=True)
class Column:
    """A column; by itself a condition if its values are true and false."""

    name: str

    def values(self, table: Table) -> Any:
        """Return the values in one of few types, NaN as missing."""
        found = table.column(self.name)
        if pa.types.is_dictionary(found.type):
            found = pc.cast(found, found.type.value_type)
        if kind_of(found.type) == "text":
            return pc.cast(found, pa.large_string())
        is_exact = pa.types.is_integer(found.type) or kind_of(found.type) != "number"
        return found if is_exact else floats(found)

    def truths(self, table: Table) -> Any:
        values = self.values(table)
        if kind_of(values.type) == "missing":
            return nulls(values)
        if kind_of(values.type) != "truth":
            raise ConfigError(
                f"Column {self.name!r} has type {values.type} and is no condition by itself. "
                "Compare it with something."
            )
        return values


@dataclass(frozen=True)
class IsMissing:
    """`column is None`."""

    column: Column

    def truths(self, table: Table) -> Any:
        return pc.is_null(self.column.values(table))


@dataclass(frozen=True)
class Comparison:
    """`left < right`, or any other sign, with a column or a value on the right."""

    left: Column
    sign: str
    right: Column | Value

    def truths(self, table: Table) -> Any:
        if isinstance(self.right, Column):
            names = (self.left.name, self.right.name)
            return compare_columns(
                self.left.values(table), self.sign, self.right.values(table), names
            )
        field = table.schema.field(self.left.name)
        return compare_value(self.left.values(table), self.sign, self.right, field)


@dataclass(frozen=True)
class Membership:
    """`column in members`."""

    column: Column
    members: tuple[Value, ...]

    def truths(self, table: Table) -> Any:
        values, field = self.column.values(table), table.schema.field(self.column.name)
        equal = (compare_value(values, "==", member, field) for member in self.members)
        return reduce(pc.or_kleene, equal, constantly(values, False))


@dataclass(frozen=True)
class Not:
    """`not part`."""

    part: "Part"

    def truths(self, table: Table) -> Any:
        return pc.invert(self.part.truths(table))


@dataclass(frozen=True)
class All:
    """`part and part`."""

    parts: "tuple[Part, ...]"

    def truths(self, table: Table) -> Any:
        return reduce(pc.and_kleene, (part.truths(table) for part in self.parts))


@dataclass(frozen=True)
class Some:
    """`part or part`."""

    parts: "tuple[Part, ...]"

    def truths(self, table: Table) -> Any:
        return reduce(pc.or_kleene, (part.truths(table) for part in self.parts))


Part = Column | IsMissing | Comparison | Membership | Not | All | Some
