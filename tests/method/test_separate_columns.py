"""Anchor sets that see one column each: which columns, and that the others are not looked at."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mrot_scale.method.anchors import (
    SEPARATE_COLUMNS,
    AnchorSet,
    fit_anchor_set,
    route_costs,
    route_matrix,
    separate_columns,
)
from mrot_scale.method.efforts import Problem
from tests.strategies import examples
from tests.tables import normal_rows

Ids = NDArray[np.int64]


def _seeing(columns: Ids | None) -> AnchorSet:
    rows = normal_rows(40, 4)
    return fit_anchor_set(rows, np.arange(40), Problem(k=3), "set", columns=columns)


@examples(100)
@given(st.integers(1, 160), st.integers(1, 200))
def test_every_column_has_equally_many_sets(n_columns: int, n_sets: int) -> None:
    found = separate_columns(n_columns, n_sets)
    columns, counts = np.unique(found, return_counts=True)
    assert len(columns) == min(n_columns, SEPARATE_COLUMNS)
    assert 0 <= columns.min() <= columns.max() < n_columns
    assert len(set(counts.tolist())) == 1
    assert n_sets <= len(found) < n_sets + len(columns)


def test_few_columns_are_all_seen_and_many_by_a_draw_that_is_always_the_same() -> None:
    assert separate_columns(SEPARATE_COLUMNS, 1).tolist() == list(range(SEPARATE_COLUMNS))
    assert separate_columns(3, 8).tolist() == [0, 1, 2] * 3
    wide = separate_columns(1_000, 8)
    np.testing.assert_array_equal(wide, separate_columns(1_000, 8))
    assert len(np.unique(wide)) == len(wide) == SEPARATE_COLUMNS
    assert wide.max() > 500  # from anywhere in the table, not from its beginning


@pytest.mark.parametrize("column", range(4))
def test_a_set_of_one_column_is_the_set_of_a_table_of_it(column: int) -> None:
    rows, new = normal_rows(40, 4), normal_rows(30, 4, seed=1)
    alone = fit_anchor_set(rows[:, [column]], np.arange(40), Problem(k=3), "set")
    among = _seeing(np.array([column]))
    np.testing.assert_array_equal(among.rows, alone.rows)
    np.testing.assert_array_equal(among.v, alone.v)
    expected = route_costs(alone, new[:, [column]], Problem(k=3))
    np.testing.assert_array_equal(route_matrix([among], new, Problem(k=3))[:, 0], expected)


def test_no_other_column_moves_a_route() -> None:
    new = normal_rows(30, 4, seed=2)
    sets = [_seeing(np.array([c])) for c in range(4)]
    before = route_matrix(sets, new, Problem(k=3))
    new[:, 1] += 50.0
    after = route_matrix(sets, new, Problem(k=3))
    others = [0, 2, 3]
    np.testing.assert_array_equal(after[:, others], before[:, others])
    assert (after[:, 1] > before[:, 1]).all()


def test_a_set_without_columns_sees_all_of_them() -> None:
    new = normal_rows(30, 4, seed=3)
    whole, listed = _seeing(None), _seeing(np.arange(4))
    assert whole.among(new) is new
    np.testing.assert_array_equal(listed.among(new), new)
    routes = route_matrix([whole, listed], new, Problem(k=3))
    np.testing.assert_array_equal(routes[:, 0], routes[:, 1])
