"""Which rows of a store are given efforts: a sample of them, or all of them in parts.

Every row's part is a function of its number, the number of rows and the seed, never of chunks. Part
0 is a fair sample of the whole; what the method fits (views, anchors, calibrations) it fits there.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mrot_scale.config.method import MethodConfig
from mrot_scale.fitting.sampled import sample_rows
from mrot_scale.seeds import generator
from mrot_scale.storing.store import FeatureStore

Ids = NDArray[np.int64]

HELD_OUT_ROWS = 5_000
"""Rows kept apart to validate a model on."""

EFFORT_BLOCK_BATCHES = 256
"""Batches solved by one task: about a second."""

ROUTE_BLOCK_ROWS = 65_536
"""Rows sent to the anchors by one task."""

_PART_BYTES = 2**26
_LARGEST_PART_ROWS = 250_000
"""Rows of a part of few columns, where efforts against 32 anchor sets are what takes memory."""

_BLOCK_ROWS = 65_536


@dataclass(frozen=True)
class LabelPlan:
    """Which part each row is in."""

    n_rows: int
    label_rows: int
    coverage: Literal["sample", "all"]
    n_features: int
    seed: int

    @property
    def n_parts(self) -> int:
        """One for a sample; else as many as keep a part within its share of memory."""
        if self.coverage == "sample" or self.n_rows <= self.label_rows:
            return 1
        fitting = max(self.label_rows, _PART_BYTES // (4 * self.n_features))
        return -(-self.n_rows // min(fitting, _LARGEST_PART_ROWS))

    def rows_of_part(self, part: int, start: int, stop: int) -> Ids:
        """Return the rows of a part among `start` to `stop`, ascending."""
        if self.n_parts == 1:
            wanted = self.n_rows if self.coverage == "all" else self.label_rows
            chosen = sample_rows(self.n_rows, wanted, self.seed)
            return chosen[np.searchsorted(chosen, start) : np.searchsorted(chosen, stop)]
        blocks = range(start // _BLOCK_ROWS, -(-stop // _BLOCK_ROWS))
        rows = np.concatenate([self._rows_in_block(part, block) for block in blocks])
        return rows[(rows >= start) & (rows < stop)]

    def _rows_in_block(self, part: int, block: int) -> Ids:
        parts = generator(self.seed, "parts", block).integers(self.n_parts, size=_BLOCK_ROWS)
        return np.flatnonzero(parts == part) + block * _BLOCK_ROWS

    def held_out(self, start: int, stop: int) -> Ids:
        """Return rows among `start` to `stop` that are in no part, to validate on."""
        if self.coverage == "all" or self.n_rows <= self.label_rows:
            return np.zeros(0, dtype=np.int64)
        drawn = sample_rows(self.n_rows, HELD_OUT_ROWS, self.seed + 1)
        drawn = drawn[(drawn >= start) & (drawn < stop)]
        return np.setdiff1d(drawn, self.rows_of_part(0, start, stop))


def label_plan(
    store: FeatureStore, config: MethodConfig, coverage: Literal["sample", "all"]
) -> LabelPlan:
    """Return which rows of a store are labelled."""
    n_features = len(store.schema.features)
    return LabelPlan(store.n_rows, config.label_rows, coverage, n_features, config.seed)
