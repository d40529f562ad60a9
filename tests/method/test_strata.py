"""Anchors drawn evenly from all regions."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mrot_scale.method.strata import draw_by_column, draw_evenly, equal_regions
from tests.strategies import examples, seeds


@examples(120)
@given(st.integers(1, 40), st.integers(1, 8), st.integers(0, 160), st.integers(1, 3), seeds)
def test_sets_have_exactly_m_rows_and_are_disjoint_when_they_can_be(
    n_drawn: int, n_sets: int, extra: int, n_columns: int, seed: int
) -> None:
    n_rows = n_drawn + extra
    points = np.random.default_rng(seed).integers(0, 4, (n_rows, n_columns)).astype(np.float64)
    sets = draw_evenly(points, n_drawn, n_sets, seed)
    assert len(sets) == n_sets
    for rows in sets:
        assert (np.diff(rows) > 0).all()
        assert len(rows) == n_drawn
        assert rows.min() >= 0
        assert rows.max() < n_rows
    if n_rows >= n_sets * n_drawn > n_drawn:
        assert len(np.unique(np.concatenate(sets))) == n_sets * n_drawn


def test_sets_follow_the_seed_and_the_counter() -> None:
    points = np.random.default_rng(0).normal(size=(500, 3))
    first, again = draw_evenly(points, 50, 4, 1), draw_evenly(points, 50, 4, 1)
    np.testing.assert_array_equal(first, again)
    for others in (draw_evenly(points, 50, 4, 2), draw_evenly(points, 50, 4, 1, 1)):
        assert not any(np.array_equal(a, b) for a, b in zip(first, others, strict=True))


@examples(60)
@given(st.integers(1, 30), st.integers(0, 200), st.integers(1, 4), seeds)
def test_regions_part_all_rows_into_equal_numbers(
    n_regions: int, extra: int, n_columns: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n_regions + extra, n_columns))
    regions = equal_regions(points, n_regions, rng.permutation(len(points)))
    assert len(regions) == n_regions
    np.testing.assert_array_equal(np.sort(np.concatenate(regions)), np.arange(len(points)))
    assert min(map(len, regions)) >= len(points) // n_regions
    assert max(map(len, regions)) <= -(-len(points) // n_regions)


def test_sets_of_one_column_hold_its_quantiles_each_in_its_own_column() -> None:
    points = np.random.default_rng(4).normal(size=(400, 3))
    columns = np.array([0, 2, 0, 2])
    sets = draw_by_column(points, columns, 40, 5)
    assert len({tuple(rows) for rows in sets}) == 4
    for rows, column in zip(sets, columns, strict=True):
        ranks = points[:, column].argsort().argsort()[rows]
        np.testing.assert_array_equal(np.sort(ranks // 10), np.arange(40))


def test_regions_of_one_column_are_its_quantiles() -> None:
    values = np.random.default_rng(1).permutation(40).astype(np.float64)
    regions = equal_regions(values[:, None], 8, np.arange(40))
    assert [sorted(values[region].tolist()) for region in regions] == np.arange(40).reshape(
        8, 5
    ).tolist()


def test_a_group_has_its_share_of_every_set() -> None:
    """30 of 1,000 rows, and so 7.7 of 256."""
    rng = np.random.default_rng(2)
    points = np.vstack([rng.normal(size=(970, 5)), 8 + 0.1 * rng.normal(size=(30, 5))])
    counts = [(rows >= 970).sum() for rows in draw_evenly(points, 256, 32, 0)]
    assert min(counts) >= 6
    assert max(counts) <= 10


def test_copies_are_parted_at_random() -> None:
    """All rows alike: whichever they are, every row can be drawn."""
    drawn = np.concatenate(draw_evenly(np.ones((60, 2)), 10, 6, 3))
    assert len(np.unique(drawn)) == 60
