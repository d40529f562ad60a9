"""Rows made up to teach the score model what the sample says too little about.

Efforts against anchors are defined for any row. A sample holds few rows of a rare category and none
of an unseen one: copies of sampled rows are given such categories. And a small sample leaves trees
little to cut between: rows between, beyond and across sampled ones fill the gaps.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mrot_scale.seeds import generator

Floats = NDArray[np.float64]

ROWS_PER_COLUMN = 200
"""Made-up rows for each categorical column: enough for some leaves, too few to matter else."""


def imagined_rows(rows: Floats, levels: Mapping[int, Floats], seed: int) -> Floats:
    """Return copies of some rows, each with one category replaced by a rare level."""
    made = []
    for position, rare in sorted(levels.items()):
        rng = generator(seed, "imagined", position)
        some = rows[rng.choice(len(rows), min(ROWS_PER_COLUMN, len(rows)), replace=False)].copy()
        some[:, position] = rng.choice(rare, len(some))
        made.append(some)
    return np.concatenate(made) if made else np.empty((0, rows.shape[1]))


MIXED_ROWS = 5_000
"""Rows made of two others for trees that are given efforts: enough to cut finely."""


def mixed_rows(rows: Floats, targets: Floats, seed: int) -> Floats:
    """Return rows made of two sampled ones, on the line through both or with columns of each.

    Half of them start from the tenth of the rows with the highest targets: what matters most is
    told apart most finely.
    """
    rng = generator(seed, "mixed")
    n_rows, n_top = len(rows), max(1, len(rows) // 10)
    top = np.argsort(-targets, kind="stable")[:n_top]
    from_top = rng.random(MIXED_ROWS) < 0.5
    first = np.where(from_top, rng.choice(top, MIXED_ROWS), rng.integers(n_rows, size=MIXED_ROWS))
    one, other = rows[first], rows[rng.integers(n_rows, size=MIXED_ROWS)]
    along = one + rng.uniform(-0.25, 1.25, size=(MIXED_ROWS, 1)) * (other - one)
    share = rng.uniform(0.1, 0.5, size=(MIXED_ROWS, 1))
    across = np.where(rng.random(one.shape) < share, other, one)
    return np.where(rng.random((MIXED_ROWS, 1)) < 0.5, along, across)
