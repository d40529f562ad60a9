"""Conditions: what Python would say, nulls apart, and nothing that could run."""

import math
import operator
import pickle
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrot_scale.conditions import MAX_CHARACTERS, parse_condition
from mrot_scale.errors import ConfigError
from tests.strategies import examples

SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
COLUMNS: dict[str, tuple[Any, Any]] = {
    "int8": (pa.int8(), st.integers(-128, 127)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1) | st.integers(0, 3)),
    "float": (pa.float64(), st.floats(allow_nan=False) | st.integers(-3, 3).map(float)),
    "string": (pa.string(), st.text(max_size=3)),
    "large": (pa.large_string(), st.text("ab'\"\\é😀", max_size=3)),
    "view": (pa.string_view(), st.text("ab", max_size=3)),
    "coded": (pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["a", "b", ""])),
    "bool": (pa.bool_(), st.booleans()),
}
CONSTANTS: dict[str, Any] = {
    "int8": st.integers(-300, 300) | st.integers() | st.floats(allow_nan=False),
    "int64": st.integers() | st.integers(-3, 3) | st.floats(-4, 4) | st.floats(allow_nan=False),
    "uint64": st.integers() | st.integers(-3, 3) | st.floats(-4, 4),
    "float": st.floats(allow_nan=False) | st.integers(-(2**53), 2**53),
    "string": st.text(max_size=3),
    "large": st.text("ab'\"\\é😀", max_size=3),
    "view": st.text("ab", max_size=3),
    "coded": st.sampled_from(["a", "b", "c"]),
    "bool": st.booleans(),
}


def written(value: Any) -> str:
    """The constant as a user would write it."""
    if isinstance(value, float) and math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    return repr(value)


def meets(text: str, **columns: Any) -> list[bool]:
    return list(parse_condition(text).mask(pa.table(columns)))


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("sign", SIGNS)
@examples(15)
@given(draw=st.data())
def test_comparisons_are_pythons(kind: str, sign: str, draw: Any) -> None:
    arrow_type, elements = COLUMNS[kind]
    values = draw.draw(st.lists(st.none() | elements, max_size=8))
    constant = draw.draw(CONSTANTS[kind])
    column = pa.array(values, type=arrow_type)
    forward = meets(f"x {sign} {written(constant)}", x=column)
    assert forward == [v is not None and SIGNS[sign](v, constant) for v in values]
    backward = meets(f"{written(constant)} {sign} x", x=column)
    assert backward == [v is not None and SIGNS[sign](constant, v) for v in values]


@pytest.mark.parametrize("kind", COLUMNS)
@examples(15)
@given(draw=st.data())
def test_membership_is_pythons(kind: str, draw: Any) -> None:
    arrow_type, elements = COLUMNS[kind]
    values = draw.draw(st.lists(st.none() | elements, max_size=8))
    members = draw.draw(st.lists(CONSTANTS[kind], max_size=4))
    column = pa.array(values, type=arrow_type)
    listed = f"[{', '.join(map(written, members))}]"
    assert meets(f"x in {listed}", x=column) == [v is not None and v in members for v in values]
    expected = [v is not None and v not in members for v in values]
    assert meets(f"x not in {listed}", x=column) == expected


@examples(100)
@given(draw=st.data())
def test_logic_is_pythons(draw: Any) -> None:
    leaves = st.sampled_from(["a < 2", "b == 'x'", "c", "1 <= a <= 2", "a != b2", "d is None"])
    text = draw.draw(
        st.recursive(
            leaves,
            lambda t: st.one_of(
                st.tuples(t, t).map(lambda p: f"({p[0]} and {p[1]})"),
                st.tuples(t, t).map(lambda p: f"({p[0]} or {p[1]})"),
                t.map(lambda p: f"(not {p})"),
            ),
            max_leaves=8,
        )
    )
    rows = [
        {"a": a, "b": b, "c": c, "b2": b2, "d": None if c else 1}
        for a in (0, 1, 2, 3)
        for b in "xy"
        for c in (True, False)
        for b2 in (1, 2)
    ]
    expected = [eval(text, {}, row) for row in rows]  # the same words, as Python means them
    table = pa.Table.from_pylist(rows)
    condition = parse_condition(text)
    assert list(condition.mask(table)) == expected
    batches = table.to_batches(max_chunksize=7)
    assert [m for batch in batches for m in condition.mask(batch)] == expected
    assert list(pickle.loads(pickle.dumps(condition)).mask(table)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x > 1", [False, False, True]),
        ("not x > 1", [False, True, False]),
        ("x != 1", [False, False, True]),
        ("not (x == 1)", [False, False, True]),
        ("x is None", [True, False, False]),
        ("x is not None", [False, True, True]),
        ("x > 1 or x is None", [True, False, True]),
        ("x not in (1,)", [False, False, True]),
        ("x > 1 or y == 'a'", [True, True, True]),
        ("x > 1 and y == 'a'", [False, False, True]),
        ("x < 1 or y == 'a'", [True, True, True]),
        ("x < 1000", [False, True, True]),
        ("x != 0.5", [False, True, True]),
    ],
)
@pytest.mark.parametrize("missing", [None, float("nan")])
def test_missing_values_meet_nothing_but_is_none(
    text: str, expected: list[bool], missing: float | None
) -> None:
    floats = pa.array([missing, 1.0, 2.0], type=pa.float64())
    assert meets(text, x=floats, y=["a"] * 3) == expected
    if missing is None:
        assert meets(text, x=pa.array([None, 1, 2]), y=["a"] * 3) == expected


@pytest.mark.parametrize("text", ["x > 1", "x == 'a'", "x", "not x", "x in (1, 2)", "x == y"])
def test_a_column_of_nothing_but_null_meets_nothing(text: str) -> None:
    assert meets(text, x=pa.nulls(2), y=[1, 2]) == [False, False]


@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.date64(), *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns"))]
)
@pytest.mark.parametrize("sign", SIGNS)
@examples(10)
@given(draw=st.data())
def test_times_are_compared_as_times(kind: Any, sign: str, draw: Any) -> None:
    near = st.datetimes(datetime(2024, 1, 1), datetime(2024, 1, 3)).map(
        lambda t: t.replace(minute=0, second=0, microsecond=0)
    )
    values = draw.draw(st.lists(near.map(lambda t: t.replace(hour=0)), max_size=6))
    constant = draw.draw(near | st.datetimes())
    days = [v.date() for v in values]
    column = pa.array(days if pa.types.is_date(kind) else values, type=kind)
    expected = [SIGNS[sign](v, constant) for v in values]
    assert meets(f"x {sign} '{constant}'", x=column) == expected
    assert meets(f"x {sign} '{constant.isoformat()}'", x=column) == expected


def test_dates_may_be_listed() -> None:
    days = pa.array([date(2024, 1, 1), date(2024, 1, 2), None])
    assert meets("d in ('2024-01-02', '2031-05-05')", d=days) == [False, True, False]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "+01:00", "UTC"])
def test_times_are_of_the_columns_zone_unless_they_say_more(zone: str) -> None:
    moment = datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=0 if zone == "UTC" else 1)))
    column = pa.array([moment], type=pa.timestamp("ms", zone))
    assert meets("t == '2024-01-01 12:00'", t=column) == [True]
    assert meets(f"t == '{moment.isoformat()}'", t=column) == [True]
    assert meets("t < '2024-01-01T12:00:00.000001'", t=column) == [True]


def test_numbers_take_the_precision_of_their_column() -> None:
    for kind in (pa.float16(), pa.float32(), pa.float64(), pa.decimal128(5, 2)):
        value = Decimal("0.10") if pa.types.is_decimal(kind) else np.float64(0.1)
        column = pa.array([value], type=pa.float64() if kind.bit_width < 100 else kind).cast(kind)
        assert meets("x == 0.1 and x <= 0.1 and not x > 0.1 and 0 < x < 1", x=column) == [True]
    assert meets("x < 1e300 and x > -1e300", x=pa.array([1.0], type=pa.float32())) == [True]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.array([1, 2, 3, None]), pa.array([2, 2, 2, 2], type=pa.int8())),
        (pa.array([1, 2, 3, None]), pa.array([2, 2, 2, 2], type=pa.uint64())),
        (pa.array([1, 2, 3, None]), pa.array([2.0, 2.0, 2.0, 2.0])),
        (pa.array(["1", "2", "3", None]), pa.array(["2"] * 4).dictionary_encode()),
        (
            pa.array([date(2024, 1, d) for d in (1, 2, 3)] + [None]),
            pa.array([datetime(2024, 1, 2)] * 4),
        ),
    ],
)
def test_columns_are_compared_with_columns(left: Any, right: Any) -> None:
    for sign, compare in SIGNS.items():
        expected = [*(compare(n, 2) for n in (1, 2, 3)), False]
        assert meets(f"a {sign} b", a=left, b=right) == expected


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("`my column` > 1", "my column"),
        ("`a``b` > 1", "a`b"),
        ("`Größe 😀` > 1", "Größe 😀"),
        ("1 < é", "é"),
        ("ﬁeld > 1", "ﬁeld"),
        ("`class` > 1", "class"),
        ('`it\'s "#1"` > 1', 'it\'s "#1"'),
        ("  x\n  >\t1 ", "x"),
        ("(x\n> 1)", "x"),
    ],
)
def test_columns_of_any_name(text: str, name: str) -> None:
    condition = parse_condition(text)
    assert condition.columns == {name}
    assert condition.text == text.strip()
    assert list(condition.mask(pa.table({name: [1, 2]}))) == [False, True]


def test_strings_keep_backticks_hashes_and_spaces() -> None:
    odd = ["`a b`", "# no comment", "tab\there", "'''", "é`😀`"]
    for text in odd:
        condition = parse_condition(f"'é' != y and x == {text!r} and `z z` == 1")
        assert condition.columns == {"x", "y", "z z"}
        table = pa.table({"x": odd, "y": ["a"] * 5, "z z": [1] * 5})
        assert list(condition.mask(table)) == [value == text for value in odd]


HOSTILE = [
    "",
    "   ",
    "__import__('os')",
    "__import__('os').system('true')",
    "x.y > 1",
    "x[0] > 1",
    "x > f()",
    "(lambda: x)() > 1",
    "lambda: x",
    "[y for y in x]",
    "x > 1 if y else z",
    "(y := 5) > 1",
    "x + 1 > 2",
    "x > 10**100",
    "x > ~1",
    "x > +1",
    "x > --1",
    "x > -y",
    "x > -True",
    "x > -'a'",
    "x > 1j",
    "x == b'a'",
    "x == ...",
    "x == f'{y}'",
    "x == None",
    "None == x",
    "x is 1",
    "x is y",
    "1 is None",
    "x in 'abc'",
    "x in y",
    "x in (1)",
    "x in {1, 2}",
    "x in (y, 1)",
    "x in ((1, 2), 3)",
    "x in (None, 1)",
    "1 in (1, 2)",
    "'a' in x",
    "1 < 2",
    "x > 1 < 2 < 3",
    "True",
    "1",
    "'x'",
    "not 1",
    "x > 1 and True",
    "x, y",
    "*x",
    "x = 1",
    "x > 1; y",
    "import os",
    "x > 1 # and more",
    "x > 1 # first\nand y > 2",
    "x == '''a'''",
    'x == """a\nb"""',
    "x == 'a\\\nb'",
    "x == 'a\nb'",
    "x == '\\d'",
    "x == '\\ud800'",
    "x == \ud800",
    "x > 1\0",
    "y`x z` > 1",
    "`x z`y > 1",
    "`` > 1",
    "`x > 1",
    "x > `",
    "await x",
    "yield",
    "x > 1_",
    "x > 01",
    "x @ y > 1",
    "x <> 1",
    "x > " + "9" * 5_000,
    "x > " + "9" * 400,
    "x > -0x" + "f" * 9_000,
    "(" * 300 + "x > 1" + ")" * 300,
    "not " * 60 + "x",
    "not " * 2_400 + "x",
    "-" * 9_000 + "1",
    "x > " + "-" * 9_000 + "1",
    "a." * 3_000 + "b",
    "lambda: " * 1_200 + "1",
    "[" * 5_000,
    "x" * (MAX_CHARACTERS + 1),
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:30]))
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_condition(text)
    assert caught.value.exit_code == 78
    message = str(caught.value)
    assert len(message) < 700
    assert ("position" in message and "Allowed are" in message) or "characters" in message


@given(st.text(max_size=40) | st.text("xy`'\"()<>=!.,#\\ \n0andoritis", max_size=40))
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    try:
        condition = parse_condition(text)
    except ConfigError:
        return
    assert condition.columns


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x > 1 and f(y)", r"position 11: no condition: 'f\(y\)'"),
        ("'é😀' == x and y.z", "position 15: no condition: 'y.z'"),
        ("`é😀 é` > 1 and y.z > 1", "position 16: neither a column nor .*: 'y.z'"),
        ("x = 1", "position 3: invalid syntax.*compared by =="),
        ("x == None", "position 6: None is compared by `is None`"),
        ("x in (1)", "position 7: a list such as"),
    ],
)
def test_what_is_refused_is_located(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_condition(text)


def test_many_terms_are_no_depth() -> None:
    text = " or ".join(f"x == {n}" for n in range(500))
    assert meets(text, x=[3, 499, 500]) == [True, True, False]


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("x == 'a'", pa.array([1]), "'x' has type int64, which cannot be compared with 'a'"),
        ("x > 1", pa.array(["a"]), "'x' has type string, which cannot be compared with 1"),
        ("x in ('a', 1)", pa.array(["a"]), "cannot be compared with 1"),
        ("x == True", pa.array([1]), "type int64, which cannot be compared with True"),
        ("x == 1", pa.array([True]), "type bool, which cannot be compared with 1"),
        ("x > 'a'", pa.array([0.5], pa.float32()), "type float, which"),
        ("x > 1", pa.array([date(2024, 1, 1)]), "type date32.*cannot be compared with 1"),
        ("x > 'soon'", pa.array([date(2024, 1, 1)]), "'soon' is no date or time.*2024-05-31"),
        ("x > '2024-01-01T00:00Z'", pa.array([datetime(2024, 1, 1)]), "without a time zone"),
        ("x == 'a'", pa.array([b"a"]), "type binary, which cannot be compared"),
        ("x > 1", pa.array([[1]]), "type list<.*cannot be compared"),
        ("x", pa.array([1]), "'x' has type int64 and is no condition by itself"),
        ("x > y", pa.array(["a"]), "'x' has type .*string.*with column 'y' of type int64"),
        ("z > x", pa.array([datetime(2024, 1, 1)]), "'z' has type .*UTC.*with column 'x'"),
        ("w > w", pa.array([1]), "'w' has type struct"),
    ],
)
@pytest.mark.parametrize("n_rows", [0, 1])
def test_types_that_do_not_fit_are_named(text: str, column: Any, message: str, n_rows: int) -> None:
    zoned = pa.array([datetime(2024, 1, 1)], type=pa.timestamp("us", "UTC"))
    table = pa.table({"x": column, "y": [1], "z": zoned, "w": [{"a": 1}]}).slice(0, n_rows)
    with pytest.raises(ConfigError, match=message):
        parse_condition(text).mask(table)


def test_an_unknown_time_zone_is_named() -> None:
    column = pa.array([0], type=pa.timestamp("us", "Mars/Olympus"))
    with pytest.raises(ConfigError, match="'Mars/Olympus'"):
        meets("x > '2024-01-01'", x=column)
    assert meets("x > '1969-01-01 00:00+00:00'", x=column) == [True]


def test_unknown_columns_are_named_with_the_nearest() -> None:
    condition = parse_condition("presure > 1 or site == 'a'")
    condition.check_columns(["site", "presure"])
    with pytest.raises(ConfigError, match=r"no column 'presure'. Did you mean 'pressure'\?"):
        condition.check_columns(["pressure", "site"])
    with pytest.raises(ConfigError, match=r"no column 'presure'. It has 'q', 'site'."):
        condition.check_columns(["q", "site"])
    with pytest.raises(ConfigError, match="several columns 'site'"):
        condition.check_columns(["presure", "site", "site"])
    with pytest.raises(ConfigError, match="no column 'presure'"):
        condition.mask(pa.table({"site": ["a"]}))


def test_an_empty_table_has_an_empty_mask() -> None:
    schema = pa.schema([("x", pa.float32()), ("y", pa.string())])
    mask = parse_condition("x > 1 and y in ('a',) or x is None").mask(schema.empty_table())
    assert mask.shape == (0,)
    assert mask.dtype == np.bool_
