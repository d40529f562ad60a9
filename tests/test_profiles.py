"""Profiles: every row counted once, in the bin a plain loop would put it in."""

import json
import math
from bisect import bisect_left
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrot_scale.errors import DamagedDataError
from mrot_scale.profiles import (
    CATEGORIES_COUNTED,
    LEVELS,
    SAMPLE_ROWS,
    SCORE_EDGES,
    Bins,
    Profile,
    category_profiles,
    count_scores,
    count_values,
    sampled_rows,
)
from mrot_scale.storing.schema import Column, Schema
from tests.strategies import chunk_sizes, examples

ANY = st.floats(width=32) | st.integers(-3, 3).map(float)
"""Values with ties, infinities and gaps."""


def column_counts(edges: list[float], values: list[float]) -> list[int]:
    """Count by a plain loop: the first bin whose upper end is not below the value."""
    found = [0] * (len(edges) + 2)
    for value in values:
        if math.isnan(value) or math.isinf(value):
            found[-1] += 1
            continue
        place = 0
        while place < len(edges) and edges[place] < value:
            place += 1
        found[place] += 1
    return found


@st.composite
def edged_rows(draw: Any) -> tuple[list[list[float]], list[list[float]]]:
    """Ends of bins of a few features, and rows of them."""
    n_features, n_edges = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    finite = st.integers(-3, 3).map(float) | st.floats(-5, 5, width=32)
    edge_list = st.lists(finite, min_size=n_edges, max_size=n_edges).map(sorted)
    edges = draw(st.lists(edge_list, min_size=n_features, max_size=n_features))
    row = st.lists(ANY, min_size=n_features, max_size=n_features)
    return edges, draw(st.lists(row, max_size=20))


@examples(100)
@given(edged_rows())
def test_values_are_counted_as_a_loop_counts_them(
    drawn: tuple[list[list[float]], list[list[float]]],
) -> None:
    edges, rows = drawn
    found = count_values(np.array(edges), np.array(rows).reshape(len(rows), len(edges)))
    expected = [column_counts(e, [row[i] for row in rows]) for i, e in enumerate(edges)]
    assert found.tolist() == expected


@examples(50)
@given(edged_rows(), st.data())
def test_counts_of_pieces_add_up_to_the_counts_of_all(
    drawn: tuple[list[list[float]], list[list[float]]], data: Any
) -> None:
    edges = np.array(drawn[0])
    rows = np.array(drawn[1]).reshape(len(drawn[1]), len(edges))
    cut = data.draw(st.integers(0, len(rows)))
    pieces = count_values(edges, rows[:cut]) + count_values(edges, rows[cut:])
    assert (pieces == count_values(edges, rows)).all()


def test_bins_hold_the_shares_they_are_made_for() -> None:
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=10_000), rng.lognormal(size=10_000)])
    bins = Bins.of(rows)
    expected = [
        high - low for low, high in pairwise([0.0, 0.01, *(n / 20 for n in range(1, 20)), 0.99, 1])
    ]
    shares = bins.counts[:, :-1] / 10_000
    assert np.abs(shares - expected).max() < 0.001
    assert (bins.counts[:, -1] == 0).all()
    assert (bins.counts.sum(axis=1) == 10_000).all()


@examples(30)
@given(st.lists(ANY, max_size=40))
def test_bins_of_any_column_count_each_row_once(values: list[float]) -> None:
    bins = Bins.of(np.array(values).reshape(-1, 1))
    assert bins.edges.shape == (1, len(LEVELS))
    assert np.isfinite(bins.edges).all()
    assert (np.diff(bins.edges) >= 0).all()
    assert bins.counts.tolist() == [column_counts(bins.edges[0].tolist(), values)]
    known = {value for value in values if math.isfinite(value)}
    assert set(bins.edges[0].tolist()) <= (known or {0.0}), "an end is a value of the column"


def test_a_constant_column_and_one_without_values_have_bins() -> None:
    rows = np.array([[7.0, np.nan], [7.0, np.inf], [7.0, -np.inf]])
    bins = Bins.of(rows)
    assert bins.counts[0].tolist() == [3] + [0] * (len(LEVELS) + 1)
    assert bins.counts[1].tolist() == [0] * (len(LEVELS) + 1) + [3]
    later = count_values(bins.edges, np.array([[7.0, 0.0], [8.0, 1.0], [6.0, np.nan]]))
    assert later[0].tolist() == [2, *[0] * (len(LEVELS) - 1), 1, 0]


@examples(50)
@given(st.lists(st.floats(0, 1, width=32) | st.just(math.nan) | st.sampled_from([0.5, 1.0])))
def test_scores_are_counted_as_a_loop_counts_them(scores: list[float]) -> None:
    edges = [n / 20 for n in range(1, 20)] + [0.99, 0.999]
    expected = [0] * 23
    for score in scores:
        expected[22 if math.isnan(score) else bisect_left(edges, score)] += 1
    assert SCORE_EDGES.tolist() == edges
    assert count_scores(np.array(scores, dtype=np.float32)).tolist() == expected


# --- which rows are looked at


@examples(60)
@given(st.data())
def test_the_rows_looked_at_do_not_depend_on_where_chunks_begin(data: Any) -> None:
    n_rows = data.draw(st.integers(1, 400) | st.integers(2 * SAMPLE_ROWS, 5 * SAMPLE_ROWS))
    sizes = data.draw(chunk_sizes(n_rows))
    found, start = [], 0
    for size in sizes:
        found += [start + row for row in sampled_rows(start, start + size, n_rows).tolist()]
        start += size
    assert found == sampled_rows(0, n_rows, n_rows).tolist()


@pytest.mark.parametrize(
    ("n_rows", "step"),
    [(1, 1), (19_999, 1), (20_000, 1), (39_999, 1), (40_000, 2), (59_999, 2), (1_000_000, 50)],
)
def test_rows_at_even_distances_are_looked_at_and_never_too_few(n_rows: int, step: int) -> None:
    found = sampled_rows(0, n_rows, n_rows).tolist()
    assert found == [row for row in range(n_rows) if row % step == 0]
    assert min(n_rows, 20_000) <= len(found) < 40_000


def test_a_chunk_between_two_looks_has_no_row_looked_at() -> None:
    assert sampled_rows(1, 5, 200_000).tolist() == []
    assert sampled_rows(5, 5, 200_000).tolist() == []
    assert sampled_rows(5, 21, 200_000).tolist() == [5, 15]


# --- categories


def schema_of(*columns: Column, n_rows: int = 100) -> Schema:
    n_features = sum(len(column.features) for column in columns)
    return Schema(columns, (0.0,) * n_features, n_rows, "row")


def category(name: str, counts: dict[str, int], missing: int = 0, other: int = 0) -> Column:
    return Column(
        name,
        "category",
        vocabulary=tuple(counts),
        counts=tuple(counts.values()),
        n_missing=missing,
        n_other=other,
    )


def test_categories_are_counted_by_the_models_order_of_frequency() -> None:
    model = schema_of(Column("x", "number"), category("kind", {"b": 2, "a": 5, "c": 3}))
    now = schema_of(category("kind", {"c": 7, "z": 4, "a": 1}, missing=6, other=2))
    found = category_profiles(model, now)
    assert {name: counts.tolist() for name, counts in found.items()} == {
        "kind": [1, 7, 0, 4 + 2, 6]  # a, c, b, all others, none
    }


@examples(50)
@given(st.data())
def test_every_row_is_of_one_category_or_of_none(data: Any) -> None:
    names = st.text("abcdefgh", min_size=1, max_size=3)
    counted = st.dictionaries(names, st.integers(0, 9), max_size=40)
    trained, found = data.draw(counted), data.draw(counted)
    missing, other = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 5))
    model = schema_of(category("kind", trained))
    (counts,) = category_profiles(
        model, schema_of(category("kind", found, missing, other))
    ).values()
    usual = sorted(trained, key=lambda name: trained[name], reverse=True)[:CATEGORIES_COUNTED]
    expected = [found.get(name, 0) for name in usual]
    strange = sum(n for name, n in found.items() if name not in usual)
    assert counts.tolist() == [*expected, strange + other, missing]


def test_the_20_most_frequent_categories_are_told_apart() -> None:
    trained = {f"c{n}": n + 1 for n in range(30)}
    (counts,) = category_profiles(
        schema_of(category("kind", trained)), schema_of(category("kind", {"c0": 8, "c29": 3}))
    ).values()
    assert counts.tolist() == [3, *[0] * 19, 8, 0]


def test_categories_of_a_column_the_rows_do_not_have_are_not_counted() -> None:
    model = schema_of(category("kind", {"a": 1}), category("site", {"n": 1}))
    assert list(category_profiles(model, schema_of(category("site", {"n": 2})))) == ["site"]
    assert category_profiles(model, schema_of(Column("kind", "number"))) == {}


# --- to JSON and back


def test_a_profile_survives_json() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 2))
    bins = Bins.of(rows)
    profile = Profile(
        50, bins.counts, count_scores(np.array([0.1, np.nan], np.float32)), {"kind": bins.counts[0]}
    )
    back = Profile.from_json(json.loads(json.dumps(profile.to_json())))
    assert back.n_rows == 50
    assert (back.values == profile.values).all()
    assert (back.scores == profile.scores).all()
    assert back.categories.keys() == {"kind"}
    assert (back.categories["kind"] == profile.categories["kind"]).all()
    assert back.values.dtype == back.scores.dtype == np.int64


SOUND = {"n_rows": 1, "values": [[1, 0]], "scores": [1, 0], "categories": {}}


@pytest.mark.parametrize(
    "found",
    [
        None,
        [],
        {},
        "profile",
        SOUND | {"n_rows": "many"},
        SOUND | {"n_rows": None},
        SOUND | {"values": [[1, 2], [1]]},
        SOUND | {"values": "x"},
        SOUND | {"scores": {"a": 1}},
        SOUND | {"scores": [2**70]},
        SOUND | {"categories": []},
        SOUND | {"categories": {"kind": ["a"]}},
    ],
    ids=range(12),
)
def test_what_is_no_profile_is_refused(found: Any) -> None:
    Profile.from_json(SOUND)
    with pytest.raises(DamagedDataError, match="no profile") as caught:
        Profile.from_json(found)
    assert caught.value.exit_code == 74
