"""One schema for all parts of a table, and every batch brought to it."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as types

from mrot_scale.errors import DataError
from mrot_scale.reading.stream import listed

NO_CONSTANTS: Mapping[str, Any] = {}


def plain_schema(schema: pa.Schema, where: str) -> pa.Schema:
    """Return the schema without metadata and with one type of text; refuse repeated names."""
    check_names(schema.names, where)
    return pa.schema([pa.field(field.name, _one_text(field.type)) for field in schema])


def check_names(names: list[str], where: str) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise DataError(
            f"{where}: column name(s) {listed(repeated)} occur more than once. "
            "Give every column a name of its own."
        )


def shared(common: pa.Schema, found: pa.Schema, where: str) -> pa.Schema:
    """Return the columns that both have, in the order of the first."""
    mine, theirs = (
        pa.schema([field for field in schema if field.name in other.names])
        for schema, other in ((common, found), (found, common))
    )
    return merged(mine, theirs, where)


def merged(common: pa.Schema, found: pa.Schema, where: str) -> pa.Schema:
    """Return the schema that holds both, in the order of the first; `where` is the second's."""
    missing = [name for name in common.names if name not in found.names]
    added = [name for name in found.names if name not in common.names]
    if missing:
        raise DataError(
            f"{where}: column(s) {listed(missing)} missing, which the parts before it have. "
            "All parts need the same columns."
        )
    if added:
        raise DataError(
            f"{where}: column(s) {listed(added)} found, which the parts before it do not have. "
            "All parts need the same columns."
        )
    return pa.schema(
        [_merged_field(field, found.field(field.name).type, where) for field in common]
    )


def _merged_field(field: pa.Field, found: pa.DataType, where: str) -> pa.Field:
    if found == field.type:
        return field
    sides = [_undictionaried(field.type), _undictionaried(found)]
    try:
        both = [pa.schema([(field.name, side)]) for side in sides]
        merged_type = pa.unify_schemas(both, promote_options="permissive").field(0).type
    except pa.ArrowException:
        merged_type = None
    # Arrow would call text bytes, so that both fit; nobody would want that.
    text_as_bytes = any(map(types.is_string, sides)) and merged_type != pa.string()
    if merged_type is None or text_as_bytes:
        raise DataError(
            f"{where}: column {field.name!r} has type {found}, expected {field.type} as in the "
            "parts before it. Write all parts with the same type."
        )
    return pa.field(field.name, merged_type)


def _one_text(kind: pa.DataType) -> pa.DataType:
    is_text = types.is_large_string(kind) or types.is_string_view(kind)
    return pa.string() if is_text else kind


def _undictionaried(kind: pa.DataType) -> pa.DataType:
    return _one_text(kind.value_type) if types.is_dictionary(kind) else kind


def without_dictionaries(schema: pa.Schema) -> pa.Schema:
    """Return the schema with the values' types in place of dictionaries of them."""
    return pa.schema([pa.field(field.name, _undictionaried(field.type)) for field in schema])


def conform(
    batch: pa.RecordBatch,
    wanted: pa.Schema,
    where: str,
    constants: Mapping[str, Any] = NO_CONSTANTS,
) -> pa.RecordBatch:
    """Return the batch with exactly the wanted columns, constants repeated on every row."""
    columns = [
        pa.repeat(constants[field.name], batch.num_rows)
        if field.name in constants
        else _cast(batch.column(field.name), field, where)
        for field in wanted
    ]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def _cast(column: pa.Array, field: pa.Field, where: str) -> pa.Array:
    if column.type == field.type:
        return column
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        return column.cast(field.type)
    except pa.ArrowException as error:
        raise DataError(
            f"{where}: column {field.name!r} has type {column.type}, expected {field.type}, and "
            f"some value does not fit ({error}). Write all parts with the same type."
        ) from error
