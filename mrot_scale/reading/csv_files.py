"""CSV files: types are settled by the first block and hold for every row after it."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.types as types

from mrot_scale.errors import DataError
from mrot_scale.reading.opening import explained, opened
from mrot_scale.reading.parts import Format
from mrot_scale.reading.schemas import check_names
from mrot_scale.storing.location import Location

_BLOCK_BYTES = 1 << 24
_WHOLE_NUMBER = r"^(0|-?[1-9][0-9]{0,17})$"
_NUMBER = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"
_MOSTLY = 0.9
_BAD_VALUE = re.compile(
    r"In CSV column #(?P<column>\d+): (?:Row #(?P<row>\d+): )?"
    r"CSV conversion error to (?P<kind>.+?): (?:invalid value )?(?P<value>.*)",
    re.DOTALL,
)

Types = Mapping[str, pa.DataType]


def csv_format(locations: Sequence[Location], id_column: str | None) -> Format:
    """Return how these files are read; the id column keeps whole numbers and text as they are."""
    settled = _settled_types(locations, id_column)
    return Format("CSV", partial(_describe, settled), partial(_batches, settled))


def _describe(settled: Types, location: Location) -> tuple[pa.Schema, int | None]:
    header = _header(location)
    return pa.schema([(name, settled.get(name, pa.null())) for name in header]), None


def _batches(settled: Types, location: Location, columns: list[str]) -> Iterator[pa.RecordBatch]:
    header = _header(location)
    # An empty list would mean all columns, but one is enough to count rows.
    included = columns or header[:1]
    try:
        with _csv(location, settled, included) as reader:
            yield from reader
    except pa.ArrowInvalid as error:
        found = _BAD_VALUE.search(str(error))
        if found is None:
            raise
        raise _mixed_types(location, header, found) from error


def _settled_types(locations: Sequence[Location], id_column: str | None) -> Types:
    settled: Types = {}
    for location in locations:
        with explained(location, "CSV"):
            check_names(_header(location), str(location))
            first = _first_block(location, id_column)
        settled = {
            field.name: _settled_type(field.type, f"{location}, column {field.name!r}")
            for field in first.schema
        }
        for name in (n for n in first.schema.names if n != id_column):
            _check_not_mixed(first.column(name), f"{location}, column {name!r}")
        if id_column in settled:
            settled[id_column] = _id_type(first.column(id_column))
        if first.num_rows:
            break
    return settled


def _first_block(location: Location, id_column: str | None) -> pa.RecordBatch:
    given = {} if id_column is None else {id_column: pa.string()}
    with _csv(location, given) as reader:
        rows = next(iter(reader), None)
        return pa.RecordBatch.from_pylist([], schema=reader.schema) if rows is None else rows


def _settled_type(inferred: pa.DataType, where: str) -> pa.DataType:
    if types.is_binary(inferred):
        raise DataError(f"{where} holds text that is not UTF-8. Save the file as UTF-8.")
    # A whole number may be followed by 1.5 much later, an empty cell by any number.
    is_number = types.is_null(inferred) or types.is_integer(inferred)
    return pa.float64() if is_number else inferred


def _check_not_mixed(values: pa.Array, where: str) -> None:
    """Refuse text among numbers: a word in a thousand numbers is a mistake, not a category."""
    if not types.is_string(values.type):
        return
    texts = values.drop_null()
    are_numbers = pc.match_substring_regex(texts, _NUMBER)
    share = pc.mean(are_numbers).as_py() or 0.0
    if share > _MOSTLY:
        row = pc.index(are_numbers, False).as_py()
        raise DataError(
            f"{where}: mixed types: {texts[row].as_py()!r} found where {share:.1%} of the values "
            "are numbers. Correct the value or leave the column out."
        )


def _id_type(texts: pa.Array) -> pa.DataType:
    """Return integer only where no text would be lost by it, as the zeros of '007' would."""
    are_whole = pc.all(pc.match_substring_regex(texts, _WHOLE_NUMBER)).as_py()
    return pa.int64() if are_whole else pa.string()


@contextmanager
def _csv(location: Location, settled: Types, included: Sequence[str] = ()) -> Iterator[Any]:
    with _text(location) as text:
        yield pa.csv.open_csv(
            text,
            # One thread: rows of errors get their numbers, and no blocks are read ahead.
            read_options=pa.csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
            parse_options=pa.csv.ParseOptions(
                delimiter=_delimiter(location), newlines_in_values=True
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict(settled), include_columns=list(included), strings_can_be_null=True
            ),
        )


@contextmanager
def _text(location: Location) -> Iterator[Any]:
    with opened(location) as file:
        is_packed = location.suffix == ".gz"
        yield pa.CompressedInputStream(file, "gzip") if is_packed else file


def _delimiter(location: Location) -> str:
    return "\t" if location.name.lower().removesuffix(".gz").endswith(".tsv") else ","


def _header(location: Location) -> list[str]:
    with _text(location) as text:
        # Values behind the header are none of its business, whatever their encoding.
        lines = io.TextIOWrapper(text, "utf-8-sig", errors="surrogateescape", newline="")
        try:
            rows = csv.reader(lines, delimiter=_delimiter(location))
            header = next((row for row in rows if row), [])
        except csv.Error as error:
            raise DataError(f"{location}: the header cannot be read: {error}.") from error
        finally:
            lines.detach()
    if len(header) == 1 and (separator := re.search(r"[;,|\t]", header[0])):
        raise DataError(
            f"{location}: the header is one column, {header[0][:60]!r}. Separate values by commas "
            f"(.csv) or tabs (.tsv), not by {separator.group()!r}."
        )
    return header


def _mixed_types(location: Location, header: Sequence[str], found: re.Match[str]) -> DataError:
    column = header[int(found["column"])]
    row = f", row {found['row']} (the header is row 1)" if found["row"] else ""
    return DataError(
        f"{location}{row}, column {column!r}: mixed types: {found['value']} found, expected "
        f"{found['kind']} as in the rows before. Correct the value or leave the column out."
    )
