"""Parquet: projection, types, damage, and memory that row groups do not move."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mrot_scale.errors import DataError
from mrot_scale.reading.sources import BATCH_ROWS, open_source
from tests.reading.samples import read_elsewhere, sample, whole


def test_many_row_groups_and_batches(tmp_path: Path) -> None:
    table = sample(BATCH_ROWS + 10)
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=30_000)
    stream = open_source(tmp_path / "t.parquet")
    assert stream.n_rows == table.num_rows
    assert whole(stream).equals(table)
    assert whole(stream, ["c2", "c0"]).equals(table.select(["c2", "c0"]))


def test_columns_not_asked_for_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(sample(1000), path, compression="none", use_dictionary=False)
    column = pq.ParquetFile(path).metadata.row_group(0).column(1)
    content = bytearray(path.read_bytes())
    start = column.data_page_offset
    content[start : start + 20] = bytes(20)  # breaks c1, which only its readers notice
    path.write_bytes(content)
    stream = open_source(path)
    assert whole(stream, ["c0", "c2"]).equals(sample(1000).select(["c0", "c2"]))
    with pytest.raises(DataError, match=r"t\.parquet cannot be read as Parquet"):
        whole(stream, ["c1"])


def test_a_name_that_begins_like_another_is_not_confused(tmp_path: Path) -> None:
    table = pa.table({"a": [1], "a.x": [2], "s": [{"x": 3}]})
    pq.write_table(table, tmp_path / "t.parquet")
    stream = open_source(tmp_path / "t.parquet")
    for name in table.column_names:
        assert whole(stream, [name]).equals(table.select([name]))


def test_no_rows_but_a_schema(tmp_path: Path) -> None:
    pq.write_table(sample(0), tmp_path / "t.parquet")
    stream = open_source(tmp_path / "t.parquet")
    assert stream.n_rows == 0
    assert whole(stream).equals(sample(0))


def test_repeated_columns_are_named(tmp_path: Path) -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"t\.parquet: .*'a'"):
        open_source(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"a,b\n1,2\n" * 9]
)
def test_what_is_not_parquet_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.parquet").write_bytes(content)
    with pytest.raises(DataError, match=r"t\.parquet cannot be read as Parquet") as caught:
        open_source(tmp_path / "t.parquet")
    assert caught.value.exit_code == 65


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(sample(1000), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"t\.parquet cannot be read as Parquet"):
        open_source(path)


def test_memory_does_not_grow_with_the_row_group(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    n_rows, n_columns = 2_000_000, 16
    column = np.arange(n_rows, dtype=np.float64)
    table = pa.table({f"c{position}": column for position in range(n_columns)})
    pq.write_table(table, path, row_group_size=n_rows, use_dictionary=False, compression="none")
    n_rows_read, grown_bytes = read_elsewhere(path)
    assert n_rows_read == n_rows
    assert grown_bytes < 8 * n_rows * n_columns / 2
