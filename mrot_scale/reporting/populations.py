"""How all rows are spread: scores, efforts, the values of each column, and what has moved."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.drift import Drift
from mrot_scale.profiles import CATEGORIES_COUNTED, SCORE_EDGES, Profile
from mrot_scale.reporting.contents import COLUMNS_KEPT, Json, rounded, short
from mrot_scale.scoring import FittedModel, FittedView, problem_of
from mrot_scale.storing.schema import Column, Schema
from mrot_scale.storing.summaries import QUANTILE_LEVELS, ColumnSummary

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EFFORT_CELLS = 48
_LAST_SURVIVAL = 1e-4
"""Share of the rows that may lie beyond the picture of efforts."""

_VIEWS = {
    "none": "columns as they are",
    "robust": "columns scaled robustly",
    "gentle": "columns scaled gently",
    "none (auto)": "columns as they are",
    "gentle (auto)": "columns scaled gently, other anchors",
}
_MEDIAN = QUANTILE_LEVELS.index(0.5)


def score_ranges(cells: Counts) -> Json:
    """Return counts in cells of equal width as counts in the ranges that reports show."""
    ends = [0.0, *SCORE_EDGES.tolist(), 1.0]
    places = [round(end * len(cells)) for end in ends]
    counts = [int(cells[low:high].sum()) for low, high in pairwise(places)]
    return score_json(counts)


def score_json(counts: Sequence[int]) -> Json:
    """Return counts of scores with the ranges they are in, and what training gives each."""
    ends = [0.0, *SCORE_EDGES.tolist(), 1.0]
    expected = [round(high - low, 6) for low, high in pairwise(ends)]
    return {"edges": ends, "counts": [int(n) for n in counts], "expected": expected}


def effort_spreads(model: FittedModel) -> list[Json]:
    """Return how the efforts of the training rows are spread in each view."""
    n_rows = 0 if model.bins is None else int(model.bins.counts[0].sum())
    pairs = zip(model.views, model.config.views, strict=True)
    return [
        _effort_spread(view, problem_of(model.config, own).effort_sign, own.separate, n_rows)
        for view, own in pairs
    ]


def _effort_spread(view: FittedView, sign: float, separate: bool, n_rows: int) -> Json:
    """Read counts off the view's own maps: where there are several, off their mean."""
    low = min(float(m.knots[0]) for m in view.maps)
    deepest = -np.log(_LAST_SURVIVAL)
    high = max(
        float(m.knots[-1]) + m.tail_scale * max(deepest - float(m.rarity[-1]), 0.0)
        for m in view.maps
    )
    grid = np.linspace(low, high, _EFFORT_CELLS + 1)
    survival = np.mean([np.exp(-m.neg_log_survival(grid)) for m in view.maps], axis=0)
    below = survival[::-1] if sign < 0 else 1.0 - survival
    edges = np.sort(sign * grid) / np.log(10)
    counts = np.rint(np.diff(below) * n_rows).astype(np.int64)
    name = view.view.name
    shown = _VIEWS.get(name, name) + (", column by column" if separate else "")
    return {
        "view": shown,
        "edges": [rounded(x, 5) for x in edges],
        "counts": np.maximum(counts, 0).tolist(),
        "cdf": [round(float(x), 5) for x in np.clip(below[1:], 0.0, 1.0)],
    }


@dataclass(frozen=True)
class Feature:
    """One feature of a table, and how a report shows it."""

    name: str
    kind: str
    """number, category or time."""

    column: Column


def features_of(schema: Schema) -> list[Feature]:
    """Return the features in their order; their names may be alike."""
    found = []
    for column in schema.columns:
        for part, name in enumerate(column.features):
            is_moment = column.kind in ("datetime", "date") and part == 0
            kind = "category" if column.kind == "category" else "time" if is_moment else "number"
            found.append(Feature(name, kind, column))
    return found


def column_spreads(
    model: FittedModel, schema: Schema, names: Sequence[str], now: Profile | None
) -> dict[str, Json]:
    """Return the values of named features counted in training, and now where that is known."""
    wanted = set(list(dict.fromkeys(names))[:COLUMNS_KEPT])
    found = {}
    for position, feature in enumerate(features_of(schema)):
        if short(feature.name) not in wanted:
            continue
        if feature.kind == "category":
            found[short(feature.name)] = _category_spread(feature.column, now)
        elif model.bins is not None:
            edges = [rounded(x) for x in model.bins.edges[position]]
            seen = None if now is None else now.values[position].tolist()
            training = model.bins.counts[position].tolist()
            found[short(feature.name)] = _spread(feature.kind, edges, training, seen)
    return found


def _spread(kind: str, edges: list[Any], training: list[int], now: list[int] | None) -> Json:
    return {"kind": kind, "edges": edges, "training": training, "now": now}


def _category_spread(column: Column, now: Profile | None) -> Json:
    pairs = sorted(zip(column.vocabulary, column.counts, strict=True), key=lambda pair: -pair[1])
    usual = pairs[:CATEGORIES_COUNTED]
    others = sum(n for _, n in pairs[CATEGORIES_COUNTED:]) + column.n_other
    names = [*(short(value) for value, _ in usual), "(others)", "(missing)"]
    counts = [*(n for _, n in usual), others, column.n_missing]
    seen = None
    if now is not None and column.name in now.categories:
        seen = now.categories[column.name].tolist()
    return _spread("category", names, counts, seen)


def drift_lines(
    training: Sequence[Drift] | None, previous: Sequence[Drift] | None = None
) -> list[Json]:
    """Return what has moved, most first; the previous run's figure beside where there is one."""
    before = {drift.name: drift.psi for drift in previous or []}
    lines: list[Json] = [
        {
            "name": short(drift.name),
            "psi": rounded(drift.psi, 5),
            "ks": rounded(drift.ks, 5),
            "nulls": rounded(drift.nulls, 5),
            "is_score": drift.is_score,
            "previous_psi": rounded(before[drift.name], 5) if drift.name in before else None,
            "past": [],
        }
        for drift in training or []
    ]
    return sorted(lines, key=lambda line: -float(line["psi"] or 0.0))


def quality_lines(schema: Schema) -> list[Json]:
    """Return for each column what is missing, and between which values it lies."""
    lines: list[Json] = []
    position = 0
    for column in schema.columns:
        for part, name in enumerate(column.features):
            is_derived = column.kind in ("datetime", "date", "time") and part > 0
            if not is_derived:  # where in the day and week says nothing of its own
                lines.append(_quality_line(column, name, schema.statistics[position]))
            position += 1
    return lines


def _quality_line(column: Column, name: str, found: ColumnSummary) -> Json:
    line: Json = {"name": short(name), "kind": column.kind, "categories": None}
    if column.kind == "category":
        unknown = dict.fromkeys(("min", "median", "max", "mean"))
        counted = {"missing": column.n_missing, "infinite": 0, **unknown}
        return line | {"categories": len(column.vocabulary), **counted}
    median = found.quantiles[_MEDIAN] if found.quantiles else None
    figures = {"min": found.min, "median": median, "max": found.max, "mean": found.mean}
    shown = {n: None if x is None else figure_of(column, x) for n, x in figures.items()}
    return line | shown | {"missing": found.missing, "infinite": found.infinite}


def figure_of(column: Column, value: float) -> Any:
    """Return a value as people know it: days since 1970 as the moment they are."""
    if column.kind not in ("datetime", "date"):
        return rounded(value)
    try:
        found = _EPOCH + timedelta(days=value)
    except OverflowError:
        return rounded(value)
    if column.kind == "date":
        return found.date().isoformat()
    return found.replace(microsecond=0, tzinfo=None).isoformat() + "Z"
