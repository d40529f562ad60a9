"""Row identifiers: those that occur twice are found without holding them all.

Each identifier becomes 128 bits. They are spread over files by their first bits, so that equal ones
meet in one file, and each file is sorted alone.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from weakref import finalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mrot_scale.errors import DataError, OutputError

Words = NDArray[np.uint64]
Records = NDArray[np.void]

_PIECE_ROWS = 16_384
"""Identifiers hashed at once: as many as a processor's cache holds."""

_RECORD = np.dtype([("first", np.uint64), ("second", np.uint64), ("row", np.int64)])
_BUFFER_BYTES = 8 * 2**20
_PAIRS_KEPT = 5

_KEEP_BYTES = np.array([(1 << 8 * n) - 1 for n in range(9)], dtype=np.uint64)
"""Masks that keep the first n bytes of a little-endian word."""


@dataclass(frozen=True)
class Repeats:
    """Rows whose identifier an earlier row has."""

    n_repeated: int
    """How many there are."""

    first: tuple[tuple[int, int], ...]
    """The first few, each after the first row with its identifier."""


class RepeatFinder:
    """Finds values that occur more than once in a column read in pieces, with bounded memory."""

    def __init__(self, folder: Path, *, n_buckets: int = 256) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # A folder of its own: hashes left by a run that died must not be met again.
        self._folder = Path(mkdtemp(prefix="identifiers-", dir=folder))
        self._remove_files = finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._n_buckets = n_buckets
        self._buffer = np.empty(_BUFFER_BYTES // _RECORD.itemsize, dtype=_RECORD)
        self._n_buffered = 0
        self._n_rows = 0
        self._n_repeated = 0
        self._repeated = np.empty(0, dtype=_RECORD)
        """The first rows that repeat an earlier one."""

        self._row_of: dict[tuple[int, int], int] = {}
        """The first row with each hash of those."""

    def add(self, values: pa.Array | pa.ChunkedArray) -> None:
        """Take the identifiers of the next rows; all pieces of a column have one type."""
        for piece in _pieces(values):
            first, second = _hashed(piece, self._n_rows)
            self._buffer_hashes(first, second)

    def repeats(self) -> Repeats | None:
        """Return the rows that repeat an earlier one, None if there is none; no row may follow."""
        if self._remove_files.alive:
            self._spill()
            for bucket in range(self._n_buckets):
                self._search(self._bucket_path(bucket))
            self._remove_files()
        if self._n_repeated == 0:
            return None
        pairs = ((self._row_of[_hash_of(r)], int(r["row"])) for r in self._repeated)
        return Repeats(self._n_repeated, tuple(pairs))

    def _buffer_hashes(self, first: Words, second: Words) -> None:
        if self._n_buffered + len(first) > len(self._buffer):
            self._spill()
        records = self._buffer[self._n_buffered : self._n_buffered + len(first)]
        records["first"], records["second"] = first, second
        records["row"] = np.arange(self._n_rows, self._n_rows + len(first))
        self._n_buffered += len(first)
        self._n_rows += len(first)

    def _spill(self) -> None:
        """Move the buffer to the bucket files."""
        # Repeats go no further: a column of few values would fill one bucket with all rows.
        firsts, repeated = _parted(self._buffer[: self._n_buffered])
        self._note(repeated)
        limits = [(2**64 * bucket) // self._n_buckets for bucket in range(1, self._n_buckets)]
        cuts = np.searchsorted(firsts["first"], np.array(limits, dtype=np.uint64))
        for bucket, records in enumerate(np.split(firsts, cuts)):
            self._append(bucket, records)
        self._n_buffered = 0

    def _append(self, bucket: int, records: Records) -> None:
        if len(records) == 0:
            return
        try:
            # Opened each time: hundreds of open files are more than some systems allow.
            with self._bucket_path(bucket).open("ab") as file:
                file.write(records.tobytes())
        except OSError as error:
            raise OutputError(
                f"Scratch folder {self._folder} cannot be written: {error.strerror}. Identifiers "
                f"need {_RECORD.itemsize} bytes per row there; free space or name another folder."
            ) from error

    def _bucket_path(self, bucket: int) -> Path:
        return self._folder / f"{bucket:05d}"

    def _search(self, path: Path) -> None:
        """Find the repeats in one bucket."""
        if not path.exists():
            return
        firsts, repeated = _parted(np.fromfile(path, dtype=_RECORD))
        path.unlink()
        self._note(repeated)
        for wanted in map(_hash_of, self._repeated):
            is_it = (firsts["first"] == wanted[0]) & (firsts["second"] == wanted[1])
            if is_it.any():
                self._row_of[wanted] = int(firsts["row"][is_it][0])

    def _note(self, repeated: Records) -> None:
        self._n_repeated += len(repeated)
        known = np.concatenate([self._repeated, repeated])
        self._repeated = known[np.argsort(known["row"])[:_PAIRS_KEPT]]


def _parted(records: Records) -> tuple[Records, Records]:
    """Return the first record of each hash, sorted by hash, and all others."""
    ordered = records.take(np.argsort(records["first"]))
    first = ordered["first"]
    is_tied = np.zeros(len(ordered) + 1, dtype=np.bool_)
    is_tied[1:-1] = first[1:] == first[:-1]
    places = np.flatnonzero(is_tied[1:] | is_tied[:-1])
    # Ties are rare: sorting them alone by what else they have costs next to nothing.
    tied = ordered[places]
    ordered[places] = tied[np.lexsort((tied["row"], tied["second"], tied["first"]))]
    is_repeat = is_tied[:-1]
    is_repeat[1:] &= ordered["second"][1:] == ordered["second"][:-1]
    return ordered[~is_repeat], ordered[is_repeat]


def _hash_of(record: np.void) -> tuple[int, int]:
    return int(record["first"]), int(record["second"])


def _pieces(values: pa.Array | pa.ChunkedArray) -> Iterator[pa.Array]:
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    for chunk in chunks:
        for start in range(0, len(chunk), _PIECE_ROWS):
            yield chunk.slice(start, _PIECE_ROWS)


def _hashed(values: pa.Array, first_row: int) -> tuple[Words, Words]:
    """Return two words for each value, equal for equal values and else almost surely not."""
    plain = _plain(values)
    is_missing = pc.is_null(plain, nan_is_null=pa.types.is_floating(plain.type))
    if pc.any(is_missing).as_py():
        row = first_row + int(np.argmax(np.asarray(is_missing)))
        raise DataError(
            f"id column has a missing value in row {row}; every row needs an identifier of its "
            "own. Fill it in, or name another id column."
        )
    if pa.types.is_large_binary(plain.type):
        return _hashed_bytes(plain)
    words = _number_words(plain.to_numpy(zero_copy_only=False))
    return _mixed(words), np.zeros(len(words), dtype=np.uint64)


def _plain(values: pa.Array) -> pa.Array:
    """Return the values as numbers or as large_binary."""
    if isinstance(values, pa.ExtensionArray):
        return _plain(values.storage)
    if pa.types.is_dictionary(values.type):
        return _plain(values.dictionary_decode())
    try:
        for target in _casts(values.type):
            values = values.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise DataError(
            f"id column has type {values.type}, which cannot be compared. Name a column of "
            "integers, strings or times."
        ) from None
    return values


def _casts(kind: pa.DataType) -> list[pa.DataType]:
    """Return the types through which values of one type become plain."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return []
    if pa.types.is_boolean(kind):
        return [pa.uint8()]
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return [pa.int32() if kind.bit_width == 32 else pa.int64()]
    if pa.types.is_decimal(kind):
        return [pa.large_string(), pa.large_binary()]
    return [pa.large_binary()]


def _number_words(values: NDArray[np.generic]) -> Words:
    if values.dtype.kind == "f":
        return (values.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    return values.astype(np.int64 if values.dtype.kind == "i" else np.uint64).view(np.uint64)


def _hashed_bytes(values: pa.Array) -> tuple[Words, Words]:
    """Return two hashes of each string: sums over its words of 8 bytes, mixed with their place."""
    text, starts, lengths = _bytes_of(values)
    n_words = np.maximum((lengths + 7) // 8, 1)  # an empty string is one word of no bytes
    first_words = np.cumsum(n_words) - n_words
    place = np.arange(n_words.sum()) - np.repeat(first_words, n_words)
    n_bytes = np.minimum(np.repeat(lengths, n_words) - 8 * place, 8)
    # A word may begin at any byte, and 8 zeros at the end let the last one be read whole.
    any_word = np.ndarray(len(text) - 7, dtype="<u8", buffer=text, strides=(1,))
    words = any_word[np.repeat(starts, n_words) + 8 * place] & _KEEP_BYTES[n_bytes]
    keys = _mixed(np.arange(1, 2 * n_words.max() + 1, dtype=np.uint64))
    words = _mixed(words + keys[0::2][place])
    length_words = lengths.astype(np.uint64)
    first = np.add.reduceat(words, first_words) + length_words
    second = np.add.reduceat(words * (keys[1::2] | np.uint64(1))[place], first_words)
    return _mixed(first), _mixed(second + length_words)


def _bytes_of(
    values: pa.Array,
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Return all bytes with 8 zeros behind them, and where each string starts and its length."""
    _, offsets, content = values.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(values) + 1, 8 * values.offset)
    text = np.zeros(bounds[-1] - bounds[0] + 8, dtype=np.uint8)
    if len(text) > 8:
        text[:-8] = np.frombuffer(content, np.uint8, len(text) - 8, bounds[0])
    return text, bounds[:-1] - bounds[0], np.diff(bounds)


def _mixed(words: Words) -> Words:
    """Return words one to one, each bit depending on all (the finaliser of SplitMix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
