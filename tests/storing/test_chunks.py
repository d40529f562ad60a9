"""Rows and chunks: boundaries by hand, then for any numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrot_scale.errors import ConfigError
from mrot_scale.storing.chunks import LARGEST_CHUNK_ROWS, RowChunks, rows_per_chunk

sizes = st.integers(0, 300)
chunk_lengths = st.integers(1, 60)


@pytest.mark.parametrize(
    ("n_rows", "chunk_rows", "bounds"),
    [
        (0, 1, []),
        (0, 5, []),
        (1, 1, [(0, 1)]),
        (1, 5, [(0, 1)]),
        (4, 5, [(0, 4)]),
        (5, 5, [(0, 5)]),
        (6, 5, [(0, 5), (5, 6)]),
        (9, 5, [(0, 5), (5, 9)]),
        (10, 5, [(0, 5), (5, 10)]),
        (11, 5, [(0, 5), (5, 10), (10, 11)]),
        (3, 1, [(0, 1), (1, 2), (2, 3)]),
    ],
)
def test_chunks_begin_and_end_where_counted_by_hand(
    n_rows: int, chunk_rows: int, bounds: list[tuple[int, int]]
) -> None:
    chunks = RowChunks(n_rows, chunk_rows)
    assert len(chunks) == len(bounds)
    assert [chunks.chunk_to_rows(c) for c in chunks] == bounds


def test_a_billion_rows_are_counted_exactly() -> None:
    chunks = RowChunks(10**9 + 1, 65_536)
    assert len(chunks) == 15_259
    assert chunks.chunk_to_rows(118) == (7_733_248, 7_798_784)
    assert chunks.chunk_to_rows(15_258) == (999_948_288, 1_000_000_001)
    assert chunks.row_to_chunk(7_733_247) == 117
    assert chunks.row_to_chunk(7_733_248) == 118


@given(n_rows=sizes, chunk_rows=chunk_lengths)
def test_chunks_partition_all_rows(n_rows: int, chunk_rows: int) -> None:
    chunks = RowChunks(n_rows, chunk_rows)
    rows = [row for c in chunks for row in range(*chunks.chunk_to_rows(c))]
    assert rows == list(range(n_rows))
    lengths = [stop - start for start, stop in map(chunks.chunk_to_rows, chunks)]
    assert all(length == chunk_rows for length in lengths[:-1])
    assert all(1 <= length <= chunk_rows for length in lengths)


@given(n_rows=st.integers(1, 300), chunk_rows=chunk_lengths, draw=st.data())
def test_a_row_lies_in_its_chunk(n_rows: int, chunk_rows: int, draw: st.DataObject) -> None:
    chunks = RowChunks(n_rows, chunk_rows)
    row = draw.draw(st.integers(0, n_rows - 1))
    start, stop = chunks.chunk_to_rows(chunks.row_to_chunk(row))
    assert start <= row < stop


@given(n_rows=st.integers(1, 300), chunk_rows=chunk_lengths, draw=st.data())
def test_rows_by_chunk_are_the_rows_again(
    n_rows: int, chunk_rows: int, draw: st.DataObject
) -> None:
    chunks = RowChunks(n_rows, chunk_rows)
    chosen = draw.draw(st.sets(st.integers(0, n_rows - 1), min_size=1))
    rows = np.array(sorted(chosen), dtype=np.int64)
    found = list(chunks.rows_by_chunk(rows))
    numbers = [chunk for chunk, _ in found]
    assert numbers == sorted(set(numbers))
    assert all(len(places) > 0 for _, places in found)
    assert all(places.min() >= 0 and places.max() < chunk_rows for _, places in found)
    again = [chunks.chunk_to_rows(chunk)[0] + place for chunk, places in found for place in places]
    assert again == rows.tolist()


def test_no_rows_are_in_no_chunk() -> None:
    assert list(RowChunks(10, 3).rows_by_chunk(np.zeros(0, dtype=np.int64))) == []


def test_rows_by_chunk_at_boundaries_written_out() -> None:
    rows = np.array([0, 2, 3, 5, 9], dtype=np.int64)
    found = [(c, places.tolist()) for c, places in RowChunks(10, 3).rows_by_chunk(rows)]
    assert found == [(0, [0, 2]), (1, [0, 2]), (3, [0])]


@pytest.mark.parametrize("chunk", [-1, 3, 4])
def test_a_chunk_that_is_not_there_is_refused(chunk: int) -> None:
    with pytest.raises(IndexError, match=f"chunk {chunk} is not among 3"):
        RowChunks(11, 5).chunk_to_rows(chunk)


@pytest.mark.parametrize("row", [-1, 11, 12])
def test_a_row_that_is_not_there_is_refused(row: int) -> None:
    with pytest.raises(IndexError, match=f"row {row} is not among 11"):
        RowChunks(11, 5).row_to_chunk(row)


@pytest.mark.parametrize(("n_rows", "chunk_rows"), [(-1, 5), (5, 0), (5, -1)])
def test_impossible_sizes_are_refused(n_rows: int, chunk_rows: int) -> None:
    with pytest.raises(ConfigError, match=f"{n_rows} rows .* chunks of {chunk_rows}"):
        RowChunks(n_rows, chunk_rows)


@pytest.mark.parametrize(
    ("chunk_bytes", "n_features", "rows"),
    [
        (2**25, 16, 524_288),
        (2**25, 17, 493_447),
        (2**25, 1, LARGEST_CHUNK_ROWS),
        (2**25, 0, LARGEST_CHUNK_ROWS),
        (4_000, 10, 100),
        (4_039, 10, 100),
        (4_040, 10, 101),
        (39, 10, 1),
        (0, 10, 1),
    ],
)
def test_rows_fill_a_chunk_as_counted_by_hand(chunk_bytes: int, n_features: int, rows: int) -> None:
    assert rows_per_chunk(chunk_bytes, n_features) == rows
