"""Explain: one row of a store, of a table or given as it is, and why it is scored as it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mrot_scale.config.scoring import Method, ScoringConfig
from mrot_scale.encoding import Decoder
from mrot_scale.errors import ConfigError, MissingInputError
from mrot_scale.explanation import Explanation, explain_row
from mrot_scale.jobs.service import encoded_rows
from mrot_scale.model.persist import load_model, model_schema
from mrot_scale.reading.sources import open_source
from mrot_scale.rows import check_values
from mrot_scale.running.publish import resolve
from mrot_scale.scoring import FittedModel
from mrot_scale.storing.location import Location
from mrot_scale.storing.store import FeatureStore, is_store
from mrot_scale.thresholds import stored_choice, threshold_in_force


@dataclass(frozen=True)
class _Found:
    """A row, in the model's numbers, with its name and its categories as text."""

    id: str
    row: NDArray[np.float64]
    texts: dict[str, str | None]


def explain(
    model: str | Path,
    source: Any,
    row: Any = None,
    *,
    number: int | None = None,
    id: str | None = None,
    method: Method | None = None,
) -> Explanation:
    """Return why a row is scored as it is.

    Parameters
    ----------
    source
        A store, a table (a path, or an object such as a data frame), or one row as a dict.
    row
        The row's identifier; as text it may be of any type.
    number
        The row's number, from 0 on, in place of an identifier.
    id
        Column of a table that names each row.
    method
        `model` or `effort`; the model's own when omitted.
    """
    place = Location(model)
    fitted, saved = load_model(resolve(place))
    used: Method = method or saved.get("method", "model")
    found = _find(fitted, source, row, number, id)
    check_values(found.row[None], model_schema(fitted).features, fitted.config.non_finite)
    level = threshold_in_force(fitted, used, ScoringConfig(), saved, stored_choice(place))
    return explain_row(
        fitted, found.row, id=found.id, threshold=level, method=used, texts=found.texts
    )


def _find(model: FittedModel, source: Any, row: Any, number: int | None, id: str | None) -> _Found:
    if isinstance(source, Mapping):
        return _encoded(model, pa.Table.from_pylist([dict(source)]), str(row or "this row"))
    if (row is None) == (number is None):
        raise ConfigError("Say which row: by its identifier or by its number.")
    if number is not None and number < 0:
        raise ConfigError(f"Rows are numbered from 0 on, got {number}.")
    if isinstance(source, str | Path) and is_store(Location(source)):
        return _in_store(model, FeatureStore.open(Location(source)), row, number)
    return _in_table(model, source, row, number, id)


def _in_store(model: FittedModel, store: FeatureStore, row: Any, number: int | None) -> _Found:
    decoder = Decoder(model_schema(model), store.schema)
    chunk, within, name = _place_in_store(store, row, number)
    stored = store.read_chunk(chunk)[within : within + 1]
    texts: dict[str, str | None] = {}
    for position, column in store.schema.category_features():
        code = int(stored[0, position])
        texts[column.name] = column.vocabulary[code] if code >= 0 else None
    return _Found(name, decoder.rows(stored)[0], texts)


def _place_in_store(store: FeatureStore, row: Any, number: int | None) -> tuple[int, int, str]:
    """Return the chunk a row is in, its place there, and its identifier."""
    column = store.schema.id_column
    for chunk in store.chunks:
        start, stop = store.chunks.chunk_to_rows(chunk)
        if number is not None and not start <= number < stop:
            continue
        ids = store.read_ids(chunk, [column])[column]
        within = number - start if number is not None else _index_of(ids, row)
        if within is not None:
            return chunk, within, str(ids[within].as_py())
    raise _no_such_row(str(store.location), column, row, number)


def _index_of(ids: Any, row: Any) -> int | None:
    """Return where an identifier is, compared as text; None where it is not."""
    try:
        texts = pc.cast(ids, pa.string())
    except pa.ArrowException:  # a kind that Arrow cannot write
        texts = pa.array([str(value) for value in ids.to_pylist()])
    found = pc.index(texts, pa.scalar(str(row), texts.type)).as_py()
    return None if found < 0 else int(found)


def _no_such_row(source: str, column: str, row: Any, number: int | None) -> MissingInputError:
    if number is not None:
        return MissingInputError(f"{source} has no row number {number}.")
    return MissingInputError(f"{source} has no row with {column} {row!r:.80}.")


def _in_table(
    model: FittedModel, source: Any, row: Any, number: int | None, id: str | None
) -> _Found:
    stream = open_source(source, id_column=id)
    if row is not None and id is None:
        raise ConfigError(f"{stream.name} does not say which column names its rows: give --id.")
    wanted = [c.name for c in model_schema(model).columns if c.name in stream.schema.names]
    names = list(dict.fromkeys([*wanted, *([id] if id else [])]))
    start = 0
    for batch in stream.read(names):
        within = number - start if number is not None else _index_of(batch[id], row)
        if within is not None and within < batch.num_rows:
            one = pa.Table.from_batches([batch.slice(within, 1)])
            name = str(one[id][0].as_py()) if id else str(start + within)
            return _encoded(model, one.select(wanted), name)
        start += batch.num_rows
    raise _no_such_row(stream.name, str(id), row, number)


def _encoded(model: FittedModel, table: Any, name: str) -> _Found:
    rows, _ = encoded_rows(model, table)
    kinds = {c.name for c in model_schema(model).columns if c.kind == "category"}
    texts = {n: _text(table[n][0].as_py()) for n in table.column_names if n in kinds}
    return _Found(name, rows[0], texts)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
