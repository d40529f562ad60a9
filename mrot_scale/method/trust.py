"""Which rows others may be measured against.

Anomalies that come in groups lend each other short ways: a group that serves as anchors hides
itself. After a first pass the rows that were hardest to move stop being anchors.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


def trusted_rows(values: Floats, distrust: float) -> Ids:
    """Return the rows left, ascending, without the share `distrust` that has the largest values.

    Of equal values the later row goes first.
    """
    n_left = len(values) - int(distrust * len(values))
    return np.sort(np.argsort(values, kind="stable")[:n_left])
