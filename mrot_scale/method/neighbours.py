"""How far each row's neighbourhood reaches, and fast nearest-anchor look-ups. The only importer
of FAISS.

FAISS answers in float32 and, for large references, approximately; it only proposes rows. Distances
that decide anything are measured again by `cost.squared_distances`.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from mrot_scale.errors import DataError
from mrot_scale.method.cost import Floats, paired_squared_distances, squared_distances

Ids = NDArray[np.int64]

FLAT_LIMIT = 32_768
"""References up to this many rows are searched exhaustively, larger ones through cells (IVF)."""

_QUERY_BLOCK = 4_096
_RECALL_ROWS = 256
_RECALL_GOAL = 0.95
_FIRST_CELLS = 8
_FARTHEST = 1e15  # squares, and sums of some thousands of them, stay within float32


@dataclass(frozen=True)
class Radii:
    """The reach of each row's zone and how well the index found it."""

    squared: Floats
    """Squared distance to the first reference row outside the zone, shape (n,)."""

    recall: float
    """Share of true neighbours found on a sample of rows; 1 for an exhaustive search."""


class ReferenceIndex:
    """A sample of rows, indexed, against which neighbourhoods are measured."""

    def __init__(self, rows: Floats, ids: Ids, *, flat_limit: int = FLAT_LIMIT) -> None:
        self._rows, self._ids = rows, ids
        self._as_float32 = _Float32Frame(rows)
        vectors = self._as_float32(rows)
        self._exact = len(rows) <= flat_limit
        self._index = _flat_index(vectors) if self._exact else _cell_index(vectors)

    def radii(self, rows: Floats, ids: Ids, alpha: float, *, threads: int = 1) -> Radii:
        """Return for each row the radius whose open ball holds the share `alpha` of the others.

        `ids` name the rows; a row that is itself in the reference is left out by its id.
        """
        n_inside = max(1, round(alpha * len(self._ids)))
        if n_inside + 2 > len(self._ids):
            raise DataError(
                f"A zone of {n_inside} reference rows needs a reference of at least "
                f"{n_inside + 2} rows, got {len(self._ids)}."
            )
        recall = 1.0 if self._exact else self._reach_recall_goal(n_inside + 2)

        def block_radii(start: int) -> Floats:
            block = slice(start, start + _QUERY_BLOCK)
            return self._block_radii(rows[block], ids[block], n_inside)

        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(block_radii, range(0, len(rows), _QUERY_BLOCK)))
        return Radii(np.concatenate(parts), recall)

    def _block_radii(self, rows: Floats, ids: Ids, n_inside: int) -> Floats:
        found = _search(self._index, self._as_float32(rows), n_inside + 2)
        short = (found < 0).any(axis=1)
        if short.any():  # the cells visited held too few rows
            found[short] = self._search_all(rows[short], n_inside + 2)
        itself = self._ids[found] == ids[:, None]
        # The first row outside the zone: one further along when the row itself was found.
        past = np.where(itself.any(axis=1), n_inside + 1, n_inside)
        outside = found[np.arange(len(rows)), past]
        return paired_squared_distances(rows, self._rows[outside])

    def _search_all(self, rows: Floats, count: int) -> Ids:
        D = squared_distances(rows, self._rows)
        return np.argsort(D, axis=1, kind="stable")[:, :count]

    def _reach_recall_goal(self, count: int) -> float:
        """Visit more cells until the goal is met on an even sample of them; return the recall."""
        probe = self._rows[:: max(1, len(self._rows) // _RECALL_ROWS)][:_RECALL_ROWS]
        truth = self._search_all(probe, count)
        self._index.nprobe = _FIRST_CELLS
        while True:
            found = _search(self._index, self._as_float32(probe), count)
            recall = float(
                np.mean([np.isin(t, f).mean() for t, f in zip(truth, found, strict=True)])
            )
            if recall >= _RECALL_GOAL or self._index.nprobe >= self._index.nlist:
                return recall
            self._index.nprobe = min(2 * self._index.nprobe, self._index.nlist)


class _Float32Frame:
    """Rows as float32, moved and scaled so that its seven digits and its range are enough.

    Centre and unit are medians, which no far row can move; what lies beyond the range stays far.
    """

    def __init__(self, rows: Floats) -> None:
        self._shift = np.median(rows, axis=0)
        apart = np.abs(rows - self._shift)
        self.unit = float(np.median(apart[apart > 0])) if apart.any() else 1.0

    def __call__(self, rows: Floats) -> NDArray[np.float32]:
        scaled = np.clip((rows - self._shift) / self.unit, -_FARTHEST, _FARTHEST)
        return np.ascontiguousarray(scaled, dtype=np.float32)


class LiftedAnchors:
    """Anchors searched by `|x - y|^2 - v` in one extra dimension, and by plain distance."""

    def __init__(self, anchors: Floats, v: Floats) -> None:
        self._as_float32 = _Float32Frame(anchors)
        plain = self._as_float32(anchors)
        lift = np.sqrt(v.max() - v) / self._as_float32.unit
        self._plain = _flat_index(plain)
        self._lifted = _flat_index(np.column_stack([plain, lift.astype(np.float32)]))

    def cheapest(self, rows: Floats, count: int) -> Ids:
        """Return the `count` anchors with the smallest lifted distance, shape (n, count)."""
        unlifted = np.zeros(len(rows), dtype=np.float32)
        queries = np.column_stack([self._as_float32(rows), unlifted])
        return _search(self._lifted, queries, count)

    def nearest(self, rows: Floats, count: int) -> Ids:
        """Return the `count` nearest anchors, shape (n, count)."""
        return _search(self._plain, self._as_float32(rows), count)


def _search(index: Any, queries: NDArray[np.float32], count: int) -> Ids:
    """Return the ids found; FAISS keeps its number of threads for each thread that calls it."""
    faiss.omp_set_num_threads(1)
    found: Ids = index.search(queries, count)[1]
    return found


def _flat_index(vectors: NDArray[np.float32]) -> Any:
    index = faiss.IndexFlatL2(vectors.shape[1])
    index.add(vectors)
    return index


def _cell_index(vectors: NDArray[np.float32]) -> Any:
    """Return an inverted-file index, trained with a fixed seed on one thread (same bytes)."""
    n_rows, n_columns = vectors.shape
    n_cells = int(4 * np.sqrt(n_rows))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(n_columns), n_columns, n_cells)
    index.cp.seed = 1
    index.cp.min_points_per_centroid = 1  # few rows per cell are no reason to write to the terminal
    faiss.omp_set_num_threads(1)
    index.train(np.ascontiguousarray(vectors[:: max(1, n_rows // (64 * n_cells))]))
    index.add(vectors)
    return index
