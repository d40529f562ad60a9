"""Ingestion: what becomes of each column, and rows that do not depend on how they are cut."""

import datetime as dt
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrot_scale.errors import ConfigError, DataError, ModelMismatchError
from mrot_scale.precision import HEAD_ROWS
from mrot_scale.storing import ingestion
from mrot_scale.storing.ingestion import ChunkContent, choose_columns, n_features
from tests.storing.building import Built, built
from tests.strategies import chunk_sizes, examples, seeds

nan = float("nan")


def a_table(seed: int, n_rows: int) -> pa.Table:
    """A column of every kind, with missing values, and one that names the rows."""
    rng = np.random.default_rng(seed)
    missing = rng.random(n_rows) < 0.2
    start = dt.datetime(2023, 11, 14)
    moments = [start + dt.timedelta(seconds=int(s)) for s in rng.integers(0, 10**6, n_rows)]
    words = rng.choice(list("pqrstu"), n_rows)
    return pa.table(
        {
            "key": pa.array([f"k{i}" for i in rng.permutation(n_rows)]),
            "a": pa.array(rng.normal(1e6, 1.0, n_rows), mask=missing),
            "b": pa.array(rng.integers(0, 9, n_rows)),
            "on": pa.array(rng.random(n_rows) < 0.5, mask=missing),
            "word": pa.array(words, mask=rng.random(n_rows) < 0.2),
            "coded": pa.array(words[::-1]).dictionary_encode(),
            "at": pa.array(moments, pa.timestamp("us", "UTC")),
            "day": pa.array([m.date() for m in moments]),
            "time": pa.array([m.time().replace(minute=0, second=0) for m in moments]),
            "v": pa.array(list(rng.normal(size=(n_rows, 2))), pa.list_(pa.float64(), 2)),
        }
    )


def identical(one: Built, other: Built) -> bool:
    """Whether two tables became the same bytes, schemas and identifiers."""
    return (
        one.stored.tobytes() == other.stored.tobytes()
        and json.dumps(one.schema.to_json()) == json.dumps(other.schema.to_json())
        and one.ids.equals(other.ids)
    )


# --- choice of columns


SOURCE = pa.schema(
    [
        ("id", pa.int64()),
        ("a", pa.float64()),
        ("b", pa.string()),
        ("blob", pa.binary()),
        ("empty", pa.null()),
        ("year", pa.int32()),
    ]
)


def test_without_a_word_every_column_with_numbers_is_used() -> None:
    choice = choose_columns(SOURCE, partition_keys=["year"])
    assert choice.features == ("id", "a", "b")
    assert choice.carried == choice.partition_keys == ("year",)
    assert choice.left_out == (
        ("blob", "type binary has no numbers"),
        ("empty", "every value is missing"),
        ("year", "partition key"),
    )
    assert choice.read == ["id", "a", "b", "year"]


def test_identifiers_kept_and_excluded_columns_go_where_they_were_sent() -> None:
    choice = choose_columns(SOURCE, id_column="id", exclude=["b", "empty", "blob"], keep=["b", "a"])
    assert choice.features == ("a", "year")
    assert (choice.id_column, choice.carried) == ("id", ("b", "a"))
    assert dict(choice.left_out)["b"] == "excluded"
    assert "id" not in dict(choice.left_out)
    assert choice.read == ["a", "year", "b", "id"]


def test_included_columns_are_used_in_the_order_asked_for() -> None:
    choice = choose_columns(SOURCE, include=["b", "a"])
    assert choice.features == ("b", "a")
    assert dict(choice.left_out)["id"] == "not included"


def test_a_column_included_twice_is_one_feature() -> None:
    assert choose_columns(SOURCE, include=["a", "b", "a"]).features == ("a", "b")


def test_a_column_that_is_carried_and_a_feature_is_read_once() -> None:
    choice = choose_columns(SOURCE, include=["a"], keep=["a", "id"], id_column="id")
    assert choice.read == ["a", "id"]


@pytest.mark.parametrize(
    "names", [{"include": ["aa"]}, {"exclude": ["aa"]}, {"keep": ["aa"]}, {"id_column": "aa"}]
)
def test_an_unknown_column_is_refused_with_the_nearest_name(names: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"no column 'aa'\. Did you mean 'a'"):
        choose_columns(SOURCE, **names)


def test_a_table_without_features_says_why() -> None:
    with pytest.raises(DataError, match=r"No column is left.*'a': excluded; 'blob': type binary"):
        choose_columns(pa.schema([SOURCE.field("blob"), SOURCE.field("a")]), exclude=["a"])


@pytest.mark.parametrize("include", [[], ["blob"]])
def test_no_included_column_is_no_table(include: list[str]) -> None:
    with pytest.raises(DataError, match="No column is left"):
        choose_columns(SOURCE, include=include)


def test_features_are_counted_before_any_row_is_read() -> None:
    table = a_table(0, 3)
    choice = choose_columns(table.schema, id_column="key")
    made = built(table, id_column="key", allow_lost_values=True)
    assert n_features(table.schema, choice) == len(made.schema.features) == 17


# --- following a model


def test_a_source_like_a_model_gives_its_columns_in_its_order() -> None:
    model = built(a_table(0, 20), exclude=["key"], allow_lost_values=True).schema
    table = a_table(1, 20)
    table = table.select(table.column_names[::-1])
    made = built(table, like=model, allow_lost_values=True)
    assert [c.name for c in made.schema.columns] == [c.name for c in model.columns]
    assert made.schema.features == model.features
    assert made.schema.origin == model.origin
    assert dict(made.schema.left_out) == {"key": "not among the columns asked for"}


def test_categories_like_a_model_keep_its_codes_and_new_ones_follow() -> None:
    model = built(pa.table({"c": ["x", "y", "x"]})).schema
    made = built(pa.table({"c": ["new", "y", None, "x"]}), like=model)
    assert made.stored[:, 0].tolist() == [2, 1, -1, 0]
    assert made.schema.columns[0].vocabulary == ("x", "y", "new")
    assert made.schema.columns[0].counts == (1, 1, 1)


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"b": [1.0]}, "column 'a' is missing"),
        ({"a": ["x"], "b": [1.0]}, "column 'a' is a category, not a number"),
        ({"a": [b"x"], "b": [1.0]}, "column 'a' is a binary, not a number"),
        ({"a": ["x"]}, "column 'a' is a category, not a number; column 'b' is missing"),
    ],
)
def test_a_source_that_does_not_fit_says_all_that_differs(
    columns: dict[str, list[Any]], complaint: str
) -> None:
    model = built(pa.table({"a": [1.0, 2.0], "b": [1.0, 2.0]})).schema
    with pytest.raises(ModelMismatchError, match=f"The source does not fit: {complaint}"):
        built(pa.table(columns), like=model)


def test_vectors_of_another_width_do_not_fit() -> None:
    model = built(pa.table({"v": pa.array([[1.0, 2.0]], pa.list_(pa.float64(), 2))})).schema
    with pytest.raises(ModelMismatchError, match="'v'"):
        built(pa.table({"v": pa.array([[1.0, 2.0, 3.0]], pa.list_(pa.float64(), 3))}), like=model)


@pytest.mark.parametrize("name", ["a", "on", "word", "coded", "at", "day", "time", "v"])
def test_a_column_that_is_missing_throughout_keeps_the_kind_it_is_known_to_have(
    name: str,
) -> None:
    model = built(a_table(0, 20), include=[name], allow_lost_values=True).schema
    made = built(pa.table({name: pa.nulls(3)}), like=model)
    assert made.schema.features == model.features
    is_category = made.schema.columns[0].kind == "category"
    assert (made.stored == -1).all() if is_category else np.isnan(made.stored).all()


def test_truths_where_a_model_knows_numbers_are_numbers() -> None:
    model = built(pa.table({"a": [0, 1, 2]})).schema
    made = built(pa.table({"a": [True, False, None]}), like=model)
    np.testing.assert_array_equal(made.rows[:, 0], [1, 0, nan])
    assert made.schema.columns[0].kind == "number"


def test_what_a_model_asks_for_is_not_said_to_be_left_out() -> None:
    model = built(pa.table({"a": [0.0, 1.0], "b": [2.0, 3.0]})).schema
    choice = choose_columns(pa.schema({"a": pa.float64(), "b": pa.float64()}), like=model)
    assert choice.left_out == ()
    keyed = choose_columns(
        pa.schema({"a": pa.float64(), "b": pa.float64()}), like=model, partition_keys=["b"]
    )
    assert keyed.features == ("a", "b")
    assert keyed.left_out == ()


# --- chunks and their rows


@pytest.mark.parametrize(
    ("n_rows", "chunk_rows", "lengths"),
    [
        (1, 4, [1]),
        (3, 4, [3]),
        (4, 4, [4]),
        (5, 4, [4, 1]),
        (8, 4, [4, 4]),
        (9, 4, [4, 4, 1]),
        (3, 1, [1, 1, 1]),
    ],
)
def test_chunks_are_as_long_as_counted_by_hand(
    n_rows: int, chunk_rows: int, lengths: list[int]
) -> None:
    table = pa.table({"a": np.arange(n_rows)})
    for sizes in ([n_rows], [1] * n_rows):
        chunks = built(table, sizes=sizes, chunk_rows=chunk_rows).chunks
        assert [c.number for c in chunks] == list(range(len(lengths)))
        assert [len(c.features) for c in chunks] == lengths
        assert [len(c.ids) for c in chunks] == lengths


@pytest.mark.parametrize("id_column", [None, "key"])
@examples(20)
@given(
    seed=seeds,
    n_rows=st.integers(1, 60),
    chunk_rows=st.integers(1, 70),
    head_rows=st.sampled_from([1, 7, HEAD_ROWS]),
    draw=st.data(),
)
def test_any_cutting_gives_the_same_rows_schema_and_identifiers(
    id_column: str | None,
    seed: int,
    n_rows: int,
    chunk_rows: int,
    head_rows: int,
    draw: st.DataObject,
) -> None:
    table = a_table(seed, n_rows)
    options: dict[str, Any] = {"id_column": id_column, "keep": ["word", "coded"], "vocabulary": 3}
    options |= {"exclude": [] if id_column else ["key"], "allow_lost_values": True}
    sizes = draw.draw(chunk_sizes(n_rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingestion, "HEAD_ROWS", head_rows)
        whole = built(table, **options)
        assert identical(built(table, sizes=sizes, chunk_rows=chunk_rows, **options), whole)
    assert whole.schema.n_rows == n_rows
    expected = ["key" if id_column else "row", "word", "coded"]
    assert whole.ids.column_names == expected
    assert whole.ids["word"].equals(table["word"])
    names = table["key"].to_pylist() if id_column else list(range(n_rows))
    assert whole.ids[expected[0]].to_pylist() == names


def test_batches_without_rows_change_nothing() -> None:
    table = a_table(0, 9)
    sizes = [0, 4, 0, 0, 5, 0]
    assert identical(
        built(table, sizes=sizes, allow_lost_values=True), built(table, allow_lost_values=True)
    )


def test_the_head_alone_decides_origins_also_where_a_batch_reaches_beyond() -> None:
    values = np.concatenate([np.full(HEAD_ROWS, 1e6), np.arange(5_000.0)])
    table = pa.table({"a": values})
    for sizes in ([9_096], [4_096, 5_000], [4_095, 1, 5_000], [4_095, 5_001], [1, 9_095]):
        assert built(table, sizes=sizes).schema.origin == (1e6,)


def test_categories_have_no_origin() -> None:
    words = pa.array([f"w{i}" for i in range(200)] + ["w150"] * 3_000)
    made = built(pa.table({"c": words}), vocabulary=1_000)
    assert made.schema.origin == (0.0,)
    assert made.stored[-1, 0] == 150


def test_a_chunk_given_out_is_not_changed_by_the_next() -> None:
    chunks = built(pa.table({"a": np.arange(6.0)}), chunk_rows=2).chunks
    assert [c.features[:, 0].tolist() for c in chunks] == [[0, 1], [2, 3], [4, 5]]


def test_statistics_are_those_of_the_rows_as_read() -> None:
    made = built(pa.table({"a": [1e9, 1e9 + 1, None, 1e9 + 2]}))
    found = made.schema.statistics[0]
    assert (found.count, found.missing, found.first_bad_rows) == (3, 1, (2,))
    assert (found.min, found.max, found.lost_share) == (1e9, 1e9 + 2, 0.0)


def test_a_digest_tells_features_and_identifiers_apart() -> None:
    features = np.zeros((2, 1), dtype=np.float32)
    ids = pa.table({"row": [0, 1]})
    one = ChunkContent(0, features, ids)
    assert one.digest() == ChunkContent(0, np.asfortranarray(features), ids).digest()
    assert one.digest() != ChunkContent(0, -features, ids).digest()
    assert one.digest() != ChunkContent(0, features, pa.table({"row": [0, 2]})).digest()
    assert one.digest() != ChunkContent(0, features, pa.table({"other": [0, 1]})).digest()
    assert pq.read_table(pa.BufferReader(one.ids_bytes)).equals(ids)


def test_a_column_called_row_may_be_kept_beside_the_number_of_each_row() -> None:
    table = pa.table({"row": ["x", "y"], "row_number": ["p", "q"], "a": [1.0, 2.0]})
    one = built(table, keep=["row"])
    assert one.ids.to_pydict() == {"row_number": [0, 1], "row": ["x", "y"]}
    assert (one.schema.id_column, one.schema.carried) == ("row_number", ("row",))
    both = built(table, keep=["row", "row_number"])
    assert both.ids["row"].to_pylist() == ["x", "y"]
    assert both.ids["row_number"].to_pylist() == ["p", "q"]
    assert both.schema.carried == ("row", "row_number")


# --- what is refused


def test_a_source_without_rows_is_refused() -> None:
    with pytest.raises(DataError, match="0 rows"):
        built(pa.table({"a": pa.array([], pa.float64())}))


def test_identifiers_that_repeat_are_refused_with_both_rows() -> None:
    table = pa.table({"key": ["p", "q", "r", "q", "p"], "a": [1.0, 2.0, 3.0, 4.0, 5.0]})
    message = r"'key' repeat: 2 row\(s\) have one seen before, first row 3 \(as row 1\)"
    for sizes in ([5], [2, 3], [1] * 5):
        with pytest.raises(DataError, match=message):
            built(table, sizes=sizes, id_column="key")


@pytest.mark.parametrize("sizes", [[9], [4, 5], [1] * 9, [7, 2]])
def test_a_value_without_room_is_refused_with_row_and_column(sizes: list[int]) -> None:
    table = pa.table({"a": np.zeros(9), "b": [0.0] * 7 + [-2e39, 1.0]})
    with pytest.raises(DataError, match=r"Value -2e\+39 in row 7, feature 1.*Columns: a, b"):
        built(table, sizes=sizes)


def test_values_that_fall_together_are_refused_unless_allowed() -> None:
    values = np.concatenate([np.zeros(HEAD_ROWS), 2.0**24 + np.arange(1_000)])
    table = pa.table({"fine": np.arange(len(values)), "a": values})
    with pytest.raises(DataError, match=r"Column 'a' loses .*% of its distinct values in float32"):
        built(table)
    made = built(table, allow_lost_values=True)
    assert made.schema.statistics[1].lost_share == pytest.approx(500 / 1_001, rel=0.01)


def test_whole_numbers_that_float64_cannot_tell_apart_are_refused() -> None:
    table = pa.table({"a": pa.array(2**60 + np.arange(1_000))})
    with pytest.raises(DataError, match="Column 'a'"):
        built(table)


def test_seconds_of_a_day_now_are_all_kept() -> None:
    seconds = 1_700_000_000 + np.arange(0, 86_400, 7)
    made = built(pa.table({"a": seconds}))
    assert made.rows[:, 0].tolist() == seconds.tolist()
    assert made.schema.statistics[0].lost_share == 0.0


@pytest.mark.parametrize("step", [1, 60, 3_600])
def test_times_of_day_are_told_apart_by_their_parts_together(step: int) -> None:
    times = pa.array(np.arange(0, 86_400, step, dtype=np.int32), pa.time32("s"))
    made = built(pa.table({"t": times}))
    assert len(np.unique(made.stored, axis=0)) == len(times)


@pytest.mark.parametrize("years", [1, 3, 10])
def test_seconds_over_years_are_told_apart_by_their_parts_together(years: int) -> None:
    rng = np.random.default_rng(0)
    seconds = 1_500_000_000 + np.unique(rng.integers(0, years * 365 * 86_400, 60_000))
    made = built(pa.table({"t": pa.array(rng.permutation(seconds), pa.timestamp("s"))}))
    assert len(np.unique(made.stored, axis=0)) > 0.99 * len(seconds)
