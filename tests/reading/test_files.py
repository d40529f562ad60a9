"""Tables of many parts: order, schemas, partition keys, and parts that do not belong."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from mrot_scale.errors import DataError, MissingInputError
from mrot_scale.reading.sources import open_source
from tests.reading.samples import sample, whole


def write(path: Path, columns: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def test_parts_follow_one_another_by_path(tmp_path: Path) -> None:
    pq.write_table(sample(3, first=2), tmp_path / "b.parquet")
    pq.write_table(sample(2), tmp_path / "a.pq")
    (tmp_path / "_SUCCESS").touch()
    stream = open_source(tmp_path)
    assert whole(stream).equals(sample(5))
    assert stream.n_rows == 5
    assert [file[0] for file in stream.identity["files"]] == ["a.pq", "b.parquet"]
    assert stream.notes == ()


def test_folder_names_become_columns(tmp_path: Path) -> None:
    for year, month in ((2024, "feb"), (2023, "jan")):
        write(tmp_path / f"year={year}" / f"month={month}" / "t.parquet", {"a": [year / 2]})
    stream = open_source(tmp_path)
    assert stream.partition_keys == ("year", "month")
    assert stream.schema.names == ["a", "year", "month"]
    assert whole(stream).to_pydict() == {
        "a": [1011.5, 1012.0],
        "year": [2023, 2024],
        "month": ["jan", "feb"],
    }
    assert whole(stream, ["year"]).to_pydict() == {"year": [2023, 2024]}


@pytest.mark.parametrize("suffix", [".csv", ".feather"])
def test_keys_alone_can_be_read_from_any_format(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "k=1" / f"t{suffix}"
    path.parent.mkdir()
    writer = {".csv": pa.csv.write_csv, ".feather": pa.feather.write_feather}[suffix]
    writer(sample(3), str(path))
    assert whole(open_source(tmp_path), ["k"]).to_pydict() == {"k": [1, 1, 1]}


def test_folder_names_overrule_columns_and_this_is_said(tmp_path: Path) -> None:
    write(tmp_path / "k=7" / "t.parquet", {"k": [0], "a": [1.0]})
    stream = open_source(tmp_path)
    assert whole(stream).to_pydict() == {"a": [1.0], "k": [7]}
    assert "'k'" in stream.notes[0]


def test_parts_are_brought_to_one_schema(tmp_path: Path) -> None:
    nothing = pa.nulls(1)
    dictionary = pa.array(["y"]).dictionary_encode()
    write(tmp_path / "1.parquet", {"a": pa.array([1], pa.int32()), "s": nothing, "n": nothing})
    write(tmp_path / "2.parquet", {"s": dictionary, "n": nothing, "a": [2.5]})
    write(tmp_path / "3.parquet", {"a": nothing, "s": ["z"], "n": pa.array([3], pa.int8())})
    stream = open_source(tmp_path)
    assert stream.schema == pa.schema([("a", pa.float64()), ("s", pa.string()), ("n", pa.int8())])
    assert whole(stream).to_pydict() == {
        "a": [1.0, 2.5, None],
        "s": [None, "y", "z"],
        "n": [None, None, 3],
    }


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ({"a": ["x"], "b": [1]}, ["'a'", "string", "int64"]),
        ({"a": [1]}, ["'b' missing"]),
        ({"a": [1], "b": [1], "c": [1]}, ["'c' found"]),
    ],
)
def test_parts_that_do_not_belong_are_named(
    tmp_path: Path, second: dict[str, object], said: list[str]
) -> None:
    write(tmp_path / "1.parquet", {"a": [1], "b": [1]})
    write(tmp_path / "2.parquet", second)
    with pytest.raises(DataError, match=r"2\.parquet: ") as caught:
        open_source(tmp_path)
    assert caught.value.exit_code == 65
    assert all(words in str(caught.value) for words in said)


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet", {"a": [1]})
    (tmp_path / "2.parquet").write_bytes(b"")
    with pytest.raises(DataError, match=r"2\.parquet cannot be read as Parquet"):
        open_source(tmp_path)


def test_formats_are_not_mixed(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet", {"a": [1]})
    (tmp_path / "2.csv").write_text("a\n1\n")
    with pytest.raises(DataError, match=r"2\.csv is CSV, 1\.parquet is Parquet"):
        open_source(tmp_path)


def test_other_files_are_mentioned(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet", {"a": [1]})
    (tmp_path / "part-00002").write_bytes(b"")
    assert "'part-00002'" in open_source(tmp_path).notes[0]


def test_a_stored_pandas_index_is_mentioned(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet", {"a": [1], "__index_level_0__": [7]})
    assert "'__index_level_0__'" in open_source(tmp_path).notes[0]


@pytest.mark.parametrize("name", [None, "README.md", "array.npy"])
def test_a_folder_without_tables_is_no_input(tmp_path: Path, name: str | None) -> None:
    if name:
        (tmp_path / name).touch()
    with pytest.raises(MissingInputError, match=r"No table files below .*\.parquet") as caught:
        open_source(tmp_path)
    assert caught.value.exit_code == 66


def test_memory_stores_are_read_like_disks() -> None:
    from mrot_scale.storing.location import Location

    root = Location("memory://files/table")
    for number in (0, 1):
        sink = pa.BufferOutputStream()
        pq.write_table(sample(2, first=2 * number), sink)
        (root / f"k={number}/t.parquet").write(sink.getvalue().to_pybytes())
    stream = open_source(str(root))
    assert stream.name == "memory://files/table"
    assert whole(stream, ["c0", "k"]).to_pydict() == {"c0": [0, 1, 2, 3], "k": [0, 0, 1, 1]}
