"""Rows at rest become what the method sees: rarity of categories, and whether a store fits."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrot_scale.encoding import (
    COMMON_FACTOR,
    CategoryLevels,
    Decoder,
    category_levels,
    check_fits,
    rare_levels,
)
from mrot_scale.errors import ModelMismatchError
from mrot_scale.storing.schema import Column
from tests.storing.building import built
from tests.strategies import examples

WORDS = "abcdefghijklmnop"

counts_of_words = st.lists(st.integers(1, 1_000), min_size=1, max_size=16)


def a_column(counts: list[int], missing: int = 0, other: int = 0) -> tuple[Column, int]:
    """A column of categories with these counts, and how many rows it has."""
    words = tuple(WORDS[: len(counts)])
    column = Column("c", "category", 1, words, tuple(counts), missing, other)
    return column, sum(counts) + missing + other


def levels_of(counts: list[int], missing: int = 0, other: int = 0) -> CategoryLevels:
    return category_levels(*a_column(counts, missing, other))


@examples(100)
@given(counts=counts_of_words, missing=st.integers(0, 300), draw=st.data())
def test_rarer_categories_never_have_lower_levels_and_unseen_ones_the_highest(
    counts: list[int], missing: int, draw: st.DataObject
) -> None:
    other = draw.draw(st.integers(0, (sum(counts) + missing) // 100))
    found = levels_of(counts, missing, other)
    pairs = list(zip(counts, (found.of_value[w] for w in WORDS), strict=False))
    pairs += [(missing, found.missing), (other, found.other), (0, found.unseen)]
    by_rarity = [level for _, level in sorted(pairs, key=lambda p: (-p[0], p[1]))]
    assert by_rarity == sorted(by_rarity)
    assert min(by_rarity) == 0.0
    assert max(by_rarity) == found.unseen
    assert np.isfinite(by_rarity).all()


@examples(50)
@given(counts=counts_of_words)
def test_a_category_seen_once_is_less_rare_than_one_never_seen(counts: list[int]) -> None:
    found = levels_of([*counts[:15], 1])
    assert found.unseen == 0.0 or found.of_value[WORDS[len(counts[:15])]] < found.unseen


@examples(50)
@given(counts=counts_of_words, factor=st.integers(2, 50))
def test_levels_depend_on_shares_not_on_how_many_rows_there_are(
    counts: list[int], factor: int
) -> None:
    few, many = levels_of(counts), levels_of([factor * n for n in counts])
    assert many.of_value == pytest.approx(few.of_value, abs=1e-9)


@examples(50)
@given(counts=counts_of_words, seed=st.integers(0, 100))
def test_levels_do_not_depend_on_the_order_of_the_codes(counts: list[int], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(counts))
    words = [WORDS[i] for i in order]
    shuffled = Column("c", "category", 1, tuple(words), tuple(counts[i] for i in order))
    found = category_levels(shuffled, sum(counts))
    assert found.of_value == pytest.approx(levels_of(counts).of_value, abs=1e-12)
    assert found.unseen == pytest.approx(levels_of(counts).unseen, abs=1e-12)


def test_levels_counted_by_hand() -> None:
    found = levels_of([900, 250, 200, 50, 10], missing=90)
    usual = 900  # half of all rows are in the most frequent category
    assert found.of_value["a"] == found.of_value["b"] == found.of_value["c"] == 0.0
    for word, count in (("d", 50), ("e", 10)):
        assert found.of_value[word] == pytest.approx(np.log(usual / COMMON_FACTOR / count))
    assert found.missing == pytest.approx(np.log(usual / COMMON_FACTOR / 90))
    assert found.other == found.unseen == pytest.approx(np.log(usual / COMMON_FACTOR / 0.5))


def test_many_categories_of_like_counts_are_all_common() -> None:
    found = levels_of([30, 35, 40, 45, 50])
    assert set(found.of_value.values()) == {0.0}
    assert found.unseen > 0


def test_a_column_with_too_many_others_says_nothing() -> None:
    at_limit, beyond = levels_of([980, 10], other=10), levels_of([979, 10], other=11)
    assert at_limit.of_value["b"] > 0
    assert beyond == CategoryLevels({"a": 0.0, "b": 0.0}, 0.0, 0.0, 0.0)
    assert len(beyond.rare) == 0


def test_a_column_without_any_category_has_levels() -> None:
    found = levels_of([], missing=7)
    assert (found.of_value, found.missing) == ({}, 0.0)
    assert found.unseen >= 0.0


def test_the_table_begins_with_others_and_missing_ones() -> None:
    levels = CategoryLevels({"x": 1.0, "y": 2.0}, missing=3.0, other=4.0, unseen=5.0)
    assert levels.table(["y", "new", "x"]).tolist() == [4.0, 3.0, 2.0, 5.0, 1.0]
    assert levels.rare.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


def category_table(words: list[str | None], **columns: Any) -> pa.Table:
    return pa.table({"c": pa.array(words, pa.string()), **columns})


MODEL_WORDS = ["x"] * 90 + ["y"] * 60 + ["z"] * 2 + [None]


def test_a_row_stands_for_the_same_numbers_whatever_its_codes() -> None:
    model = built(category_table(list(MODEL_WORDS))).schema
    words = ["z", "new", "x", None, "y", "z"]
    alone, like = built(category_table(words)), built(category_table(words), like=model)
    found = [Decoder(model, made.schema).rows(made.stored)[:, 0].tolist() for made in (alone, like)]
    assert found[0] == found[1]
    levels = category_levels(model.columns[0], model.n_rows)
    z, new, x, missing, y, _ = found[0]
    assert (x, y, z) == (0.0, 0.0, levels.of_value["z"])
    assert (missing, new) == (levels.missing, levels.unseen)
    assert 0 < z < missing < new


def test_categories_beyond_a_stores_vocabulary_are_as_rare_as_others_are() -> None:
    model = built(category_table(list(MODEL_WORDS))).schema
    store = built(category_table(["x", "y", "w", "v"]), vocabulary=2)
    rows = Decoder(model, store.schema).rows(store.stored)
    levels = category_levels(model.columns[0], model.n_rows)
    assert rows[:, 0].tolist() == [0.0, 0.0, levels.other, levels.other]


def test_numbers_get_the_origin_of_their_own_store_back() -> None:
    table = pa.table({"a": 1e6 + np.arange(50.0), "b": np.arange(50.0)})
    later = pa.table({"a": 5e6 + np.arange(50.0), "b": [np.nan, *range(1, 50)]})
    model, store = built(table).schema, built(later)
    assert store.schema.origin != model.origin
    rows = Decoder(model, store.schema).rows(store.stored)
    assert rows.dtype == np.float64
    np.testing.assert_array_equal(rows, np.column_stack([later["a"], later["b"]]))


def test_decoding_leaves_the_stored_rows_alone() -> None:
    made = built(category_table(["x", "y", "x"], a=[1.0, 2.0, 3.0]))
    before = made.stored
    stored = before.copy()
    Decoder(made.schema, made.schema).rows(stored)
    assert stored.tobytes() == before.tobytes()


def test_rare_levels_are_listed_by_feature() -> None:
    at = pa.array(range(len(MODEL_WORDS)), pa.timestamp("s"))
    schema = built(pa.table({"at": at, "c": MODEL_WORDS, "d": ["k"] * len(MODEL_WORDS)})).schema
    found = rare_levels(schema)
    assert sorted(found) == [5, 6]
    assert found[5].tolist() == sorted(set(found[5].tolist()))
    assert (found[5] > 0).all()
    assert found[5][-1] == category_levels(schema.columns[1], schema.n_rows).unseen


def schema_of(**columns: Any) -> Any:
    return built(pa.table(columns)).schema


@pytest.mark.parametrize(
    ("store", "complaint"),
    [
        ({"a": [1.0]}, r"missing 'b' \(category\)\."),
        ({"b": ["x"], "a": [1.0]}, "the same columns in another order"),
        ({"a": [1.0], "b": [2.0]}, r"missing 'b' \(category\); not in the model 'b' \(number\)"),
        ({"a": [1.0], "b": ["x"], "c": [3.0]}, r"differ: not in the model 'c' \(number\)"),
    ],
)
def test_a_store_that_does_not_fit_is_refused_with_what_differs(
    store: dict[str, Any], complaint: str
) -> None:
    model = schema_of(a=[1.0, 2.0], b=["x", "y"])
    with pytest.raises(ModelMismatchError, match=complaint) as caught:
        Decoder(model, schema_of(**store))
    assert "--like MODEL" in str(caught.value)


def test_vectors_of_another_width_do_not_fit() -> None:
    two = schema_of(v=pa.array([[1.0, 2.0]], pa.list_(pa.float64(), 2)))
    three = schema_of(v=pa.array([[1.0, 2.0, 3.0]], pa.list_(pa.float64(), 3)))
    with pytest.raises(ModelMismatchError, match="'v'"):
        check_fits(two, three)
    check_fits(two, two)


@pytest.mark.parametrize(
    ("fitted", "scored"), [([0, 1, 2], [True, False]), ([True, False], [0, 1])]
)
def test_a_store_ingested_like_a_model_fits_it(fitted: list[Any], scored: list[Any]) -> None:
    model = schema_of(a=fitted)
    made = built(pa.table({"a": scored}), like=model)
    assert Decoder(model, made.schema).rows(made.stored)[:, 0].tolist() == scored
