"""Tables in memory: pandas, polars, pyarrow, and whatever else speaks Arrow's stream protocol."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from mrot_scale.errors import DataError, InputTypeError
from mrot_scale.reading.schemas import check_names, conform, plain_schema
from mrot_scale.reading.stream import TableStream, projecting, rows_per_batch


def table_stream(
    name: str,
    stored: pa.Schema,
    batches: Callable[[list[str]], Iterator[pa.RecordBatch]],
    *,
    n_rows: int | None = None,
    notes: tuple[str, ...] = (),
) -> TableStream:
    """Return the stream of a table in memory from batches that have at least the columns named."""
    schema = plain_schema(stored, name)

    def conforming(wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
        return (conform(batch, wanted, name) for batch in batches(wanted.names))

    return TableStream(
        name=name,
        schema=schema,
        partition_keys=(),
        n_rows=n_rows,
        identity={"kind": name, "rows": n_rows},
        notes=notes,
        read=projecting(name, schema, conforming),
    )


def arrow_table_stream(table: pa.Table) -> TableStream:
    """Return the stream of a pyarrow table's rows."""

    def batches(columns: list[str]) -> Iterator[pa.RecordBatch]:
        yield from table.select(columns).to_batches(rows_per_batch(len(columns)))

    return table_stream("pyarrow table", table.schema, batches, n_rows=table.num_rows)


def reader_stream(reader: pa.RecordBatchReader) -> TableStream:
    """Return the stream of a reader's rows, which can be had only once."""

    def again() -> pa.RecordBatchReader:
        raise DataError(
            "A RecordBatchReader can be read only once, and was. Give a table, or write the rows "
            "to a Parquet file."
        )

    return _restarting_stream("RecordBatchReader", reader, again, n_rows=None)


def arrow_stream(source: Any) -> TableStream:
    """Return the stream of any object with `__arrow_c_stream__`, such as polars tables."""
    name = f"{type(source).__module__.split('.')[0]} {type(source).__name__}"

    def reader() -> pa.RecordBatchReader:
        try:
            return pa.RecordBatchReader.from_stream(source)
        except (pa.ArrowException, ValueError, RuntimeError) as error:
            raise InputTypeError(f"{name} cannot be read as a table: {error}.") from error

    counts = [getattr(source, count, None) for count in ("height", "num_rows")]
    n_rows = next((count for count in counts if isinstance(count, int)), None)
    return _restarting_stream(name, reader(), reader, n_rows)


def _restarting_stream(
    name: str,
    first: pa.RecordBatchReader,
    again: Callable[[], pa.RecordBatchReader],
    n_rows: int | None,
) -> TableStream:
    """Return a stream that uses the reader at hand for its first pass, then asks for others."""
    at_hand = [first]

    def batches(columns: list[str]) -> Iterator[pa.RecordBatch]:
        return iter(at_hand.pop() if at_hand else again())

    return table_stream(name, first.schema, batches, n_rows=n_rows)


def pandas_stream(frame: Any) -> TableStream:
    """Return the stream of a pandas table's columns, missing values as null, without its index."""
    named = with_text_names(frame, "pandas table")
    stored = pandas_schema(named, "pandas table")

    def batches(columns: list[str]) -> Iterator[pa.RecordBatch]:
        wanted, chosen = pa.schema([stored.field(column) for column in columns]), named[columns]
        step = rows_per_batch(len(columns))
        for start in range(0, len(chosen), step):
            yield pandas_batch(chosen.iloc[start : start + step], wanted)

    keeps_index = type(frame.index).__name__ != "RangeIndex"
    note = "pandas table: the index is not used; reset_index() makes it a column"
    notes = (note,) if keeps_index else ()
    return table_stream("pandas table", stored, batches, n_rows=len(frame), notes=notes)


def with_text_names(frame: Any, where: str) -> Any:
    """Return the pandas or Dask table with names of columns as text, all different."""
    check_names([str(name) for name in frame.columns], where)
    return frame.rename(columns=str)


def pandas_schema(frame: Any, where: str) -> pa.Schema:
    return pa.schema([_pandas_field(frame[[name]], name, where) for name in frame.columns])


def _pandas_field(column: Any, name: str, where: str) -> pa.Field:
    try:
        return pa.Schema.from_pandas(column, preserve_index=False).field(0)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(
            f"{where}, column {name!r}: mixed or unknown types: {error}. "
            "Give all of its values one type."
        ) from error


def pandas_batch(frame: Any, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pandas(frame, schema=schema, preserve_index=False, nthreads=1)
