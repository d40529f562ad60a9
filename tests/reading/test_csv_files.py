"""CSV: types that hold for all rows, identifiers kept as they are, values that do not fit."""

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from mrot_scale.errors import DataError
from mrot_scale.reading import csv_files
from mrot_scale.reading.sources import BATCH_ROWS, open_source
from tests.reading.samples import whole


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_whole_numbers_may_become_decimals_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_files, "_BLOCK_BYTES", 64)
    path = written(tmp_path / "t.csv", "a,empty\n" + "1,\n" * 100 + "1.5,2\n")
    stream = open_source(path)
    assert stream.schema == pa.schema([("a", pa.float64()), ("empty", pa.float64())])
    assert stream.n_rows is None
    table = whole(stream)
    assert table.to_pydict() == {"a": [1.0] * 100 + [1.5], "empty": [None] * 100 + [2.0]}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-2", "0"], pa.int64()),
        (["9007199254740993"], pa.int64()),
        (["007", "8"], pa.string()),
        (["99999999999999999999"], pa.string()),
        (["1.0"], pa.string()),
        (["a1", "2"], pa.string()),
        (["2024-01-01"], pa.string()),
    ],
)
def test_identifiers_stay_as_they_are(tmp_path: Path, values: list[str], kind: pa.DataType) -> None:
    path = written(tmp_path / "t.csv", "id,a\n" + "".join(f"{value},1\n" for value in values))
    stream = open_source(path, id_column="id")
    assert stream.schema.field("id").type == kind
    assert stream.schema.field("a").type == pa.float64()
    found = whole(stream, ["id"]).column("id").to_pylist()
    assert [str(value) for value in found] == values


def test_other_types_and_missing_values(tmp_path: Path) -> None:
    path = written(
        tmp_path / "t.csv",
        'b,s,t,f\ntrue,"x, y",2024-01-01 10:00:00,0.5\n,,,\nfalse,"two\nlines",,NaN\n',
    )
    table = whole(open_source(path))
    assert table.column("b").to_pylist() == [True, None, False]
    assert table.column("s").to_pylist() == ["x, y", None, "two\nlines"]
    assert table.column("t").null_count == 2
    assert table.column("f").null_count == 2


def test_order_size_and_projection(tmp_path: Path) -> None:
    n_rows = BATCH_ROWS + 5
    path = written(tmp_path / "t.csv", "a,b\n" + "".join(f"{i},{-i}\n" for i in range(n_rows)))
    assert whole(open_source(path), ["b"]).column("b").to_pylist() == [-i for i in range(n_rows)]


@pytest.mark.parametrize("name", ["t.csv.gz", "t.tsv", "t.tsv.gz", "T.CSV"])
def test_suffixes_tell_separator_and_packing(tmp_path: Path, name: str) -> None:
    text = "a,b\n1,2\n".replace(",", "\t" if ".tsv" in name else ",").encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    assert whole(open_source(tmp_path / name)).to_pydict() == {"a": [1.0], "b": [2.0]}


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbfa,b\n1,2\n")
    assert whole(open_source(tmp_path / "t.csv")).column_names == ["a", "b"]


def test_a_value_that_does_not_fit_is_located(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_files, "_BLOCK_BYTES", 64)
    path = written(tmp_path / "t.csv", "a,b\n" + "1,2\n" * 100 + "1,broken\n")
    stream = open_source(path)
    assert whole(stream, ["a"]).num_rows == 101
    with pytest.raises(DataError) as caught:
        whole(stream)
    assert caught.value.exit_code == 65
    for said in ("t.csv", "row 102", "column 'b'", "'broken'", "mixed types"):
        assert said in str(caught.value)


def test_an_identifier_that_does_not_fit_is_located(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_files, "_BLOCK_BYTES", 64)
    path = written(tmp_path / "t.csv", "id,b\n" + "1,2\n" * 100 + "A7,2\n")
    with pytest.raises(DataError, match=r"row 102.*column 'id'.*'A7'.*int64"):
        whole(open_source(path, id_column="id"))


def test_types_come_from_the_first_file_with_rows(tmp_path: Path) -> None:
    written(tmp_path / "1.csv", "s,a\n")
    written(tmp_path / "2.csv", "a,s\n1,x\n")
    written(tmp_path / "3.csv", "s,a\ny,2\n")
    assert whole(open_source(tmp_path)).to_pydict() == {"s": ["x", "y"], "a": [1.0, 2.0]}


@pytest.mark.parametrize(("header", "said"), [("a", "'b' missing"), ("b,a,c", "'c' found")])
def test_headers_must_agree(tmp_path: Path, header: str, said: str) -> None:
    written(tmp_path / "1.csv", "a,b\n1,2\n")
    written(tmp_path / "2.csv", f"{header}\n" + ",".join("1" * len(header.split(","))) + "\n")
    with pytest.raises(DataError, match=r"2\.csv: .*" + said):
        open_source(tmp_path)


def test_no_rows_but_a_schema(tmp_path: Path) -> None:
    stream = open_source(written(tmp_path / "t.csv", "id,a\n"), id_column="id")
    assert stream.schema.names == ["id", "a"]
    assert whole(stream).num_rows == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "Empty CSV file"),
        (b"a,b,a\n1,2,3\n", "'a' occur more than once"),
        (b"a,b\n1,2\n1,2,3\n", "Row #3: Expected 2 columns, got 3"),
        (b"a;b\n1;2\n", "not by ';'"),
        (b"a,s\n1,\xff\n", "'s' holds text that is not UTF-8"),
        (b"\xff\xfea\x00,\x00b\x00\n\x00", "cannot be read as CSV"),
    ],
)
def test_files_that_are_no_tables_are_named(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(DataError, match=r"t\.csv") as caught:
        whole(open_source(tmp_path / "t.csv"))
    assert said in str(caught.value)


@pytest.mark.parametrize("cut", [slice(0, 30), slice(5, None)])
def test_damaged_gzip_is_named(tmp_path: Path, cut: slice) -> None:
    packed = gzip.compress(("a,b\n" + "".join(f"{i},{i * i}\n" for i in range(999))).encode())
    (tmp_path / "t.csv.gz").write_bytes(packed[cut])
    with pytest.raises(DataError, match=r"t\.csv\.gz cannot be read as CSV"):
        whole(open_source(tmp_path / "t.csv.gz"))


def test_an_unnamed_first_column_is_mentioned(tmp_path: Path) -> None:
    stream = open_source(written(tmp_path / "t.csv", ",a\n0,1\n"))
    assert "pandas index" in stream.notes[0]
