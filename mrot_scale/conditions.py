"""Conditions on rows, written like Python and read as data: `pressure > 9 and site in ("a", "b")`.

Python parses the text, a short list of what is allowed is checked, and Arrow compares columns.
Nothing is ever evaluated. A comparison with a missing value is neither true nor false, and so is
its negation: such a row meets the condition only if the rest of it says so.
"""

import ast
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from sys import float_info

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from mrot_scale.comparing import Value, short
from mrot_scale.condition_parts import (
    All,
    Column,
    Comparison,
    IsMissing,
    Membership,
    Not,
    Part,
    Some,
    Table,
)
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


@dataclass(frozen=True)
class Condition:
    """What `parse_condition` returns; it may travel to other processes."""

    text: str
    columns: frozenset[str]
    """Names of the columns it looks at."""

    _root: Part

    def check_columns(self, names: Iterable[str]) -> None:
        """Raise a `ConfigError` unless each column is one of these names."""
        known = list(names)
        for name in sorted(self.columns):
            if known.count(name) != 1:
                raise ConfigError(f"Condition {short(self.text)}: {_not_one_column(name, known)}")

    def mask(self, table: Table) -> NDArray[np.bool_]:
        """Return which rows meet the condition; types that do not fit raise a `ConfigError`.

        An empty table suffices to check the types.
        """
        self.check_columns(table.schema.names)
        truths = pc.fill_null(self._root.truths(table), False)
        return np.asarray(truths, dtype=np.bool_)


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

    def condition(self, node: ast.expr, depth: int) -> Part:
        if depth > _MAX_DEPTH:
            raise self._refused(node, "too deeply nested")
        if isinstance(node, ast.BoolOp):
            parts = tuple(self.condition(part, depth + 1) for part in node.values)
            return All(parts) if isinstance(node.op, ast.And) else Some(parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return Not(self.condition(node.operand, depth + 1))
        if isinstance(node, ast.Compare):
            return self._comparisons(node)
        if isinstance(node, ast.Name):
            return self._column(node)
        raise self._refused(node, "no condition")

    def _comparisons(self, node: ast.Compare) -> Part:
        sides = pairwise([node.left, *node.comparators])
        parts = [self._comparison(a, op, b) for op, (a, b) in zip(node.ops, sides, strict=True)]
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Part:
        if isinstance(op, ast.Is | ast.IsNot):
            if not isinstance(right, ast.Constant) or right.value is not None:
                raise self._refused(right, "only None may follow `is`")
            part: Part = IsMissing(self._column(left))
            return Not(part) if isinstance(op, ast.IsNot) else part
        if isinstance(op, ast.In | ast.NotIn):
            part = Membership(self._column(left), self._members(right))
            return Not(part) if isinstance(op, ast.NotIn) else part
        sign = _SIGN_OF[type(op)]
        if isinstance(left, ast.Name):
            is_column = isinstance(right, ast.Name)
            return Comparison(
                self._column(left), sign, self._column(right) if is_column else self._value(right)
            )
        value = self._value(left)
        return Comparison(self._column(right), _MIRRORED[sign], value)

    def _column(self, node: ast.expr) -> Column:
        if not isinstance(node, ast.Name):
            raise self._refused(node, "not a column")
        name = self._source(node)
        if quoted := _QUOTED_NAME.fullmatch(name):
            name = quoted[1].replace("``", "`")
        elif "`" in name:
            raise self._refused(node, "backticks within a name")
        self.columns.add(name)
        return Column(name)

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
        return self._refusal(self._place(node.col_offset), f"{why}: {short(self._source(node))}")

    def _refusal(self, place: int, why: str) -> ConfigError:
        return ConfigError(f"Condition {short(self.text)}, position {place + 1}: {why}. {_ALLOWED}")


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
