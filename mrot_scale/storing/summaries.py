"""What is known of one column of all rows, to JSON and back."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from sys import float_info
from typing import Any

from mrot_scale.errors import DamagedDataError

QUANTILE_LEVELS = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
BAD_ROWS_KEPT = 5
"""Rows with a value that is not finite, at most so many of them named."""


@dataclass(frozen=True)
class ColumnSummary:
    """One column of all rows; `from_json(to_json())` is the same."""

    count: int
    """Finite values."""

    missing: int
    """NaN values."""

    infinite: int
    """Infinite values, of either sign."""

    first_bad_rows: tuple[int, ...]
    """The first rows with NaN or infinity."""

    min: float | None
    """Of the finite values, like all that follow; None where there are none."""

    max: float | None
    mean: float | None
    deviation: float | None
    """Population standard deviation."""

    quantiles: tuple[float, ...]
    """At `QUANTILE_LEVELS`, of a uniform sample of rows; empty if it has no finite value."""

    lost_share: float
    """Share of distinct values that became equal to another when stored as float32."""

    def to_json(self) -> dict[str, Any]:
        """Return the summary in types that JSON has."""
        values = asdict(self)
        return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "ColumnSummary":
        """Return the summary read from JSON; raises `DamagedDataError` on anything else."""
        names = [field.name for field in fields(cls)]
        if not isinstance(values, dict) or set(values) != set(names):
            raise DamagedDataError(f"Column statistics need the keys {', '.join(names)} alone.")
        for name, is_sound in _IS_SOUND.items():
            if not is_sound(values[name]):
                raise DamagedDataError(f"Column statistics: {name} cannot be {values[name]!r}.")
        is_described = [values[name] is not None for name in ("min", "max", "mean", "deviation")]
        if is_described != [values["count"] > 0] * 4:
            raise DamagedDataError("Column statistics: min to deviation do not fit the count.")
        lists = {n: tuple(values[n]) for n in ("first_bad_rows", "quantiles")}
        return cls(**(values | lists))


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_number(value: Any) -> bool:
    # No isfinite(): it fails on integers beyond float64.
    return type(value) in (int, float) and abs(value) <= float_info.max


def _is_number_or_none(value: Any) -> bool:
    return value is None or _is_number(value)


def _are_ascending(values: Any, is_sound: Callable[[Any], bool]) -> bool:
    if not isinstance(values, list) or not all(map(is_sound, values)):
        return False
    return all(a <= b for a, b in pairwise(values))


_IS_SOUND: dict[str, Callable[[Any], bool]] = {
    "count": _is_count,
    "missing": _is_count,
    "infinite": _is_count,
    "first_bad_rows": lambda v: _are_ascending(v, _is_count) and len(v) <= BAD_ROWS_KEPT,
    "min": _is_number_or_none,
    "max": _is_number_or_none,
    "mean": _is_number_or_none,
    "deviation": lambda v: v is None or (_is_number(v) and v >= 0),
    "quantiles": lambda v: _are_ascending(v, _is_number) and len(v) in (0, len(QUANTILE_LEVELS)),
    "lost_share": lambda v: _is_number(v) and 0 <= v <= 1,
}
