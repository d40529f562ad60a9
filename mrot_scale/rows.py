"""Rows at the door: what is not a usable number is found, counted and dealt with by policy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.config.method import NonFinite
from mrot_scale.errors import DataError, ModelMismatchError, MrotError
from mrot_scale.precision import LARGEST_STORED

Floats = NDArray[np.float64]

LARGEST_VALUE = LARGEST_STORED / 2
"""Values beyond this have no room in float32 once shifted by their column's origin."""


def check_values(rows: Floats, names: tuple[str, ...] | None, policy: NonFinite) -> None:
    """Raise a `DataError` that counts and locates what the policy does not allow."""
    with np.errstate(invalid="ignore"):
        huge = np.isfinite(rows) & (np.abs(rows) > LARGEST_VALUE)
    if huge.any():
        row, column = np.argwhere(huge)[0]
        raise DataError(
            f"Value {rows[row, column]:g} in row {row}, {column_name(names, column)}, is too large "
            f"(limit {LARGEST_VALUE:g}). Rescale the column."
        )
    bad = ~np.isfinite(rows)
    if policy == "reject" and bad.any():
        raise DataError(_non_finite_message(rows, bad, names))


def column_medians(rows: Floats) -> Floats:
    """Return the median of the finite values of each column, 0 where there are none."""
    return np.array([np.median(x[np.isfinite(x)]) if np.isfinite(x).any() else 0.0 for x in rows.T])


def surely_finite(rows: Floats) -> bool:
    """Tell whether all values are finite, quickly; of values near the largest it is not sure."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(rows.sum()))


def fill_non_finite(rows: Floats, fill: Floats) -> Floats:
    """Return the rows with NaN and infinity replaced by each column's fill value."""
    return np.where(np.isfinite(rows), rows, fill)


def column_name(names: tuple[str, ...] | None, column: int) -> str:
    return f"column {column}" if names is None else f"column {names[column]!r}"


def _non_finite_message(rows: Floats, bad: NDArray[np.bool_], names: tuple[str, ...] | None) -> str:
    n_nan = int(np.isnan(rows).sum())
    n_infinite = int(bad.sum()) - n_nan
    where = ", ".join(f"row {r} {column_name(names, c)}" for r, c in np.argwhere(bad)[:5])
    return (
        f"Input has {n_nan} NaN and {n_infinite} infinity (inf) value(s), first at {where}. "
        "Clean them, or set non_finite='impute' (column medians) or 'score-nan' (NaN scores)."
    )


def explained(error: ValueError, table: Any) -> MrotError:
    """Return scikit-learn's complaint as ours, naming the column where it knows only the value."""
    message = " ".join(str(error).split())
    if "could not convert" in message and hasattr(table, "columns"):
        place = _first_text_column(table)
        return DataError(f"{message}. {place}Encode it as numbers or leave it out.")
    if "features, but" in message or "feature names" in message:
        return ModelMismatchError(message)
    return DataError(message)


def _first_text_column(table: Any) -> str:
    names = getattr(table, "column_names", None) or list(table.columns)
    for name in names:
        try:
            np.asarray(table[name], dtype=np.float64)
        except (ValueError, TypeError):
            return f"Column {name!r} is not numeric. "
    return ""
