"""The highest rows, with their identifiers and the columns that raised their scores."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.encoding import Decoder
from mrot_scale.explaining import can_explain, column_contributions
from mrot_scale.jobs.report_parts import ShownRows
from mrot_scale.model.persist import model_schema
from mrot_scale.reporting.contents import COLUMNS_PER_ROW, Json, rounded, short
from mrot_scale.reporting.populations import Feature, features_of, figure_of
from mrot_scale.scoring import FittedModel
from mrot_scale.storing.schema import OTHER_CODE, Column
from mrot_scale.storing.store import FeatureStore

Floats = NDArray[np.float64]

CHUNKS_LOOKED_AT = 256
"""Chunks whose identifiers are read, at most; rows of others go by their number."""


def flagged_rows(
    store: FeatureStore, models: Sequence[FittedModel], top: ShownRows, redacted: set[str]
) -> list[Json]:
    """Return the rows of a report's table, highest first; `models` by the rows' groups."""
    if len(top.rows) == 0:
        return []
    names = identifiers(store, top, redacted)
    rows, raised = decoded(store, models, top), contributions(store, models, top)
    return [
        {
            "row": int(top.rows[place]),
            "id": names[place],
            "score": rounded(top.scores[place]),
            "columns": _columns(store, top.stored[place], rows[place], raised[place], redacted),
        }
        for place in range(len(top.rows))
    ]


def decoded(store: FeatureStore, models: Sequence[FittedModel], shown: ShownRows) -> Floats:
    """Return rows as their models see them."""
    found = np.empty(shown.stored.shape, dtype=np.float64)
    for group, model in enumerate(models):
        mine = shown.groups == group
        found[mine] = Decoder(model_schema(model), store.schema).rows(shown.stored[mine])
    return found


def contributions(store: FeatureStore, models: Sequence[FittedModel], shown: ShownRows) -> Floats:
    """Return what each column did to each score; NaN where the model cannot say."""
    found = np.full(shown.stored.shape, np.nan)
    rows = decoded(store, models, shown)
    for group, model in enumerate(models):
        mine = shown.groups == group
        if mine.any() and can_explain(model):
            found[mine] = column_contributions(model, rows[mine])
    return found


def identifiers(store: FeatureStore, shown: ShownRows, redacted: set[str]) -> list[str]:
    """Return what names each row: its identifier, or its number where that is not to be shown."""
    names = [str(row) for row in shown.rows]
    if store.schema.id_column in redacted:
        return names
    chunks = shown.rows // store.chunks.chunk_rows
    for chunk in list(dict.fromkeys(chunks.tolist()))[:CHUNKS_LOOKED_AT]:
        start, _ = store.chunks.chunk_to_rows(chunk)
        column = store.read_ids(chunk, [store.schema.id_column])[store.schema.id_column]
        mine = np.flatnonzero(chunks == chunk)
        found = column.take(shown.rows[mine] - start).to_pylist()
        for place, value in zip(mine.tolist(), found, strict=True):
            names[place] = short(value)
    return names


def _columns(
    store: FeatureStore, stored: Any, row: Floats, raised: Floats, redacted: set[str]
) -> list[Json]:
    """Return the columns that raised a score most, strongest first."""
    features, found = features_of(store.schema), []
    for place in _strongest(store, row, raised):
        feature = features[place]
        is_hidden = feature.column.name in redacted
        value = None if is_hidden else shown_value(feature, row[place], stored[place])
        line = {"name": short(feature.name), "value": value}
        found.append(line | {"contribution": rounded(raised[place], 4), "redacted": is_hidden})
    return found


def _strongest(store: FeatureStore, row: Floats, raised: Floats) -> list[int]:
    """Return which columns to name: those that raised the score, or those far from the median."""
    if np.isnan(raised).all():
        return _farthest(store, row)
    order = [int(p) for p in np.argsort(-raised, kind="stable")[:COLUMNS_PER_ROW]]
    return [p for p in order if raised[p] > 0] or order[:1]


def _farthest(store: FeatureStore, row: Floats) -> list[int]:
    away = np.zeros(len(row))
    for place, found in enumerate(store.schema.statistics):
        if found.quantiles and np.isfinite(row[place]):
            low, median, high = (found.quantiles[n] for n in (4, 5, 6))
            away[place] = abs(row[place] - median) / ((high - low) or found.deviation or 1.0)
    order = np.argsort(-away, kind="stable")[:COLUMNS_PER_ROW]
    return [int(p) for p in order]


def shown_value(feature: Feature, value: float, code: Any) -> Any:
    """Return a value as people know it: a category's text, a moment as ISO writes it."""
    if feature.kind == "category":
        return _category(feature.column, int(code))
    if not np.isfinite(value):
        return None
    if feature.column.kind == "boolean":
        return "true" if value else "false"
    return figure_of(feature.column, float(value)) if feature.kind == "time" else rounded(value)


def _category(column: Column, code: int) -> str | None:
    if code == OTHER_CODE:
        return "(others)"
    return short(column.vocabulary[code]) if code >= 0 else None
