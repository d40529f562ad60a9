"""What reading a table into a store will do, before it does it."""

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from mrot_scale.config.job import Config
from mrot_scale.jobs.plan_calibration import TIMED_VALUES, with_seconds
from mrot_scale.jobs.plan_memory import FILLED_COPIES, stage_of, table
from mrot_scale.jobs.plan_text import Plan
from mrot_scale.jobs.plan_workers import machine_memory, plan_of
from mrot_scale.reading.stream import TableStream, rows_per_batch
from mrot_scale.running.commit import whole_array
from mrot_scale.storing.chunks import RowChunks, rows_per_chunk
from mrot_scale.storing.ingestion import ColumnChoice, StoreBuilder
from mrot_scale.storing.statistics import BLOCK_ROWS as MEASURED_ROWS

_CHUNKS_IN_HAND = 3
"""Chunks an ingest has filled but not yet written, at most."""


def plan_ingest(stream: TableStream, n_features: int, config: Config) -> Plan:
    """Return what reading a table into a store will do; it runs in this process alone."""
    n_rows, source_bytes = _source_size(stream)
    chunk_rows = rows_per_chunk(config.store.chunk_bytes, n_features)
    written = n_rows * (4 * n_features + 8 * _carried_columns(stream, n_features))
    n_chunks = len(RowChunks(n_rows, chunk_rows))
    in_hand = min(_CHUNKS_IN_HAND, n_chunks)
    batch_rows = min(n_rows, rows_per_batch(len(stream.schema.names)))
    block_rows = min(n_rows, MEASURED_ROWS, max(2**22 // n_features, 1))
    need = (
        table("chunk", chunk_rows, n_features, FILLED_COPIES, size=4)
        + table("its rows", min(n_rows, chunk_rows), n_features, 4 * in_hand, size=4)
        + table("record batch", batch_rows, n_features, 5)
        + table("statistics", block_rows, n_features, 4)
    )
    stage = stage_of("ingest", n_chunks, (source_bytes, written), need, "store.chunk_bytes")
    seconds = {"ingest": n_rows * _ingested_row_seconds(n_features)}
    plan = plan_of("ingest", with_seconds([stage], seconds), config, written)
    return replace(plan, workers=1, worker_bytes=config.cluster.memory_limit or machine_memory())


def _source_size(stream: TableStream) -> tuple[int, int]:
    """Return rows and bytes of a source; rows are guessed from the size where nobody knows."""
    width = 8 * max(len(stream.schema.names), 1)
    n_bytes = sum(int(size) for _, size, _ in stream.identity.get("files", ()))
    n_rows = n_bytes // width if stream.n_rows is None else stream.n_rows
    return n_rows, n_bytes or n_rows * width


def _carried_columns(stream: TableStream, n_features: int) -> int:
    return 1 + max(0, len(stream.schema.names) - n_features)


def _ingested_row_seconds(n_features: int) -> float:
    """Time encoding, measuring and compressing some rows of numbers."""
    n_rows = max(256, TIMED_VALUES // n_features)
    names = [f"c{i}" for i in range(n_features)]
    numbers = np.random.default_rng(0).normal(size=(n_features, n_rows))
    batch = pa.RecordBatch.from_arrays([pa.array(x) for x in numbers], names)
    choice = ColumnChoice(tuple(names), None, (), (), ())
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        builder = StoreBuilder(choice, batch.schema, scratch=Path(scratch), vocabulary=1)
        for content in builder.chunks([batch], n_rows):
            content.digest()
            whole_array("float32", content.features.shape).encode(content.features)
        builder.finish(allow_lost_values=True)
    return (time.perf_counter() - start) / n_rows
