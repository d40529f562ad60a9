"""Dask arrays and dataframes, a piece at a time."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from mrot_scale.errors import DataError
from mrot_scale.reading.dask_tables import _computed
from mrot_scale.reading.sources import open_source
from tests.reading.samples import matrix, sample, whole

dask: Any = pytest.importorskip("dask")
da: Any = pytest.importorskip("dask.array")
dd: Any = pytest.importorskip("dask.dataframe")


@pytest.mark.parametrize("chunks", [(4, 3), (3, 2), (10, 1), (1, 3)])
def test_arrays_with_any_chunks(chunks: tuple[int, int]) -> None:
    stream = open_source(da.from_array(matrix(sample(10)), chunks=chunks))
    assert stream.n_rows == 10
    assert stream.identity == {"kind": "Dask array", "rows": 10}
    assert whole(stream).equals(sample(10))
    assert whole(stream, ["c2", "c0"]).equals(sample(10).select(["c2", "c0"]))


def test_one_block_of_rows_is_computed_at_a_time() -> None:
    seen: list[int] = []

    def remember(block: Any) -> Any:
        seen.append(len(block))
        return block

    array = da.from_array(matrix(sample(10)), chunks=(4, 3)).map_blocks(
        remember, dtype=float, meta=np.zeros((0, 0))
    )
    batches = open_source(array).read(["c0"])
    next(batches)
    assert seen == [4]


def test_arrays_of_one_axis_and_of_unknown_length() -> None:
    line = da.arange(5, chunks=2)
    assert whole(open_source(line)).to_pydict() == {"c0": [0, 1, 2, 3, 4]}
    stream = open_source(line[line > 1])
    assert stream.n_rows is None
    assert whole(stream).to_pydict() == {"c0": [2, 3, 4]}


def test_arrays_of_objects_are_refused() -> None:
    with pytest.raises(DataError, match=r"^Dask array holds values of type object"):
        open_source(da.from_array(np.array([[1, "x"]], object), chunks=1))


def frame(columns: dict[str, Any], npartitions: int = 3) -> Any:
    return dd.from_pandas(pd.DataFrame(columns), npartitions=npartitions, sort=False)


def test_dataframes() -> None:
    columns = {"a": [1.5, None, 3.0, 4.0], "s": ["x", None, "y", "z"], "i": [1, 2, 3, 4]}
    stream = open_source(frame(columns))
    assert (stream.name, stream.n_rows) == ("Dask dataframe", None)
    assert stream.schema == pa.schema([("a", pa.float64()), ("s", pa.string()), ("i", pa.int64())])
    assert whole(stream).to_pydict() == columns
    assert whole(stream, ["i"]).to_pydict() == {"i": columns["i"]}


def test_categories_become_their_values() -> None:
    stream = open_source(frame({"k": pd.Categorical(["x", "y", None, "x"])}))
    assert stream.schema.field("k").type == pa.string()
    assert whole(stream).to_pydict() == {"k": ["x", "y", None, "x"]}


def test_objects_get_the_type_of_their_values() -> None:
    pieces = [pd.DataFrame({"o": pd.Series(v, dtype=object)}) for v in ([None], [1], [2.5])]
    # Unless told not to, Dask turns objects into text.
    with dask.config.set({"dataframe.convert-string": False}):
        table = dd.from_map(lambda number: pieces[number], range(3), meta=pieces[0].iloc[:0])
        assert whole(open_source(table.partitions[:2])).to_pydict() == {"o": [None, 1]}
        with pytest.raises(DataError, match="Dask dataframe, partition 2: column 'o'"):
            whole(open_source(table))


def test_names_become_text_and_must_differ() -> None:
    named = dd.from_pandas(pd.DataFrame(np.zeros((2, 2))), npartitions=1)
    assert whole(open_source(named)).column_names == ["0", "1"]
    twice = dd.from_pandas(pd.DataFrame([[1, 2]], columns=[1, "1"]), npartitions=1)
    with pytest.raises(DataError, match=r"^Dask dataframe: .*'1' occur more than once"):
        open_source(twice)


def test_a_cluster_computes_what_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    class Collection:
        def compute(self, **options: str) -> dict[str, str]:
            return options

    class Distributed:
        @staticmethod
        def default_client() -> None:
            pass

    monkeypatch.setitem(__import__("sys").modules, "distributed", Distributed)
    assert _computed(Collection()) == {}
    monkeypatch.delitem(__import__("sys").modules, "distributed")
    assert _computed(Collection()) == {"scheduler": "synchronous"}
