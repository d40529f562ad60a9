"""What every reader hands on: a named, typed stream of record batches that can be opened again."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from mrot_scale.errors import DataError

BATCH_ROWS = 65_536
"""Upper bound of rows per record batch."""

_BATCH_BYTES = 1 << 23

Read = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class TableStream:
    """A table that can be read in passes, whatever it is made of."""

    name: str
    """How errors call the source: its path, or what kind of object it is."""

    schema: pa.Schema
    """All columns in order, keys of a partitioned folder last."""

    partition_keys: tuple[str, ...]
    """Columns that come from `key=value` folder names."""

    n_rows: int | None
    """Rows, where known without reading them."""

    identity: dict[str, Any]
    """What tells this content from another, fit for JSON."""

    notes: tuple[str, ...]
    """What the user must be told about how the source is read."""

    read: Read
    """Opens a new pass over some columns, in the fixed order of the source."""

    def has_rows(self) -> bool:
        """Tell whether there is any row, reading no more than the beginning."""
        if self.n_rows is not None:
            return self.n_rows > 0
        return next(self.read(self.schema.names[:1]), None) is not None


def rows_per_batch(n_columns: int) -> int:
    """Return how many rows one batch may have, fewer for very wide tables."""
    return max(1, min(BATCH_ROWS, _BATCH_BYTES // (8 * max(n_columns, 1))))


def projecting(
    name: str, schema: pa.Schema, batches: Callable[[pa.Schema], Iterable[pa.RecordBatch]]
) -> Read:
    """Return a `read` that checks the columns asked for and cuts batches to size."""

    def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted = _projected(schema, columns, name)
        return _cut(batches(wanted), rows_per_batch(len(columns)))

    return read


def _projected(schema: pa.Schema, columns: Sequence[str], name: str) -> pa.Schema:
    unknown = [column for column in columns if column not in schema.names]
    if unknown:
        raise DataError(f"{name} has no column {unknown[0]!r}. It has: {listed(schema.names)}.")
    if not columns:
        raise DataError(f"{name}: no column was asked for. It has: {listed(schema.names)}.")
    return pa.schema([schema.field(column) for column in columns])


def _cut(batches: Iterable[pa.RecordBatch], n_rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, n_rows):
            yield batch.slice(start, n_rows)


def listed(names: Sequence[str], limit: int = 10) -> str:
    """Return the first few names as text, and how many more there are."""
    text = ", ".join(repr(name) for name in names[:limit])
    return text if len(names) <= limit else f"{text} and {len(names) - limit} more"
