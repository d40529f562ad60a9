"""Rows and chunks: boundaries by hand, then for any numbers."""

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


@given(n_rows=sizes, chunk_rows=chunk_lengths)
def test_chunks_partition_all_rows(n_rows: int, chunk_rows: int) -> None:
    chunks = RowChunks(n_rows, chunk_rows)
    rows = [row for c in chunks for row in range(*chunks.chunk_to_rows(c))]
    assert rows == list(range(n_rows))
    lengths = [stop - start for start, stop in map(chunks.chunk_to_rows, chunks)]
    assert all(length == chunk_rows for length in lengths[:-1])
    assert all(1 <= length <= chunk_rows for length in lengths)


@pytest.mark.parametrize("chunk", [-1, 3, 4])
def test_a_chunk_that_is_not_there_is_refused(chunk: int) -> None:
    with pytest.raises(IndexError, match=f"chunk {chunk} is not among 3"):
        RowChunks(11, 5).chunk_to_rows(chunk)


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
