"""NumPy's .npy and .npz files, read block by block and never unpickled."""

import io
import math
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

from mrot_scale.errors import DataError
from mrot_scale.reading.matrices import Columns, Matrix, array_schema, columns_of, matrix_stream
from mrot_scale.reading.opening import explained, opened
from mrot_scale.reading.parts import identity_of, single_part
from mrot_scale.reading.stream import TableStream, rows_per_batch
from mrot_scale.storing.location import Location

_MOST_HEADER_BYTES = 1 << 16
_PREFERRED = "X.npy"

OpenFile = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class _Header:
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    by_column: bool
    offset: int

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize


def open_npy(location: Location) -> TableStream:
    """Return the stream of the rows of a .npy file."""
    part = single_part(location)
    with explained(location, "NumPy .npy"), opened(location) as file:
        header = _read_header(file, part.size, str(location))
    matrix = _matrix(location, str(location), header, partial(opened, location))
    return matrix_stream(matrix, identity_of([part], "NumPy .npy"))


def open_npz(location: Location) -> TableStream:
    """Return the stream of the rows of array `X` of a .npz archive, or of its only matrix."""
    part = single_part(location)
    with explained(location, "NumPy .npz"), _archive(location) as archive:
        members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
        chosen = _chosen_member(archive, members, location)
        where = f"{location}, array {_array_name(chosen)!r}"
        header = _member_header(archive, chosen, where)
    by_member = partial(_member, location, chosen.filename, header.by_column)
    notes = tuple(
        f"{location}: array {_array_name(info)!r} is not used"
        for info in members
        if info.filename != chosen.filename
    )
    matrix = _matrix(location, where, header, by_member)
    return matrix_stream(matrix, identity_of([part], "NumPy .npz"), notes)


def _matrix(location: Location, where: str, header: _Header, open_file: OpenFile) -> Matrix:
    schema = array_schema(header.shape, header.dtype, where)
    step = rows_per_batch(max(header.row_bytes // 8, 1))
    read_block = _block_by_column if header.by_column else _block_by_row

    def blocks(positions: list[int]) -> Iterator[Columns]:
        with explained(location, "NumPy"), open_file() as file:
            for start in range(0, header.shape[0], step):
                stop = min(start + step, header.shape[0])
                yield read_block(_Place(file, header, where), start, stop, positions)

    return Matrix(where, header.shape[0], schema, blocks)


@dataclass(frozen=True)
class _Place:
    file: Any
    header: _Header
    where: str

    def values(self, skipped_bytes: int, n_values: int) -> Any:
        """Return values that lie some bytes behind the header."""
        n_bytes = n_values * self.header.dtype.itemsize
        self.file.seek(self.header.offset + skipped_bytes)
        content = self.file.read(n_bytes)
        if len(content) < n_bytes:
            raise DataError(f"{self.where} ends early: the file is damaged or unfinished.")
        return np.frombuffer(content, self.header.dtype)


def _block_by_row(place: _Place, start: int, stop: int, positions: list[int]) -> Columns:
    header = place.header
    n_values = (stop - start) * math.prod(header.shape[1:])
    values = place.values(start * header.row_bytes, n_values)
    return columns_of(values.reshape(stop - start, *header.shape[1:]), positions)


def _block_by_column(place: _Place, start: int, stop: int, positions: list[int]) -> Columns:
    n_rows, size = place.header.shape[0], place.header.dtype.itemsize
    return [
        place.values((position * n_rows + start) * size, stop - start) for position in positions
    ]


def _read_header(file: Any, file_bytes: int, where: str) -> _Header:
    """Return the header once it is known that the file is large enough for what it promises."""
    packed = io.BytesIO(_header_bytes(file, where))
    try:
        shape, by_column, dtype = _parsed_header(packed)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise DataError(f"{where} has no readable NumPy header: {error}.") from error
    header = _Header(shape, dtype, by_column and len(shape) == 2, packed.tell())
    if dtype.hasobject:
        raise DataError(
            f"{where} holds Python objects, which would have to be unpickled. Save numbers, for "
            "example with astype('float64')."
        )
    if min(shape, default=0) < 0 or header.offset + header.n_bytes > file_bytes:
        raise DataError(
            f"{where} promises an array of shape {shape} and type {dtype}, but has only "
            f"{file_bytes} bytes. The file is damaged or unfinished."
        )
    return header


def _parsed_header(packed: io.BytesIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy_format.read_magic(packed)
    if version not in [(1, 0), (2, 0), (3, 0)]:
        raise ValueError(f"format version {version} is not known")
    first = version == (1, 0)
    read = npy_format.read_array_header_1_0 if first else npy_format.read_array_header_2_0
    shape, by_column, dtype = read(packed, max_header_size=_MOST_HEADER_BYTES)
    if version == (3, 0) and dtype.names:
        # NumPy reads this version, which differs in the encoding only, by a private function.
        dtype.names = tuple(name.encode("latin1").decode("utf-8") for name in dtype.names)
    return shape, by_column, dtype


def _header_bytes(file: Any, where: str) -> bytes:
    """Return the bytes before the values, before any length in them is trusted."""
    start = bytes(file.read(12))
    length_bytes = 2 if start[6:7] == b"\x01" else 4
    length = int.from_bytes(start[8 : 8 + length_bytes], "little")
    if not start.startswith(npy_format.MAGIC_PREFIX) or length > _MOST_HEADER_BYTES:
        raise DataError(f"{where} has no readable NumPy header. Save it again with numpy.save.")
    return start + bytes(file.read(8 + length_bytes + length - len(start)))


@contextmanager
def _archive(location: Location) -> Iterator[zipfile.ZipFile]:
    # Not Arrow's file, whose errors zipfile does not understand.
    with location.open() as file, zipfile.ZipFile(file) as archive:
        yield archive


@contextmanager
def _member(location: Location, name: str, by_column: bool) -> Iterator[Any]:
    with _archive(location) as archive, archive.open(name) as member:
        if not by_column:
            yield member
            return
        # Each block jumps to every column, and a packed member cannot be read backwards.
        with tempfile.TemporaryFile() as unpacked:
            shutil.copyfileobj(member, unpacked, 1 << 20)
            yield unpacked


def _member_header(archive: zipfile.ZipFile, info: zipfile.ZipInfo, where: str) -> _Header:
    with archive.open(info) as member:
        return _read_header(member, info.file_size, where)


def _array_name(info: zipfile.ZipInfo) -> str:
    return info.filename.removesuffix(".npy")


def _chosen_member(
    archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], location: Location
) -> zipfile.ZipInfo:
    for info in members:
        if info.filename == _PREFERRED:
            return info
    headers = [_shape_of(archive, info, location) for info in members]
    matrices = [info for info, shape in zip(members, headers, strict=True) if len(shape) == 2]
    if len(matrices) == 1:
        return matrices[0]
    found = [f"{_array_name(i)} {shape}" for i, shape in zip(members, headers, strict=True)]
    raise DataError(
        f"{location} has no array 'X' and {len(matrices)} matrices to choose from: "
        f"{', '.join(found) or 'it is empty'}. Save the table as 'X'."
    )


def _shape_of(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, location: Location
) -> tuple[int, ...]:
    return _member_header(archive, info, f"{location}, array {_array_name(info)!r}").shape
