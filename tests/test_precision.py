"""Numbers at rest: what float32 with an origin keeps, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from mrot_scale.errors import DataError
from mrot_scale.precision import (
    HEAD_ROWS,
    LARGEST_STORED,
    column_origins,
    from_stored,
    to_stored,
)
from tests.strategies import examples, seeds

Floats = NDArray[np.float64]

NO_ORIGIN = np.zeros(1)


def column(*values: float) -> Floats:
    return np.array(values, dtype=np.float64).reshape(-1, 1)


def there_and_back(rows: Floats) -> Floats:
    origin = column_origins(rows)
    return from_stored(to_stored(rows, origin), origin)


@pytest.mark.parametrize(
    ("values", "origin"),
    [
        ([0.0, 1.0, 2.0], 0.0),
        ([100.0, 101.0, 102.0], 100.0 + 1),  # quartiles 1 apart: 101 > 64
        ([63.0, 64.0, 65.0], 0.0),  # 64 is not more than 64 spreads
        ([64.0, 65.0, 66.0], 65.0),
        ([-1e6, -1e6 + 1, -1e6 + 2], -1e6 + 1),
        ([1_000.25, 1_000.5, 1_000.75], 1_000.5),
        ([1_000.0, 1_001.0], 1_000.0),  # whole numbers get a whole origin
        ([7.0, 7.0, 7.0], 7.0),
        ([0.1, 0.1, 0.1], 0.0),
        ([1.0, 1.0, 1.0], 0.0),
        ([0.0, 0.0], 0.0),
        ([np.nan, np.nan], 0.0),
        ([np.nan, 500.0, np.inf, -np.inf, 500.0], 500.0),
        ([], 0.0),
    ],
)
def test_origins_counted_by_hand(values: list[float], origin: float) -> None:
    assert column_origins(column(*values)).tolist() == [origin]


def test_each_column_has_its_own_origin() -> None:
    rows = np.column_stack([np.arange(9.0), 1.7e9 + np.arange(9.0), np.full(9, np.nan)])
    assert column_origins(rows).tolist() == [0.0, 1.7e9 + 4, 0.0]


def test_only_the_head_decides() -> None:
    head = np.full((HEAD_ROWS, 1), 1_000.0)
    rest = np.random.default_rng(0).normal(size=(10_000, 1))
    assert column_origins(np.vstack([head, rest])).tolist() == column_origins(head).tolist()


@examples(50)
@given(
    base=st.integers(1_600_000_000, 1_800_000_000),
    steps=st.lists(st.integers(0, 2**23), min_size=1, max_size=50),
)
def test_seconds_around_now_come_back_exactly(base: int, steps: list[int]) -> None:
    rows = column(*(float(base + step) for step in steps))
    assert there_and_back(rows).tolist() == rows.tolist()
    assert len(np.unique(to_stored(rows, column_origins(rows)))) == len(set(steps))


@examples(50)
@given(values=st.lists(st.integers(-(2**23), 2**23), min_size=1, max_size=50))
def test_whole_numbers_come_back_exactly(values: list[int]) -> None:
    rows = column(*map(float, values))
    assert there_and_back(rows).tolist() == rows.tolist()


@examples(50)
@given(value=st.floats(-1e38, 1e38), n_rows=st.integers(1, 20))
def test_a_constant_column_stays_constant(value: float, n_rows: int) -> None:
    found = there_and_back(np.full((n_rows, 1), value))
    assert len(np.unique(found)) == 1
    assert found[0, 0] == pytest.approx(value, rel=1e-7, abs=1e-44)


@examples(50)
@given(
    rows=hnp.arrays(np.float64, (12, 2), elements=st.floats(-1e30, 1e30)),
    origin=hnp.arrays(np.float64, 2, elements=st.floats(-1e30, 1e30)),
)
def test_the_error_is_a_float32s_share_of_the_distance_from_the_origin(
    rows: Floats, origin: Floats
) -> None:
    error = np.abs(from_stored(to_stored(rows, origin), origin) - rows)
    bound = np.abs(rows - origin) * 2.0**-24 + np.abs(rows) * 2.0**-52 + 1e-45
    assert (error <= 1.01 * bound + np.abs(origin) * 2.0**-52).all()


@examples(30)
@given(seed=seeds, cut=st.integers(0, 20))
def test_rows_are_stored_alike_however_they_are_cut(seed: int, cut: int) -> None:
    rows = np.random.default_rng(seed).normal(1e6, 1.0, size=(20, 3))
    origin = column_origins(rows)
    pieces = [to_stored(rows[:cut], origin), to_stored(rows[cut:], origin)]
    assert np.concatenate(pieces).tobytes() == to_stored(rows, origin).tobytes()


def test_missing_values_and_infinities_stay_what_they_are() -> None:
    rows = column(np.nan, np.inf, -np.inf, 0.0, -0.0)
    stored = to_stored(rows, NO_ORIGIN)
    assert stored.dtype == np.float32
    np.testing.assert_array_equal(stored, rows)
    assert np.signbit(stored[:, 0]).tolist()[1:] == [False, True, False, True]


@pytest.mark.parametrize("value", [1.1e38, -1.1e38, 3.5e38, 1e300, -1.7e308])
def test_a_value_without_room_is_refused_with_its_place(value: float) -> None:
    rows = np.zeros((4, 3))
    rows[2, 1] = value
    with pytest.raises(DataError, match=r"in row 1002, feature 1, is too large") as caught:
        to_stored(rows, np.zeros(3), first_row=1_000)
    assert f"{value:g}" in str(caught.value)
    assert "limit 1e+38" in str(caught.value)


def test_the_largest_value_has_room() -> None:
    rows = column(LARGEST_STORED, -LARGEST_STORED)
    np.testing.assert_allclose(to_stored(rows, NO_ORIGIN), rows, rtol=1e-7)


def test_far_from_its_origin_an_ordinary_value_has_no_room_either() -> None:
    with pytest.raises(DataError, match="row 0, feature 0"):
        to_stored(column(0.9e38), np.array([-0.9e38]))


def test_values_whose_distance_overflows_are_refused_like_any_other() -> None:
    rows = column(*[-1.7e308] * 9, 1.7e308)
    with pytest.raises(DataError, match="feature 0, is too large"):
        there_and_back(rows)
    with pytest.raises(DataError, match="too large"):
        there_and_back(column(-1.7e308, -1.7e308, 1.7e308, 1.7e308))
