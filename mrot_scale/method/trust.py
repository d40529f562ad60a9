"""Which rows others may be measured against.

Anomalies that come in groups lend each other short ways: a group that serves as anchors hides
itself. After a first pass the rows that were hardest to move stop being anchors.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


def easiest_first(values: Floats) -> Ids:
    """Return the rows by ascending value, how hard they are to move; of equal ones the earlier."""
    return np.argsort(values, kind="stable")


def trusted_rows(order: Ids, distrust: float) -> Ids:
    """Return the rows, ascending, that are left without the share that comes last in the order."""
    return np.sort(order[: n_trusted(len(order), distrust)])


def n_trusted(n_rows: int, distrust: float) -> int:
    """Return how many rows are left without a share of them."""
    return n_rows - int(distrust * n_rows)
