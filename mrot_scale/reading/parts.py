"""The files a table is made of: found in a fixed order, stamped, and with the keys of folders."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from mrot_scale.errors import DataError
from mrot_scale.reading.opening import explained
from mrot_scale.reading.stream import listed
from mrot_scale.storing.location import Location

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_STAMPS = ("ETag", "etag", "md5Hash", "LastModified", "last_modified", "mtime", "created")


@dataclass(frozen=True)
class Part:
    """One file of a table."""

    location: Location
    name: str
    """Its path below the table's folder."""

    size: int
    stamp: int | str
    """Time of the last change in ns, or what an object store has in its place."""

    @property
    def keys(self) -> dict[str, str | None]:
        """Values the part's `key=value` folders give to all of its rows."""
        steps = [step.partition("=") for step in self.name.split("/")[:-1] if "=" in step]
        return {key: None if text == _NO_VALUE else unquote(text) for key, _, text in steps}


@dataclass(frozen=True)
class Partitions:
    """Some of the `key=value` folders of a table, as a source."""

    location: Location
    folders: tuple[str, ...]

    def parts(self) -> "list[Part]":
        """Return the files of these folders, by their paths below the whole table."""
        return [
            replace(part, name=f"{folder}/{part.name}")
            for folder in self.folders
            for part in parts_below(self.location / folder)
        ]


@dataclass(frozen=True)
class Format:
    """How parts of one kind are read."""

    name: str
    describe: Callable[[Location], tuple[pa.Schema, int | None]]
    """Schema and, where known, rows of one part."""

    batches: Callable[[Location, list[str]], Iterator[pa.RecordBatch]]
    """Record batches of one part with at least the columns named."""


def identity_of(parts: Sequence[Part], kind: str) -> dict[str, Any]:
    return {"kind": kind, "files": [[part.name, part.size, part.stamp] for part in parts]}


def single_part(location: Location) -> Part:
    with explained(location, "a file"):
        if location.is_local:
            return _local_part(location.path, location.path.parent)
        return _remote_part(location, location.name, location.filesystem.info(location.address))


def parts_below(location: Location, *, hidden: bool = False) -> list[Part]:
    """Return every file below a folder sorted by path, hidden ones (`_x`, `.x`) only if asked."""
    with explained(location, "a folder"):
        below = _local_parts if location.is_local else _remote_parts
        return sorted(below(location, hidden), key=lambda part: part.name)


def _local_parts(location: Location, hidden: bool) -> Iterator[Part]:
    # Links are followed, because data folders are often put together from links.
    for folder, below, names in os.walk(location.address, onerror=_raise, followlinks=True):
        _refuse_loop(Path(folder))
        below[:] = [name for name in below if hidden or not _is_hidden(name)]
        for name in names:
            if hidden or not _is_hidden(name):
                yield _local_part(Path(folder, name), location.path)


def _local_part(path: Path, root: Path) -> Part:
    found = path.stat()
    name = path.relative_to(root).as_posix()
    return Part(Location(path), name, found.st_size, found.st_mtime_ns)


def _is_hidden(name: str) -> bool:
    return any(step.startswith(("_", ".")) for step in name.split("/"))


def _raise(error: OSError) -> None:
    raise error


def _refuse_loop(folder: Path) -> None:
    target = folder.resolve()
    if folder.is_symlink() and target in [parent.resolve() for parent in folder.parents]:
        raise DataError(f"{folder} is a link to a folder it lies in. Remove the link.")


def _remote_parts(location: Location, hidden: bool) -> Iterator[Part]:
    filesystem = location.filesystem
    root = filesystem._strip_protocol(location.address)
    for path, details in filesystem.find(location.address, detail=True).items():
        name = path[len(root) :].lstrip("/")
        if hidden or not _is_hidden(name):
            yield _remote_part(location / name, name, details)


def _remote_part(location: Location, name: str, details: dict[str, Any]) -> Part:
    stamp = next((str(details[key]) for key in _STAMPS if details.get(key)), "")
    return Part(location, name, int(details["size"] or 0), stamp)


def partition_schema(parts: Sequence[Part]) -> pa.Schema:
    """Return the columns the folder names give: integers where every value is one, else text."""
    keys = list(parts[0].keys)
    for part in parts:
        if list(part.keys) != keys:
            raise DataError(
                f"{part.location}: its folders give the keys {listed(list(part.keys)) or 'none'}, "
                f"those of {parts[0].name} give {listed(keys) or 'none'}. Use the same everywhere."
            )
    return pa.schema([(key, _key_type([part.keys[key] for part in parts])) for key in keys])


def _key_type(texts: Sequence[str | None]) -> pa.DataType:
    given = [text for text in texts if text is not None]
    return pa.int64() if given and all(map(_is_integer, given)) else pa.string()


def _is_integer(text: str) -> bool:
    """Tell whether a number says all that the text says: 01 is a name, not a number."""
    digits = text.removeprefix("-")
    if not (digits.isdecimal() and digits.isascii()) or str(int(text)) != text:
        return False
    return -(2**63) <= int(text) < 2**63


def partition_values(part: Part, schema: pa.Schema) -> dict[str, Any]:
    """Return the value of each key column on the rows of one part."""
    return {key: _key_scalar(part.keys[key], schema.field(key).type) for key in schema.names}


def _key_scalar(text: str | None, kind: pa.DataType) -> Any:
    return pa.scalar(text, pa.string()).cast(kind)
