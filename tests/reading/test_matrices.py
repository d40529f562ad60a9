"""Arrays in memory and arrays stored elsewhere."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mrot_scale.errors import DataError
from mrot_scale.reading.matrices import MOST_COLUMNS, array_schema, row_array_stream
from mrot_scale.reading.sources import BATCH_ROWS, open_source
from tests.reading.samples import matrix, sample, whole


class Stored:
    """Stands in for a Zarr array; remembers which rows were read."""

    def __init__(self, values: Any, chunk_rows: int) -> None:
        self._values, self.chunk_rows = values, chunk_rows
        self.shape, self.dtype = values.shape, values.dtype
        self.asked: list[tuple[int, int]] = []

    def rows(self, start: int, stop: int) -> Any:
        self.asked.append((start, stop))
        return self._values[start:stop]


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_cut_into_batches(order: Any) -> None:
    table = sample(BATCH_ROWS + 3)
    stream = open_source(np.asarray(matrix(table), order=order))
    assert stream.n_rows == table.num_rows
    assert stream.identity == {"kind": "NumPy array", "rows": table.num_rows}
    assert whole(stream).equals(table)
    assert whole(stream, ["c2"]).equals(table.select(["c2"]))


@pytest.mark.parametrize("kind", ["bool", "int8", "uint64", "float16", "float32", ">f8", ">i2"])
def test_types_are_kept(kind: str) -> None:
    values = np.array([[0, 1], [1, 0]]).astype(kind)
    stream = open_source(values)
    assert stream.schema.field("c1").type == pa.from_numpy_dtype(values.dtype.newbyteorder("="))
    assert whole(stream).column("c1").to_pylist() == [1, 0]


def test_one_axis_is_one_column() -> None:
    assert whole(open_source(np.arange(3.0))).to_pydict() == {"c0": [0, 1, 2]}


def test_masked_values_are_missing() -> None:
    masked = np.ma.masked_array([[1, 2], [3, 4]], [[False, True], [False, False]])
    assert whole(open_source(masked)).to_pydict() == {"c0": [1, 3], "c1": [None, 4]}


def test_fields_are_columns() -> None:
    rows = np.array([(1, 0.5, "x", "2024-01-01")], "i4,>f8,U3,M8[D]")
    stream = open_source(rows)
    kinds = [pa.int32(), pa.float64(), pa.string(), pa.date32()]
    assert stream.schema.types == kinds
    assert list(whole(stream, ["f2", "f0"]).to_pylist()) == [{"f2": "x", "f0": 1}]


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((2, 2, 2)), "shape (2, 2, 2)"),
        (np.array(1.0), "shape ()"),
        (np.zeros((2, 0)), "has 0 columns"),
        (np.zeros((0, MOST_COLUMNS + 1)), f"{MOST_COLUMNS + 1} columns"),
        (np.array([[1, "x"]], object), "type object"),
        (np.array([["x"]]), "type <U1"),
        (np.zeros((2, 2), complex), "type complex128"),
        (np.zeros((2, 2), "longdouble"), "type float128"),
        (np.zeros(2, [("a", "f8", 3)]), "3"),
        (np.zeros(2, [("a", object)]), "type object"),
    ],
)
def test_arrays_that_are_no_tables(array: Any, said: str) -> None:
    with pytest.raises(DataError, match=r"^NumPy array has|^NumPy array holds") as caught:
        open_source(array)
    assert said in str(caught.value)
    assert caught.value.exit_code == 65


def test_an_unknown_number_of_columns_is_refused() -> None:
    with pytest.raises(DataError, match="nan columns"):
        array_schema((5, float("nan")), np.dtype("f8"), "it")


def test_stored_arrays_are_read_by_whole_chunks() -> None:
    table = sample(10)
    array = Stored(matrix(table), chunk_rows=40_000)
    stream = row_array_stream(array, "x.zarr", {"kind": "Zarr"})
    assert whole(stream, ["c1", "c0"]).equals(table.select(["c1", "c0"]))
    assert array.asked == [(0, 10)]
    assert (stream.name, stream.n_rows, stream.identity) == ("x.zarr", 10, {"kind": "Zarr"})


@pytest.mark.parametrize(("chunk_rows", "step"), [(1, 65_536), (30_000, 60_000), (90_000, 90_000)])
def test_ranges_asked_for_are_multiples_of_chunks(chunk_rows: int, step: int) -> None:
    array = Stored(matrix(sample(100_000)), chunk_rows)
    assert whole(row_array_stream(array, "x.zarr", {})).equals(sample(100_000))
    assert array.asked == [(0, step), (step, 100_000)]
