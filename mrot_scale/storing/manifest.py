"""The list of files that makes a folder a store, a model or an output: sizes and digests.

It is written last, so a folder without it is unfinished, and nothing in a folder is believed before
it agrees with the list. The list guards against accidents; whoever can write the folder can also
rewrite the list.
"""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from mrot_scale.errors import DamagedDataError, MissingInputError, ModelMismatchError
from mrot_scale.storing.location import Location

MANIFEST = "MANIFEST.json"
_MANIFEST_BYTES = 2**30


@dataclass(frozen=True)
class Entry:
    """Size and digest of one file."""

    n_bytes: int
    sha256: str

    @classmethod
    def of(cls, content: bytes) -> "Entry":
        return cls(len(content), hashlib.sha256(content).hexdigest())

    def check(self, content: bytes, name: str) -> bytes:
        """Return the content if it is what was written."""
        if self != Entry.of(content):
            raise DamagedDataError(
                f"{name} is not what was written (size or sha256 differs). Restore it or make it "
                "again."
            )
        return content


@dataclass(frozen=True)
class Manifest:
    """What a finished folder holds."""

    format: str
    version: int
    files: dict[str, Entry]
    facts: dict[str, Any] = field(default_factory=dict)
    """Small things worth knowing without opening a file."""

    def to_bytes(self) -> bytes:
        listed = {
            name: {"bytes": entry.n_bytes, "sha256": entry.sha256}
            for name, entry in sorted(self.files.items())
        }
        found = {"format": self.format, "format_version": self.version, "files": listed}
        if self.facts:
            found["facts"] = self.facts
        return (json.dumps(found, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def safe_name(name: str) -> str:
    """Return a path below a folder, if it is one: no way leads up or out."""
    steps = name.split("/")
    if not name or any(step in ("", ".", "..") for step in steps) or "\\" in name or "\0" in name:
        raise DamagedDataError(f"{name!r} is not the name of a file below a folder of ours.")
    return name


def read_format(folder: Location) -> str | None:
    """Return the format a folder's list names; None where there is no readable list."""
    try:
        return str(json.loads((folder / MANIFEST).read())["format"])
    except (MissingInputError, ValueError, KeyError, TypeError, RecursionError):
        return None


def read_manifest(
    folder: Location, expected: str, version: int, noun: str, list_name: str = MANIFEST
) -> Manifest:
    """Return a folder's list, or the reason why this is not one this version can use."""
    place = folder / list_name
    if not place.exists():
        raise DamagedDataError(f"{folder} is not a finished {noun}: it has no {list_name}.")
    if place.size() > _MANIFEST_BYTES:
        raise DamagedDataError(f"{place} is larger than any list of files.")
    try:
        found = json.loads(place.read())
        if found["format"] != expected:
            raise DamagedDataError(f"{folder} holds a {found['format']!r}, not a {noun}.")
        found_version = found["format_version"]
        files = {
            safe_name(str(name)): Entry(int(entry["bytes"]), str(entry["sha256"]))
            for name, entry in found["files"].items()
        }
        facts = dict(found.get("facts", {}))
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        if isinstance(error, DamagedDataError):
            raise
        raise DamagedDataError(f"{place} is damaged or foreign.") from None
    if found_version != version:
        raise ModelMismatchError(
            f"{folder} has {noun} format {found_version!r}, this version of mrot-scale reads "
            f"{version}. Install the version that wrote it, or make it again."
        )
    return Manifest(expected, version, files, facts)
