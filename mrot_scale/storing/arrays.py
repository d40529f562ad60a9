"""Zarr v3 arrays, chunk by chunk. The only importer of zarr.

A chunk is encoded and decoded in memory; where its bytes go and whether they are the right ones is
not zarr's business but `commit`'s. Checksums are part of the encoding (crc32c), the fill value is
NaN or -1, and chunks full of it are written like any other, so a missing one is never a number.
"""

import json
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BytesCodec, Crc32cCodec, ZstdCodec
from zarr.storage import FsspecStore, LocalStore, MemoryStore

from mrot_scale.errors import DamagedDataError, DataError
from mrot_scale.storing.location import Location

Array = NDArray[Any]

METADATA = "zarr.json"
LARGEST_CHUNK_BYTES = 2**28
"""Decoded size beyond which no chunk of ours goes: anything larger is damaged or hostile."""

_LARGEST_METADATA = 2**20
_MOST_DIMENSIONS = 8
LARGEST_FOREIGN_CHUNK_BYTES = 2**31
"""Decoded size beyond which chunks that others wrote are not read."""

_LONGEST_REASON = 200
_CHECKSUM_BYTES = 4
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_DTYPES = ("float32", "float64", "int64", "int32", "bool")
_FILL = {"float32": np.nan, "float64": np.nan, "int64": -1, "int32": -1, "bool": False}
_COMPRESSION_LEVEL = 1


@dataclass(frozen=True)
class ArraySpec:
    """Shape, chunks and type of an array: all that its chunks have in common."""

    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    dtype: str

    def metadata(self) -> bytes:
        """Return the array's `zarr.json`."""
        store = MemoryStore()
        _create(store, self)
        return bytes(store._store_dict[METADATA].to_bytes())

    @classmethod
    def from_metadata(cls, content: bytes, name: str) -> "ArraySpec":
        """Return the spec an array's `zarr.json` gives, if it is one of ours."""
        if len(content) > _LARGEST_METADATA:
            raise DamagedDataError(f"{name} is larger than the metadata of any array.")
        try:
            found = json.loads(content)
            grid = found["chunk_grid"]["configuration"]["chunk_shape"]
            spec = cls(tuple(found["shape"]), tuple(grid), str(found["data_type"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            reason = _reason(error)
            raise DamagedDataError(f"{name} is not the metadata of an array ({reason}).") from None
        spec._check(name)
        if spec.chunk_bytes > LARGEST_CHUNK_BYTES:
            raise _impossible(name)
        if json.loads(spec.metadata()) != found:
            raise DamagedDataError(f"{name} describes an array mrot-scale did not write.")
        return spec

    def _check(self, name: str) -> None:
        sizes = [*self.shape, *self.chunk_shape]
        if (
            self.dtype not in _DTYPES
            or not 0 < len(self.shape) <= _MOST_DIMENSIONS
            or len(self.shape) != len(self.chunk_shape)
            or not all(type(s) is int and 0 <= s <= 2**40 for s in sizes)
            or min(self.chunk_shape) < 1
        ):
            raise _impossible(name)

    @property
    def chunk_bytes(self) -> int:
        """Size of one decoded chunk."""
        return prod(self.chunk_shape) * np.dtype(self.dtype).itemsize

    def chunk_name(self, *position: int) -> str:
        """Return the name of a chunk below the array's folder."""
        return "/".join(["c", *map(str, position)])

    def encode(self, values: Array) -> bytes:
        """Return the bytes of one chunk; a shorter last chunk is filled up."""
        store = MemoryStore()
        array = _create(store, self, shape=self.chunk_shape)
        corner = tuple(slice(0, length) for length in values.shape)
        array[corner] = values.astype(self.dtype, copy=False)
        return bytes(store._store_dict[self.chunk_name(*[0] * values.ndim)].to_bytes())

    def decode(self, content: bytes, name: str, shape: tuple[int, ...] | None = None) -> Array:
        """Return the values of one chunk, cut to `shape`; checksums are checked on the way."""
        from zarr.core.buffer.cpu import Buffer

        self._check(name)
        if _declared_bytes(content) != self.chunk_bytes:  # before memory is taken for it
            raise DamagedDataError(f"{name} is damaged. Restore it or make it again.")
        store = MemoryStore()
        array = _create(store, self, shape=self.chunk_shape)
        key = self.chunk_name(*[0] * len(self.chunk_shape))
        store._store_dict[key] = Buffer.from_bytes(content)
        corner = tuple(slice(0, length) for length in shape or self.chunk_shape)
        try:
            return np.asarray(array[corner])
        except Exception as error:  # each codec has its own idea of what to raise
            raise DamagedDataError(
                f"{name} is damaged: {_reason(error)}. Restore it or make it again."
            ) from None


def _reason(error: BaseException) -> str:
    """Return what went wrong as one line, however much of a file a library quotes."""
    return " ".join(str(error).split())[:_LONGEST_REASON]


def _impossible(name: str) -> DamagedDataError:
    return DamagedDataError(f"{name} describes an array of impossible shape or type.")


def _declared_bytes(content: bytes) -> int:
    """Return how large a chunk of ours becomes: one Zstandard frame that says so, and a checksum.

    The library would take as much memory as any number of frames ask for. -1 for anything else.
    """
    if content[:4] != _ZSTD_MAGIC or len(content) < 5:
        return -1
    flags = content[4]
    is_one_segment = flags >> 5 & 1
    width = (is_one_segment, 2, 4, 8)[flags >> 6]
    start = 5 + (1 - is_one_segment) + (0, 1, 2, 4)[flags & 3]
    size = int.from_bytes(content[start : start + width], "little")
    if not width or _frame_end(content, start + width) + _CHECKSUM_BYTES != len(content):
        return -1
    return size + 256 if width == 2 else size


def _frame_end(content: bytes, start: int) -> int:
    """Return where a Zstandard frame ends whose blocks begin at `start`."""
    position, is_last = start, 0
    while not is_last and position < len(content):
        head = int.from_bytes(content[position : position + 3], "little")
        is_last, is_repeated = head & 1, head >> 1 & 3 == 1
        position += 3 + (1 if is_repeated else head >> 3)
    return position


def _create(store: MemoryStore, spec: ArraySpec, shape: tuple[int, ...] | None = None) -> Any:
    return zarr.create_array(
        store,
        shape=shape or spec.shape,
        chunks=spec.chunk_shape,
        dtype=spec.dtype,
        fill_value=_FILL[spec.dtype],
        serializer=BytesCodec(endian="little"),
        compressors=[ZstdCodec(level=_COMPRESSION_LEVEL), Crc32cCodec()],
        config={"write_empty_chunks": True},
    )


def group_metadata(attributes: dict[str, Any]) -> bytes:
    """Return the `zarr.json` of a group with these attributes."""
    store = MemoryStore()
    zarr.create_group(store, attributes=attributes)
    return bytes(store._store_dict[METADATA].to_bytes())


class ForeignArray:
    """An array somebody else wrote, read by ranges of rows."""

    def __init__(self, array: Any, name: str) -> None:
        self._array, self._name = array, name
        self.shape: tuple[int, ...] = tuple(array.shape)
        self.dtype: np.dtype[Any] = np.dtype(array.dtype)
        self.chunk_rows: int = int(array.chunks[0])

    def rows(self, start: int, stop: int) -> Array:
        try:
            return np.asarray(self._array[start:stop])
        except Exception as error:
            raise DataError(
                f"{self._name}, rows {start} to {stop}, cannot be read: {_reason(error)}."
            ) from None


def open_foreign(location: Location) -> ForeignArray:
    """Return the numeric array at a location, whatever its codecs and Zarr version."""
    try:
        if location.is_local:
            array = zarr.open_array(LocalStore(location.address, read_only=True), mode="r")
        else:
            array = zarr.open_array(
                FsspecStore.from_url(location.address, read_only=True), mode="r"
            )
    except Exception as error:
        reason = _reason(error)
        raise DataError(f"{location} cannot be opened as a Zarr array: {reason}.") from None
    if array.ndim not in (1, 2) or np.dtype(array.dtype).kind not in "fiub":
        raise DataError(
            f"{location} holds a {array.ndim}-d array of {array.dtype}; a table needs numbers in "
            "rows and columns."
        )
    if prod(array.chunks) * np.dtype(array.dtype).itemsize > LARGEST_FOREIGN_CHUNK_BYTES:
        raise DataError(
            f"{location} has chunks of {tuple(array.chunks)} values, more than memory can be "
            f"counted on for ({LARGEST_FOREIGN_CHUNK_BYTES:,} bytes). Write it in smaller ones."
        )
    return ForeignArray(array, str(location))
