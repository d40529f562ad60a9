"""Ingest: a table source becomes a store."""

import json
import shutil
import tempfile
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrot_scale.config.job import Config
from mrot_scale.errors import DataError, LeftOutWarning
from mrot_scale.jobs.opening import (
    AnyConfig,
    begun,
    fingerprint,
    run_location,
    settled,
)
from mrot_scale.model.columns import load_schema
from mrot_scale.progress import Report, silent, tell_rows
from mrot_scale.reading.sources import TableStream, is_at_rest, open_source
from mrot_scale.running.commit import STAGES, Attempt, Record, RunFolder, is_run_folder, task_key
from mrot_scale.running.lock import locked
from mrot_scale.running.publish import Folder, is_finished, publish_once
from mrot_scale.storing.arrays import METADATA, ArraySpec, group_metadata
from mrot_scale.storing.chunks import RowChunks, rows_per_chunk
from mrot_scale.storing.ingestion import (
    ASKED_FOR,
    ChunkContent,
    ColumnChoice,
    StoreBuilder,
    choose_columns,
)
from mrot_scale.storing.location import Location
from mrot_scale.storing.schema import Schema
from mrot_scale.storing.store import (
    FEATURES,
    SCHEMA,
    STORE_FORMAT,
    STORE_VERSION,
    FeatureStore,
    ids_name,
    is_store,
)

_CHUNKS_IN_HAND = 2
"""Chunks being compressed and written while the next one fills."""


@dataclass(frozen=True)
class Ingested:
    """What an ingest made."""

    store: str
    n_rows: int
    schema: Schema
    was_done: bool
    """Whether the same ingest had already finished before."""


def ingest(
    source: Any,
    store: str | Path,
    *,
    id: str | None = None,
    include: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    keep: Sequence[str] | None = None,
    like: str | Path | None = None,
    config: AnyConfig = None,
    new_run: bool = False,
    progress: Report | None = None,
) -> Ingested:
    """Read a table from anywhere into a new store.

    Parameters
    ----------
    source
        Path of Parquet, CSV, Arrow, `.npy`, `.npz` or a Zarr array, or a table object.
    store
        Where the store is to be; nothing may be there yet.
    id
        Column that names each row once; rows are numbered without it.
    include, exclude
        Columns to use, or not to use, as features.
    keep
        Columns to carry along as they are, for `score(..., keep=...)`; by default times and
        columns that are no features.
    like
        Model or store whose columns, origins and categories to follow.
    """
    target, settings = Location(store), settled(config)
    with locked(target, run_location(settings, target)):
        return _ingest(
            source, target, settings, id, include, exclude, keep, like, new_run, progress
        )


def _ingest(
    source: Any,
    target: Location,
    settings: Config,
    id: str | None,
    include: Sequence[str] | None,
    exclude: Sequence[str],
    keep: Sequence[str] | None,
    like: str | Path | None,
    new_run: bool,
    progress: Report | None,
) -> Ingested:
    stream = open_source(source, id_column=id)
    known = None if like is None else schema_like(Location(like))
    choice = choose_columns(
        stream.schema,
        partition_keys=stream.partition_keys,
        id_column=id,
        include=include,
        exclude=exclude,
        keep=keep,
        like=known,
    )
    place, terms = run_location(settings, target), _fingerprint(stream, choice, known, settings)
    if is_finished(target, place, terms):
        opened = FeatureStore.open(target)
        return Ingested(str(target), opened.n_rows, opened.schema, was_done=True)
    if is_run_folder(place) and not is_at_rest(source):
        RunFolder.read(place).clear()  # what an earlier call ingested may be another table
    run = RunFolder.open(place, terms, new_run=new_run)
    _warn_left_out(choice, stream)
    with begun(run, settings):
        schema = _write_store(stream, choice, known, settings, run, target, progress or silent)
    run.remove_stages()
    return Ingested(str(target), schema.n_rows, schema, was_done=False)


def schema_like(place: Location) -> Schema:
    """Return the columns of a store or model."""
    return FeatureStore.open(place).schema if is_store(place) else load_schema(place)


def _fingerprint(
    stream: TableStream, choice: ColumnChoice, like: Schema | None, settings: Config
) -> Any:
    columns = {
        "features": list(choice.features),
        "id": choice.id_column,
        "carried": list(choice.carried),
        "like": None if like is None else like.to_json(),
    }
    inputs = {"source": stream.identity, "columns": columns}
    return fingerprint("ingest", inputs, settings.store.model_dump(mode="json"))


def _warn_left_out(choice: ColumnChoice, stream: TableStream) -> None:
    for name, why in choice.left_out:
        if why not in ASKED_FOR:
            warnings.warn(f"Column {name!r} is left out: {why}.", LeftOutWarning, stacklevel=3)
    for note in stream.notes:
        warnings.warn(note, LeftOutWarning, stacklevel=3)


def _write_store(
    stream: TableStream,
    choice: ColumnChoice,
    like: Schema | None,
    settings: Config,
    run: RunFolder,
    target: Location,
    report: Report,
) -> Schema:
    with _scratch_folder(run.location) as scratch:
        builder = StoreBuilder(
            choice,
            stream.schema,
            scratch=scratch,
            vocabulary=settings.store.vocabulary,
            like=like,
        )
        chunk_rows = rows_per_chunk(settings.store.chunk_bytes, builder.n_features)
        chunks = builder.chunks(stream.read(choice.read), chunk_rows)
        records = _commit_chunks(chunks, chunk_rows, builder.n_features, run, stream, report)
        try:
            schema = builder.finish(allow_lost_values=settings.store.allow_lost_values)
        except DataError as error:
            raise DataError(f"{stream.name}: {error}") from None
    publish_once(_store_folder(schema, chunk_rows, records), target, run)
    return schema


@contextmanager
def _scratch_folder(run: Location) -> Iterator[Path]:
    """Yield a folder on disk, among the stages where these are: a kill leaves none elsewhere."""
    below = (run / STAGES).path if run.is_local else Path(tempfile.gettempdir())
    below.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".scratch-", dir=below))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _commit_chunks(
    chunks: Iterator[ChunkContent],
    chunk_rows: int,
    n_features: int,
    run: RunFolder,
    stream: TableStream,
    report: Report,
) -> list[Record]:
    """Write chunks as they come, a few at a time; those already committed are not written again."""
    spec = ArraySpec((chunk_rows, n_features), (chunk_rows, n_features), "float32")
    total = len(RowChunks(stream.n_rows, chunk_rows)) if stream.n_rows else 0
    report("ingest", 0, max(total, 1))
    pending: deque[Future[Record]] = deque()
    records: list[Record] = []
    rows = 0

    def commit_first() -> None:
        nonlocal rows
        record = pending.popleft().result()
        run.commit(record)
        records.append(run.records[record.key])
        rows += records[-1].facts["rows"]
        tell_rows(report, "ingest", rows)
        report("ingest", len(records), max(total, len(records) + len(pending)))

    with ThreadPoolExecutor(_CHUNKS_IN_HAND) as pool:
        for content in chunks:
            pending.append(pool.submit(_write_chunk, run, spec, content))
            if len(pending) > _CHUNKS_IN_HAND:
                commit_first()
        while pending:
            commit_first()
    return records


def _write_chunk(run: RunFolder, spec: ArraySpec, content: ChunkContent) -> Record:
    key = task_key("ingest", content.number)
    digest = content.digest()
    known = run.records.get(key)
    if known is not None and known.facts["content"] == digest:
        return known
    attempt = Attempt(run.location, key)
    attempt.put("features", spec.encode(content.features))
    attempt.put("ids", content.ids_bytes)
    return attempt.record(content=digest, rows=len(content.features))


def _store_folder(schema: Schema, chunk_rows: int, records: list[Record]) -> Folder:
    shape = (schema.n_rows, len(schema.features))
    spec = ArraySpec(shape, (chunk_rows, shape[1]), "float32")
    folder = Folder(STORE_FORMAT, STORE_VERSION)
    for chunk, record in enumerate(records):
        folder.objects[f"{FEATURES}/{spec.chunk_name(chunk, 0)}"] = record.objects["features"]
        folder.objects[ids_name(chunk)] = record.objects["ids"]
    attributes = {"made_by": "mrot-scale", "features": list(schema.features)}
    folder.small = {
        METADATA: group_metadata(attributes),
        f"{FEATURES}/{METADATA}": spec.metadata(),
        SCHEMA: (json.dumps(schema.to_json(), indent=1, allow_nan=False) + "\n").encode(),
    }
    return folder
