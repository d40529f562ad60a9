"""Arrow IPC files and streams; Feather files of version 2 are the former."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from mrot_scale.errors import DataError
from mrot_scale.reading.opening import opened
from mrot_scale.reading.parts import Format
from mrot_scale.storing.location import Location

_LARGE_BATCH_BYTES = 1 << 28


def _describe(location: Location) -> tuple[pa.Schema, int | None]:
    with opened(location) as file:
        return _reader(location, file).schema, None


def _batches(location: Location, columns: list[str]) -> Iterator[pa.RecordBatch]:
    with _opened_by_batch_size(location) as file:
        schema = _reader(location, file).schema
        # An empty list would mean all columns, but one is enough to count rows.
        positions = [schema.get_field_index(column) for column in columns] or [0]
        for batch in _stored_batches(_reader(location, file, positions)):
            # Nothing in the format keeps a damaged file from pointing outside of its buffers.
            batch.validate(full=True)
            yield batch


@contextmanager
def _opened_by_batch_size(location: Location) -> Iterator[Any]:
    """Open the file, mapped if its batches are too large to copy.

    Mapped pages count as the process's memory, so smaller ones are better read.
    """
    with opened(location) as file:
        reader = _reader(location, file)
        n_batches = max(getattr(reader, "num_record_batches", 0), 1)
        if not location.is_local or file.size() / n_batches < _LARGE_BATCH_BYTES:
            yield file
            return
    with pa.memory_map(location.address) as mapped:
        yield mapped


def _reader(location: Location, file: Any, positions: Sequence[int] = ()) -> Any:
    file.seek(0)
    magic = file.read(6)
    file.seek(0)
    if magic.startswith(b"FEA1"):
        raise DataError(f"{location} is Feather of version 1. Write it again as version 2.")
    options = pa.ipc.IpcReadOptions(included_fields=list(positions))
    if magic == b"ARROW1":
        return pa.ipc.open_file(file, options=options)
    return pa.ipc.open_stream(file, options=options)


def _stored_batches(reader: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(reader, pa.ipc.RecordBatchFileReader):
        for position in range(reader.num_record_batches):
            yield reader.get_batch(position)
    else:
        yield from reader


ARROW = Format("Arrow", _describe, _batches)
