"""Tables on disk of any length: clusters of unequal density, one row in a hundred out of place."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mrot_scale.seeds import generator

BLOCK_ROWS = 100_000
_CLUSTERS = 8


def write_table(path: Path, n_rows: int, n_columns: int, *, seed: int = 0) -> None:
    """Write a Parquet table block by block; every block is a function of seed and number."""
    schema = pa.schema([(f"x{i}", pa.float32()) for i in range(n_columns)])
    with pq.ParquetWriter(path, schema) as writer:
        for block, start in enumerate(range(0, n_rows, BLOCK_ROWS)):
            rows = rows_of_block(block, min(BLOCK_ROWS, n_rows - start), n_columns, seed)
            writer.write_table(pa.table(dict(zip(schema.names, rows.T, strict=True))))


def rows_of_block(block: int, n_rows: int, n_columns: int, seed: int) -> NDArray[np.float32]:
    """Return the rows of one block."""
    shape = generator(seed, "clusters", n_columns)
    centers = shape.normal(scale=4.0, size=(_CLUSTERS, n_columns))
    spreads = np.geomspace(0.3, 2.0, _CLUSTERS)
    rng = generator(seed, "rows", block)
    cluster = rng.integers(_CLUSTERS, size=n_rows)
    noise = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
    rows = centers[cluster] + noise * spreads[cluster][:, None]
    odd = rng.random(n_rows) < 0.01
    rows[odd] += rng.normal(scale=3.0, size=(int(odd.sum()), n_columns))
    return np.asarray(rows, dtype=np.float32)
