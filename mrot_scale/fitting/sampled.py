"""The rows to learn from are drawn, and made usable."""

import numpy as np
from numpy.typing import NDArray

from mrot_scale.config.method import NonFinite
from mrot_scale.errors import DataError
from mrot_scale.rows import column_medians, fill_non_finite
from mrot_scale.seeds import generator

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


def sample_rows(n_rows: int, wanted: int, seed: int) -> Ids:
    """Return the row numbers to label, ascending: a function of size and seed alone."""
    if n_rows <= wanted:
        return np.arange(n_rows)
    return np.sort(generator(seed, "sample").choice(n_rows, wanted, replace=False))


def usable_sample(sample: Floats, policy: NonFinite) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return the rows to learn from, the value that fills each column, and which rows they are."""
    fill, complete = column_medians(sample), np.ones(len(sample), dtype=bool)
    if policy == "score-nan":
        complete = np.asarray(np.isfinite(sample).all(axis=1))
    usable = fill_non_finite(sample[complete], fill)
    if len(usable) < 2:
        raise DataError(f"Only {len(usable)} of {len(sample)} rows are finite; give more.")
    return usable, fill, complete
