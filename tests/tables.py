"""Small tables for tests."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def normal_rows(n_rows: int = 300, n_columns: int = 3, seed: int = 0) -> Floats:
    """Gaussian rows, in general position."""
    return np.random.default_rng(seed).normal(size=(n_rows, n_columns))


def uneven_clusters(n_rows: int, *, seed: int = 0) -> Floats:
    """Rows of five clusters of unequal density in four columns, the same clusters for any seed."""
    rng = np.random.default_rng(seed)
    places = np.random.default_rng(99).normal(size=(5, 4)) * 6
    spread = np.array([0.3, 0.5, 1.0, 2.0, 4.0])
    cluster = rng.integers(0, 5, n_rows)
    return np.asarray(places[cluster] + rng.normal(size=(n_rows, 4)) * spread[cluster, None])
