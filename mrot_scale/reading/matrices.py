"""Arrays of numbers: rows by columns, named c0, c1, ... unless they have fields."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mrot_scale.errors import DataError
from mrot_scale.reading.stream import TableStream, projecting, rows_per_batch

MOST_COLUMNS = 100_000
"""More columns than this are a damaged header, or a matrix that lies on its side."""

_FIELD_KINDS = "biufMmUS"
_MATRIX_KINDS = "biuf"

Columns = list[NDArray[Any]]


class RowArray(Protocol):
    """An array stored elsewhere, read by ranges of rows."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def chunk_rows(self) -> int: ...
    def rows(self, start: int, stop: int) -> NDArray[Any]: ...


@dataclass(frozen=True)
class Matrix:
    """Any array, as blocks of rows."""

    name: str
    n_rows: int | None
    schema: pa.Schema
    blocks: Callable[[list[int]], Iterator[Columns]]
    """Columns at some positions, a block of rows at a time."""


def matrix_stream(
    matrix: Matrix, identity: dict[str, Any], notes: tuple[str, ...] = ()
) -> TableStream:
    """Return the stream of any array's rows."""

    def batches(wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
        positions = [matrix.schema.get_field_index(name) for name in wanted.names]
        for columns in matrix.blocks(positions):
            yield _batch(columns, wanted)

    return TableStream(
        name=matrix.name,
        schema=matrix.schema,
        partition_keys=(),
        n_rows=matrix.n_rows,
        identity=identity,
        notes=notes,
        read=projecting(matrix.name, matrix.schema, batches),
    )


def array_stream(array: NDArray[Any]) -> TableStream:
    """Return the stream of a NumPy array's rows; masked values are missing."""
    name = "NumPy array"
    plain = array if np.ma.isMaskedArray(array) else np.asarray(array)
    schema = array_schema(plain.shape, plain.dtype, name)

    def blocks(positions: list[int]) -> Iterator[Columns]:
        step = rows_per_batch(len(positions))
        for start in range(0, len(plain), step):
            yield columns_of(plain[start : start + step], positions)

    matrix = Matrix(name, len(plain), schema, blocks)
    return matrix_stream(matrix, {"kind": name, "rows": len(plain)})


def row_array_stream(array: RowArray, name: str, identity: dict[str, Any]) -> TableStream:
    """Return the stream of a stored array's rows, read by whole chunks."""
    schema = array_schema(array.shape, array.dtype, name)
    n_rows = array.shape[0]
    chunk_rows = max(array.chunk_rows, 1)
    step = max(rows_per_batch(len(schema)) // chunk_rows, 1) * chunk_rows

    def blocks(positions: list[int]) -> Iterator[Columns]:
        for start in range(0, n_rows, step):
            yield columns_of(array.rows(start, min(start + step, n_rows)), positions)

    return matrix_stream(Matrix(name, n_rows, schema, blocks), identity)


def array_schema(shape: Sequence[float], dtype: np.dtype[Any], where: str) -> pa.Schema:
    """Return the columns of an array, if it has rows of numbers."""
    if len(shape) not in (1, 2) or (dtype.names and len(shape) == 2):
        raise DataError(
            f"{where} has shape {tuple(shape)}, expected rows by columns. Reshape it to two axes."
        )
    if dtype.names:
        fields = [(name, dtype[name]) for name in dtype.names]
        return pa.schema([(name, _arrow_type(kind, _FIELD_KINDS, where)) for name, kind in fields])
    n_columns = shape[1] if len(shape) == 2 else 1
    if not 0 < n_columns <= MOST_COLUMNS:
        raise DataError(
            f"{where} has {n_columns} columns, expected 1 to {MOST_COLUMNS}. "
            "Rows go down the first axis, columns along the second."
        )
    kind = _arrow_type(dtype, _MATRIX_KINDS, where)
    return pa.schema([(f"c{position}", kind) for position in range(int(n_columns))])


def _arrow_type(dtype: np.dtype[Any], kinds: str, where: str) -> pa.DataType:
    try:
        if dtype.kind not in kinds:
            raise pa.ArrowInvalid(f"kind {dtype.kind!r}")
        return pa.string() if dtype.kind == "U" else pa.from_numpy_dtype(dtype.newbyteorder("="))
    except pa.ArrowException as error:
        raise DataError(
            f"{where} holds values of type {dtype}, which are not numbers a table can have. "
            "Convert it, for example with astype('float64')."
        ) from error


def columns_of(block: NDArray[Any], positions: Sequence[int]) -> Columns:
    """Return some columns of a block of rows, one array each."""
    if block.dtype.names:
        return [block[block.dtype.names[position]] for position in positions]
    if block.ndim == 1:
        return [block for _ in positions]
    return [block[:, position] for position in positions]


def _batch(columns: Columns, wanted: pa.Schema) -> pa.RecordBatch:
    arrays = [
        pa.array(column.astype(column.dtype.newbyteorder("="), copy=False), field.type)
        for column, field in zip(columns, wanted, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)
