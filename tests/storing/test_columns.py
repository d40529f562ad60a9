"""Columns become features: every Arrow type by hand, categories however they are cut and coded."""

import datetime as dt
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mrot_scale.errors import DataError
from mrot_scale.storing.columns import Codes, ColumnEncoder, kind_of
from mrot_scale.storing.schema import MISSING_CODE, OTHER_CODE, Column
from tests.strategies import chunk_sizes, examples, seeds

nan = float("nan")


def encoded(values: pa.Array, **options: Any) -> list[list[float]]:
    """Features of one batch of a column."""
    encoder = ColumnEncoder("c", options.get("type", values.type), None, 100)
    features = encoder.encode(values)
    assert len(features) == len(encoder.column.features)
    assert all(f.dtype == np.float64 and len(f) == len(values) for f in features)
    return [f.tolist() for f in features]


def same(found: list[list[float]], expected: list[list[float]]) -> bool:
    return np.array_equal(np.array(found), np.array(expected), equal_nan=True)


@pytest.mark.parametrize(
    ("arrow_type", "kind"),
    [
        (pa.int8(), "number"),
        (pa.uint64(), "number"),
        (pa.float16(), "number"),
        (pa.float64(), "number"),
        (pa.decimal128(10, 2), "number"),
        (pa.decimal256(60, 2), "number"),
        (pa.duration("ns"), "number"),
        (pa.bool_(), "boolean"),
        (pa.string(), "category"),
        (pa.large_string(), "category"),
        (pa.string_view(), "category"),
        (pa.dictionary(pa.int8(), pa.string()), "category"),
        (pa.dictionary(pa.uint32(), pa.large_string()), "category"),
        (pa.dictionary(pa.int8(), pa.int64()), "number"),
        (pa.timestamp("s"), "datetime"),
        (pa.timestamp("ns", "Asia/Tokyo"), "datetime"),
        (pa.date32(), "date"),
        (pa.date64(), "date"),
        (pa.time32("ms"), "time"),
        (pa.time64("ns"), "time"),
        (pa.list_(pa.float32(), 3), "vector"),
        (pa.list_(pa.int64(), 4_096), "vector"),
        (pa.list_(pa.int64(), 4_097), None),
        (pa.list_(pa.int64(), 0), None),
        (pa.list_(pa.string(), 2), None),
        (pa.list_(pa.float32()), None),
        (pa.binary(), None),
        (pa.struct([("a", pa.int8())]), None),
        (pa.month_day_nano_interval(), None),
        (pa.null(), None),
    ],
    ids=str,
)
def test_a_type_becomes_its_kind(arrow_type: Any, kind: str | None) -> None:
    assert kind_of(arrow_type) == kind


def test_a_type_without_numbers_is_refused_by_column() -> None:
    with pytest.raises(DataError, match="'blob' of type binary"):
        ColumnEncoder("blob", pa.binary(), None, 10)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([1, None, -3], pa.int16()), [1, nan, -3]),
        (pa.array([0, 2**32 - 1], pa.uint32()), [0, 2**32 - 1]),
        (pa.array([1.5, None, nan], pa.float32()), [1.5, nan, nan]),
        (pa.array([float("inf"), -float("inf")]), [float("inf"), -float("inf")]),
        (pa.array(np.array([0.5, 2.0], np.float16)), [0.5, 2.0]),
        (pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)), [1.25, nan]),
        (pa.array([Decimal("-7.5"), None], pa.decimal256(60, 1)), [-7.5, nan]),
        (pa.array([True, None, False]), [1, nan, 0]),
        (pa.array([90, None], pa.duration("s")), [90, nan]),
        (pa.array([1_500], pa.duration("ms")), [1.5]),
        (pa.array([-250_000], pa.duration("us")), [-0.25]),
        (pa.array([5, None, 7, 5]).dictionary_encode(), [5, nan, 7, 5]),
        (pa.array([True, None]).dictionary_encode(), [1, nan]),
    ],
    ids=lambda v: str(v.type) if isinstance(v, pa.Array) else "",
)
def test_numbers_stay_as_they_are(values: pa.Array, expected: list[float]) -> None:
    assert same(encoded(values), [expected])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([1_000_000_001, None], pa.duration("ns")), [[1.0, nan]]),
        (pa.array([86_400_000_000_000 // 4 + 1], pa.time64("ns")), [[1.0], [0.0]]),
        (pa.array([86_400_000_000_001], pa.timestamp("ns")), [[1.0], [0.0], [1.0]]),
    ],
    ids=lambda v: str(v.type) if isinstance(v, pa.Array) else "",
)
def test_single_nanoseconds_are_no_obstacle(values: pa.Array, expected: list[list[float]]) -> None:
    found = encoded(values)[: len(expected)]
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_a_moment_becomes_days_and_its_places_in_day_and_week() -> None:
    quarter = dt.datetime(1970, 1, 8, 6)  # a week after a Thursday's midnight, and 6 hours
    days, day_sin, day_cos, week_sin, week_cos = encoded(pa.array([quarter, None]))
    assert same([days], [[7.25, nan]])
    assert day_sin[0] == pytest.approx(1)
    assert day_cos[0] == pytest.approx(0, abs=1e-12)
    assert week_sin[0] == pytest.approx(np.sin(2 * np.pi / 28))
    assert week_cos[0] == pytest.approx(np.cos(2 * np.pi / 28))
    assert all(np.isnan(f[1]) for f in (day_sin, day_cos, week_sin, week_cos))


def test_a_date_becomes_days_and_its_place_in_the_week() -> None:
    for arrow_type in (pa.date32(), pa.date64()):
        values = pa.array([dt.date(1970, 1, 1), dt.date(1969, 12, 31), None], arrow_type)
        days, week_sin, week_cos = encoded(values)
        assert same([days], [[0, -1, nan]])
        assert (week_sin[0], week_cos[0]) == (0, 1)
        assert week_sin[1] == pytest.approx(-np.sin(2 * np.pi / 7))


@pytest.mark.parametrize("arrow_type", [pa.time32("s"), pa.time32("ms"), pa.time64("us")])
def test_a_time_of_day_lies_on_a_circle(arrow_type: Any) -> None:
    values = pa.array([dt.time(0), dt.time(6), dt.time(12), dt.time(18), None], arrow_type)
    found = encoded(values)
    np.testing.assert_allclose(found, [[0, 1, 0, -1, nan], [1, 0, -1, 0, nan]], atol=1e-12)


@examples(50)
@given(moment=st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)))
def test_moments_a_second_apart_differ_in_float32(moment: dt.datetime) -> None:
    moments = pa.array([moment, moment + dt.timedelta(seconds=1)], pa.timestamp("us"))
    features = np.array(encoded(moments)).astype(np.float32)
    assert (features[:, 0] != features[:, 1]).any()


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Tokyo", "America/New_York", "+05:30"])
def test_a_moment_is_the_same_in_every_zone(zone: str) -> None:
    moments = [dt.datetime(2024, 3, 31, 0, 30) + dt.timedelta(hours=h) for h in range(5)]
    plain = pa.array(moments, pa.timestamp("us"))
    aware = pa.array([m.replace(tzinfo=dt.UTC) for m in moments], pa.timestamp("us", zone))
    assert encoded(aware) == encoded(plain)
    for unit in ("s", "ms", "ns"):
        assert encoded(aware.cast(pa.timestamp(unit, zone))) == encoded(plain)


def test_local_times_of_one_moment_are_one_value() -> None:
    moment = dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC)
    local = [moment.astimezone(ZoneInfo(z)) for z in ("Europe/Berlin", "Asia/Tokyo")]
    found = encoded(pa.array(local, pa.timestamp("us", "UTC")))
    assert all(feature[0] == feature[1] for feature in found)


def test_a_moment_beyond_all_calendars_is_refused_by_column() -> None:
    with pytest.raises(DataError, match="Column 'c' cannot be converted"):
        encoded(pa.array([2**60], pa.timestamp("s")))


@pytest.mark.parametrize(
    "value_type",
    [pa.float32(), pa.float64(), pa.float16(), pa.int64(), pa.uint8(), pa.decimal128(5, 1)],
    ids=str,
)
def test_a_vector_becomes_one_feature_per_place(value_type: Any) -> None:
    flat = pa.array([1, 2, 3, 4, 5, 6]).cast(pa.float64()).cast(value_type)
    values = pa.FixedSizeListArray.from_arrays(flat, 2)
    assert same(encoded(values), [[1, 3, 5], [2, 4, 6]])
    assert same(encoded(values.slice(1, 2)), [[3, 5], [4, 6]])


@pytest.mark.parametrize("value_type", [pa.float32(), pa.int64()], ids=str)
def test_missing_vectors_and_missing_places_are_nan(value_type: Any) -> None:
    values = pa.array([[1, 2], None, [3, None], None, [5, 6]], pa.list_(value_type, 2))
    assert same(encoded(values), [[1, nan, 3, nan, 5], [2, nan, nan, nan, 6]])
    assert same(encoded(values.slice(1, 3)), [[nan, 3, nan], [nan, nan, nan]])


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.float64(),
        pa.int8(),
        pa.bool_(),
        pa.decimal128(5, 1),
        pa.duration("s"),
        pa.timestamp("ns", "Asia/Tokyo"),
        pa.date32(),
        pa.date64(),
        pa.time32("s"),
        pa.time64("ns"),
        pa.list_(pa.float32(), 2),
        pa.list_(pa.int64(), 2),
    ],
    ids=str,
)
def test_a_batch_of_nulls_alone_is_missing_throughout(arrow_type: Any) -> None:
    for values in (pa.nulls(3), pa.nulls(3, arrow_type)):
        assert np.isnan(np.array(encoded(values, type=arrow_type))).all()


@pytest.mark.parametrize(
    "arrow_type",
    [pa.string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
    ids=str,
)
def test_a_batch_of_nulls_alone_has_no_category(arrow_type: Any) -> None:
    encoder = ColumnEncoder("c", arrow_type, None, 10)
    assert encoder.encode(pa.nulls(3))[0].tolist() == [MISSING_CODE] * 3
    assert encoder.column == Column("c", "category", n_missing=3)


TEXT_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    *[pa.dictionary(index, pa.string()) for index in (pa.int8(), pa.int64())],
    *[pa.dictionary(index, pa.string()) for index in (pa.uint8(), pa.uint32(), pa.uint64())],
]


def as_type(words: list[str | None], arrow_type: Any) -> pa.Array:
    if not pa.types.is_dictionary(arrow_type):
        return pa.array(words, arrow_type)
    coded = pa.array(words, arrow_type.value_type).dictionary_encode()
    indices = coded.indices.cast(arrow_type.index_type)
    return pa.DictionaryArray.from_arrays(indices, coded.dictionary)


@pytest.mark.parametrize("arrow_type", TEXT_TYPES, ids=str)
def test_categories_of_any_text_type_get_codes_as_they_appear(arrow_type: Any) -> None:
    encoder = ColumnEncoder("c", arrow_type, None, 10)
    first = encoder.encode(as_type(["b", "a", None, "b"], arrow_type))[0]
    second = encoder.encode(as_type(["c", "a", "", None], arrow_type))[0]
    assert (first.tolist(), second.tolist()) == ([0, 1, -1, 0], [2, 1, 3, -1])
    expected = Column("c", "category", 1, ("b", "a", "c", ""), (2, 2, 1, 1), n_missing=2)
    assert encoder.column == expected


def test_words_in_the_dictionary_that_no_row_has_get_no_code() -> None:
    codes = Codes((), 10)
    values = pa.DictionaryArray.from_arrays(pa.array([2, 2, None]), pa.array(["x", "y", "z"]))
    assert codes.encode(values).tolist() == [0, 0, MISSING_CODE]
    assert (codes.values, codes.counts) == (["z"], [2])


def test_a_null_within_the_dictionary_is_missing_and_a_word_there_twice_is_one() -> None:
    codes = Codes((), 10)
    words = pa.array(["x", None, "x"])
    values = pa.DictionaryArray.from_arrays(pa.array([2, 1, 0, None]), words)
    assert codes.encode(values).tolist() == [0, MISSING_CODE, 0, MISSING_CODE]
    assert (codes.values, codes.counts, codes.n_missing) == (["x"], [2], 2)


def test_beyond_the_limit_categories_are_others_and_known_ones_keep_their_codes() -> None:
    codes = Codes((), 2)
    assert codes.encode(pa.array(["a", "b", "c", "a", "d", "c"])).tolist() == [0, 1, -2, 0, -2, -2]
    assert codes.encode(pa.array(["c", "b", None])).tolist() == [OTHER_CODE, 1, MISSING_CODE]
    assert (codes.values, codes.counts) == (["a", "b"], [2, 2])
    assert (codes.n_missing, codes.n_other) == (1, 4)


def test_a_known_vocabulary_keeps_its_codes_even_beyond_the_limit() -> None:
    like = Column("c", "category", 1, ("x", "y", "z"), (5, 5, 5), 2, 2)
    encoder = ColumnEncoder("c", pa.string(), like, 1)
    assert encoder.encode(pa.array(["z", "new", "x"]))[0].tolist() == [2, OTHER_CODE, 0]
    expected = Column("c", "category", 1, ("x", "y", "z"), (1, 0, 1), n_other=1)
    assert encoder.column == expected


def any_dictionary(words: list[str | None], rng: np.random.Generator) -> pa.Array:
    """The words as a dictionary in random order, with words nobody has."""
    values = [str(w) for w in rng.permutation(sorted({w for w in words if w is not None} | {"?"}))]
    positions = [None if w is None else values.index(w) for w in words]
    return pa.DictionaryArray.from_arrays(pa.array(positions, pa.int32()), pa.array(values))


@examples(60)
@given(
    words=st.lists(st.none() | st.sampled_from("abcdefg"), min_size=1, max_size=30),
    limit=st.integers(1, 8),
    seed=seeds,
    draw=st.data(),
)
def test_codes_do_not_depend_on_dictionaries_or_cutting(
    words: list[str | None], limit: int, seed: int, draw: st.DataObject
) -> None:
    whole, pieces = Codes((), limit), Codes((), limit)
    expected: NDArray[np.float64] = whole.encode(pa.array(words, pa.string()))
    sizes = draw.draw(chunk_sizes(len(words)))
    rng, start, found = np.random.default_rng(seed), 0, []
    for size in sizes:
        found += pieces.encode(any_dictionary(words[start : start + size], rng)).tolist()
        start += size
    assert found == expected.tolist()
    assert vars(pieces) == vars(whole)
    first_seen = list(dict.fromkeys(w for w in words if w is not None))
    assert whole.values == first_seen[:limit]
    assert whole.counts == [words.count(w) for w in first_seen[:limit]]
    assert whole.n_missing == words.count(None)
    assert whole.n_other == sum(words.count(w) for w in first_seen[limit:])
