"""Repeated identifiers: the same as a dictionary finds, of any type, in any cutting."""

import gc
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrot_scale.errors import DataError, OutputError
from mrot_scale.storing import identifiers
from mrot_scale.storing.identifiers import RepeatFinder, Repeats
from tests.strategies import chunk_sizes, examples


def found_by_dictionary(values: list[Any]) -> Repeats | None:
    """The plain way: every value is kept."""
    first_row: dict[Any, int] = {}
    pairs = []
    for row, value in enumerate(values):
        if value in first_row:
            pairs.append((first_row[value], row))
        first_row.setdefault(value, row)
    return Repeats(len(pairs), tuple(pairs[:5])) if pairs else None


def found(pieces: list[Any], n_buckets: int = 7) -> Repeats | None:
    """What the finder says of a column in pieces, and that it leaves nothing behind."""
    with TemporaryDirectory() as folder:
        finder = RepeatFinder(Path(folder), n_buckets=n_buckets)
        for piece in pieces:
            finder.add(piece)
        repeats = finder.repeats()
        assert list(Path(folder).iterdir()) == []
        assert finder.repeats() == repeats
        return repeats


@pytest.fixture(autouse=True)
def small_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers of 8 rows, so that few rows are spilled many times."""
    monkeypatch.setattr(identifiers, "_PIECE_ROWS", 5)
    monkeypatch.setattr(identifiers, "_BUFFER_BYTES", 8 * identifiers._RECORD.itemsize)


def cut(column: pa.Array, sizes: list[int]) -> list[pa.Array]:
    """Slices of the column: they share its buffers."""
    stops = np.cumsum(sizes)
    return [column.slice(stop - size, size) for stop, size in zip(stops, sizes, strict=True)]


KINDS: dict[str, tuple[Any, Any]] = {
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1) | st.integers(0, 9)),
    "int8": (pa.int8(), st.integers(-128, 127)),
    "uint16": (pa.uint16(), st.integers(0, 2**16 - 1)),
    "bool": (pa.bool_(), st.booleans()),
    "float64": (pa.float64(), st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0])),
    "float32": (pa.float32(), st.floats(allow_nan=False, width=32)),
    "float16": (pa.float16(), st.floats(allow_nan=False, width=16)),
    "string": (pa.string(), st.text() | st.text("a\0", max_size=20)),
    "large_string": (pa.large_string(), st.text("abé€😀", max_size=20)),
    "string_view": (pa.string_view(), st.text("ab", max_size=14)),
    "binary": (pa.binary(), st.binary() | st.binary(max_size=1)),
    "fixed": (pa.binary(9), st.binary(min_size=9, max_size=9)),
    "timestamp": (
        pa.timestamp("us"),
        st.datetimes() | st.sampled_from([datetime(2024, 1, d) for d in (1, 2, 3)]),
    ),
    "zoned": (pa.timestamp("ms", "UTC"), st.integers(-(2**40), 2**40)),
    "date": (pa.date32(), st.dates(date(2023, 12, 1), date(2024, 3, 1))),
    "date64": (pa.date64(), st.dates(date(2023, 12, 1), date(2024, 3, 1))),
    "time": (pa.time32("s"), st.integers(0, 86_399)),
    "duration": (pa.duration("ns"), st.integers(-9, 9)),
    "decimal": (pa.decimal128(9, 2), st.integers(-99, 99).map(lambda n: Decimal(n) / 100)),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["", "a", "b", "ab"])),
}


@pytest.mark.parametrize("kind", KINDS)
@examples(25)
@given(draw=st.data())
def test_a_dictionary_finds_the_same(kind: str, draw: Any) -> None:
    arrow_type, elements = KINDS[kind]
    values = draw.draw(st.lists(elements, max_size=60))
    column = pa.array(values, type=arrow_type)
    pieces = cut(column, draw.draw(chunk_sizes(len(values)))) if values else []
    assert found(pieces, draw.draw(st.integers(1, 9))) == found_by_dictionary(values)


@examples(30)
@given(draw=st.data(), n_distinct=st.integers(1, 400))
def test_many_spills_find_the_same(draw: Any, n_distinct: int) -> None:
    values = draw.draw(st.lists(st.integers(0, n_distinct), min_size=300, max_size=500))
    column = pa.chunked_array([[f"id-{v}" for v in values[:90]], [f"id-{v}" for v in values[90:]]])
    assert found([column]) == found_by_dictionary(values)


@pytest.mark.parametrize("n_rows", [1, 8, 9, 1_000])
def test_distinct_values_have_no_repeats(n_rows: int) -> None:
    assert found([pa.array(range(n_rows))]) is None
    assert found([pa.array([str(n) for n in range(n_rows)])], n_buckets=256) is None


def test_the_first_pairs_are_of_the_earliest_repeats() -> None:
    values = ["a", "b", "c", *"xyzuvw", "c", "b", "a", "c", "a", "b"]
    repeats = found([pa.array(values)])
    assert repeats == Repeats(6, ((2, 9), (1, 10), (0, 11), (2, 12), (0, 13)))


def test_equal_first_words_are_told_apart_by_the_second() -> None:
    records = np.zeros(6, dtype=identifiers._RECORD)
    records["second"], records["row"] = [1, 2, 1, 3, 2, 1], range(6)
    firsts, repeated = identifiers._parted(records)
    assert sorted(firsts["row"]) == [0, 1, 3]
    assert sorted(repeated["row"]) == [2, 4, 5]


def test_strings_that_look_alike_have_different_hashes() -> None:
    texts = [f"{'0' * (n % 17)}{n:x}" for n in range(200_000)]
    texts += ["\0" * n for n in range(100)] + ["ab" * n for n in range(1, 100)]
    first, second = identifiers._hashed_bytes(pa.array(texts, type=pa.large_binary()))
    n_texts = len(set(texts))
    assert len(np.unique(first)) == len(np.unique(second)) == n_texts


@pytest.mark.parametrize("words", [np.arange(2**16), np.arange(2**16) << 48])
def test_hashes_spread_evenly(words: Any) -> None:
    counts = np.bincount(identifiers._mixed(words.astype(np.uint64)) >> np.uint64(56))
    assert counts.min() > 170  # 256 expected, deviation 16
    assert counts.max() < 342


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2, None]),
        pa.array(["a", "", None]),
        pa.array([0.5, 1.5, float("nan")]),
        pa.array([0.5, 1.5, float("nan")], type=pa.float32()),
        pa.array([True, False, None]),
        pa.array(["a", "b", None]).dictionary_encode(),
        pa.DictionaryArray.from_arrays([0, 0, 1], pa.array(["a", None])),
        pa.array([datetime(2024, 1, 1), datetime(2024, 1, 2), None]),
        pa.array([Decimal(1), Decimal(2), None]),
    ],
    ids=lambda column: str(column.type),
)
def test_a_missing_value_is_named_by_its_row(column: pa.Array) -> None:
    whole = column.slice(0, 2)
    with TemporaryDirectory() as folder:
        finder = RepeatFinder(Path(folder))
        for _ in range(20):
            finder.add(whole)
        with pytest.raises(DataError, match="id column has a missing value in row 42; "):
            finder.add(column)


def test_a_column_of_nothing_but_null_has_a_missing_value() -> None:
    with pytest.raises(DataError, match="in row 0;"):
        found([pa.nulls(3)])


@pytest.mark.parametrize("column", [pa.array([[1], [2]]), pa.array([{"a": 1}])])
def test_nested_types_are_no_identifiers(column: pa.Array) -> None:
    with pytest.raises(DataError, match=r"type (list|struct)<.*Name a column"):
        found([column])


def test_files_of_an_unfinished_search_go_with_it(tmp_path: Path) -> None:
    finder = RepeatFinder(tmp_path / "new" / "folder")
    finder.add(pa.array(range(100)))
    assert list(tmp_path.rglob("identifiers-*/*"))
    del finder
    gc.collect()
    assert not list(tmp_path.rglob("identifiers-*"))


def test_two_searches_share_a_folder(tmp_path: Path) -> None:
    finders = [RepeatFinder(tmp_path), RepeatFinder(tmp_path)]
    for finder in finders:
        finder.add(pa.array(range(100)))
    assert [finder.repeats() for finder in finders] == [None, None]


def test_a_full_disk_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    finder = RepeatFinder(tmp_path)
    monkeypatch.setattr(Path, "open", is_full)
    with pytest.raises(OutputError, match=r"No space left on device.*24 bytes per row"):
        finder.add(pa.array(range(100)))


@pytest.mark.parametrize("make", [lambda n: n, lambda n: f"row-{n}", lambda n: timedelta(n)])
def test_buckets_are_of_like_size(tmp_path: Path, make: Callable[[int], Any]) -> None:
    finder = RepeatFinder(tmp_path, n_buckets=10)
    finder.add(pa.array([make(n) for n in range(2_000)]))
    sizes = [path.stat().st_size / 24 for path in tmp_path.rglob("identifiers-*/*")]
    assert len(sizes) == 10
    assert min(sizes) > 140
    assert max(sizes) < 260
