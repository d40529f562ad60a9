"""Zarr chunks: every bit comes back or the damage is noticed; foreign arrays are read."""

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil  # type: ignore[import-untyped]
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numcodecs import CRC32C, Zstd  # type: ignore[import-untyped]
from numpy.typing import NDArray

from mrot_scale.errors import DamagedDataError, DataError
from mrot_scale.storing.arrays import (
    LARGEST_CHUNK_BYTES,
    METADATA,
    ArraySpec,
    group_metadata,
    open_foreign,
)
from mrot_scale.storing.location import Location
from tests.strategies import examples

DTYPES = ("float32", "float64", "int64", "int32", "bool")
STRANGE = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3.4e38, 1.0]

shapes = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=7)


def any_bits(dtype: str) -> Any:
    """Arrays of a type with arbitrary bits: NaN of every payload, subnormal numbers, both zeros."""
    if dtype == "bool":
        return hnp.arrays(np.bool_, shapes)
    size = np.dtype(dtype).itemsize
    elements = st.integers(0, 2 ** (8 * size) - 1)
    return hnp.arrays(f"u{size}", shapes, elements=elements).map(lambda a: a.view(dtype))


def whole(values: NDArray[Any]) -> ArraySpec:
    return ArraySpec(values.shape, values.shape, str(values.dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@examples(15)
@given(draw=st.data())
def test_a_chunk_comes_back_bit_for_bit(dtype: str, draw: st.DataObject) -> None:
    values = draw.draw(any_bits(dtype))
    spec = whole(values)
    found = spec.decode(spec.encode(values), "chunk")
    assert (found.dtype, found.shape) == (values.dtype, values.shape)
    assert found.tobytes() == values.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_infinities_and_zeros_of_both_signs_come_back(dtype: str) -> None:
    values = np.array([STRANGE, STRANGE[::-1]], dtype=np.float64).astype(dtype)
    spec = whole(values)
    assert spec.decode(spec.encode(values), "chunk").tobytes() == values.tobytes()


@pytest.mark.parametrize("fill", [np.nan, 0.0, -0.0])
def test_a_chunk_of_nothing_but_the_fill_value_is_written_like_any_other(fill: float) -> None:
    values = np.full((5, 2), fill, dtype=np.float32)
    spec = whole(values)
    assert spec.decode(spec.encode(values), "chunk").tobytes() == values.tobytes()


@examples(25)
@given(n_rows=st.integers(1, 9), n_columns=st.integers(1, 4))
def test_a_shorter_last_chunk_comes_back_at_its_length(n_rows: int, n_columns: int) -> None:
    spec = ArraySpec((99, n_columns), (9, n_columns), "float32")
    values = np.arange(n_rows * n_columns, dtype=np.float32).reshape(n_rows, n_columns)
    content = spec.encode(values)
    assert spec.decode(content, "chunk", values.shape).tobytes() == values.tobytes()
    filled_up = spec.decode(content, "chunk")
    assert filled_up.shape == (9, n_columns)
    assert np.isnan(filled_up[n_rows:]).all()


def test_the_same_values_give_the_same_bytes_however_they_lie_in_memory() -> None:
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    spec = whole(values)
    wider = np.repeat(values, 2, axis=1)[:, ::2]
    layouts = [values, np.asfortranarray(values), wider]
    assert len({spec.encode(layout) for layout in layouts}) == 1


def test_any_flipped_bit_is_noticed() -> None:
    values = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    spec = whole(values)
    content = spec.encode(values)
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << position % 8
        with pytest.raises(DamagedDataError, match=r"c/0/0 is damaged.*make it again"):
            spec.decode(bytes(damaged), "c/0/0")


def test_a_chunk_cut_short_anywhere_is_noticed() -> None:
    values = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    spec = whole(values)
    content = spec.encode(values)
    for length in range(len(content)):
        with pytest.raises(DamagedDataError, match="c/0/0 is damaged"):
            spec.decode(content[:length], "c/0/0")
    with pytest.raises(DamagedDataError, match="c/0/0 is damaged"):
        spec.decode(content + b"\0", "c/0/0")


@pytest.mark.parametrize("shape", [(4, 3), (6, 3), (5, 2), (3_000, 30)])
def test_a_sound_chunk_of_another_shape_is_noticed(shape: tuple[int, int]) -> None:
    other = np.ones(shape, dtype=np.float32)
    content = whole(other).encode(other)
    with pytest.raises(DamagedDataError, match="c/0/0 is damaged"):
        ArraySpec((5, 3), (5, 3), "float32").decode(content, "c/0/0")


@examples(40)
@given(
    dtype=st.sampled_from(DTYPES),
    shape=st.lists(st.integers(0, 2**40), min_size=1, max_size=3),
    draw=st.data(),
)
def test_metadata_tells_the_array_again(dtype: str, shape: list[int], draw: st.DataObject) -> None:
    lengths = st.integers(1, 300)
    chunk_shape = draw.draw(st.lists(lengths, min_size=len(shape), max_size=len(shape)))
    spec = ArraySpec(tuple(shape), tuple(chunk_shape), dtype)
    assert ArraySpec.from_metadata(spec.metadata(), "zarr.json") == spec


def test_arrays_are_what_plain_zarr_reads(place: Location) -> None:
    rows = np.random.default_rng(0).normal(size=(11, 2)).astype(np.float32)
    spec = ArraySpec((11, 2), (4, 2), "float32")
    (place / METADATA).write(group_metadata({"made_by": "us", "features": ["a", "b"]}))
    (place / f"features/{METADATA}").write(spec.metadata())
    for chunk in (0, 2):
        part = rows[chunk * 4 : chunk * 4 + 4]
        (place / f"features/{spec.chunk_name(chunk, 0)}").write(spec.encode(part))
    found = open_foreign(place / "features")
    assert (found.shape, str(found.dtype), found.chunk_rows) == ((11, 2), "float32", 4)
    assert found.rows(0, 4).tobytes() == rows[:4].tobytes()
    assert found.rows(8, 11).tobytes() == rows[8:].tobytes()
    assert np.isnan(found.rows(4, 8)).all()  # a missing chunk is never a number


def test_a_group_keeps_its_attributes(tmp_path: Path) -> None:
    (tmp_path / METADATA).write_bytes(group_metadata({"features": ["a", "ä"]}))
    assert dict(zarr.open_group(tmp_path, mode="r").attrs) == {"features": ["a", "ä"]}


def change(*path: Any) -> Callable[[dict[str, Any]], None]:
    """Return what sets the value at a path of keys, the last argument, in metadata."""
    *keys, last, value = path

    def apply(found: Any) -> None:
        for key in keys:
            found = found[key]
        found[last] = value

    return apply


GRID = ("chunk_grid", "configuration", "chunk_shape")
FOREIGN = {
    "another type": change("data_type", "float16"),
    "a type that is none": change("data_type", {"name": "x"}),
    "another fill value": change("fill_value", 0.0),
    "other codecs": change("codecs", []),
    "other byte order": change("codecs", 0, "configuration", "endian", "big"),
    "another format": change("zarr_format", 2),
    "other chunk names": change("chunk_key_encoding", "configuration", "separator", "."),
    "attributes": change("attributes", {"scale_factor": 10}),
    "a negative length": change("shape", [-1, 3]),
    "a fraction": change("shape", [7.5, 3]),
    "text for lengths": change("shape", "73"),
    "no dimension": change("shape", []),
    "fewer chunk lengths": change(*GRID, [7]),
    "chunks of no rows": change(*GRID, [0, 3]),
    "no shape": change("shape", None),
    "no grid": change("chunk_grid", {}),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_metadata_we_did_not_write_are_refused(what: str) -> None:
    found = json.loads(ArraySpec((7, 3), (7, 3), "float32").metadata())
    FOREIGN[what](found)
    with pytest.raises(DamagedDataError, match=r"store/zarr\.json"):
        ArraySpec.from_metadata(json.dumps(found).encode(), "store/zarr.json")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff", b'"x"', b"[" * 100_000])
def test_what_is_no_metadata_is_refused(content: bytes) -> None:
    with pytest.raises(DamagedDataError, match=r"zarr\.json"):
        ArraySpec.from_metadata(content, "zarr.json")


@pytest.mark.parametrize("shape", [[2**26 + 1, 1], [2**40, 2**40], [10**30, 1], [2**13, 2**13 + 1]])
def test_a_chunk_beyond_all_bounds_is_refused_before_memory_is_taken(shape: list[int]) -> None:
    found = json.loads(ArraySpec((7, 3), (7, 3), "float32").metadata())
    found["shape"] = found["chunk_grid"]["configuration"]["chunk_shape"] = shape
    content = json.dumps(found).encode()
    tracemalloc.start()
    try:
        with pytest.raises(DamagedDataError, match="impossible shape"):
            ArraySpec.from_metadata(content, "zarr.json")
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_the_largest_chunk_is_allowed() -> None:
    spec = ArraySpec((2**26, 1), (2**26, 1), "float32")
    assert spec.chunk_bytes == LARGEST_CHUNK_BYTES
    assert ArraySpec.from_metadata(spec.metadata(), "zarr.json") == spec


def checked(*frames: bytes) -> bytes:
    """Frames with a checksum that is right, as only someone at work on it would write them."""
    return bytes(CRC32C(location="end").encode(b"".join(frames)))


def frame(n_bytes: int) -> bytes:
    return bytes(Zstd(1).encode(np.zeros(n_bytes, dtype=np.uint8)))


@pytest.mark.parametrize(
    "sizes", [[2**28], [84, 2**28], [84] + [2**22] * 64, [2**28, 84], [0], []], ids=str
)
def test_a_small_chunk_that_becomes_large_is_refused_before_memory_is_taken(
    sizes: list[int],
) -> None:
    content = checked(*(frame(size) for size in sizes))
    before = psutil.Process().memory_info().rss
    with pytest.raises(DamagedDataError, match="c/0 is damaged"):
        ArraySpec((7, 3), (7, 3), "float32").decode(content, "c/0")
    assert psutil.Process().memory_info().rss - before < 2**26


def test_a_frame_that_says_less_than_it_holds_is_refused() -> None:
    spec = ArraySpec((500, 4), (500, 4), "float32")
    large = frame(2**28)
    said = large[5:6] + (8_000 - 256).to_bytes(2, "little")  # window, then two bytes of size
    with pytest.raises(DamagedDataError, match="c/0 is damaged"):
        spec.decode(checked(large[:4] + b"\x40" + said + large[10:]), "c/0")
    assert not spec.decode(checked(frame(8_000)), "c/0").any()


@pytest.mark.parametrize(
    "spec",
    [
        ArraySpec((1,) * 9, (1,) * 9, "float32"),
        ArraySpec((3,), (3,), "object"),
        ArraySpec((3,), (2.5,), "float32"),  # type: ignore[arg-type]
        ArraySpec((3,), (3, 3), "float32"),
        ArraySpec((), (), "float32"),
    ],
)
def test_a_chunk_of_an_impossible_array_is_refused(spec: ArraySpec) -> None:
    with pytest.raises(DamagedDataError, match="impossible shape or type"):
        spec.decode(checked(frame(12)), "c/0")


def test_metadata_of_any_size_are_refused() -> None:
    content = ArraySpec((7, 3), (7, 3), "float32").metadata() + b" " * 2**20
    with pytest.raises(DamagedDataError, match="larger than the metadata of any array"):
        ArraySpec.from_metadata(content, "zarr.json")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_foreign_array_whose_chunks_fit_no_memory_is_refused(
    tmp_path: Path, zarr_format: Any
) -> None:
    zarr.create_array(
        tmp_path / "x", shape=(10**9, 4), chunks=(10**9, 4), dtype="f8", zarr_format=zarr_format
    )
    with pytest.raises(DataError, match="smaller ones"):
        open_foreign(Location(tmp_path / "x"))


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dtype", ["float64", ">f4", "int16", "uint8", "bool"])
def test_foreign_arrays_of_numbers_are_read(dtype: str, zarr_format: Any, tmp_path: Path) -> None:
    rows = (np.arange(22).reshape(11, 2) % 5).astype(dtype)
    array = zarr.create_array(
        tmp_path / "x", shape=(11, 2), chunks=(4, 1), dtype=dtype, zarr_format=zarr_format
    )
    array[:] = rows
    found = open_foreign(Location(tmp_path / "x"))
    assert (found.shape, found.chunk_rows) == ((11, 2), 4)
    assert found.rows(3, 9).tolist() == rows[3:9].tolist()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((2, 2, 2)), "3-d array of float64"),
        (np.zeros(3, dtype=np.complex128), "1-d array of complex128"),
        (np.zeros(3, dtype="datetime64[s]"), "1-d array of datetime64"),
    ],
)
def test_foreign_arrays_that_are_no_table_are_refused(
    values: NDArray[Any], message: str, tmp_path: Path
) -> None:
    zarr.create_array(tmp_path / "x", data=values, zarr_format=2)
    with pytest.raises(DataError, match=message):
        open_foreign(Location(tmp_path / "x"))


def test_what_is_no_array_is_refused_by_name(place: Location) -> None:
    (place / "file").write(b"x")
    for name in ("file", "missing"):
        with pytest.raises(DataError, match=f"{name} cannot be opened as a Zarr array"):
            open_foreign(place / name)


def test_damage_in_a_foreign_array_names_the_rows(tmp_path: Path) -> None:
    array = zarr.create_array(tmp_path / "x", shape=(8, 2), chunks=(4, 2), dtype="f8")
    array[:] = 1.0
    (tmp_path / "x/c/1/0").write_bytes(b"garbage")
    found = open_foreign(Location(tmp_path / "x"))
    assert found.rows(0, 4).tolist() == [[1.0, 1.0]] * 4
    with pytest.raises(DataError, match=r"x, rows 4 to 8, cannot be read"):
        found.rows(4, 8)
