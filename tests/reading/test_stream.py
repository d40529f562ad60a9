"""Streams: batches cut to size, columns checked."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from mrot_scale.errors import DataError
from mrot_scale.reading.stream import (
    BATCH_ROWS,
    TableStream,
    listed,
    projecting,
    rows_per_batch,
)
from tests.reading.samples import sample


@pytest.mark.parametrize(
    ("n_columns", "n_rows"), [(0, BATCH_ROWS), (1, BATCH_ROWS), (16, BATCH_ROWS), (1024, 1024)]
)
def test_wide_tables_get_shorter_batches(n_columns: int, n_rows: int) -> None:
    assert rows_per_batch(n_columns) == n_rows


def test_batches_are_cut_to_size_in_order() -> None:
    table = sample(2 * BATCH_ROWS + 1)
    read = projecting("it", table.schema, lambda wanted: table.select(wanted.names).to_batches())
    batches = list(read(["c2", "c0"]))
    assert [batch.num_rows for batch in batches] == [BATCH_ROWS, BATCH_ROWS, 1]
    assert pa.Table.from_batches(batches).equals(table.select(["c2", "c0"]))


@pytest.mark.parametrize("columns", [["c0", "nowhere"], []])
def test_columns_that_are_not_there_are_refused_with_those_that_are(columns: list[str]) -> None:
    read = projecting("it", sample().schema, lambda wanted: [])
    with pytest.raises(DataError, match=r"^it.*'c0', 'c1', 'c2'") as caught:
        read(columns)
    assert caught.value.exit_code == 65


def test_long_lists_are_shortened() -> None:
    assert listed(["a", "b", "c"], limit=2) == "'a', 'b' and 1 more"


@pytest.mark.parametrize("n_rows", [0, 1, 3 * BATCH_ROWS])
@pytest.mark.parametrize("is_known", [True, False])
def test_whether_there_are_rows_takes_no_more_than_the_beginning(
    n_rows: int, is_known: bool
) -> None:
    table, n_read = sample(n_rows), 0

    def batches(wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
        nonlocal n_read
        for batch in table.select(wanted.names).to_batches(max_chunksize=BATCH_ROWS):
            n_read += batch.num_rows
            yield batch

    read = projecting("it", table.schema, batches)
    stream = TableStream("it", table.schema, (), n_rows if is_known else None, {}, (), read)
    assert stream.has_rows() is (n_rows > 0)
    assert n_read <= (0 if is_known else BATCH_ROWS)
