"""Tables in memory."""

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mrot_scale.errors import DataError, InputTypeError
from mrot_scale.reading.sources import BATCH_ROWS, open_source
from tests.reading.samples import sample, whole

MIXED = {"n": [1.5, None], "s": ["x", None], "b": [True, None], "i": [1, 2]}


class Speaker:
    """An object that knows only Arrow's protocol, perhaps only once."""

    def __init__(self, table: pa.Table, times: int = 9) -> None:
        self._table, self._times = table, times

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        if self._times == 0:
            raise RuntimeError("already told")
        self._times -= 1
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("make", [pa.table, pl.DataFrame, lambda c: Speaker(pa.table(c))])
def test_missing_values_and_types(make: Any) -> None:
    stream = open_source(make(MIXED))
    assert whole(stream).to_pydict() == MIXED
    assert stream.schema.field("s").type == pa.string()
    assert whole(stream, ["s", "n"]).to_pydict() == {"s": MIXED["s"], "n": MIXED["n"]}


@pytest.mark.parametrize("make", [lambda t: t, pl.from_arrow, lambda t: t.to_pandas(), Speaker])
def test_batches_keep_order_and_size(make: Any) -> None:
    table = sample(BATCH_ROWS + 9).combine_chunks()
    stream = open_source(make(table))
    assert whole(stream).equals(table)
    assert whole(stream, ["c2", "c1"]).equals(table.select(["c2", "c1"]))


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (sample(), "pyarrow table"),
        (sample().to_batches()[0], "pyarrow table"),
        (pl.DataFrame({"a": [1] * 5}), "polars DataFrame"),
        (pd.DataFrame({"a": [1] * 5}), "pandas table"),
    ],
)
def test_names_and_identities(source: Any, name: str) -> None:
    stream = open_source(source)
    assert (stream.name, stream.n_rows, stream.notes) == (name, 5, ())
    assert stream.identity == {"kind": name, "rows": 5}


def test_no_rows_but_a_schema() -> None:
    for source in (sample(0), pl.DataFrame({"a": []}), pd.DataFrame({"a": np.zeros(0)})):
        stream = open_source(source)
        assert stream.n_rows == 0
        assert whole(stream).num_rows == 0
        assert len(stream.schema) >= 1


def test_a_reader_can_be_read_once() -> None:
    stream = open_source(sample(5).to_reader())
    assert stream.n_rows is None
    assert whole(stream).equals(sample(5))
    with pytest.raises(DataError, match="only once") as caught:
        stream.read(["c0"])
    assert caught.value.exit_code == 65


def test_other_objects_may_be_read_once_too() -> None:
    stream = open_source(Speaker(sample(), times=1))
    assert whole(stream).equals(sample())
    with pytest.raises(InputTypeError, match="already told"):
        whole(stream)


def test_pandas_missing_values_stay_missing() -> None:
    frame = pd.DataFrame(
        {
            "nan": [1.0, np.nan],
            "nullable": pd.array([1, None], "Int64"),
            "text": ["x", None],
            "objects": pd.Series(["x", np.nan], dtype=object),
            "time": pd.to_datetime(["2024-01-01", None]),
            "kind": pd.Categorical(["x", None]),
        }
    )
    table = whole(open_source(frame))
    assert [column.null_count for column in table.columns] == [1] * 6
    assert table.schema.field("nullable").type == pa.int64()


def test_pandas_types_come_from_all_rows() -> None:
    late = pd.Series([None] * BATCH_ROWS + ["x"], dtype=object)
    decimal = pd.Series([None] * BATCH_ROWS + [Decimal("1.5")], dtype=object)
    table = whole(open_source(pd.DataFrame({"s": late, "d": decimal})))
    assert table.slice(BATCH_ROWS).to_pydict() == {"s": ["x"], "d": [Decimal("1.5")]}


def test_pandas_index_is_mentioned_and_not_read() -> None:
    stream = open_source(pd.DataFrame({"a": [1]}, index=["x"]))
    assert stream.schema.names == ["a"]
    assert "index is not used" in stream.notes[0]


def test_pandas_names_become_text() -> None:
    frame = pd.DataFrame(np.zeros((2, 2)))
    assert whole(open_source(frame)).column_names == ["0", "1"]
    frame.columns = [1, "1"]
    with pytest.raises(DataError, match=r"^pandas table: .*'1' occur more than once"):
        open_source(frame)


@pytest.mark.parametrize("values", [[1, "x"], ["x", 1], [1 + 2j], [object()]])
def test_pandas_columns_of_mixed_types_are_named(values: list[Any]) -> None:
    frame = pd.DataFrame({"good": [0.0] * len(values), "bad": pd.Series(values, dtype=object)})
    with pytest.raises(DataError, match=r"^pandas table, column 'bad': mixed or unknown") as caught:
        open_source(frame)
    assert caught.value.exit_code == 65


def test_repeated_names_are_named() -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(DataError, match=r"^pyarrow table: .*'a'"):
        open_source(table)
    with pytest.raises(DataError, match=r"^pandas table: .*'a'"):
        open_source(pd.DataFrame([[1, 2]], columns=["a", "a"]))


@pytest.mark.parametrize("source", [pd.Series([1]), pl.Series([1])])
def test_a_single_column_is_no_table(source: Any) -> None:
    with pytest.raises(InputTypeError, match="Series cannot be read as a table"):
        open_source(source)
