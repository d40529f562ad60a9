"""Stores, models and scores: folders whose manifest lists what must be in them."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mrot_scale.digests import Kind
from mrot_scale.errors import DamagedDataError, ModelMismatchError, MrotError
from mrot_scale.jobs.score_outputs import SCORES_FORMAT, SCORES_VERSION, TABLE_FORMAT
from mrot_scale.model.directory import FORMAT, FORMAT_VERSION
from mrot_scale.model.persist import load_model
from mrot_scale.storing.arrays import METADATA, ArraySpec
from mrot_scale.storing.chunks import RowChunks
from mrot_scale.storing.manifest import MANIFEST, Manifest, read_manifest
from mrot_scale.storing.schema import Schema
from mrot_scale.storing.store import FEATURES, SCHEMA, STORE_FORMAT, STORE_VERSION, ids_name
from mrot_scale.verifying.findings import ProblemKind, sentence
from mrot_scale.verifying.folder import Folder

Array = NDArray[Any]

TABLE_LIST = f"_{MANIFEST}"
_FORMAT_OF: dict[Kind, tuple[str, int, str]] = {
    "store": (STORE_FORMAT, STORE_VERSION, MANIFEST),
    "model": (FORMAT, FORMAT_VERSION, MANIFEST),
    "scores": (SCORES_FORMAT, SCORES_VERSION, MANIFEST),
    "score table": (TABLE_FORMAT, SCORES_VERSION, TABLE_LIST),
}


def check_listed(folder: Folder) -> None:
    """Check a folder by its list, and a model that is all there by loading it."""
    manifest = _read_list(folder)
    if manifest is not None:
        folder.listed = manifest.files
        _CHECK_OF[folder.kind](folder, manifest.facts)
        folder.check_rest()
        folder.check_names()
    if folder.kind == "model" and not folder.problems:  # otherwise it would only say the same again
        _check_loads(folder)


def _read_list(folder: Folder) -> Manifest | None:
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
        folder.note(kind, folder.list_name, sentence(error))
        return None
    if not manifest.is_written_as(content):
        folder.note("damaged", folder.list_name, "it is not as it was written.")
    return manifest


def _check_store(folder: Folder, facts: dict[str, Any]) -> None:
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
    folder: Folder, name: str, spec: ArraySpec, use: Callable[[Array], None] | None = None
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


def _check_model(folder: Folder, facts: dict[str, Any]) -> None:
    for name in sorted(folder.listed):
        folder.sound(name)


def _check_loads(folder: Folder) -> None:
    try:
        load_model(folder.location)
    except MrotError as error:
        folder.note("mismatch", "", sentence(error))


def _check_scores(folder: Folder, facts: dict[str, Any]) -> None:
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


def _check_table(folder: Folder, facts: dict[str, Any]) -> None:
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


_CHECK_OF: dict[Kind, Callable[[Folder, dict[str, Any]], None]] = {
    "store": _check_store,
    "model": _check_model,
    "scores": _check_scores,
    "score table": _check_table,
}
