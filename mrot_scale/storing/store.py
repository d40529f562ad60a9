"""A store, opened: its rows by chunk, each checked against the list of files as it is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mrot_scale.errors import ConfigError, DamagedDataError, DataError, MissingInputError
from mrot_scale.precision import from_stored
from mrot_scale.storing.arrays import METADATA, ArraySpec
from mrot_scale.storing.chunks import RowChunks
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import MANIFEST, Entry, Manifest, read_format, read_manifest
from mrot_scale.storing.schema import Schema

STORE_FORMAT = "mrot-scale-store"
STORE_VERSION = 1
FEATURES = "features"
SCHEMA = "schema.json"

Stored = NDArray[np.float32]


def ids_name(chunk: int) -> str:
    """Return the name of the file with a chunk's identifiers."""
    return f"ids/part-{chunk:06d}.parquet"


@dataclass(frozen=True)
class FeatureStore:
    """Rows at rest in Zarr, with their identifiers in Parquet beside them."""

    location: Location
    schema: Schema
    spec: ArraySpec
    manifest: Manifest

    @classmethod
    def open(cls, location: Location) -> "FeatureStore":
        """Return the store at a location after checking that its parts fit together."""
        if not location.exists():
            raise MissingInputError(f"No store at {location}.")
        if (location / SCHEMA).exists() and not is_store(location):
            raise DamagedDataError(f"{location} is a store without its {MANIFEST}. Ingest again.")
        if not is_store(location):
            raise DataError(f"{location} is not a store that mrot-scale wrote. Ingest it first.")
        manifest = read_manifest(location, STORE_FORMAT, STORE_VERSION, "store")
        schema = Schema.from_bytes(_read_listed(location, manifest, SCHEMA), str(location / SCHEMA))
        name = f"{FEATURES}/{METADATA}"
        spec = ArraySpec.from_metadata(_read_listed(location, manifest, name), str(location / name))
        if (
            spec.dtype != "float32"
            or spec.shape != (schema.n_rows, len(schema.features))
            or spec.chunk_shape[1:] != spec.shape[1:]
        ):
            raise DamagedDataError(f"{location}: features and schema differ in shape.")
        if len(schema.statistics) != len(schema.features):
            raise DamagedDataError(f"{location / SCHEMA} does not describe every feature.")
        store = cls(location, schema, spec, manifest)
        if len(store.chunks) > len(manifest.files):  # before anybody counts to the last of them
            raise DamagedDataError(f"{location}: there are more chunks than files.")
        return store

    @cached_property
    def chunks(self) -> RowChunks:
        return RowChunks(self.schema.n_rows, self.spec.chunk_shape[0])

    @property
    def n_rows(self) -> int:
        return self.schema.n_rows

    @property
    def stored_bytes(self) -> int:
        """Size of the encoded features."""
        return sum(e.n_bytes for n, e in self.manifest.files.items() if n.startswith(FEATURES))

    def identity(self) -> str:
        """Return the digest of the store's list of files: what a run's fingerprint needs."""
        return Entry.of((self.location / MANIFEST).read()).sha256

    def read_chunk(self, chunk: int) -> Stored:
        """Return the features of a chunk as they rest."""
        start, stop = self.chunks.chunk_to_rows(chunk)
        name = f"{FEATURES}/{self.spec.chunk_name(chunk, 0)}"
        content = _read_listed(self.location, self.manifest, name)
        place = f"{self.location / name} (rows {start} to {stop - 1})"
        return self.spec.decode(content, place, (stop - start, self.spec.shape[1]))

    def read_ids(self, chunk: int, columns: Sequence[str] | None = None) -> Any:
        """Return the identifiers and carried columns of a chunk, as an Arrow table."""
        content = _read_listed(self.location, self.manifest, ids_name(chunk))
        start, stop = self.chunks.chunk_to_rows(chunk)
        try:
            # First: a small file can hold more rows than memory.
            is_whole = pq.read_metadata(pa.BufferReader(content)).num_rows == stop - start
            table = pq.read_table(pa.BufferReader(content), columns=columns) if is_whole else None
        except (pa.ArrowException, OSError) as error:  # what ends too early is an OSError
            reason = " ".join(str(error).split())
            raise DamagedDataError(f"{self.location / ids_name(chunk)}: {reason}.") from None
        if table is None:
            raise DamagedDataError(f"{self.location / ids_name(chunk)} has lost rows.")
        return table

    def decoded_column(self, stored: Stored, name: str) -> Any:
        """Return a column of a chunk as an Arrow array, as far as features still tell it."""
        column = next((c for c in self.schema.columns if c.name == name), None)
        if column is None or column.kind not in ("number", "boolean", "category"):
            raise ConfigError(
                f"Column {name!r} is not kept in {self.location}.{self._nearest(name)} "
                f"Ingest again with --keep {name}."
            )
        position = self.schema.position(column)
        origin = self.schema.origins[position]
        if column.kind == "number" and origin == 0:  # as float32, what was 0.1 still equals 0.1
            return pa.array(stored[:, position], from_pandas=True)
        values = from_stored(stored[:, position], origin)
        if column.kind == "category":
            codes = pa.array(values.astype(np.int64), mask=values < 0)
            return pa.DictionaryArray.from_arrays(
                codes, list(column.vocabulary)
            ).dictionary_decode()
        floats = pa.array(values, from_pandas=True)
        return floats.cast(pa.bool_()) if column.kind == "boolean" else floats

    def _nearest(self, name: str) -> str:
        known = [*self.schema.carried, self.schema.id_column]
        known += [c.name for c in self.schema.columns]
        close = [n for n in get_close_matches(name, known, n=1) if n != name]
        return f" Did you mean {close[0]!r}?" if close else ""

    def columns(self, chunk: int, stored: Stored, names: Sequence[str]) -> Any:
        """Return columns of a chunk as an Arrow table: carried as they were, others decoded."""
        known = (*self.schema.carried, self.schema.id_column)
        carried = [name for name in names if name in known]
        found = dict.fromkeys(names)
        if carried:
            ids = self.read_ids(chunk, carried)
            found |= {name: ids[name] for name in carried}
        found |= {n: self.decoded_column(stored, n) for n in names if n not in known}
        return pa.table(found)

    def check_columns_kept(self, names: Sequence[str]) -> None:
        """Refuse columns that no longer exist as they were in the source."""
        empty = np.zeros((0, len(self.schema.features)), dtype=np.float32)
        for name in names:
            if name not in (*self.schema.carried, self.schema.id_column):
                self.decoded_column(empty, name)


def open_store(address: str) -> FeatureStore:
    """Return the store at an address, opened once per process unless it was replaced."""
    return _open_store(address, Entry.of((Location(address) / MANIFEST).read()).sha256)


@lru_cache(2)
def _open_store(address: str, identity: str) -> FeatureStore:
    return FeatureStore.open(Location(address))


def is_store(location: Location) -> bool:
    """Tell whether a location claims to be one of our stores."""
    return location.is_folder() and read_format(location) == STORE_FORMAT


def _read_listed(location: Location, manifest: Manifest, name: str) -> bytes:
    entry = manifest.files.get(name)
    if entry is None:
        raise DamagedDataError(f"{location}: {name} is not in the list of files.")
    try:
        return entry.check((location / name).read(), str(location / name))
    except MissingInputError:
        raise DamagedDataError(
            f"{location / name} is missing. Restore it or ingest again."
        ) from None
