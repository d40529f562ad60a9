"""Which rows stay anchors: how many, which of equal ones, and that only their order matters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mrot_scale.method.trust import easiest_first, n_trusted, trusted_rows
from tests.strategies import examples, seeds

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

shares = st.floats(0.0, 0.5)
values_with_ties = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=60).map(np.array)


def _trusted(values: Floats, distrust: float) -> Ids:
    left = trusted_rows(easiest_first(values), distrust)
    assert len(left) == n_trusted(len(values), distrust)
    return left


def _distinct(seed: int, n_rows: int) -> Floats:
    return np.random.default_rng(seed).permutation(n_rows).astype(np.float64)


@examples(100)
@given(values_with_ties, shares)
def test_rows_left_are_no_larger_than_rows_gone(values: Floats, distrust: float) -> None:
    left = _trusted(values, distrust)
    gone = np.setdiff1d(np.arange(len(values)), left)
    assert len(gone) <= distrust * len(values) < len(gone) + 1
    assert left.tolist() == sorted(set(left.tolist()))
    if len(gone):
        assert values[left].max() <= values[gone].min()


@examples(60)
@given(values_with_ties, shares)
def test_of_equal_rows_the_later_ones_go(values: Floats, distrust: float) -> None:
    left = set(_trusted(values, distrust).tolist())
    for value in np.unique(values):
        equal = np.flatnonzero(values == value).tolist()
        stay = [row in left for row in equal]
        assert stay == sorted(stay, reverse=True)


@examples(30)
@given(values_with_ties)
def test_without_distrust_every_row_stays(values: Floats) -> None:
    np.testing.assert_array_equal(_trusted(values, 0.0), np.arange(len(values)))


@pytest.mark.parametrize("change", [np.exp, np.arcsinh, lambda x: 3 * x - 7, lambda x: x**3])
def test_only_the_order_of_the_values_matters(change: np.ufunc) -> None:
    values = np.random.default_rng(0).normal(size=201)
    np.testing.assert_array_equal(_trusted(change(values), 0.1), _trusted(values, 0.1))


@examples(40)
@given(seeds, st.integers(1, 60), shares)
def test_rows_are_judged_wherever_they_stand(seed: int, n_rows: int, distrust: float) -> None:
    values = _distinct(seed, n_rows)
    order = np.random.default_rng(seed + 1).permutation(n_rows)
    moved = order[_trusted(values[order], distrust)]
    np.testing.assert_array_equal(np.sort(moved), _trusted(values, distrust))


@examples(40)
@given(seeds, st.integers(1, 60), shares, shares)
def test_more_distrust_leaves_a_part_of_what_less_leaves(
    seed: int, n_rows: int, one: float, other: float
) -> None:
    values = _distinct(seed, n_rows)
    less, more = (set(_trusted(values, s).tolist()) for s in sorted((one, other)))
    assert more <= less


@pytest.mark.parametrize(("n_rows", "gone"), [(1, 0), (9, 0), (10, 1), (19, 1), (20, 2), (600, 60)])
def test_a_tenth_is_rounded_down(n_rows: int, gone: int) -> None:
    left = _trusted(np.arange(float(n_rows)), 0.1)
    assert left.tolist() == list(range(n_rows - gone))
