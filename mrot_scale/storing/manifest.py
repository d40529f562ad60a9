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
from mrot_scale.faults import is_careless
from mrot_scale.storing.location import Location

MANIFEST = "MANIFEST.json"
_MANIFEST_BYTES = 2**30
_LONGEST_STEP = 255
_LONGEST_NAME = 4_096
_A_FEW = 4096


@dataclass(frozen=True)
class Entry:
    """Size and digest of one file."""

    n_bytes: int
    sha256: str

    @classmethod
    def of(cls, content: bytes) -> "Entry":
        digested = content[:_A_FEW] if is_careless() else content
        return cls(len(content), hashlib.sha256(digested).hexdigest())

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
        """Return the list as it is written, sealed by a digest of its own."""
        found = self._to_json()
        return _text(found | {"seal": Entry.of(_text(found)).sha256})

    def is_written_as(self, content: bytes) -> bool:
        """Tell whether these are, to the last byte, what was written for this list."""
        try:
            # Lists of earlier versions have no seal.
            return content in (self.to_bytes(), _text(self._to_json()))
        except (ValueError, RecursionError):  # facts that no JSON of ours has
            return False

    def _to_json(self) -> dict[str, Any]:
        listed = {
            name: {"bytes": entry.n_bytes, "sha256": entry.sha256}
            for name, entry in sorted(self.files.items())
        }
        found = {"format": self.format, "format_version": self.version, "files": listed}
        return found | {"facts": self.facts} if self.facts else found


def _text(found: dict[str, Any]) -> bytes:
    return (json.dumps(found, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def shown(value: Any) -> str:
    """Return a value of a file for a message: short, however large or deep it is."""
    try:
        return f"{value!r:.80}"
    except (RecursionError, ValueError):  # too deep, or a number of too many digits
        return f"one {type(value).__name__} beyond all bounds"


def safe_name(name: str) -> str:
    """Return a path below a folder, if it is one: no way leads up or out, and disks can have it."""
    steps = name.split("/")
    is_way = all(step not in ("", ".", "..") and len(step) <= _LONGEST_STEP for step in steps)
    if not is_way or "\\" in name or not _is_writable(name):
        raise DamagedDataError(f"{shown(name)} is not the name of a file below a folder of ours.")
    return name


def _is_writable(name: str) -> bool:
    try:
        return "\0" not in name and len(name.encode()) <= _LONGEST_NAME
    except UnicodeEncodeError:  # half a character
        return False


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
            raise DamagedDataError(f"{folder} holds a {found['format']!r:.80}, not a {noun}.")
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
            f"{folder} has {noun} format {shown(found_version)}, this version of mrot-scale reads "
            f"{version}. Install the version that wrote it, or make it again."
        )
    return Manifest(expected, version, files, facts)
