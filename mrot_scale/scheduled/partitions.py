"""The partitions of a lake: folders named key=value, in the order of their values."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from urllib.parse import quote, unquote

from mrot_scale.errors import ConfigError, DataError, MissingInputError
from mrot_scale.reading.files import kind_of
from mrot_scale.reading.parts import Part, Partitions, parts_below
from mrot_scale.storing.location import Location

_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)


@dataclass(frozen=True)
class Partition:
    """One key and value, such as date=2026-11-14."""

    key: str
    value: str

    @property
    def name(self) -> str:
        """As folders of scores, runs and reports are called."""
        return f"{self.key}={quote(self.value, safe=' ')}"

    def __str__(self) -> str:
        return f"{self.key}={self.value}"

    @property
    def day(self) -> date | None:
        """The day it is of, where its value is a date."""
        return as_day(self.value)

    @property
    def interval(self) -> tuple[str, str] | None:
        """Begin and end of its day in UTC, the end not included."""
        if self.day is None:
            return None
        start = datetime(self.day.year, self.day.month, self.day.day, tzinfo=UTC)
        try:
            return start.isoformat(), (start + timedelta(days=1)).isoformat()
        except OverflowError:  # the last day there is
            return None


def as_day(value: str) -> date | None:
    """Return the date a value is, None if it is none."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII):
        return None
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def parse_partition(day: str | None, text: str | None, key: str) -> Partition:
    """Return the partition that --date or --partition names."""
    if (day is None) == (text is None):
        raise ConfigError("Name the partition by --date, or by --partition KEY=VALUE.")
    if day is not None:
        if as_day(day) is None:
            raise ConfigError(f"--date takes a day such as 2026-11-14, got {day!r}.")
        return Partition(key, day)
    name, equals, value = str(text).partition("=")
    if not equals:
        name, value = key, name
    if not name or not value or "/" in name:
        raise ConfigError(f"--partition takes KEY=VALUE, got {text!r}.")
    return Partition(name, value)


@dataclass(frozen=True)
class Lake:
    """A folder of partitions, as it was when it was listed."""

    location: Location
    key: str
    folders: dict[str, str]
    """Name of the folder of each value, in order of the values."""

    @classmethod
    def open(cls, location: Location, key: str) -> "Lake":
        """List the partitions of a folder."""
        if not location.exists():
            raise MissingInputError(f"Nothing at {location}.")
        if not location.is_folder():
            raise DataError(f"{location} is a file, not a folder of {key}=... folders.")
        found: dict[str, str] = {}
        for name in location.names():
            if not name.startswith(f"{key}=") or not _is_folder(location / name):
                continue
            value = unquote(name.partition("=")[2])
            if value in found:
                raise DataError(f"{location}: {found[value]} and {name} are the same partition.")
            found[value] = name
        return cls(location, key, {value: found[value] for value in in_order(list(found))})

    @property
    def values(self) -> list[str]:
        return list(self.folders)

    def partition(self, value: str) -> Partition:
        return Partition(self.key, value)

    def folder(self, partition: Partition) -> Location:
        """Return where the files of a partition are."""
        name = self.folders.get(partition.value) if partition.key == self.key else None
        if name is None:
            raise MissingInputError(f"No {partition} in {self.location}: {self._extent()}.")
        return self.location / name

    def _extent(self) -> str:
        if not self.folders:
            return f"it has no folders {self.key}=..."
        return f"it has {len(self.folders)}, {self.values[0]} to {self.values[-1]}"

    def files(self, partition: Partition) -> list[Part]:
        """Return the table files of a partition, by their paths below its folder."""
        return [part for part in parts_below(self.folder(partition)) if kind_of(part.name)]

    def previous(self, partition: Partition) -> Partition | None:
        """Return the partition just before by value, whichever ran when."""
        before = values_until(self.values, partition.value)
        before = [value for value in before if value != partition.value]
        return self.partition(before[-1]) if before else None

    def until(self, value: str, most: int) -> list[Partition]:
        """Return the last partitions up to a value, at most so many."""
        return [self.partition(v) for v in values_until(self.values, value)[-most:]]

    def source(self, partitions: Sequence[Partition]) -> Partitions:
        """Return some partitions as one table."""
        return Partitions(self.location, tuple(self.folders[p.value] for p in partitions))


def _is_folder(place: Location) -> bool:
    """Tell folders from files, on object stores by their names: asking would take a while."""
    return place.is_folder() if place.is_local else kind_of(place.name) is None


def in_order(values: Sequence[str]) -> list[str]:
    """Return values in order: numbers by size, and after them all others by text."""
    return sorted(values, key=_place)


def _place(value: str) -> tuple[int, int, str]:
    is_number = _INTEGER.fullmatch(value) is not None
    return (0, int(value), value) if is_number else (1, 0, value)


def values_until(values: Sequence[str], last: str) -> list[str]:
    """Return the values up to and with the last one, which need not be among them."""
    return [value for value in in_order(values) if _place(value) <= _place(last)]


def values_between(values: Sequence[str], start: str | None, end: str | None) -> list[str]:
    """Return the values from start to end, both included."""
    found = values_until(values, end) if end is not None else in_order(values)
    if start is None:
        return found
    before = set(values_until(values, start)) - {start}
    return [value for value in found if value not in before]
