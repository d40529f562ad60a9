"""Arrow columns compared with values and with each other, exactly, missing values staying missing.

NaN counts as missing, and numbers are compared as what the column would hold of them.
"""

import math
import operator
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mrot_scale.errors import ConfigError

_IN_ARROW = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_IN_PYTHON: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TICKS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}

Value = bool | int | float | str


def kind_of(kind: pa.DataType) -> str:
    """Return what values of an Arrow type can be compared with."""
    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if types.is_boolean(kind):
        return "truth"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "time"
    return "missing" if types.is_null(kind) else "other"


def compare_value(values: Any, sign: str, value: Value, field: pa.Field) -> Any:
    """Return where a column compares so with a value; types that do not fit are refused."""
    kind = kind_of(values.type)
    if kind == "missing":
        return nulls(values)
    if kind == "number" and not isinstance(value, bool | str):
        return _compare_number(values, sign, value, field.type)
    if kind == "time" and isinstance(value, str):
        whole = pa.int32() if pa.types.is_date32(values.type) else pa.int64()
        ticks = _ticks(value, values.type, field.name)
        return _compare_integers(pc.cast(values, whole), sign, ticks)
    if (kind, type(value)) in (("text", str), ("truth", bool)):
        return _IN_ARROW[sign](values, pa.scalar(value, values.type))
    raise ConfigError(
        f"Column {field.name!r} has type {field.type}, which cannot be compared with "
        f"{value!r:.60}. Compare numbers with numbers, strings with strings, dates with "
        "'2024-05-31'."
    )


def compare_columns(a: Any, sign: str, b: Any, names: tuple[str, str]) -> Any:
    """Return where two columns compare so; types that do not fit are refused."""
    kinds = {kind_of(a.type), kind_of(b.type)}
    if "missing" in kinds:
        return nulls(a)
    mismatch = ConfigError(
        f"Column {names[0]!r} has type {a.type}, which cannot be compared with column "
        f"{names[1]!r} of type {b.type}. Convert one of them."
    )
    if len(kinds) > 1 or "other" in kinds or _has_zone(a.type) != _has_zone(b.type):
        raise mismatch
    if kinds == {"number"} and not _are_signed(a.type, b.type):
        a, b = floats(a), floats(b)
    try:
        return _IN_ARROW[sign](a, b)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise mismatch from None


def _has_zone(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


def _are_signed(*kinds: pa.DataType) -> bool:
    # Arrow compares them exactly; for others it may find no common type.
    return all(pa.types.is_signed_integer(kind) for kind in kinds)


def _compare_number(values: Any, sign: str, value: int | float, stored: pa.DataType) -> Any:
    if pa.types.is_integer(values.type):
        return _compare_integers(values, sign, value)
    return _IN_ARROW[sign](values, pa.scalar(_rounded(value, stored), pa.float64()))


def _rounded(value: int | float, stored: pa.DataType) -> float:
    """Return the number as the column would hold it: 0.1 equals the float32 nearest to it."""
    wide = float(value)
    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    with np.errstate(over="ignore"):
        if pa.types.is_float16(stored):
            return float(np.float16(wide))
        return float(np.float32(wide)) if pa.types.is_float32(stored) else wide


def _compare_integers(values: Any, sign: str, value: int | float | Fraction) -> Any:
    """Compare exactly, also with fractions and with numbers beyond the column's type."""
    limits = np.iinfo(values.type.to_pandas_dtype())
    if not limits.min <= value <= limits.max:
        return constantly(values, _IN_PYTHON[sign](0, value))
    whole = math.floor(value)
    if whole != value:
        if sign in ("==", "!="):
            return constantly(values, sign == "!=")
        # No integer lies between the two, so only the side on which the lower one falls matters.
        sign = "<=" if sign in ("<", "<=") else ">"
    return _IN_ARROW[sign](values, pa.scalar(whole, values.type))


def constantly(values: Any, outcome: bool) -> Any:
    """Return the outcome wherever there is a value."""
    return pc.if_else(pc.is_valid(values), outcome, pa.scalar(None, pa.bool_()))


def nulls(values: Any) -> Any:
    """Return neither true nor false for every value."""
    return pa.nulls(len(values), pa.bool_())


def floats(values: Any) -> Any:
    """Return float64 values; NaN counts as missing."""
    wide = pc.cast(values, pa.float64(), safe=False)
    return pc.if_else(pc.is_nan(wide), pa.scalar(None, pa.float64()), wide)


def _ticks(text: str, kind: pa.DataType, name: str) -> Fraction:
    """Return a moment in the column's unit since 1970."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"Column {name!r} has type {kind}, and {short(text)} is no date or time. Write it "
            "like '2024-05-31' or '2024-05-31 13:45:00'."
        ) from None
    zone = kind.tz if pa.types.is_timestamp(kind) else None
    if zone is None and moment.tzinfo is not None:
        raise ConfigError(
            f"Column {name!r} has type {kind}, without a time zone, but {text!r} has one. "
            "Leave it out."
        )
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC if zone is None else _zone(zone, name))
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    seconds = Fraction(since // timedelta(microseconds=1), 10**6)
    if pa.types.is_date32(kind):
        return seconds / 86_400
    return seconds * (10**3 if pa.types.is_date64(kind) else _TICKS_PER_SECOND[kind.unit])


def _zone(zone: str, name: str) -> tzinfo:
    try:
        if zone[:1] in "+-":
            return datetime.fromisoformat(f"2000-01-01T00:00{zone}").tzinfo or UTC
        return ZoneInfo(zone)
    except (ValueError, KeyError, OSError):
        raise ConfigError(
            f"Column {name!r} is in time zone {zone!r}, which this machine does not know. Write "
            "times with their offset, like '2024-05-31 13:45:00+02:00'."
        ) from None


def short(text: str) -> str:
    """Return a text as messages quote it."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
