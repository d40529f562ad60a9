"""Numbers at rest are float32, each column shifted by a float64 origin so that this is enough.

Estimator and store share these few lines: rows in memory and rows on disk are the same numbers.
"""

import numpy as np
from numpy.typing import NDArray

from mrot_scale.errors import DataError

Floats = NDArray[np.float64]
Stored = NDArray[np.float32]

HEAD_ROWS = 4_096
"""Rows at the head of a table that decide the origins."""

LARGEST_STORED = 1e38
"""Distance from the origin beyond which float32 has no room."""

_FAR = 64.0
"""Spreads between zero and the middle of a column from which on it is worth shifting."""


def column_origins(head: Floats) -> Floats:
    """Return what to subtract from each column: 0, or its median where it lies far from 0.

    Timestamps and sensor levels vary little around a large value; float32 would round their
    differences away. Most columns keep 0 and so their own decimals.
    """
    return np.array([_origin(column[np.isfinite(column)]) for column in head[:HEAD_ROWS].T])


def _origin(values: Floats) -> float:
    if values.size == 0:
        return 0.0
    low, median, high = np.quantile(np.clip(values, -1e300, 1e300), [0.25, 0.5, 0.75])
    if abs(median) <= _FAR * (high - low) or abs(median) <= 1.0:
        return 0.0
    whole = bool((values == np.floor(values)).all())
    return float(np.floor(median) if whole else median)


def to_stored(rows: Floats, origin: Floats, *, first_row: int = 0) -> Stored:
    """Return the rows as they rest, or say which value has no room."""
    with np.errstate(over="ignore"):
        stored = (rows - origin).astype(np.float32)
    too_far = np.abs(stored) > LARGEST_STORED
    if too_far.any() and (too_far & np.isfinite(rows)).any():
        row, column = np.argwhere(too_far & np.isfinite(rows))[0]
        raise DataError(
            f"Value {rows[row, column]:g} in row {first_row + row}, feature {column}, is too large "
            f"(limit {LARGEST_STORED:g}). Rescale the column."
        )
    return stored


def from_stored(stored: Stored, origin: Floats) -> Floats:
    """Return the rows as every stage sees them."""
    return np.asarray(stored, dtype=np.float64) + origin
