"""Rows and the chunks they rest in: pure integers, no storage."""

from collections.abc import Iterator
from dataclasses import dataclass

from mrot_scale.errors import ConfigError

LARGEST_CHUNK_ROWS = 524_288
"""Narrow tables stop here: a chunk is also one task, and some of its arrays are wider than it."""


@dataclass(frozen=True)
class RowChunks:
    """`n_rows` rows in chunks of `chunk_rows`, the last one perhaps shorter."""

    n_rows: int
    chunk_rows: int

    def __post_init__(self) -> None:
        if self.n_rows < 0 or self.chunk_rows < 1:
            raise ConfigError(f"{self.n_rows} rows cannot be cut into chunks of {self.chunk_rows}.")

    def __len__(self) -> int:
        return -(-self.n_rows // self.chunk_rows)

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def chunk_to_rows(self, chunk: int) -> tuple[int, int]:
        """Return the first row of a chunk and the first one after it."""
        if not 0 <= chunk < len(self):
            raise IndexError(f"chunk {chunk} is not among {len(self)}")
        start = chunk * self.chunk_rows
        return start, min(start + self.chunk_rows, self.n_rows)


def rows_per_chunk(chunk_bytes: int, n_features: int) -> int:
    """Return how many rows of float32 features fill a chunk of the given size."""
    return max(1, min(chunk_bytes // (4 * max(n_features, 1)), LARGEST_CHUNK_ROWS))
