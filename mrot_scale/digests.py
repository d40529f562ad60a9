"""One digest for what something holds, decoded: neither chunks nor codecs nor file names enter it.

Two stores of the same rows have the same digest however they were cut and compressed. Everything is
read on the way, chunk by chunk, and checked against the list of files as it is.
"""

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mrot_scale.errors import DamagedDataError, DataError, MissingInputError, MrotError
from mrot_scale.jobs.score_outputs import SCORES_FORMAT, SCORES_VERSION, TABLE_FORMAT
from mrot_scale.model.directory import FORMAT as MODEL_FORMAT
from mrot_scale.model.directory import ModelFiles
from mrot_scale.running.commit import STAGES, ObjectRef, RunFolder
from mrot_scale.running.publish import resolve
from mrot_scale.storing.arrays import METADATA, ArraySpec
from mrot_scale.storing.chunks import RowChunks
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import MANIFEST, Manifest, read_format, read_manifest
from mrot_scale.storing.schema import Schema
from mrot_scale.storing.store import STORE_FORMAT, FeatureStore

Kind = Literal["store", "model", "scores", "score table", "run"]
AnyPath = str | os.PathLike[str] | Location

_KIND_OF: dict[str, Kind] = {
    STORE_FORMAT: "store",
    MODEL_FORMAT: "model",
    SCORES_FORMAT: "scores",
}
_TABLE_LIST = f"_{MANIFEST}"
_RUN_FILE = "run.json"
_DIGEST_VERSION = 1
_REMEDY = "Restore it or make it again."


@dataclass(frozen=True)
class Recognised:
    """Something mrot-scale wrote, and the folder it is really in."""

    kind: Kind
    folder: Location


def recognised(path: AnyPath) -> Recognised:
    """Return what is at a path, behind links and pointers."""
    visible = Location(path)
    if not visible.exists():
        raise MissingInputError(f"Nothing at {visible}.")
    if visible.is_local and not visible.path.exists():
        raise MissingInputError(f"{visible} is a link to something that is not there.")
    folder = resolve(visible)
    if folder != visible and not folder.is_folder():
        raise DamagedDataError(f"{visible} points to {folder}, which is not there. {_REMEDY}")
    return Recognised(_kind(folder), folder)


def _kind(folder: Location) -> Kind:
    if not folder.is_folder():
        raise _nothing_of_ours(folder)
    if (folder / MANIFEST).exists():
        kind = _KIND_OF.get(read_format(folder) or "")
        if kind is None:
            raise DamagedDataError(f"{folder / MANIFEST} is damaged or foreign. {_REMEDY}")
        return kind
    if (folder / _TABLE_LIST).exists():
        return "score table"
    if (folder / _RUN_FILE).exists():
        return "run"
    raise _nothing_of_ours(folder)


def _nothing_of_ours(place: Location) -> DataError:
    return DataError(
        f"{place} is no store, model, score output or run folder that mrot-scale wrote. "
        "Check the path."
    )


def digest(path: AnyPath) -> str:
    """Return the sha256, in hex, of everything at a path by value, after checking all of it."""
    found = recognised(path)
    try:
        return _DIGEST_OF[found.kind](found.folder)
    except MrotError:
        raise
    except (pa.ArrowException, OSError) as error:  # what ends too early is an OSError
        reason = " ".join(str(error).split())
        raise DamagedDataError(f"{found.folder} cannot be decoded: {reason}. {_REMEDY}") from None


class _Total:
    """A digest over named parts, each with its length so that none can pass for two."""

    def __init__(self, kind: Kind) -> None:
        self._sum = hashlib.sha256()
        self.add(f"mrot-scale {kind}", str(_DIGEST_VERSION).encode())

    def add(self, name: str, content: bytes) -> None:
        for part in (json.dumps(name).encode(), content):
            self._sum.update(len(part).to_bytes(8, "little"))
            self._sum.update(part)

    def add_json(self, name: str, value: Any) -> None:
        self.add(name, json.dumps(value, sort_keys=True).encode())

    def hex(self) -> str:
        return self._sum.hexdigest()


def _store_digest(folder: Location) -> str:
    store = FeatureStore.open(folder)
    read_listed(folder, store.manifest, METADATA)
    total, features, ids = _Total("store"), hashlib.sha256(), _Columns()
    for chunk in store.chunks:
        features.update(_value_bytes(store.read_chunk(chunk)))
        ids.add(store.read_ids(chunk))
    total.add_json("schema", _schema_content(store.schema))
    total.add("features", features.digest())
    ids.finish(total, "ids")
    return total.hex()


def _schema_content(schema: Schema) -> dict[str, Any]:
    """Return what of a schema the rows do not tell by themselves."""
    return {
        "rows": schema.n_rows,
        "columns": [[c.name, c.kind, c.width, list(c.vocabulary)] for c in schema.columns],
        "origin": list(schema.origin),
        "id": schema.id_column,
        "carried": list(schema.carried),
        "partition_keys": list(schema.partition_keys),
    }


def _model_digest(folder: Location) -> str:
    total = _Total("model")
    for name, content in sorted(ModelFiles.read(folder).content.items()):
        total.add(name, content)
    return total.hex()


def _scores_digest(folder: Location) -> str:
    manifest = scores_manifest(folder)
    read_listed(folder, manifest, METADATA)
    total = _Total("scores")
    for name, spec in array_specs(folder, manifest).items():
        values = hashlib.sha256()
        for chunk in array_chunks(folder, manifest, name, spec):
            values.update(_value_bytes(chunk))
        total.add_json(name, [spec.dtype, *spec.shape])
        total.add(name, values.digest())
    return total.hex()


def scores_manifest(folder: Location) -> Manifest:
    """Return the list of files of a score output."""
    return read_manifest(folder, SCORES_FORMAT, SCORES_VERSION, "scores")


def array_specs(folder: Location, manifest: Manifest) -> dict[str, ArraySpec]:
    """Return shape and type of each array of a score output, by name."""
    found = {}
    for listed in sorted(manifest.files):
        name, _, last = listed.rpartition("/")
        if name and last == METADATA:
            content = read_listed(folder, manifest, listed)
            found[name] = ArraySpec.from_metadata(content, str(folder / listed))
    return found


def array_chunks(
    folder: Location, manifest: Manifest, name: str, spec: ArraySpec
) -> Iterator[NDArray[Any]]:
    """Yield the values of an array, chunk by chunk, each checked."""
    if spec.chunk_shape[1:] != spec.shape[1:]:
        raise DamagedDataError(f"{folder / name} is not cut by rows. {_REMEDY}")
    chunks = RowChunks(spec.shape[0], spec.chunk_shape[0])
    for chunk in chunks:
        start, stop = chunks.chunk_to_rows(chunk)
        position = (chunk, *(0 for _ in spec.shape[1:]))
        listed = f"{name}/{spec.chunk_name(*position)}"
        place = f"{folder / listed} (rows {start} to {stop - 1})"
        content = read_listed(folder, manifest, listed)
        yield spec.decode(content, place, (stop - start, *spec.shape[1:]))


def _table_digest(folder: Location) -> str:
    manifest, total = table_manifest(folder), _Total("score table")
    for partition, names in sorted(table_partitions(manifest).items()):
        columns = _Columns()
        for name in names:
            file = pq.ParquetFile(pa.BufferReader(read_listed(folder, manifest, name)))
            for batch in file.iter_batches():
                columns.add(batch)
        columns.finish(total, partition)
    return total.hex()


def table_manifest(folder: Location) -> Manifest:
    """Return the list of files of a Parquet score folder."""
    return read_manifest(folder, TABLE_FORMAT, SCORES_VERSION, "score table", _TABLE_LIST)


def table_partitions(manifest: Manifest) -> dict[str, list[str]]:
    """Return the files of each partition in the order of their rows."""
    found = defaultdict(list)
    for name in sorted(manifest.files, key=lambda n: (len(n), n)):  # part-1000000 after part-999999
        found[name.rpartition("/")[0]].append(name)
    return dict(found)


def read_listed(folder: Location, manifest: Manifest, name: str) -> bytes:
    """Return a file's content if it is what the list says, else say that it is damaged."""
    entry = manifest.files.get(name)
    if entry is None or name.startswith("/") or ".." in name.split("/"):
        raise DamagedDataError(f"{folder}: {name!r} is not in the list of files. {_REMEDY}")
    try:
        return entry.check((folder / name).read(), str(folder / name))
    except MissingInputError:
        raise DamagedDataError(f"{folder / name} is missing. {_REMEDY}") from None


def _run_digest(folder: Location) -> str:
    run = committed_run(folder)
    if run.records and not (folder / STAGES).exists():
        raise DataError(
            f"{folder} has finished and keeps no stages. Take the digest of what it published, or "
            "run with run.keep_stages: true."
        )
    total = _Total("run")
    for key, record in sorted(run.records.items()):
        total.add_json(key, record.facts)
        for part, ref in sorted(record.objects.items()):
            total.add(part, _object_digest(folder, ref))
    return total.hex()


def _object_digest(run: Location, ref: ObjectRef) -> bytes:
    try:
        if ref.spec is None:
            return hashlib.sha256(ref.read(run)).digest()
        shape = json.dumps([ref.spec.dtype, *ref.spec.shape]).encode()
        return hashlib.sha256(shape + _value_bytes(ref.read_array(run))).digest()
    except MissingInputError:
        raise DamagedDataError(f"{run / ref.name} is missing. {_REMEDY}") from None


def committed_run(folder: Location) -> RunFolder:
    """Return what a run has committed so far, without touching it."""
    return RunFolder.read(folder)


_DIGEST_OF: dict[Kind, Callable[[Location], str]] = {
    "store": _store_digest,
    "model": _model_digest,
    "scores": _scores_digest,
    "score table": _table_digest,
    "run": _run_digest,
}


class _Columns:
    """Digests of Arrow columns by value, for tables that come in pieces.

    Values, lengths and validity of a column go to hashers of their own, so that where one piece
    ends and the next begins leaves no trace.
    """

    def __init__(self) -> None:
        self._sums: dict[str, Any] = {}

    def add(self, table: Any) -> None:
        """Take the next rows, a table or a record batch."""
        for name, column in zip(table.schema.names, table.columns, strict=True):
            for piece in getattr(column, "chunks", [column]):
                for part, content in _parts(piece, json.dumps(name)):
                    self._sums.setdefault(part, hashlib.sha256()).update(content)

    def finish(self, total: _Total, name: str) -> None:
        """Add the digests of all columns to a total."""
        total.add_json(name, {part: found.hexdigest() for part, found in self._sums.items()})
        total.add_json(name, list(self._sums))  # in the order of the columns


def _parts(values: Any, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield what an Arrow array holds as named bytes; names depend on its type alone."""
    values = _plain(values)
    found, types = values.type, pa.types
    yield f"{name} valid", _value_bytes(pc.is_valid(values).to_numpy(zero_copy_only=False))
    if types.is_struct(found):
        for field, inner in zip(found, values.flatten(), strict=True):
            yield from _parts(inner, f"{name}.{json.dumps(field.name)}")
    elif types.is_list(found) or types.is_large_list(found):
        yield f"{name} lengths", _numbers(pc.cast(pc.list_value_length(values), pa.int64()))
        yield from _parts(values.flatten(), f"{name}[]")
    elif types.is_large_binary(found):
        yield f"{name} lengths", _numbers(pc.cast(pc.binary_length(values), pa.int64()))
        yield f"{name} bytes", _joined_bytes(values)
    elif not types.is_null(found):
        yield f"{name} {found}", _numbers(values)


def _plain(values: Any) -> Any:
    """Return an array in the one form that stands for all that hold the same values."""
    found, types = values.type, pa.types
    if isinstance(values, pa.ExtensionArray):
        return _plain(values.storage)
    if types.is_dictionary(found):
        return _plain(values.dictionary_decode())
    if types.is_map(found):
        return pc.cast(values, pa.list_(pa.struct([found.key_field, found.item_field])))
    if types.is_fixed_size_list(found):
        return pc.cast(values, pa.list_(found.value_type))
    if types.is_decimal(found):
        return pc.cast(pc.cast(values, pa.large_string()), pa.large_binary())
    is_bytes = types.is_binary(found) or types.is_fixed_size_binary(found)
    is_text = types.is_string(found) or types.is_large_string(found)
    if is_bytes or is_text or types.is_string_view(found) or types.is_binary_view(found):
        return pc.cast(values, pa.large_binary())
    return values


def _numbers(values: Any) -> bytes:
    """Return the values of a fixed width, with zeros where there are none."""
    if pa.types.is_temporal(values.type):
        values = pc.cast(values, pa.int32() if values.type.bit_width == 32 else pa.int64())
    if pa.types.is_boolean(values.type):
        values = pc.cast(values, pa.uint8())
    if values.null_count:
        values = pc.fill_null(values, 0)
    return _value_bytes(values.to_numpy(zero_copy_only=False))


def _joined_bytes(values: Any) -> bytes:
    """Return the bytes of all strings, one after another."""
    filled = pc.fill_null(values, b"") if values.null_count else values
    _, offsets, content = filled.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(filled) + 1, 8 * filled.offset)
    return b"" if content is None else bytes(memoryview(content)[bounds[0] : bounds[-1]])


def _value_bytes(values: NDArray[Any]) -> bytes:
    """Return values in rows, little-endian, every NaN the same."""
    if values.dtype.kind == "f" and np.isnan(values).any():
        values = np.where(np.isnan(values), values.dtype.type(np.nan), values)
    return values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()
