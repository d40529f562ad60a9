"""Conditions on rows, written like Python and read as data: `pressure > 9 and site in ("a", "b")`.

Python parses the text, a short list of what is allowed is checked, and Arrow compares columns.
Nothing is ever evaluated. A comparison with a missing value is neither true nor false, and so is
its negation: such a row meets the condition only if the rest of it says so.
"""

import ast
import math
import operator
import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from sys import float_info
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mrot_scale.errors import ConfigError

MAX_CHARACTERS = 10_000
_MAX_DEPTH = 50

_ALLOWED = (
    "Allowed are columns, numbers, strings, True and False, compared by == != < <= > >= or by "
    "`in` and `not in` a list; `is None` and `is not None`; `and`, `or`, `not` and parentheses. "
    "Column names that are no Python names go in backticks."
)

_NO_VALUE = "neither a column nor a number, string, True or False"

_TOKEN = re.compile(
    r"""(?P<refused>\"{3}|'{3}|\#)
    |(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<name>`(?:[^`]|``)+`)
    |(?P<space>\s)""",
    re.VERBOSE | re.DOTALL,
)
_QUOTED_NAME = re.compile(r"`((?:[^`]|``)+)`")

_SIGN_OF: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
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
Table: TypeAlias = "pa.Table | pa.RecordBatch"


@dataclass(frozen=True)
class Condition:
    """What `parse_condition` returns; it may travel to other processes."""

    text: str
    columns: frozenset[str]
    """Names of the columns it looks at."""

    _root: "_Part"

    def check_columns(self, names: Iterable[str]) -> None:
        """Raise a `ConfigError` unless each column is one of these names."""
        known = list(names)
        for name in sorted(self.columns):
            if known.count(name) != 1:
                raise ConfigError(f"Condition {_short(self.text)}: {_not_one_column(name, known)}")

    def mask(self, table: Table) -> NDArray[np.bool_]:
        """Return which rows meet the condition; types that do not fit raise a `ConfigError`.

        An empty table suffices to check the types.
        """
        self.check_columns(table.schema.names)
        truths = pc.fill_null(self._root.truths(table), False)
        return np.asarray(truths, dtype=np.bool_)


@dataclass(frozen=True)
class _Column:
    """A column; by itself a condition if its values are true and false."""

    name: str

    def values(self, table: Table) -> Any:
        """Return the values in one of few types, NaN as missing."""
        found = table.column(self.name)
        if pa.types.is_dictionary(found.type):
            found = pc.cast(found, found.type.value_type)
        if _kind(found.type) == "text":
            return pc.cast(found, pa.large_string())
        is_exact = pa.types.is_integer(found.type) or _kind(found.type) != "number"
        return found if is_exact else _floats(found)

    def truths(self, table: Table) -> Any:
        values = self.values(table)
        if _kind(values.type) == "missing":
            return _nulls(values)
        if _kind(values.type) != "truth":
            raise ConfigError(
                f"Column {self.name!r} has type {values.type} and is no condition by itself. "
                "Compare it with something."
            )
        return values


@dataclass(frozen=True)
class _IsMissing:
    column: _Column

    def truths(self, table: Table) -> Any:
        return pc.is_null(self.column.values(table))


@dataclass(frozen=True)
class _Comparison:
    left: _Column
    sign: str
    right: "_Column | Value"

    def truths(self, table: Table) -> Any:
        if isinstance(self.right, _Column):
            return _compare_columns(self.left, self.sign, self.right, table)
        field = table.schema.field(self.left.name)
        return _compare_value(self.left.values(table), self.sign, self.right, field)


@dataclass(frozen=True)
class _Membership:
    column: _Column
    members: tuple[Value, ...]

    def truths(self, table: Table) -> Any:
        values, field = self.column.values(table), table.schema.field(self.column.name)
        equal = (_compare_value(values, "==", member, field) for member in self.members)
        return reduce(pc.or_kleene, equal, _constantly(values, False))


@dataclass(frozen=True)
class _Not:
    part: "_Part"

    def truths(self, table: Table) -> Any:
        return pc.invert(self.part.truths(table))


@dataclass(frozen=True)
class _All:
    parts: "tuple[_Part, ...]"

    def truths(self, table: Table) -> Any:
        return reduce(pc.and_kleene, (part.truths(table) for part in self.parts))


@dataclass(frozen=True)
class _Any:
    parts: "tuple[_Part, ...]"

    def truths(self, table: Table) -> Any:
        return reduce(pc.or_kleene, (part.truths(table) for part in self.parts))


_Part = _Column | _IsMissing | _Comparison | _Membership | _Not | _All | _Any


def parse_condition(text: str) -> Condition:
    """Return the condition; anything but the few things allowed raises a `ConfigError`."""
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(
            f"Condition has {len(text):,} characters, more than the {MAX_CHARACTERS:,} allowed. "
            "Put long lists into a column of their own."
        )
    reader = _Reader(text.strip())
    root = reader.condition(reader.parsed(), depth=0)
    return Condition(reader.text, frozenset(reader.columns), root)


class _Reader:
    """Turns a syntax tree into a condition, and knows where in the text each part of it stands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.plain = _TOKEN.sub(self._plain_token, text)
        """The text as Python can parse it, each character in its place."""

        self.columns: set[str] = set()

    def parsed(self) -> ast.expr:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # such as an escape that Python does not know
                return ast.parse(self.plain, mode="eval").body
        except SyntaxError as error:
            raise self._refusal((error.offset or 1) - 1, error.msg) from None
        except (ValueError, Warning) as error:
            raise self._refusal(0, str(error)) from None
        except (RecursionError, MemoryError):
            raise self._refusal(0, "too deeply nested") from None

    def condition(self, node: ast.expr, depth: int) -> _Part:
        if depth > _MAX_DEPTH:
            raise self._refused(node, "too deeply nested")
        if isinstance(node, ast.BoolOp):
            parts = tuple(self.condition(part, depth + 1) for part in node.values)
            return _All(parts) if isinstance(node.op, ast.And) else _Any(parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return _Not(self.condition(node.operand, depth + 1))
        if isinstance(node, ast.Compare):
            return self._comparisons(node)
        if isinstance(node, ast.Name):
            return self._column(node)
        raise self._refused(node, "no condition")

    def _comparisons(self, node: ast.Compare) -> _Part:
        sides = pairwise([node.left, *node.comparators])
        parts = [self._comparison(a, op, b) for op, (a, b) in zip(node.ops, sides, strict=True)]
        return parts[0] if len(parts) == 1 else _All(tuple(parts))

    def _comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> _Part:
        if isinstance(op, ast.Is | ast.IsNot):
            if not isinstance(right, ast.Constant) or right.value is not None:
                raise self._refused(right, "only None may follow `is`")
            part: _Part = _IsMissing(self._column(left))
            return _Not(part) if isinstance(op, ast.IsNot) else part
        if isinstance(op, ast.In | ast.NotIn):
            part = _Membership(self._column(left), self._members(right))
            return _Not(part) if isinstance(op, ast.NotIn) else part
        sign = _SIGN_OF[type(op)]
        if isinstance(left, ast.Name):
            is_column = isinstance(right, ast.Name)
            return _Comparison(
                self._column(left), sign, self._column(right) if is_column else self._value(right)
            )
        value = self._value(left)
        return _Comparison(self._column(right), _MIRRORED[sign], value)

    def _column(self, node: ast.expr) -> _Column:
        if not isinstance(node, ast.Name):
            raise self._refused(node, "not a column")
        name = self._source(node)
        if quoted := _QUOTED_NAME.fullmatch(name):
            name = quoted[1].replace("``", "`")
        elif "`" in name:
            raise self._refused(node, "backticks within a name")
        self.columns.add(name)
        return _Column(name)

    def _members(self, node: ast.expr) -> tuple[Value, ...]:
        if not isinstance(node, ast.Tuple | ast.List):
            raise self._refused(node, 'a list such as ("a", "b") must follow `in`')
        return tuple(self._value(member) for member in node.elts)

    def _value(self, node: ast.expr) -> Value:
        is_negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
        constant = node.operand if isinstance(node, ast.UnaryOp) and is_negative else node
        if not isinstance(constant, ast.Constant):
            raise self._refused(node, _NO_VALUE)
        value = constant.value
        if value is None:
            raise self._refused(node, "None is compared by `is None` and `is not None`")
        if isinstance(value, bool | str) and not is_negative:
            if isinstance(value, str) and not _is_unicode(value):
                raise self._refused(node, "a string with half a character")
            return value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._refused(node, _NO_VALUE)
        if isinstance(value, int) and value > float_info.max:
            raise self._refused(node, "a number too large")
        return -value if is_negative else value

    def _plain_token(self, token: re.Match[str]) -> str:
        if token["refused"]:
            raise self._refusal(token.start(), f"{token[0]} cannot be used here")
        if token["name"]:
            return "_" * len(token[0])
        if token["string"]:
            if "\n" in token[0] or "\r" in token[0]:
                raise self._refusal(token.start(), "a string over several lines")
            return token[0]
        return " "

    def _source(self, node: ast.expr) -> str:
        return self.text[self._place(node.col_offset) : self._place(node.end_col_offset or 0)]

    def _place(self, n_bytes: int) -> int:
        # Python counts in bytes of UTF-8.
        return len(self.plain.encode()[:n_bytes].decode())

    def _refused(self, node: ast.expr, why: str) -> ConfigError:
        return self._refusal(self._place(node.col_offset), f"{why}: {_short(self._source(node))}")

    def _refusal(self, place: int, why: str) -> ConfigError:
        return ConfigError(
            f"Condition {_short(self.text)}, position {place + 1}: {why}. {_ALLOWED}"
        )


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _not_one_column(name: str, known: list[str]) -> str:
    if name in known:
        return f"the table has several columns {name!r}. Rename all but one."
    near = get_close_matches(name, known, n=1)
    if near:
        return f"the table has no column {name!r}. Did you mean {near[0]!r}?"
    listed = ", ".join(map(repr, known[:20])) + (", ..." if len(known) > 20 else "")
    return f"the table has no column {name!r}. It has {listed or 'none'}."


def _kind(kind: pa.DataType) -> str:
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


def _compare_value(values: Any, sign: str, value: Value, field: pa.Field) -> Any:
    kind = _kind(values.type)
    if kind == "missing":
        return _nulls(values)
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


def _compare_columns(left: _Column, sign: str, right: _Column, table: Table) -> Any:
    a, b = left.values(table), right.values(table)
    kinds = {_kind(a.type), _kind(b.type)}
    if "missing" in kinds:
        return _nulls(a)
    mismatch = ConfigError(
        f"Column {left.name!r} has type {a.type}, which cannot be compared with column "
        f"{right.name!r} of type {b.type}. Convert one of them."
    )
    if len(kinds) > 1 or "other" in kinds or _has_zone(a.type) != _has_zone(b.type):
        raise mismatch
    if kinds == {"number"} and not _are_signed(a.type, b.type):
        a, b = _floats(a), _floats(b)
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
        return _constantly(values, _IN_PYTHON[sign](0, value))
    whole = math.floor(value)
    if whole != value:
        if sign in ("==", "!="):
            return _constantly(values, sign == "!=")
        # No integer lies between the two, so only the side on which the lower one falls matters.
        sign = "<=" if sign in ("<", "<=") else ">"
    return _IN_ARROW[sign](values, pa.scalar(whole, values.type))


def _constantly(values: Any, outcome: bool) -> Any:
    """Return the outcome wherever there is a value."""
    return pc.if_else(pc.is_valid(values), outcome, pa.scalar(None, pa.bool_()))


def _nulls(values: Any) -> Any:
    return pa.nulls(len(values), pa.bool_())


def _floats(values: Any) -> Any:
    """Return float64 values; NaN counts as missing."""
    wide = pc.cast(values, pa.float64(), safe=False)
    return pc.if_else(pc.is_nan(wide), pa.scalar(None, pa.float64()), wide)


def _ticks(text: str, kind: pa.DataType, name: str) -> Fraction:
    """Return a moment in the column's unit since 1970."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"Column {name!r} has type {kind}, and {_short(text)} is no date or time. Write it "
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
