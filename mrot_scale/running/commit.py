"""The one owner of task output.

A task writes objects under names of its own attempt and returns a record of them. Nothing counts
until the driver, the only writer of the journal, has added that record: a second attempt, a zombie
or a crash leaves files that nobody refers to. Whoever reads an object checks its digest.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from mrot_scale.errors import (
    ConfigError,
    DamagedDataError,
    LockedError,
    MissingInputError,
    MrotError,
)
from mrot_scale.faults import reach
from mrot_scale.storing.arrays import ArraySpec
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import Entry, safe_name

STAGES = "stages"
_RUN_FILE = "run.json"
_JOURNAL = "journal.jsonl"
_SEGMENTS = "journal"
_LONGEST_SHOWN = 80
_MOST_SHOWN = 5


@dataclass(frozen=True)
class ObjectRef:
    """A file some attempt wrote: where it is below the run folder, and what it must be."""

    name: str
    entry: Entry
    spec: ArraySpec | None = None
    """Shape and type where the file is the one chunk of a Zarr array."""

    def read(self, run: Location) -> bytes:
        return self.entry.check((run / self.name).read(), str(run / self.name))

    def read_array(self, run: Location) -> NDArray[Any]:
        if self.spec is None:
            raise DamagedDataError(f"{run / self.name} is not an array.")
        content = self.read(run)
        if 0 in self.spec.shape:
            return np.zeros(self.spec.shape, self.spec.dtype)
        return self.spec.decode(content, str(run / self.name))

    def to_json(self) -> list[Any]:
        found = [self.name, self.entry.n_bytes, self.entry.sha256]
        return found + ([self.spec.dtype, *self.spec.shape] if self.spec else [])

    @classmethod
    def from_json(cls, found: Any) -> "ObjectRef":
        name, n_bytes, sha256, *array = found
        spec = whole_array(array[0], tuple(array[1:])) if array else None
        return cls(safe_name(str(name)), Entry(int(n_bytes), str(sha256)), spec)


def whole_array(dtype: str, shape: tuple[int, ...]) -> ArraySpec:
    """Return the spec of an array that is one chunk."""
    return ArraySpec(shape, tuple(max(length, 1) for length in shape), dtype)


@dataclass(frozen=True)
class Record:
    """What a task made: small enough to travel through a scheduler."""

    key: str
    objects: dict[str, ObjectRef]
    facts: dict[str, Any] = field(default_factory=dict)
    """Small results: counts, sums, names. JSON values only."""

    def to_json(self) -> dict[str, Any]:
        objects = {part: ref.to_json() for part, ref in self.objects.items()}
        return {"key": self.key, "objects": objects, "facts": self.facts}

    @classmethod
    def from_json(cls, found: Any) -> "Record":
        objects = {str(p): ObjectRef.from_json(r) for p, r in found["objects"].items()}
        return cls(str(found["key"]), objects, dict(found["facts"]))

    def same_content(self, other: "Record") -> bool:
        """Tell whether another attempt at the same task made the same bytes."""
        mine = {part: ref.entry for part, ref in self.objects.items()}
        theirs = {part: ref.entry for part, ref in other.objects.items()}
        return self.key == other.key and mine == theirs and self.facts == other.facts


def task_key(stage: str, *numbers: int) -> str:
    """Return the name of a task: its stage, then view, repeat and block as far as they apply."""
    return "/".join([stage, *(f"{n:05d}" for n in numbers)])


class Attempt:
    """One try at a task, on whichever worker it runs."""

    def __init__(self, run: Location, key: str) -> None:
        self._run, self._key = run, key
        self._id = uuid4().hex[:12]
        self._objects: dict[str, ObjectRef] = {}

    def put(self, part: str, content: bytes) -> None:
        """Write an object of this attempt, durably."""
        self._write(part, content, None)

    def put_array(self, part: str, values: NDArray[Any]) -> None:
        """Write an array as one Zarr chunk."""
        spec = whole_array(str(values.dtype), values.shape)
        self._write(part, spec.encode(values) if values.size else b"", spec)

    def _write(self, part: str, content: bytes, spec: ArraySpec | None) -> None:
        name = f"{STAGES}/{self._key}.{part}.{self._id}"
        (self._run / name).write(content)
        self._objects[part] = ObjectRef(name, Entry.of(content), spec)

    def record(self, **facts: Any) -> Record:
        return Record(self._key, self._objects, facts)


class Journal:
    """The list of committed records: lines of one file, or numbered objects where none can grow."""

    def __init__(self, run: Location) -> None:
        self._run = run
        self._n_segments = 0

    def append(self, value: Mapping[str, Any]) -> None:
        line = _sealed(value)
        if self._run.is_local:
            (self._run / _JOURNAL).append_line(line)
            return
        name = f"{_SEGMENTS}/{self._n_segments:08d}.json"
        if not (self._run / name).write_new(line):
            raise LockedError(f"{self._run / name} was written by another run on this folder.")
        self._n_segments += 1

    def values(self) -> Iterator[dict[str, Any]]:
        """Yield what was appended; a last line cut short by a crash is dropped."""
        lines = self._lines()
        for number, line in enumerate(lines):
            value = _unsealed(line)
            if value is not None:
                yield value
            elif number < len(lines) - 1:
                raise DamagedDataError(
                    f"Line {number + 1} of the journal in {self._run} is damaged. "
                    "Start over with --new-run."
                )

    def _lines(self) -> list[bytes]:
        if self._run.is_local:
            return self._local_lines()
        folder = self._run / _SEGMENTS
        names = folder.names() if folder.exists() else []
        self._n_segments = len(names)
        return [(folder / name).read() for name in names]

    def _local_lines(self) -> list[bytes]:
        place = self._run / _JOURNAL
        return place.read().splitlines(keepends=True) if place.exists() else []

    def cut_torn_line(self) -> None:
        """Cut off a last line that a crash left unfinished, or the next one would join it."""
        lines = self._local_lines() if self._run.is_local else []
        if lines and _unsealed(lines[-1]) is None:
            (self._run / _JOURNAL).write(b"".join(lines[:-1]))


def _sealed(value: Mapping[str, Any]) -> bytes:
    text = json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":")).encode()
    return b"%08x %s\n" % (crc32(text), text)


def _unsealed(line: bytes) -> dict[str, Any] | None:
    check, _, text = line.rstrip(b"\n").partition(b" ")
    if not line.endswith(b"\n") or check != b"%08x" % crc32(text):
        return None
    value: dict[str, Any] = json.loads(text)
    return value


class RunFolder:
    """A run at rest: what it was asked, what it has committed, what it published."""

    def __init__(self, location: Location, fingerprint: Mapping[str, Any]) -> None:
        self.location = location
        self.fingerprint = dict(fingerprint)
        self.records: dict[str, Record] = {}
        self.published: str | None = None
        """sha256 of the list of files of the output, noted before it appears."""

        self.finished = False
        """Whether the output has appeared."""

        self._journal = Journal(location)

    @classmethod
    def open(
        cls, location: Location, fingerprint: Mapping[str, Any], *, new_run: bool = False
    ) -> "RunFolder":
        """Return the folder of a new run, or of the one to go on with.

        A new run takes the place of one on other terms, of one that is published, or of one that
        is damaged. One on the same terms is gone on with all the same: it gives the same bytes.
        """
        run = cls(location, fingerprint)
        place = location / _RUN_FILE
        if (
            location.exists()
            and not place.exists()
            and not (location.is_folder() and all(map(_is_left_over, location.names())))
        ):
            raise ConfigError(f"{location} is not a run folder. Choose another run.folder.")
        if new_run and not run._can_go_on():
            run.clear()
        if not place.exists():
            place.write(_pretty({"fingerprint": run.fingerprint}))
            return run
        _check_same_run(cls(location, _read_fingerprint(place)), run.fingerprint)
        run._journal.cut_torn_line()
        run._replay()
        return run

    def _can_go_on(self) -> bool:
        """Tell whether there is an unfinished run on the same terms."""
        try:
            known = RunFolder.read(self.location)
        except (DamagedDataError, MissingInputError):
            return False
        return known.is_on(self.fingerprint) and not known.finished

    def clear(self) -> None:
        """Remove everything, what makes it a run folder last: a kill on the way leaves it one."""
        if not self.location.exists():
            return
        for name in self.location.names():
            if name != _RUN_FILE:
                (self.location / name).remove()
        reach("clear.stages-gone")
        self.location.remove()

    @classmethod
    def read(cls, location: Location) -> "RunFolder":
        """Return a run as it is now, to look at; nothing is written, so it may be going on."""
        run = cls(location, _read_fingerprint(location / _RUN_FILE))
        run._replay()
        return run

    def is_on(self, terms: Any) -> bool:
        """Tell whether this run was started on the given terms."""
        return _flat(self.fingerprint) == _flat(json.loads(json.dumps(terms)))

    def _replay(self) -> None:
        for value in self._journal.values():
            if "published" in value:
                self.published = str(value["published"])
            elif "finished" in value:
                self.finished = True
            else:
                record = self._record(value)
                self.records[record.key] = record

    def _record(self, value: Any) -> Record:
        try:
            return Record.from_json(value)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, MrotError):
                raise
            raise DamagedDataError(
                f"The journal in {self.location} holds what is no record ({error}). Start over "
                "with --new-run."
            ) from None

    def drop_damaged(self) -> list[str]:
        """Forget records whose objects are not what was written; return their keys."""
        damaged = [key for key, record in self.records.items() if not self._is_sound(record)]
        for key in damaged:
            del self.records[key]
        return damaged

    def _is_sound(self, record: Record) -> bool:
        try:
            for ref in record.objects.values():
                ref.read(self.location)
        except (DamagedDataError, MissingInputError):
            return False
        return True

    def commit(self, record: Record) -> None:
        """Make a task's output count; the same task again must have made the same bytes."""
        known = self.records.get(record.key)
        if known is not None:
            if not known.same_content(record):
                raise MrotError(f"Task {record.key} gave other bytes when run again: a bug.")
            return
        self._journal.append(record.to_json())
        self.records[record.key] = record

    def commit_published(self, manifest_sha256: str) -> None:
        self._journal.append({"published": manifest_sha256})
        self.published = manifest_sha256

    def commit_finished(self) -> None:
        if not self.finished:
            self._journal.append({"finished": True})
            self.finished = True

    def keep(self, name: str, content: bytes) -> None:
        """Keep a small file for people to look at."""
        (self.location / name).write(content)

    def remove_stages(self) -> None:
        (self.location / STAGES).remove()


def differences(run: RunFolder, terms: Any) -> str:
    """Return in words what differs between the terms of a run and others."""
    was, is_now = _flat(run.fingerprint), _flat(json.loads(json.dumps(terms)))
    differing = sorted(n for n in was.keys() | is_now.keys() if was.get(n) != is_now.get(n))
    shown = "; ".join(
        f"{n}: {_short(was.get(n))} -> {_short(is_now.get(n))}" for n in differing[:_MOST_SHOWN]
    )
    left = len(differing) - _MOST_SHOWN
    return f"{shown} and {left} more" if left > 0 else shown


def _is_left_over(name: str) -> bool:
    """Tell whether a file is what a run that died writing its first file left."""
    return name.startswith(f".{_RUN_FILE}.") and name.endswith(".tmp")


def is_run_folder(location: Location) -> bool:
    """Tell whether a run keeps its files here."""
    return (location / _RUN_FILE).exists()


def _pretty(value: Any) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def _read_fingerprint(place: Location) -> dict[str, Any]:
    try:
        return dict(json.loads(place.read())["fingerprint"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedDataError(f"{place} is damaged ({error}). Use --new-run.") from None


def _check_same_run(known: RunFolder, now: dict[str, Any]) -> None:
    """Refuse to go on with a run that was started on other terms."""
    differing = differences(known, now)
    if differing:
        raise ConfigError(
            f"{known.location} belongs to a run with other settings ({differing}). Use the same "
            "again to go on, or --new-run to start over."
        )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        return {prefix: value}
    found: dict[str, Any] = {}
    for name, below in value.items():
        found |= _flat(below, f"{prefix}.{name}" if prefix else str(name))
    return found
