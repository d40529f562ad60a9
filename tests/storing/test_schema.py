"""Schemas: names of features, and JSON that is read back as it was or refused."""

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrot_scale.errors import DamagedDataError
from mrot_scale.storing.schema import Column, Kind, Schema
from mrot_scale.storing.statistics import ColumnStatistics
from mrot_scale.storing.summaries import ColumnSummary
from tests.strategies import examples

SIMPLE: tuple[Kind, ...] = ("number", "boolean", "datetime", "date", "time")

names = st.text(min_size=1, max_size=8)
counts = st.integers(0, 10**12)


def categories(name: str, words: list[str], numbers: list[int], missing: int, other: int) -> Column:
    return Column(name, "category", 1, tuple(words), tuple(numbers), missing, other)


@st.composite
def columns(draw: Any) -> Column:
    kind = draw(st.sampled_from([*SIMPLE, "category", "vector"]))
    if kind == "vector":
        return Column(draw(names), kind, width=draw(st.integers(1, 5)))
    if kind != "category":
        return Column(draw(names), kind)
    words = draw(st.lists(st.text(max_size=5), unique=True, max_size=5))
    numbers = draw(st.lists(counts, min_size=len(words), max_size=len(words)))
    return categories(draw(names), words, numbers, draw(counts), draw(counts))


@st.composite
def schemas(draw: Any) -> Schema:
    found = draw(st.lists(columns(), min_size=1, max_size=4, unique_by=lambda c: c.name))
    n_features = sum(len(c.features) for c in found)
    finite = st.floats(allow_nan=False, allow_infinity=False)
    origin = draw(st.lists(finite, min_size=n_features, max_size=n_features))
    gathered = ColumnStatistics(n_features)
    rows = np.array([origin, np.zeros(n_features), np.full(n_features, np.nan)])
    with np.errstate(over="ignore"):
        gathered.add(rows, rows.astype(np.float32))
    return Schema(
        columns=tuple(found),
        origin=tuple(origin),
        n_rows=draw(counts),
        id_column=draw(names),
        carried=tuple(draw(st.lists(names, max_size=3))),
        partition_keys=tuple(draw(st.lists(names, max_size=2))),
        left_out=tuple(draw(st.lists(st.tuples(names, names), max_size=2))),
        statistics=tuple(gathered.finish()),
    )


@examples(50)
@given(schema=schemas())
def test_json_tells_the_schema_again(schema: Schema) -> None:
    text = json.dumps(schema.to_json(), allow_nan=False)
    found = Schema.from_json(json.loads(text), "schema.json")
    assert found == schema
    assert repr(found) == repr(schema)  # even the signs of zeros
    assert json.dumps(found.to_json()) == text


@pytest.mark.parametrize(
    ("kind", "features"),
    [
        ("number", ["c"]),
        ("boolean", ["c"]),
        ("category", ["c"]),
        ("datetime", ["c", "c.day_sin", "c.day_cos", "c.week_sin", "c.week_cos"]),
        ("date", ["c", "c.week_sin", "c.week_cos"]),
        ("time", ["c.day_sin", "c.day_cos"]),
        ("vector", ["c[0]", "c[1]", "c[2]"]),
    ],
)
def test_a_column_becomes_the_features_its_kind_has(kind: Kind, features: list[str]) -> None:
    assert Column("c", kind, width=3 if kind == "vector" else 1).features == tuple(features)


def a_schema() -> Schema:
    found = (
        Column("a", "number"),
        Column("t", "date"),
        categories("c", ["x", "y"], [3, 1], 1, 0),
        Column("v", "vector", width=2),
        categories("d", ["z"], [5], 0, 0),
    )
    origin = (0.5, 0.0, 0.0, 0.0, 0.0, -1.0, 2.0, 0.0)
    return Schema(found, origin, 5, "row", ("k",), ("p",), (("q", "w"),))


def test_features_and_origins_follow_the_columns() -> None:
    schema = a_schema()
    expected = ("a", "t", "t.week_sin", "t.week_cos", "c", "v[0]", "v[1]", "d")
    assert schema.features == expected
    assert schema.origins.dtype == np.float64
    assert schema.origins.tolist() == list(schema.origin)


def test_categories_are_found_at_their_features() -> None:
    assert [(p, c.name) for p, c in a_schema().category_features()] == [(4, "c"), (7, "d")]


def test_a_category_named_like_a_part_of_another_column_is_found_at_its_own_feature() -> None:
    found = (Column("v", "vector", width=2), categories("v[1]", ["x"], [1], 0, 0))
    schema = Schema(found, (0.0, 0.0, 0.0), 1, "row")
    assert [position for position, _ in schema.category_features()] == [2]


def test_a_model_keeps_nothing_about_single_rows() -> None:
    kept = a_schema().without_rows()
    assert (kept.statistics, kept.left_out, kept.carried, kept.partition_keys) == ((), (), (), ())
    assert (kept.columns, kept.origin) == (a_schema().columns, a_schema().origin)
    assert (kept.n_rows, kept.id_column) == (5, "row")


def without(key: str) -> Callable[[dict[str, Any]], None]:
    def apply(found: dict[str, Any]) -> None:
        del found[key]

    return apply


def setting(*path: Any) -> Callable[[dict[str, Any]], None]:
    *keys, last, value = path

    def apply(found: Any) -> None:
        for key in keys:
            found = found[key]
        found[last] = value

    return apply


EMPTY = ColumnSummary(0, 0, 0, (), None, None, None, None, (), 0.0).to_json()

DAMAGES = {
    **{f"no {key}": without(key) for key in a_schema().to_json()},
    "no columns": setting("columns", []),
    "columns that are none": setting("columns", ["a"]),
    "columns that are a number": setting("columns", 3),
    "an unknown kind": setting("columns", 0, "kind", "picture"),
    "a kind that is a list": setting("columns", 0, "kind", []),
    "counts that are too few": setting("columns", 2, "counts", [3]),
    "a negative count": setting("columns", 2, "counts", [3, -1]),
    "no counts": setting("columns", 2, "counts", None),
    "too many origins": setting("origin", [0.0] * 9),
    "an infinite origin": setting("origin", 0, float("inf")),
    "an origin that is NaN": setting("origin", 0, float("nan")),
    "an origin that is text": setting("origin", 0, "x"),
    "an origin beyond float64": setting("origin", 0, 10**400),
    "a wider vector": setting("columns", 3, "width", 3),
    "a vector of nothing": setting("columns", 3, "width", -1),
    "fewer than no rows": setting("n_rows", -1),
    "rows that are text": setting("n_rows", "many"),
    "infinitely many rows": setting("n_rows", float("inf")),
    "left out for no reason": setting("left_out", [["q"]]),
    "statistics that are none": setting("statistics", [{}]),
    "statistics of another number of columns": setting("statistics", [EMPTY]),
    "names that are one word": setting("carried", "abc"),
    "keys that are none": setting("partition_keys", {}),
    "categories that are one word": setting("columns", 2, "categories", "ab"),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_damaged_json_is_refused_by_name(what: str) -> None:
    found = a_schema().to_json()
    assert Schema.from_json(found, "schema.json").n_rows == 5
    DAMAGES[what](found)
    with pytest.raises(DamagedDataError) as caught:
        Schema.from_json(found, "store/schema.json")
    assert caught.value.exit_code == 74


@pytest.mark.parametrize("found", [None, [], 3, "x", {}])
def test_what_is_no_schema_is_refused_by_name(found: Any) -> None:
    with pytest.raises(DamagedDataError, match=r"store/schema\.json is not a schema"):
        Schema.from_json(found, "store/schema.json")


def test_a_vector_beyond_all_bounds_is_refused_before_memory_is_taken() -> None:
    found = a_schema().to_json()
    found["columns"][3]["width"] = 200_000
    tracemalloc.start()
    try:
        with pytest.raises(DamagedDataError):
            Schema.from_json(found, "schema.json")
        assert tracemalloc.get_traced_memory()[1] < 2**21
    finally:
        tracemalloc.stop()
