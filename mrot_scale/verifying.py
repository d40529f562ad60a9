"""Everything at a path read again and held against what was written: all that is wrong, by file.

Unlike `digest`, which stops at the first damage, this goes on to the last file, and it also names
what nobody listed. Nothing is written, so it may run beside anything else.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mrot_scale.digests import AnyPath, Kind, recognised
from mrot_scale.errors import (
    DamagedDataError,
    DataError,
    MissingInputError,
    ModelMismatchError,
    MrotError,
)
from mrot_scale.jobs.opening import RUN_CONFIG, RUN_PLAN
from mrot_scale.jobs.score_job import SCORES_FORMAT, SCORES_VERSION, TABLE_FORMAT
from mrot_scale.model.directory import FORMAT, FORMAT_VERSION
from mrot_scale.model.persist import load_model
from mrot_scale.reporting.writing import DATA
from mrot_scale.running.commit import STAGES, Journal, Record
from mrot_scale.running.publish import GENERATIONS, HISTORY, POINTER, history, resolve
from mrot_scale.running.run_log import LAST_ERROR, LOG, LOGS
from mrot_scale.storing.arrays import METADATA, ArraySpec
from mrot_scale.storing.chunks import RowChunks
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import MANIFEST, Entry, Manifest, read_manifest, shown
from mrot_scale.storing.schema import Schema
from mrot_scale.storing.store import FEATURES, SCHEMA, STORE_FORMAT, STORE_VERSION, ids_name

ProblemKind = Literal["missing", "damaged", "unexpected", "mismatch"]
Array = NDArray[Any]
Found = TypeVar("Found")

_TABLE_LIST = f"_{MANIFEST}"
_RUN_FILE, _JOURNAL, _SEGMENTS = "run.json", "journal.jsonl", "journal"
_FORMAT_OF: dict[Kind, tuple[str, int, str]] = {
    "store": (STORE_FORMAT, STORE_VERSION, MANIFEST),
    "model": (FORMAT, FORMAT_VERSION, MANIFEST),
    "scores": (SCORES_FORMAT, SCORES_VERSION, MANIFEST),
    "score table": (TABLE_FORMAT, SCORES_VERSION, _TABLE_LIST),
}
_REMEDY_OF: dict[Kind, str] = {
    "store": "Restore it from a copy, or ingest again.",
    "model": "Copy or fit the model again.",
    "scores": "Restore it from a copy, or score again.",
    "score table": "Restore it from a copy, or score again.",
    "run": "The same command again makes it anew.",
}
_NEW_RUN = "Start over with --new-run."
_TRACE_OF: dict[str, tuple[Kind, str]] = {
    SCHEMA: ("store", MANIFEST),
    "model.json": ("model", MANIFEST),
    f"score/{METADATA}": ("scores", MANIFEST),
    _JOURNAL: ("run", _RUN_FILE),
    _SEGMENTS: ("run", _RUN_FILE),
    STAGES: ("run", _RUN_FILE),
}
"""Files that tell what a folder was that has lost the one it is known by."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong."""

    kind: ProblemKind
    file: str
    what: str
    """What is wrong with the file, and what to do."""

    def __str__(self) -> str:
        return f"{self.kind}: {self.file}: {self.what}"

    def to_json(self) -> dict[str, str]:
        return {"kind": self.kind, "file": self.file, "what": self.what}


@dataclass(frozen=True)
class Verified:
    """What was found at a path after reading all of it."""

    path: str
    kind: Kind | None
    """What it is; None where too little is left to tell."""

    n_files: int
    n_bytes: int
    """What was read, damaged files included."""

    n_left_over: int
    """Objects of a run that no record names: attempts that were cut short, or came second."""

    problems: tuple[Problem, ...]

    def check(self) -> None:
        """Raise if anything is wrong."""
        if self.problems:
            count = len(self.problems)
            raise DamagedDataError(
                f"{self.path} has {count} problem{'s' if count > 1 else ''}, the first is "
                f"{self.problems[0]}"
            )

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "kind": self.kind,
            "files": self.n_files,
            "bytes": self.n_bytes,
            "left_over": self.n_left_over,
            "problems": [problem.to_json() for problem in self.problems],
        }

    def text(self) -> str:
        """Return a line for each problem, or one that says how much is sound."""
        if self.problems:
            return "\n".join(map(str, self.problems))
        left = f", {self.n_left_over:,} left over" if self.n_left_over else ""
        read = f"{self.n_files:,} files, {self.n_bytes:,} bytes{left}"
        return f"{self.kind} {self.path} is sound: {read}"


def verify(path: AnyPath) -> Verified:
    """Read everything at a path and return all that is wrong with it.

    Raises only where there is nothing of ours to read, or where storage does not answer.
    """
    visible = Location(path)
    try:
        found = recognised(visible)
    except MrotError as error:
        problem = _unrecognised(visible, error)
        return Verified(str(visible), None, 0, 0, 0, (problem,))
    folders = [found.folder, *_other_generations(visible, found.folder)]
    read = [_checked(folder, found.kind) for folder in folders]
    return Verified(
        str(visible),
        found.kind,
        sum(folder.n_files for folder in read),
        sum(folder.n_bytes for folder in read),
        sum(folder.n_left_over for folder in read),
        (
            *(problem for folder in read for problem in folder.problems),
            *_history_problems(visible, found.folder),
        ),
    )


def _unrecognised(visible: Location, error: MrotError) -> Problem:
    """Return what a place of ours has lost that it is known by; raise the error if it is none."""
    if isinstance(error, DamagedDataError):
        place = _to_blame(visible)
        remedy = f" {_REMEDY_OF['scores']}" if place.name == POINTER else ""
        return Problem("damaged", str(place), f"{_sentence(error)}{remedy}")
    if isinstance(error, MissingInputError) and _is_generation_link(visible):
        target = visible.path.parent / visible.path.readlink()
        return Problem("missing", str(target), f"{visible} leads there. {_REMEDY_OF['scores']}")
    trace = _trace(visible) if isinstance(error, DataError) else None
    if trace is None:
        raise error
    kind, name = trace
    remedy = _NEW_RUN if kind == "run" else _REMEDY_OF[kind]
    what = f"without it, nothing in this {kind} can be checked. {remedy}"
    return Problem("missing", str(resolve(visible) / name), what)


def _to_blame(visible: Location) -> Location:
    """Return the file that keeps a damaged place from being recognised."""
    try:
        folder = resolve(visible)
    except DamagedDataError:
        return visible / POINTER
    return folder / MANIFEST if folder.is_folder() else visible / POINTER


def _is_generation_link(visible: Location) -> bool:
    if not visible.is_local or not visible.path.is_symlink():
        return False
    return visible.path.readlink().parts[0] == GENERATIONS


def _trace(visible: Location) -> tuple[Kind, str] | None:
    """Return what a folder was, and what it has lost, if the rest of it is clearly ours."""
    folder = resolve(visible)
    if not folder.is_folder():
        return None
    traces = [trace for name, trace in _TRACE_OF.items() if (folder / name).exists()]
    if not traces and f"/{GENERATIONS}/" in folder.address:
        return "score table", _TABLE_LIST
    return traces[0] if traces else None


class _Folder:
    """A folder as it is read, file by file; what is wrong is noted on the way."""

    def __init__(self, location: Location, kind: Kind) -> None:
        self.location, self.kind = location, kind
        self.problems: list[Problem] = []
        self.n_files = self.n_bytes = self.n_left_over = 0
        self.files = location.files_below()
        self.odd = _odd_names(location)
        self.list_name = "the journal"
        self.listed: dict[str, Entry] = {}
        """What each file must be, as far as it is known."""

        self.is_understood = True
        """Whether it is known which files there should be."""

        self._seen: set[str] = set()

    def note(self, kind: ProblemKind, name: str, what: str, remedy: str | None = None) -> None:
        file = str(self.location / name) if name else str(self.location)
        remedy = _REMEDY_OF[self.kind] if remedy is None else remedy
        self.problems.append(Problem(kind, file, f"{what} {remedy}".strip()))

    def read(self, name: str) -> bytes | None:
        """Return the content of a plain file, None where there is none."""
        self._seen.add(name)
        if name not in self.files or name in self.odd:
            return None
        content = (self.location / name).read()
        self.n_files, self.n_bytes = self.n_files + 1, self.n_bytes + len(content)
        return content

    def sound(self, name: str) -> bytes | None:
        """Return the content of a file that is what the list says; note it otherwise."""
        entry, content = self.listed.get(name), self.read(name)
        if entry is None:
            self.note("mismatch", name, f"{self.list_name} does not list it.")
        elif content is None and name not in self.odd:  # those are noted together
            self.note("missing", name, f"{self.list_name} lists it.")
        elif content is not None and Entry.of(content) != entry:
            what = f"it is not what was written: size or sha256 is not as in {self.list_name}."
            self.note("damaged", name, what)
        elif content is not None:
            return content
        return None

    def parsed(self, name: str, parse: Callable[[bytes, str], Found]) -> Found | None:
        """Return what a sound file says; note it where that makes no sense."""
        content = self.sound(name)
        if content is None:
            return None
        try:
            return parse(content, str(self.location / name))
        except (MrotError, pa.ArrowException, OSError) as error:  # Arrow raises both
            self.note("mismatch", name, _sentence(error))
            return None

    def check_facts(self, told: dict[str, Any], found: dict[str, int]) -> None:
        """Note facts of the list that the files do not bear out."""
        for name, value in found.items():
            if told.get(name) != value:
                what = f"it says {name}: {shown(told.get(name))}, but the files say {value}."
                self.note("mismatch", self.list_name, what)

    def check_rest(self) -> None:
        """Read what is listed beyond what such a folder has."""
        for name in sorted(set(self.listed) - self._seen):
            if self.sound(name) is not None and self.is_understood:
                what = f"{self.list_name} lists it, but it is no part of a {self.kind}."
                self.note("mismatch", name, what)

    def check_names(self, is_known: Callable[[str], bool] = lambda _: False) -> None:
        """Note every file that nobody listed, and what is no plain file."""
        for name in sorted(self.odd):
            what = "it is a link, or no plain file; mrot-scale makes none here."
            self.note("unexpected", name, what, "Put a plain file in its place, or remove it.")
        for name in sorted(set(self.files) - self._seen - self.odd):
            if not is_known(name):
                self.note("unexpected", name, "nobody listed it.", "Move it elsewhere.")


def _odd_names(location: Location) -> set[str]:
    """Return what is neither a plain file nor a folder: links, pipes, sockets."""
    if not location.is_local:
        return set()
    root = location.path
    return {
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_symlink() or not (path.is_file() or path.is_dir())
    }


def _checked(location: Location, kind: Kind) -> _Folder:
    folder = _Folder(location, kind)
    if kind == "run":
        _check_run(folder)
        return folder
    manifest = _read_list(folder)
    if manifest is not None:
        folder.listed = manifest.files
        _CHECK_OF[kind](folder, manifest.facts)
        folder.check_rest()
        folder.check_names()
    if kind == "model" and not folder.problems:  # otherwise it would only say the same again
        _check_loads(folder)
    return folder


def _read_list(folder: _Folder) -> Manifest | None:
    """Return the list of files, if it is one that this version can read."""
    expected, version, folder.list_name = _FORMAT_OF[folder.kind]
    content = folder.read(folder.list_name)
    if content is None:
        what = "there is no such plain file, and without it none can be checked."
        folder.note("missing", folder.list_name, what)
        return None
    try:
        manifest = read_manifest(folder.location, expected, version, folder.kind, folder.list_name)
    except (DamagedDataError, ModelMismatchError) as error:
        kind: ProblemKind = "damaged" if isinstance(error, DamagedDataError) else "mismatch"
        folder.note(kind, folder.list_name, _sentence(error))
        return None
    if not manifest.is_written_as(content):
        folder.note("damaged", folder.list_name, "it is not as it was written.")
    return manifest


# Stores, models and scores -------------------------------------------------------------------


def _check_store(folder: _Folder, facts: dict[str, Any]) -> None:
    schema = folder.parsed(SCHEMA, Schema.from_bytes)
    name = f"{FEATURES}/{METADATA}"
    spec = folder.parsed(name, ArraySpec.from_metadata)
    attributes = folder.parsed(METADATA, _group_attributes)
    if schema is None or spec is None:
        folder.is_understood = False
        return
    if attributes is not None and attributes.get("features") != list(schema.features):
        folder.note("mismatch", METADATA, f"it does not name the features of {SCHEMA}.")
    if spec.dtype != "float32" or spec.shape != (schema.n_rows, len(schema.features)):
        folder.note("mismatch", name, f"its shape or type is not what {SCHEMA} says.")
        folder.is_understood = False
        return
    for chunk, n_rows in enumerate(_check_array(folder, FEATURES, spec)):
        table = folder.parsed(ids_name(chunk), partial(_table, most_rows=n_rows))
        if table is not None and table.num_rows != n_rows:
            what = f"it has {table.num_rows} rows, the chunk has {n_rows}."
            folder.note("mismatch", ids_name(chunk), what)


def _group_attributes(content: bytes, _: str) -> dict[str, Any]:
    """Return what the metadata of a Zarr group say about it."""
    try:
        found = json.loads(content)
        if (found["zarr_format"], found["node_type"]) != (3, "group"):
            raise ValueError("another node")
        return dict(found["attributes"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedDataError(f"it is not the metadata of a group ({error}).") from None


def _table(content: bytes, _: str, most_rows: int) -> Any:
    """Return the table of a Parquet file, every page of it decoded."""
    file = pq.ParquetFile(pa.BufferReader(content))
    n_rows = file.metadata.num_rows
    if n_rows > most_rows:  # a small file can hold more rows than memory
        raise DamagedDataError(f"it has {n_rows} rows, there are {most_rows}.")
    return file.read()


def _check_array(
    folder: _Folder, name: str, spec: ArraySpec, use: Callable[[Array], None] | None = None
) -> list[int]:
    """Decode every chunk of an array and hand on those that can be; return the rows of each."""
    chunks, below = RowChunks(spec.shape[0], spec.chunk_shape[0]), spec.shape[1:]
    if spec.chunk_shape[1:] != below or len(chunks) > len(folder.listed):
        what = "the array is not cut by rows, or into more chunks than there are files."
        folder.note("mismatch", f"{name}/{METADATA}", what)
        folder.is_understood = False
        return []
    lengths = [stop - start for start, stop in map(chunks.chunk_to_rows, chunks)]
    for chunk, n_rows in enumerate(lengths):
        place = f"{name}/{spec.chunk_name(chunk, *(0 for _ in below))}"
        values = folder.parsed(place, partial(spec.decode, shape=(n_rows, *below)))
        if use is not None and values is not None:
            use(values)
    return lengths


def _check_model(folder: _Folder, facts: dict[str, Any]) -> None:
    for name in sorted(folder.listed):
        folder.sound(name)


def _check_loads(folder: _Folder) -> None:
    try:
        load_model(folder.location)
    except MrotError as error:
        folder.note("mismatch", "", _sentence(error))


def _check_scores(folder: _Folder, facts: dict[str, Any]) -> None:
    folder.parsed(METADATA, _group_attributes)
    listed = {n.removesuffix(f"/{METADATA}") for n in folder.listed if n.endswith(f"/{METADATA}")}
    counts = _Counts(facts)
    for name in sorted({"score", *listed}):
        spec = folder.parsed(f"{name}/{METADATA}", ArraySpec.from_metadata)
        if spec is None:
            folder.is_understood = False
            continue
        if spec.shape[0] != facts.get("rows"):
            what = f"it has {spec.shape[0]} rows, which is not what {folder.list_name} says."
            folder.note("mismatch", f"{name}/{METADATA}", what)
        _check_array(folder, name, spec, counts.add if name == "score" else None)
    if not folder.problems:
        folder.check_facts(facts, counts.found)


class _Counts:
    """How many scores are missing, and how many are flagged."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self._threshold = facts.get("threshold")
        self.found = {"missing": 0}
        if isinstance(self._threshold, float):
            self.found["flagged"] = 0

    def add(self, scores: Array) -> None:
        self.found["missing"] += int(np.isnan(scores).sum())
        if "flagged" in self.found:
            self.found["flagged"] += int((scores > self._threshold).sum())


def _check_table(folder: _Folder, facts: dict[str, Any]) -> None:
    found = {"rows": 0, "missing": 0}
    columns, told = None, facts.get("rows")
    read = partial(_table, most_rows=told if isinstance(told, int) else 0)
    for name in sorted(n for n in folder.listed if n.endswith(".parquet")):
        table = folder.parsed(name, read)
        if table is None:
            continue
        columns = table.schema if columns is None else columns
        if not table.schema.equals(columns) or "score" not in table.column_names:
            folder.note("mismatch", name, "its columns are not those of scores, or of other files.")
            continue
        found["rows"] += table.num_rows
        found["missing"] += table["score"].null_count
    if not folder.problems:
        folder.check_facts(facts, found)


_CHECK_OF: dict[Kind, Callable[[_Folder, dict[str, Any]], None]] = {
    "store": _check_store,
    "model": _check_model,
    "scores": _check_scores,
    "score table": _check_table,
}


def _generations(visible: Location, current: Location) -> tuple[Location, list[str]]:
    """Return where all generations behind a name are, and what is there."""
    below = visible.sibling(f"{GENERATIONS}/{visible.name}")
    if not visible.is_local:
        below = visible / GENERATIONS
    has_others = current != visible and below.exists()
    return below, [name for name in below.names() if name != HISTORY] if has_others else []


def _other_generations(visible: Location, current: Location) -> list[Location]:
    """Return the generations that a name does not lead to now."""
    below, names = _generations(visible, current)
    return [below / n for n in names if n != current.name and (below / n).is_folder()]


def _history_problems(visible: Location, current: Location) -> list[Problem]:
    """Return what is wrong with the order of generations: some gone, some never seen."""
    below, names = _generations(visible, current)
    if not names:
        return []
    try:
        known = history(visible)
    except DamagedDataError as error:
        place = below / HISTORY if visible.is_local else visible / POINTER
        return [Problem("damaged", str(place), _sentence(error))]
    gone = "the history names it, but no rollback can lead there."
    unseen = "it never became visible. The same command again uses it; otherwise remove it."
    return [
        *(Problem("missing", str(below / n), gone) for n in known if n not in names),
        *(
            Problem("unexpected", str(below / n), unseen)
            for n in names
            if n not in (*known, current.name)
        ),
    ]


# Runs ----------------------------------------------------------------------------------------


def _check_run(folder: _Folder) -> None:
    """Check what a run committed; objects only as long as they are kept."""
    _check_run_file(folder)
    records, is_published = _read_journal(folder)
    stages = {name for name in folder.files if name.startswith(f"{STAGES}/")}
    refs = [ref for record in records.values() for ref in record.objects.values()]
    for ref in refs if stages or not is_published else ():
        folder.listed[ref.name] = ref.entry
        if ref.spec is not None and 0 not in ref.spec.shape:
            folder.parsed(ref.name, ref.spec.decode)
        else:
            folder.sound(ref.name)
    folder.n_left_over = len(stages - {ref.name for ref in refs})
    folder.check_names(_is_of_runs)


def _check_run_file(folder: _Folder) -> None:
    try:
        sound = isinstance(json.loads(folder.read(_RUN_FILE) or b"")["fingerprint"], dict)
    except (ValueError, KeyError, TypeError, RecursionError):
        sound = False
    if not sound:
        folder.note("damaged", _RUN_FILE, "it does not say what was asked of the run.", _NEW_RUN)


def _read_journal(folder: _Folder) -> tuple[dict[str, Record], bool]:
    """Return the records of a journal and whether it ends in an output, as far as it is sound."""
    records: dict[str, Record] = {}
    is_published, n_read, n_lines = False, 0, _n_lines(folder)
    name = _JOURNAL if folder.location.is_local else _SEGMENTS
    try:
        for value in Journal(folder.location).values():
            n_read += 1
            if not isinstance(value, dict):
                raise TypeError
            if "objects" in value:
                record = Record.from_json(value)
                records[record.key] = record
            is_published = is_published or "published" in value
    except DamagedDataError as error:
        folder.note("damaged", name, _sentence(error), "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        folder.note("damaged", name, f"line {n_read + 1} is none that we write.", _NEW_RUN)
    else:
        if n_read < n_lines:
            what = "its last line is cut short or damaged, and does not count."
            folder.note("damaged", name, what, "The same command again repeats that task.")
    return records, is_published


def _n_lines(folder: _Folder) -> int:
    """Return how many lines a journal has; note those that are gone."""
    if folder.location.is_local:
        content = folder.read(_JOURNAL)
        if content is None and (folder.location / STAGES).exists():
            folder.note("missing", _JOURNAL, "there are stages, but no record of them.")
        return len((content or b"").splitlines())
    there = [name for name in folder.files if name.startswith(f"{_SEGMENTS}/")]
    expected = {f"{_SEGMENTS}/{number:08d}.json" for number in range(len(there))}
    for name in sorted(expected - set(there)):
        folder.note("missing", name, "later parts of the journal are there.", _NEW_RUN)
    for name in there:
        folder.read(name)
    return len(there)


def _is_of_runs(name: str) -> bool:
    """Tell whether a file may be in a run folder without any record of it."""
    below = (f"{STAGES}/", f"{_SEGMENTS}/", f"{LOGS}/")
    told = (LOG, LAST_ERROR, RUN_CONFIG, RUN_PLAN, DATA)
    return name in told or name.startswith(below)


def _sentence(error: BaseException) -> str:
    """Return what an error says as one line that ends like a sentence."""
    text = " ".join(str(error).split())
    return text if text.endswith(".") else f"{text}."
