"""Columns whose values are to be in no report: which features they are, and what may be said."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mrot_scale.reporting.contents import Json, notice, short
from mrot_scale.storing.schema import Schema

_HIDDEN = "not shown: it may hold values of a redacted column"
_VALUES = ("min", "median", "max", "mean")


@dataclass(frozen=True)
class Redaction:
    """What must not be shown."""

    columns: frozenset[str]
    """Names as they were given."""

    features: frozenset[str]
    """Features made of those columns."""

    positions: frozenset[int]
    unknown: tuple[str, ...]
    """Names that are no column: somebody may have meant another."""

    def notices(self) -> list[Json]:
        """Return a warning for each name that hides nothing."""
        told = "report.redact names {!r}, which is no column of this table"
        return [notice("warn", "redact", told.format(short(name))) for name in self.unknown]

    def of_notices(self, notices: Iterable[Json]) -> list[Json]:
        """Return notices without what may be values: rules for single columns tell them."""
        found = []
        for each in notices:
            hidden = each["name"].removeprefix("columns.") in self.columns
            found.append(each | {"message": _HIDDEN} if hidden else each)
        return found

    def of_text(self, text: str) -> str:
        """Return a text, unless it speaks of a column that is to be kept out."""
        return _HIDDEN if any(name in text for name in self.columns) else text

    def of_quality(self, lines: Iterable[Json]) -> list[Json]:
        """Return the lines of columns, values left out where they are to be."""
        names = {short(name) for name in self.features}
        hidden = dict.fromkeys((*_VALUES, "categories"))
        return [
            line | hidden | {"redacted": True} if line["name"] in names else line for line in lines
        ]


def redaction(names: Sequence[str], schema: Schema | None) -> Redaction:
    """Return what to keep out of the report of a table with these columns."""
    wanted = frozenset(names)
    features: set[str] = set()
    positions: set[int] = set()
    known: set[str] = set()
    if schema is not None:
        place = 0
        for column in schema.columns:
            if column.name in wanted:
                features.update(column.features)
                positions.update(range(place, place + len(column.features)))
            place += len(column.features)
        known = {c.name for c in schema.columns} | {schema.id_column, *schema.carried}
        known |= {*schema.partition_keys, *(name for name, _ in schema.left_out)}
    unknown = tuple(n for n in names if schema is not None and n not in known)
    return Redaction(wanted, frozenset(features), frozenset(positions), unknown)
