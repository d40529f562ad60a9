"""Parquet files, read so that memory does not grow with the size of row groups."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mrot_scale.reading.opening import opened
from mrot_scale.reading.parts import Format
from mrot_scale.reading.stream import rows_per_batch
from mrot_scale.storing.location import Location

_BUFFER_BYTES, _REMOTE_BUFFER_BYTES = 1 << 16, 1 << 20
"""Per column: small, for there may be hundreds; larger where every read is a request."""


@contextmanager
def _parquet(location: Location) -> Iterator[Any]:
    # Without these two settings, whole column chunks are held in memory.
    with (
        opened(location, scattered=True) as file,
        pq.ParquetFile(
            file,
            pre_buffer=False,
            buffer_size=_BUFFER_BYTES if location.is_local else _REMOTE_BUFFER_BYTES,
            page_checksum_verification=True,
        ) as parquet,
    ):
        yield parquet


def _describe(location: Location) -> tuple[pa.Schema, int | None]:
    with _parquet(location) as parquet:
        return parquet.schema_arrow, parquet.metadata.num_rows


def _batches(location: Location, columns: list[str]) -> Iterator[pa.RecordBatch]:
    with _parquet(location) as parquet:
        yield from parquet.iter_batches(rows_per_batch(len(columns)), columns=columns)


PARQUET = Format("Parquet", _describe, _batches)
