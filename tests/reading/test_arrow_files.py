"""Arrow files and streams, Feather included."""

from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pytest

from mrot_scale.errors import DataError
from mrot_scale.reading import arrow_files
from mrot_scale.reading.sources import BATCH_ROWS, open_source
from tests.reading.samples import sample, whole


def write_ipc(path: Path, table: pa.Table, layout: str) -> Path:
    new = {"file": pa.ipc.new_file, "stream": pa.ipc.new_stream}[layout]
    with new(str(path), table.schema) as writer:
        writer.write_table(table)
    return path


@pytest.mark.parametrize("mapped_from", [0, 1 << 40])
@pytest.mark.parametrize("layout", ["file", "stream"])
def test_large_batches_are_cut(
    tmp_path: Path, layout: str, mapped_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_files, "_LARGE_BATCH_BYTES", mapped_from)
    table = sample(2 * BATCH_ROWS + 3)
    stream = open_source(write_ipc(tmp_path / "t.arrow", table, layout))
    assert whole(stream).equals(table)
    assert whole(stream, ["c2", "c0"]).equals(table.select(["c2", "c0"]))


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_feather(tmp_path: Path, compression: str) -> None:
    pa.feather.write_feather(sample(), str(tmp_path / "t.feather"), compression=compression)
    assert whole(open_source(tmp_path / "t.feather")).equals(sample())


def test_dictionaries_and_text(tmp_path: Path) -> None:
    words = pa.array(["x", None, "y"])
    table = pa.table({"d": words.dictionary_encode(), "s": words.cast(pa.large_string())})
    stream = open_source(write_ipc(tmp_path / "t.ipc", table, "file"))
    assert stream.schema.field("s").type == pa.string()
    assert whole(stream).to_pydict() == table.to_pydict()


def test_no_rows_but_a_schema(tmp_path: Path) -> None:
    stream = open_source(write_ipc(tmp_path / "t.arrows", sample(0), "stream"))
    assert whole(stream).equals(sample(0))


def test_remote_files(tmp_path: Path) -> None:
    from mrot_scale.storing.location import Location

    path = write_ipc(tmp_path / "t.arrow", sample(), "file")
    Location("memory://arrow/t.arrow").write(path.read_bytes())
    assert whole(open_source("memory://arrow/t.arrow")).equals(sample())


@pytest.mark.parametrize("content", [b"", b"ARROW1", b"no arrow at all, but text"])
def test_what_is_not_arrow_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.arrow").write_bytes(content)
    with pytest.raises(DataError, match=r"t\.arrow cannot be read as Arrow") as caught:
        open_source(tmp_path / "t.arrow")
    assert caught.value.exit_code == 65


@pytest.mark.parametrize("layout", ["file", "stream"])
def test_a_truncated_file_is_named(tmp_path: Path, layout: str) -> None:
    path = write_ipc(tmp_path / "t.arrow", sample(1000), layout)
    path.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(DataError, match=r"t\.arrow cannot be read as Arrow"):
        whole(open_source(path))


def test_feather_of_version_1_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.feather").write_bytes(b"FEA1" + bytes(100) + b"FEA1")
    with pytest.raises(DataError, match=r"t\.feather is Feather of version 1"):
        open_source(tmp_path / "t.feather")


def test_offsets_that_point_outside_are_found(tmp_path: Path) -> None:
    path = write_ipc(tmp_path / "t.arrow", pa.table({"s": ["abc", "defg"]}), "file")
    offsets = b"\x00\x00\x00\x00\x03\x00\x00\x00\x07\x00\x00\x00"
    content = path.read_bytes()
    assert content.count(offsets) == 1
    path.write_bytes(content.replace(offsets, offsets[:8] + b"\xff\xff\xff\x7f"))
    with pytest.raises(DataError, match=r"t\.arrow cannot be read as Arrow"):
        whole(open_source(path))
