"""One number from the rarities of several views."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from mrot_scale.method.combine import combine_views
from tests.strategies import examples

Floats = NDArray[np.float64]

tables = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 4)),
    elements=st.floats(1e-6, 1e6),
)


@examples(60)
@given(tables)
def test_the_combination_is_the_log_of_the_mean_rarity(rarity: Floats) -> None:
    expected = [np.log(sum(float(x) for x in row) / len(row)) for row in rarity]
    found = combine_views(rarity)
    assert found.shape == (len(rarity),)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@examples(60)
@given(tables, st.data())
def test_a_row_rarer_in_one_view_is_rarer(rarity: Floats, data: st.DataObject) -> None:
    view = data.draw(st.integers(0, rarity.shape[1] - 1))
    rarer = rarity.copy()
    rarer[:, view] += 1e-3 * rarity.max()
    assert (combine_views(rarer) > combine_views(rarity)).all()


def test_one_view_in_which_a_row_is_extreme_speaks_up() -> None:
    extreme_once, odd_everywhere = [12.0, 0.1, 0.1], [3.0, 3.0, 3.0]
    first, second = combine_views(np.array([extreme_once, odd_everywhere]))
    assert first > second


def test_the_order_of_views_does_not_matter() -> None:
    rarity = np.array([[0.5, 2.0, 7.0], [1.0, 1.0, 1.0]])
    np.testing.assert_allclose(combine_views(rarity[:, [2, 0, 1]]), combine_views(rarity))


def test_a_single_view_keeps_its_order_and_loses_nothing() -> None:
    rarity = np.geomspace(1e-8, 1e4, 50)[:, None]
    np.testing.assert_allclose(np.exp(combine_views(rarity)), rarity[:, 0], rtol=1e-12)
