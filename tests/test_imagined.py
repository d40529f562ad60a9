"""Rows made up for the score model: copies with rare categories, and mixtures of two rows."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from mrot_scale.imagined import MIXED_ROWS, ROWS_PER_COLUMN, imagined_rows, mixed_rows
from tests.tables import normal_rows

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def _from_sample(made: Floats, rows: Floats) -> Bools:
    """Which rows hold, in every column, only numbers that the sample has there."""
    known = [np.isin(m, r) for m, r in zip(made.T, rows.T, strict=True)]
    return np.asarray(np.column_stack(known).all(axis=1))


# --- rare categories -----------------------------------------------------------------------------


def test_imagined_rows_are_sampled_ones_but_for_one_rare_level() -> None:
    rows = normal_rows(300, 4)
    levels = {1: np.array([50.0, 60.0]), 3: np.array([70.0])}
    made = imagined_rows(rows, levels, seed=0)
    assert made.shape == (2 * ROWS_PER_COLUMN, 4)
    for part, (column, rare) in zip(np.split(made, 2), levels.items(), strict=True):
        assert set(part[:, column].tolist()) == set(rare.tolist())
        rest = [c for c in range(4) if c != column]
        originals = {tuple(row) for row in rows[:, rest].tolist()}
        copies = {tuple(row) for row in part[:, rest].tolist()}
        assert len(copies) == ROWS_PER_COLUMN  # no row is copied twice
        assert copies <= originals


def test_a_small_sample_is_imagined_once_over() -> None:
    assert imagined_rows(normal_rows(20), {0: np.array([9.0])}, seed=0).shape == (20, 3)


def test_without_categories_nothing_is_imagined() -> None:
    assert imagined_rows(normal_rows(20), {}, seed=0).shape == (0, 3)


def test_imagined_rows_of_a_column_do_not_depend_on_the_other_columns_or_their_order() -> None:
    rows, rare = normal_rows(300), np.array([9.0, 8.0])
    both = imagined_rows(rows, {2: rare, 0: rare}, seed=3)
    alone = [imagined_rows(rows, {column: rare}, seed=3) for column in (0, 2)]
    np.testing.assert_array_equal(both, np.concatenate(alone))
    assert not np.array_equal(both, imagined_rows(rows, {0: rare, 2: rare}, seed=4))


def test_imagining_leaves_the_sample_alone() -> None:
    rows = normal_rows(50)
    imagined_rows(rows, {0: np.array([9.0])}, seed=0)
    np.testing.assert_array_equal(rows, normal_rows(50))


# --- rows made of two others ---------------------------------------------------------------------


def test_mixed_rows_follow_the_seed() -> None:
    rows, targets = normal_rows(200), np.linspace(0, 1, 200)
    first, again, other = (mixed_rows(rows, targets, seed) for seed in (1, 1, 2))
    assert first.shape == (MIXED_ROWS, 3)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_mixed_rows_lie_on_the_line_through_two_or_have_columns_of_both() -> None:
    direction = np.array([1.0, -2.0, 0.5, 3.0])
    rows = np.random.default_rng(0).normal(size=(150, 1)) * direction  # a sample on one line
    made = mixed_rows(rows, np.linspace(0, 1, 150), seed=0)
    on_line = np.isclose(made, made[:, :1] * direction, rtol=1e-9, atol=1e-9).all(axis=1)
    of_both = _from_sample(made, rows)
    assert (on_line | of_both).all()
    assert 1 / 3 < of_both.mean() < 2 / 3
    assert 1 / 3 < (on_line & ~of_both).mean() < 2 / 3
    assert (of_both & ~on_line).mean() > 0.2  # columns of two rows, truly


def test_lines_go_a_quarter_beyond_their_ends() -> None:
    rows = np.array([[0.0], [1.0]])
    made = mixed_rows(rows, np.array([0.2, 0.8]), seed=0)
    assert made.min() == pytest.approx(-0.25, abs=0.01)
    assert made.max() == pytest.approx(1.25, abs=0.01)
    assert ((made >= -0.25) & (made <= 1.25)).all()


def _starts(targets: Floats) -> NDArray[np.int64]:
    """Return the row that each row with columns of two began as: the one most columns are from."""
    n_rows, n_columns = len(targets), 101
    rows = np.repeat(np.arange(float(n_rows))[:, None], n_columns, axis=1)
    made = mixed_rows(rows, targets, seed=0)
    made = made[(np.ptp(made, axis=1) > 0) & _from_sample(made, rows)]
    return np.asarray(np.median(made, axis=1), dtype=np.int64)


@pytest.mark.parametrize("change", [np.sqrt, np.exp, lambda x: x])
def test_half_start_from_the_tenth_of_highest_target(change: Callable[[Floats], Floats]) -> None:
    targets = np.random.default_rng(1).permutation(200) / 200
    top = np.argsort(targets)[-20:]
    share = np.isin(_starts(change(targets)), top).mean()
    assert share == pytest.approx(0.5 + 0.5 * 0.1, abs=0.04)


def test_every_row_is_started_from() -> None:
    assert set(_starts(np.linspace(0, 1, 100)).tolist()) == set(range(100))


def test_mixtures_of_one_row_are_that_row() -> None:
    row = np.array([[1.0, -2.0, 3.5]])
    made = mixed_rows(row, np.array([0.5]), seed=0)
    np.testing.assert_array_equal(made, np.repeat(row, MIXED_ROWS, axis=0))


def test_a_column_of_one_value_keeps_it() -> None:
    rows = normal_rows(100)
    rows[:, 1] = 0.1
    made = mixed_rows(rows, np.linspace(0, 1, 100), seed=0)
    np.testing.assert_array_equal(made[:, 1], 0.1)
    assert np.isfinite(made).all()
