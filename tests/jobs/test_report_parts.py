"""What chunks leave for a report: counts of all rows, the highest of them, and back."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mrot_scale.config.job import ReportConfig
from mrot_scale.jobs.report_parts import (
    SCORE_CELLS,
    ShownRows,
    count_cells,
    packed,
    parts_bytes,
    unpacked,
    wanted_parts,
)
from mrot_scale.reporting.populations import score_ranges


def test_arrays_come_back_as_they_were() -> None:
    arrays: dict[str, NDArray[Any]] = {
        "counts": np.arange(7, dtype=np.int64),
        "none": np.zeros((0, 3), dtype=np.float32),
        "rows": np.array([[1.5, np.nan], [-np.inf, 2.0]], dtype=np.float32),
    }
    found = unpacked(packed(arrays))
    assert list(found) == list(arrays)
    for name, values in arrays.items():
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name], values)
    assert packed(arrays) == packed(arrays)


def test_every_score_is_in_one_cell_and_rows_without_one_in_none() -> None:
    scores = np.array([0.0, 0.0004, 0.5, 0.99999, 1.0, np.nan], dtype=np.float32)
    cells = count_cells(scores)
    assert len(cells) == SCORE_CELLS
    assert cells.sum() == 5
    assert (cells[0], cells[500], cells[-1]) == (2, 1, 2)


def test_cells_add_up_to_the_ranges_shown() -> None:
    even = count_cells(np.linspace(0, 1, 100_000, endpoint=False, dtype=np.float32))
    found = score_ranges(even)
    assert sum(found["counts"]) == 100_000
    shares = np.array(found["counts"]) / 100_000
    assert shares == pytest.approx(np.array(found["expected"]), abs=2e-5)


def test_the_highest_rows_come_first_and_of_equals_the_earlier() -> None:
    scores = np.array([0.5, 0.9, 0.9, 0.7], dtype=np.float32)
    rows = np.array([40, 30, 20, 10])
    shown = ShownRows(rows, scores, np.zeros(4, np.int64), np.zeros((4, 2), np.float32))
    assert shown.highest(3).rows.tolist() == [20, 30, 10]


def test_nothing_is_left_where_nothing_is_wanted() -> None:
    off = ReportConfig(enabled=False)
    assert wanted_parts(off) is None
    assert parts_bytes(off, 10, 1_000_000, 8) == 0
    assert parts_bytes(ReportConfig(), 20, 10_000_000, 8) < 2_000_000
