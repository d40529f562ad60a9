"""Tables become chunks and stores, for tests: without jobs, run folders or settings."""

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mrot_scale.precision import from_stored
from mrot_scale.storing.arrays import METADATA, ArraySpec
from mrot_scale.storing.ingestion import ChunkContent, StoreBuilder, choose_columns
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import MANIFEST, Entry, Manifest
from mrot_scale.storing.schema import Schema
from mrot_scale.storing.store import (
    FEATURES,
    SCHEMA,
    STORE_FORMAT,
    STORE_VERSION,
    FeatureStore,
    ids_name,
)


@dataclass(frozen=True)
class Built:
    """What a table became."""

    chunks: list[ChunkContent]
    schema: Schema

    @property
    def stored(self) -> NDArray[np.float32]:
        return np.concatenate([chunk.features for chunk in self.chunks])

    @property
    def rows(self) -> NDArray[np.float64]:
        return from_stored(self.stored, self.schema.origins)

    @property
    def ids(self) -> Any:
        return pa.concat_tables([chunk.ids for chunk in self.chunks])

    def feature(self, name: str) -> NDArray[np.float64]:
        return self.rows[:, self.schema.features.index(name)]


def in_pieces(table: pa.Table, sizes: list[int]) -> list[pa.RecordBatch]:
    """Return the table as record batches of these numbers of rows."""
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    pieces = [table.slice(start, size) for start, size in zip(starts, sizes, strict=True)]
    return [batch for piece in pieces for batch in piece.combine_chunks().to_batches()]


def built(
    table: pa.Table,
    *,
    sizes: list[int] | None = None,
    chunk_rows: int = 1_000,
    vocabulary: int = 100,
    like: Schema | None = None,
    allow_lost_values: bool = False,
    **choices: Any,
) -> Built:
    """Return a table's chunks and schema, read in batches of the given sizes."""
    choice = choose_columns(table.schema, like=like, **choices)
    with TemporaryDirectory() as scratch:
        builder = StoreBuilder(
            choice, table.schema, scratch=Path(scratch), vocabulary=vocabulary, like=like
        )
        batches = in_pieces(table, [table.num_rows] if sizes is None else sizes)
        chunks = list(builder.chunks(batches, chunk_rows))
        return Built(chunks, builder.finish(allow_lost_values=allow_lost_values))


def write_store(place: Location, made: Built, chunk_rows: int) -> FeatureStore:
    """Write what a table became as a store, and open it."""
    spec = ArraySpec(made.stored.shape, (chunk_rows, made.stored.shape[1]), "float32")
    files = {
        f"{FEATURES}/{METADATA}": spec.metadata(),
        SCHEMA: json.dumps(made.schema.to_json()).encode(),
    }
    for chunk in made.chunks:
        files[f"{FEATURES}/{spec.chunk_name(chunk.number, 0)}"] = spec.encode(chunk.features)
        files[ids_name(chunk.number)] = chunk.ids_bytes
    write_listed(place, files)
    return FeatureStore.open(place)


def write_listed(place: Location, files: dict[str, bytes]) -> None:
    """Write files and a list that agrees with them."""
    for name, content in files.items():
        (place / name).write(content)
    listed = {name: Entry.of(content) for name, content in files.items()}
    (place / MANIFEST).write(Manifest(STORE_FORMAT, STORE_VERSION, listed).to_bytes())
