"""Any table source becomes a stream of record batches."""

import os
import sys
from typing import Any

import numpy as np
import pyarrow as pa

from mrot_scale.errors import DataError, InputTypeError, MissingInputError
from mrot_scale.reading.dask_tables import (
    dask_array_stream,
    dask_frame_stream,
    is_dask_array,
    is_dask_frame,
)
from mrot_scale.reading.files import (
    KIND_OF_SUFFIX,
    kind_of,
    open_folder,
    open_partitions,
    open_parts,
)
from mrot_scale.reading.matrices import array_stream, row_array_stream
from mrot_scale.reading.npy_files import open_npy, open_npz
from mrot_scale.reading.objects import (
    arrow_stream,
    arrow_table_stream,
    pandas_stream,
    reader_stream,
)
from mrot_scale.reading.opening import explained
from mrot_scale.reading.parts import Partitions, identity_of, parts_below, single_part
from mrot_scale.reading.stream import BATCH_ROWS, TableStream
from mrot_scale.storing.location import Location

__all__ = ["BATCH_ROWS", "TableStream", "open_source"]


def open_source(source: Any, *, id_column: str | None = None) -> TableStream:
    """Return the stream of any table: a path or address, an array or a table in memory.

    `id_column` names the column whose values CSV files must not have widened to decimals.
    """
    if isinstance(source, Partitions):
        return open_partitions(source, id_column)
    if isinstance(source, str | os.PathLike | Location):
        return _open_location(Location(source), id_column)
    return _open_object(source)


def is_at_rest(source: Any) -> bool:
    """Tell whether a source is files, known by their names, sizes and stamps."""
    return isinstance(source, str | os.PathLike | Location | Partitions)


def _open_location(location: Location, id_column: str | None) -> TableStream:
    with explained(location, "a table"):
        if not location.exists():
            raise MissingInputError(f"Nothing at {location}.")
        is_folder = location.is_folder()
    if not is_folder:
        return _open_file(location, id_column)
    if _is_zarr(location):
        return _open_zarr(location)
    return open_folder(location, id_column)


def _open_file(location: Location, id_column: str | None) -> TableStream:
    if location.suffix == ".npy":
        return open_npy(location)
    if location.suffix == ".npz":
        return open_npz(location)
    if kind_of(location.name) is None:
        raise DataError(
            f"{location}: unknown kind of file. Known by their names are "
            f"{', '.join([*KIND_OF_SUFFIX, '.npy', '.npz'])}, folders of such files (not .npy and "
            ".npz), and Zarr arrays."
        )
    return open_parts(str(location), [single_part(location)], id_column=id_column)


def _is_zarr(location: Location) -> bool:
    with explained(location, "a folder"):
        return any((location / name).exists() for name in ("zarr.json", ".zarray"))


def _open_zarr(location: Location) -> TableStream:
    # Imported here, because Zarr is heavy and most sources are none.
    from mrot_scale.storing.arrays import open_foreign

    identity = identity_of(parts_below(location, hidden=True), "Zarr")
    return row_array_stream(open_foreign(location), str(location), identity)


def _open_object(source: Any) -> TableStream:
    if isinstance(source, np.ndarray):
        return array_stream(source)
    if is_dask_array(source):
        return dask_array_stream(source)
    if is_dask_frame(source):
        return dask_frame_stream(source)
    if _is_pandas(source):
        return pandas_stream(source)
    return _open_arrow_object(source)


def _open_arrow_object(source: Any) -> TableStream:
    if isinstance(source, pa.Table):
        return arrow_table_stream(source)
    if isinstance(source, pa.RecordBatch):
        return arrow_table_stream(pa.Table.from_batches([source]))
    if isinstance(source, pa.RecordBatchReader):
        return reader_stream(source)
    if hasattr(source, "__arrow_c_stream__"):
        return arrow_stream(source)
    raise InputTypeError(
        f"An object of type {type(source).__module__}.{type(source).__qualname__} is no table. "
        "Give a path, a NumPy or Dask array, or a pandas, polars, pyarrow or Dask table."
    )


def _is_pandas(source: Any) -> bool:
    # Whoever holds a pandas table has imported pandas; nobody else needs to.
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(source, pandas.DataFrame)
