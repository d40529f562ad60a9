"""Tables to grow: eight clusters of unequal density, one row in a hundred an anomaly."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mrot_scale.seeds import generator

Floats = NDArray[np.float64]
Rows = NDArray[np.float32]
Kinds = NDArray[np.int8]

BLOCK_ROWS = 100_000
ODD_SHARE = 0.01
KINDS = ("usual", "far", "dense", "local")
"""What a row can be: odd ones lie far from all, close together, or just beside their cluster."""

_CLUSTERS, _GROUPS = 8, 3
_GROUP_SPREAD = 0.05
_READ_ROWS = 65_536


@dataclass(frozen=True)
class _World:
    """Where the clusters are; the same for every block of a table."""

    centers: Floats
    spreads: Floats
    shares: Floats
    groups: Floats
    """Centres of the small dense clusters of anomalies."""

    @classmethod
    def of(cls, n_columns: int, seed: int) -> "_World":
        rng = generator(seed, "scale clusters", n_columns)
        sizes = np.geomspace(1.0, 8.0, _CLUSTERS)
        return cls(
            rng.normal(scale=4.0, size=(_CLUSTERS, n_columns)),
            np.geomspace(0.3, 2.0, _CLUSTERS),
            sizes / sizes.sum(),
            rng.normal(scale=6.0, size=(_GROUPS, n_columns)),
        )


def write_rows(path: Path, n_rows: int, n_columns: int, *, seed: int = 0) -> None:
    """Write a Parquet table that appears when it is whole; blocks depend on seed and number."""
    schema = pa.schema([(f"x{i}", pa.float32()) for i in range(n_columns)])
    unfinished = path.with_name(f".{path.name}.tmp")
    with pq.ParquetWriter(unfinished, schema) as writer:
        for block, start in enumerate(range(0, n_rows, BLOCK_ROWS)):
            rows, _ = block_of_rows(block, min(BLOCK_ROWS, n_rows - start), n_columns, seed)
            writer.write_table(pa.table(dict(zip(schema.names, rows.T, strict=True))))
    unfinished.rename(path)


def load_rows(path: Path, n_rows: int) -> Rows:
    """Return the first rows of a table as one array."""
    with pq.ParquetFile(path) as file:
        rows = np.empty((n_rows, file.metadata.num_columns), dtype=np.float32)
        start = 0
        for batch in file.iter_batches(_READ_ROWS):
            taken = batch.slice(0, n_rows - start)
            for place, column in enumerate(taken.columns):
                rows[start : start + len(taken), place] = column.to_numpy()
            start += len(taken)
            if start == n_rows:
                return rows
    raise ValueError(f"{path} has {start} rows, not {n_rows}")


def block_of_rows(block: int, n_rows: int, n_columns: int, seed: int) -> tuple[Rows, Kinds]:
    """Return the rows of one block, and what kind each of them is."""
    world, rng = _World.of(n_columns, seed), generator(seed, "scale rows", block)
    cluster = rng.choice(_CLUSTERS, size=n_rows, p=world.shares)
    noise = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
    rows = world.centers[cluster] + noise * world.spreads[cluster][:, None]
    is_odd = rng.random(n_rows) < ODD_SHARE
    kinds = np.where(is_odd, rng.integers(1, len(KINDS), size=n_rows), 0).astype(np.int8)
    for kind, odd_rows in enumerate((_far_rows, _dense_rows, _local_rows), start=1):
        found = np.flatnonzero(kinds == kind)
        rows[found] = odd_rows(world, len(found), rng)
    return np.asarray(rows, dtype=np.float32), kinds


def _far_rows(world: _World, n: int, rng: np.random.Generator) -> Floats:
    """Return isolated rows, far from every cluster and from each other."""
    return rng.uniform(-30.0, 30.0, size=(n, world.centers.shape[1]))


def _dense_rows(world: _World, n: int, rng: np.random.Generator) -> Floats:
    """Return rows of a few clusters that are small and denser than any other."""
    group = rng.integers(_GROUPS, size=n)
    return world.groups[group] + _GROUP_SPREAD * rng.normal(size=(n, world.groups.shape[1]))


def _local_rows(world: _World, n: int, rng: np.random.Generator) -> Floats:
    """Return rows between two clusters, or around one but with its noise inflated."""
    first, second = rng.integers(_CLUSTERS, size=(2, n))
    noise = rng.normal(size=(n, world.centers.shape[1])) * world.spreads[first][:, None]
    share = rng.uniform(0.3, 0.7, size=(n, 1))
    between = share * world.centers[first] + (1 - share) * world.centers[second] + 0.5 * noise
    inflated = world.centers[first] + 3.0 * noise
    return np.asarray(np.where(rng.random((n, 1)) < 0.5, between, inflated))
