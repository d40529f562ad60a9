"""Tables of one file or of many parts: Parquet, CSV, Arrow."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pyarrow as pa

from mrot_scale.errors import DataError, MissingInputError
from mrot_scale.reading.arrow_files import ARROW
from mrot_scale.reading.csv_files import csv_format
from mrot_scale.reading.opening import explained
from mrot_scale.reading.parquet_files import PARQUET
from mrot_scale.reading.parts import (
    Format,
    Part,
    Partitions,
    identity_of,
    partition_schema,
    partition_values,
    parts_below,
)
from mrot_scale.reading.schemas import conform, merged, plain_schema, shared
from mrot_scale.reading.stream import TableStream, listed, projecting
from mrot_scale.storing.location import Location

KIND_OF_SUFFIX = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".csv": "CSV",
    ".csv.gz": "CSV",
    ".tsv": "CSV",
    ".tsv.gz": "CSV",
    ".arrow": "Arrow",
    ".arrows": "Arrow",
    ".feather": "Arrow",
    ".ipc": "Arrow",
}
_LISTING_THREADS = 8  # each waits for an object store most of its time


def kind_of(name: str) -> str | None:
    """Return the format a file's name announces, None where it is none of these."""
    suffixes = (suffix for suffix in KIND_OF_SUFFIX if name.lower().endswith(suffix))
    return next((KIND_OF_SUFFIX[suffix] for suffix in suffixes), None)


def open_folder(location: Location, id_column: str | None) -> TableStream:
    """Return the stream of all table files below a folder, which must be of one format."""
    found = parts_below(location)
    parts = [part for part in found if kind_of(part.name)]
    if not parts:
        raise MissingInputError(
            f"No table files below {location}. Files are known by their names: "
            f"{', '.join(KIND_OF_SUFFIX)}."
        )
    _refuse_mixture(parts)
    others = [part.name for part in found if not kind_of(part.name)]
    notes = (f"{location}: not read, no table by their names: {listed(others)}",) if others else ()
    return open_parts(str(location), parts, id_column=id_column, notes=notes)


def open_partitions(source: Partitions, id_column: str | None) -> TableStream:
    """Return the stream of some partitions of a folder, with the columns all of them have."""
    parts = [part for part in source.parts() if kind_of(part.name)]
    name = f"{source.location} ({source.folders[0]} to {source.folders[-1]})"
    if not parts:
        raise MissingInputError(f"No table files in {name}.")
    _refuse_mixture(parts)
    return open_parts(name, parts, id_column=id_column, shared_columns=True)


def _refuse_mixture(parts: Sequence[Part]) -> None:
    first = parts[0]
    for part in parts:
        if kind_of(part.name) != kind_of(first.name):
            raise DataError(
                f"{part.location} is {kind_of(part.name)}, {first.name} is {kind_of(first.name)}. "
                "Keep one format per folder, or name one file."
            )


def open_parts(
    name: str,
    parts: Sequence[Part],
    *,
    id_column: str | None,
    notes: tuple[str, ...] = (),
    shared_columns: bool = False,
) -> TableStream:
    """Return the stream of some files of one format, one after the other.

    With `shared_columns`, columns that some of them lack are not read.
    """
    layout = _format_of(parts, id_column)
    keys = partition_schema(parts)
    stored, n_rows, dropped = _described(layout, parts, shared if shared_columns else merged)
    if dropped:
        notes = (*notes, f"{name}: column(s) {listed(dropped)} are not in all parts, and not read")
    overruled = [column for column in stored.names if column in keys.names]
    stored = pa.schema([field for field in stored if field.name not in keys.names])
    schema = pa.schema([*stored, *keys])
    return TableStream(
        name=name,
        schema=schema,
        partition_keys=tuple(keys.names),
        n_rows=n_rows,
        identity=identity_of(parts, layout.name),
        notes=(*notes, *_column_notes(name, schema.names, overruled)),
        read=projecting(name, schema, partial(_batches, layout, parts, keys)),
    )


def _format_of(parts: Sequence[Part], id_column: str | None) -> Format:
    kind = kind_of(parts[0].name)
    if kind == "CSV":
        return csv_format([part.location for part in parts], id_column)
    return PARQUET if kind == "Parquet" else ARROW


def _described(
    layout: Format, parts: Sequence[Part], merge: Callable[[pa.Schema, pa.Schema, str], pa.Schema]
) -> tuple[pa.Schema, int | None, list[str]]:
    """Return the schema common to all parts, the sum of their rows, and columns some lack."""
    with ThreadPoolExecutor(min(_LISTING_THREADS, len(parts))) as pool:
        described = pool.map(partial(_describe_part, layout), parts)
        common, total = next(described)
        names = dict.fromkeys(common.names)
        for part, (schema, n_rows) in zip(parts[1:], described, strict=True):
            common = merge(common, schema, str(part.location))
            names |= dict.fromkeys(schema.names)
            total = None if total is None or n_rows is None else total + n_rows
    return common, total, [name for name in names if name not in common.names]


def _describe_part(layout: Format, part: Part) -> tuple[pa.Schema, int | None]:
    with explained(part.location, layout.name):
        schema, n_rows = layout.describe(part.location)
    return plain_schema(schema, str(part.location)), n_rows


def _batches(
    layout: Format, parts: Sequence[Part], keys: pa.Schema, wanted: pa.Schema
) -> Iterator[pa.RecordBatch]:
    stored = [column for column in wanted.names if column not in keys.names]
    for part in parts:
        values = partition_values(part, keys)
        with explained(part.location, layout.name):
            for batch in layout.batches(part.location, stored):
                yield conform(batch, wanted, str(part.location), values)


def _column_notes(name: str, columns: Sequence[str], overruled: Sequence[str]) -> Iterator[str]:
    if overruled:
        yield f"{name}: column(s) {listed(overruled)} are taken from the folders' names"
    for column in columns:
        # What pandas writes when told to keep an index that has no name.
        if not column or column == "Unnamed: 0" or column.startswith("__index_level_"):
            yield f"{name}: column {column!r} looks like a pandas index; leave it out if it is one"
