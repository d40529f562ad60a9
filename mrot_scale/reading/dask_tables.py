"""Dask arrays and dataframes, known by what they can do and computed a piece at a time."""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from mrot_scale.reading.matrices import Columns, Matrix, array_schema, columns_of, matrix_stream
from mrot_scale.reading.objects import pandas_batch, pandas_schema, table_stream, with_text_names
from mrot_scale.reading.schemas import conform, merged, plain_schema, without_dictionaries
from mrot_scale.reading.stream import TableStream


def is_dask_array(source: Any) -> bool:
    return hasattr(source, "dask") and hasattr(source, "blocks") and hasattr(source, "chunks")


def is_dask_frame(source: Any) -> bool:
    return all(hasattr(source, name) for name in ("dask", "partitions", "npartitions", "columns"))


def dask_array_stream(array: Any) -> TableStream:
    """Return the stream of a Dask array's rows, one block of rows in memory at a time."""
    name = "Dask array"
    schema = array_schema(array.shape, np.dtype(array.dtype), name)
    n_rows = None if np.isnan(array.shape[0]) else int(array.shape[0])

    def blocks(positions: list[int]) -> Iterator[Columns]:
        chosen = array if array.ndim == 1 else array[:, positions]
        for number in range(array.numblocks[0]):
            block = np.asanyarray(_computed(chosen.blocks[number]))
            yield columns_of(block, range(len(positions)))

    return matrix_stream(Matrix(name, n_rows, schema, blocks), {"kind": name, "rows": n_rows})


def dask_frame_stream(frame: Any) -> TableStream:
    """Return the stream of a Dask dataframe's rows, one partition in memory at a time."""
    named = with_text_names(frame, "Dask dataframe")
    stored = _frame_schema(named)

    def batches(columns: list[str]) -> Iterator[pa.RecordBatch]:
        chosen = named[columns]
        wanted = pa.schema([stored.field(column) for column in columns])
        for number in range(frame.npartitions):
            where = f"Dask dataframe, partition {number}"
            yield _frame_batch(_computed(chosen.partitions[number]), wanted, where)

    return table_stream("Dask dataframe", stored, batches)


def _frame_schema(frame: Any) -> pa.Schema:
    """Return the types Dask announces, and those of the values where it knows only objects."""
    known = _types_of(frame._meta, "Dask dataframe")
    for number in range(frame.npartitions):
        if pa.null() not in known.types:
            break
        where = f"Dask dataframe, partition {number}"
        known = merged(known, _types_of(_computed(frame.partitions[number]), where), where)
    return known


def _types_of(frame: Any, where: str) -> pa.Schema:
    # Partitions have dictionaries of their own, so that only the values can be common.
    return without_dictionaries(plain_schema(pandas_schema(frame, where), where))


def _frame_batch(frame: Any, wanted: pa.Schema, where: str) -> pa.RecordBatch:
    return conform(pandas_batch(frame, pandas_schema(frame, where)), wanted, where)


def _computed(collection: Any) -> Any:
    """Return the values: computed here, unless a cluster is in use, which may hold them."""
    distributed = sys.modules.get("distributed")
    if distributed is not None and _has_client(distributed):
        return collection.compute()
    return collection.compute(scheduler="synchronous")


def _has_client(distributed: Any) -> bool:
    try:
        distributed.default_client()
    except ValueError:
        return False
    return True
