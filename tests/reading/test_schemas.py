"""One schema for many parts: what may be promoted, what is refused, and how batches follow."""

import pyarrow as pa
import pytest

from mrot_scale.errors import DataError
from mrot_scale.reading.schemas import conform, merged, plain_schema

TEXTS = pa.dictionary(pa.int32(), pa.large_string())


def one(kind: pa.DataType) -> pa.Schema:
    return pa.schema([("a", kind)])


@pytest.mark.parametrize(
    ("first", "second", "common"),
    [
        (pa.null(), pa.int8(), pa.int8()),
        (pa.string(), pa.null(), pa.string()),
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int64(), pa.float64(), pa.float64()),
        (pa.float64(), pa.int8(), pa.float64()),
        (pa.float32(), pa.float64(), pa.float64()),
        (TEXTS, pa.string(), pa.string()),
        (pa.string(), TEXTS, pa.string()),
        (TEXTS, TEXTS, TEXTS),
        (TEXTS, pa.null(), pa.string()),
        (pa.dictionary(pa.int8(), pa.string()), TEXTS, pa.string()),
        (pa.timestamp("ms"), pa.timestamp("ns"), pa.timestamp("ns")),
    ],
)
def test_types_that_agree(first: pa.DataType, second: pa.DataType, common: pa.DataType) -> None:
    assert merged(one(first), one(second), "part").field("a").type == common


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pa.int64(), pa.string()),
        (pa.string(), pa.float64()),
        (pa.bool_(), pa.int64()),
        (pa.string(), pa.binary()),
        (pa.binary(), pa.string()),
        (pa.int64(), pa.timestamp("ns")),
        (TEXTS, pa.int64()),
    ],
)
def test_types_that_do_not_agree(first: pa.DataType, second: pa.DataType) -> None:
    with pytest.raises(DataError) as caught:
        merged(one(first), one(second), "part-7")
    assert caught.value.exit_code == 65
    for said in ("part-7", "'a'", str(first), str(second)):
        assert said in str(caught.value)


@pytest.mark.parametrize(
    ("found", "said"), [(["a"], "'b' missing"), (["a", "b", "new"], "'new' found")]
)
def test_parts_have_the_same_columns(found: list[str], said: str) -> None:
    common = pa.schema([(name, pa.int64()) for name in ("a", "b")])
    with pytest.raises(DataError, match=r"^part-7: .*" + said):
        merged(common, pa.schema([(name, pa.int64()) for name in found]), "part-7")


def test_order_is_the_first_parts() -> None:
    common = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    swapped = pa.schema([("b", pa.float64()), ("a", pa.int64())])
    assert merged(common, swapped, "part").names == ["a", "b"]


def test_plain_schemas_have_one_kind_of_text_and_no_metadata() -> None:
    fields = [pa.field("a", pa.large_string(), metadata={"k": "v"}, nullable=False)]
    schema = pa.schema([*fields, pa.field("b", pa.string_view())], metadata={"pandas": "{}"})
    plain = plain_schema(schema, "it")
    assert plain == pa.schema([("a", pa.string()), ("b", pa.string())])
    assert plain.metadata is None
    assert plain.field("a").metadata is None


def test_repeated_names_are_named() -> None:
    schema = pa.schema([(name, pa.int8()) for name in ("a", "b", "a", "c", "c")])
    with pytest.raises(DataError, match=r"^it: .*'a', 'c'"):
        plain_schema(schema, "it")


def test_batches_are_cast_ordered_and_completed() -> None:
    wanted = pa.schema(
        [("b", pa.string()), ("a", pa.float64()), ("n", pa.int8()), ("k", pa.int8())]
    )
    batch = pa.record_batch(
        {"a": [1, None], "b": pa.array(["x", None]).dictionary_encode(), "n": pa.nulls(2)}
    )
    found = conform(batch, wanted, "part", {"k": pa.scalar(7, pa.int8())})
    assert found.schema == wanted
    assert found.to_pydict() == {"b": ["x", None], "a": [1, None], "n": [None] * 2, "k": [7, 7]}


def test_values_that_would_change_are_refused() -> None:
    batch = pa.record_batch({"a": [2**53 + 1]})
    with pytest.raises(DataError, match=r"^part-7: column 'a' has type int64, expected double"):
        conform(batch, one(pa.float64()), "part-7")
