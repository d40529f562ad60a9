"""Files of NumPy: layouts, archives, and headers that lie."""

import io
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrot_scale.errors import DataError
from mrot_scale.reading.sources import BATCH_ROWS, open_source
from mrot_scale.storing.location import Location
from tests.reading.samples import matrix, read_elsewhere, sample, whole


def header(shape: str, descr: str = "'<f8'", *, fortran: bool = False) -> bytes:
    """A .npy header that promises whatever it is told to."""
    text = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}}}\n".encode("latin1")
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def packed(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize("store", ["local", "memory"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["npy", "npz", "npz packed"])
def test_matrices_in_any_layout(tmp_path: Path, kind: str, order: Any, store: str) -> None:
    table = sample(BATCH_ROWS + 7)
    array = np.asarray(matrix(table), order=order)
    path = tmp_path / f"t.{kind[:3]}"
    {"npy": np.save, "npz": np.savez, "npz packed": np.savez_compressed}[kind](path, array)
    location = Location(path if store == "local" else f"memory://npy/t.{kind[:3]}")
    location.write(path.read_bytes())
    stream = open_source(location)
    assert stream.n_rows == table.num_rows
    assert [file[:2] for file in stream.identity["files"]] == [[path.name, path.stat().st_size]]
    assert whole(stream).equals(table)
    assert whole(stream, ["c2", "c0"]).equals(table.select(["c2", "c0"]))


def test_one_axis_fields_and_byte_order(tmp_path: Path) -> None:
    np.save(tmp_path / "1.npy", np.arange(3, dtype=">i4"))
    assert whole(open_source(tmp_path / "1.npy")).to_pydict() == {"c0": [0, 1, 2]}
    fields = np.array([(1, 0.5), (2, 1.5)], [("größe", "i4"), ("b", ">f8")])
    np.save(tmp_path / "2.npy", fields)
    assert whole(open_source(tmp_path / "2.npy"), ["b", "größe"]).to_pydict() == {
        "b": [0.5, 1.5],
        "größe": [1, 2],
    }


@pytest.mark.filterwarnings("ignore:Stored array in format 3.0")
def test_field_names_of_any_alphabet(tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", np.array([(1,)], [("размер", "i4")]))
    assert whole(open_source(tmp_path / "t.npy")).to_pydict() == {"размер": [1]}


def test_no_rows_but_a_schema(tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", np.zeros((0, 3)))
    stream = open_source(tmp_path / "t.npy")
    assert (stream.n_rows, stream.schema.names) == (0, ["c0", "c1", "c2"])
    assert whole(stream).num_rows == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no readable NumPy header"),
        (b"\x93NUMPY\x01\x00", "promises|no readable NumPy header"),
        (b"no array at all", "no readable NumPy header"),
        (b"\x93NUMPY\x09\x00" + bytes(20), "version"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(20), "no readable NumPy header"),
        (header("(10**9, 3)"), "no readable NumPy header"),
        (header("(1000000000000, 3)"), r"shape \(1000000000000, 3\).* only \d+ bytes"),
        (header("(3, 1000000000000)"), "only .* bytes"),
        (header("(-1, 3)"), "promises"),
        (header("(2, 2)", "'|O'") + bytes(99), "unpickled"),
        (header("(2, 2)", "[('a', '|O')]") + bytes(99), "unpickled"),
        (header("(2, 2)", "'nonsense'"), "no readable NumPy header"),
        (header("-" * 30_000 + "1"), "no readable NumPy header"),
        (header("(2, 2, 2)") + bytes(64), "rows by columns"),
        (packed(np.zeros((5, 3)))[:-1], "only .* bytes"),
    ],
)
@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_headers_that_lie(tmp_path: Path, content: bytes, said: str, kind: str) -> None:
    path = tmp_path / f"t.{kind}"
    if kind == "npy":
        path.write_bytes(content)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("X.npy", content)
    with pytest.raises(DataError, match=rf"t\.{kind}.*({said})") as caught:
        open_source(path)
    assert caught.value.exit_code == 65


def test_a_file_that_shrinks_after_opening_is_named(tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", np.zeros((100, 3)))
    stream = open_source(tmp_path / "t.npy")
    os.truncate(tmp_path / "t.npy", 1000)
    with pytest.raises(DataError, match=r"t\.npy ends early"):
        whole(stream)


def test_the_array_named_x_is_taken_and_others_mentioned(tmp_path: Path) -> None:
    labels = np.array(["a", None], object)
    np.savez(tmp_path / "t.npz", A=np.zeros((2, 2)), X=matrix(sample()), y=labels)
    stream = open_source(tmp_path / "t.npz")
    assert whole(stream).equals(sample())
    assert ["'A' is not used" in stream.notes[0], "'y' is not used" in stream.notes[1]] == [
        True
    ] * 2


def test_the_only_matrix_is_taken(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", rows=matrix(sample()), y=np.zeros(5))
    stream = open_source(tmp_path / "t.npz")
    assert whole(stream).equals(sample())
    assert "array 'y' is not used" in stream.notes[0]


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"a": np.zeros((2, 2)), "b": np.zeros((3, 3))}, r"2 matrices.*a \(2, 2\), b \(3, 3\)"),
        ({"y": np.zeros(3)}, r"0 matrices.*y \(3,\)"),
        ({}, "0 matrices.*it is empty"),
    ],
)
def test_a_choice_that_is_not_ours_is_listed(
    tmp_path: Path, arrays: dict[str, Any], said: str
) -> None:
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(DataError, match=r"t\.npz has no array 'X' and " + said):
        open_source(tmp_path / "t.npz")


@pytest.mark.parametrize("damage", ["text", "end", "values"])
def test_damaged_archives_are_named(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "t.npz"
    np.savez_compressed(path, X=np.random.default_rng(0).normal(size=(1000, 3)))
    content = path.read_bytes()
    hole = content[:2000] + bytes(1000) + content[3000:]
    path.write_bytes({"text": b"no zip", "end": content[:-50], "values": hole}[damage])
    with pytest.raises(DataError, match=r"t\.npz cannot be read as NumPy"):
        whole(open_source(path))


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_does_not_grow_with_rows(tmp_path: Path, order: Any) -> None:
    np.savez(tmp_path / "t.npz", np.zeros((1_500_000, 16), order=order))
    n_rows, grown_bytes = read_elsewhere(tmp_path / "t.npz")
    assert n_rows == 1_500_000
    assert grown_bytes < 8 * 1_500_000 * 16 / 2
