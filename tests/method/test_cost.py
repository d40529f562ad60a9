"""Distances, zones and costs against loops, with ties and equal rows as the rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mrot_scale.errors import ConfigError
from mrot_scale.method.cost import (
    ball_zone,
    coulomb_cost,
    engineered_cost,
    mass_zone,
    nearest_zone,
    paired_squared_distances,
    smallest_in_each_row,
    squared_distances,
)
from tests import oracle
from tests.strategies import any_clouds, clouds, examples, tied_clouds, weighted_clouds

Floats = NDArray[np.float64]


@examples(60)
@given(any_clouds(max_rows=8))
def test_squared_distances_are_those_of_a_loop(points: Floats) -> None:
    np.testing.assert_allclose(
        squared_distances(points, points), oracle.distances(points), rtol=1e-12, atol=0
    )


@examples(60)
@given(clouds(min_rows=6, max_rows=16, max_columns=40), st.data())
def test_a_pair_has_the_same_bits_in_every_shape(points: Floats, data: st.DataObject) -> None:
    i = data.draw(st.integers(0, len(points) - 1))
    j = data.draw(st.integers(0, len(points) - 1))
    whole = squared_distances(points, points)
    alone = squared_distances(points[i : i + 1], points[j : j + 1])
    column = squared_distances(points[::-1].copy(), points[j : j + 1])
    paired = paired_squared_distances(points[[i, j]], points[[j, i]])
    assert whole[i, j] == alone[0, 0] == column[len(points) - 1 - i, 0] == paired[0] == paired[1]


def test_squared_distances_are_not_squares_of_roots() -> None:
    corners = np.array([[0.0, 0.0], [1.0, 1.0], [3.0, 1.0], [1.0, 2.0]])
    expected = [[0, 2, 10, 5], [2, 0, 4, 1], [10, 4, 0, 5], [5, 1, 5, 0]]
    assert squared_distances(corners, corners).tolist() == expected


def test_equal_rows_far_from_the_origin_are_at_exactly_zero() -> None:
    rows = np.full((3, 5), 1e9 + 0.1)
    rows[2] += 1e-6
    D = squared_distances(rows, rows)
    assert D[0, 1] == 0.0
    assert D[0, 2] > 0.0


def test_paired_distances_need_as_many_of_both() -> None:
    with pytest.raises(ValueError):
        paired_squared_distances(np.zeros((3, 2)), np.zeros((2, 2)))


@examples(100)
@given(tied_clouds(), st.integers(-1, 14))
def test_smallest_go_by_value_then_position(points: Floats, count: int) -> None:
    marked = smallest_in_each_row(points, count)
    for values, found in zip(points, marked, strict=True):
        order = sorted(range(len(values)), key=lambda j: (values[j], j))
        assert set(np.flatnonzero(found)) == set(order[: max(count, 0)])


@examples(120)
@given(any_clouds(), st.integers(0, 14))
def test_nearest_zone_holds_the_row_and_k_others_ties_by_position(points: Floats, k: int) -> None:
    D = squared_distances(points, points)
    zone = nearest_zone(D, k)
    assert zone.diagonal().all()
    assert (zone.sum(axis=1) == min(k, len(points) - 1) + 1).all()
    np.testing.assert_array_equal(zone, oracle.k_zone(D, k))


def test_a_row_is_in_its_own_zone_even_behind_many_equal_rows() -> None:
    D = np.zeros((6, 6))
    expected = np.eye(6, dtype=bool)
    expected[:, 0] = True
    expected[0, 1] = True
    np.testing.assert_array_equal(nearest_zone(D, 1), expected)


def test_zones_leave_the_distances_as_they_were() -> None:
    D = squared_distances(np.arange(5.0)[:, None], np.arange(5.0)[:, None])
    before = D.copy()
    zone = nearest_zone(D, 2)
    mass_zone(D, 0.4, np.full(5, 0.2))
    ball_zone(D, 4.0)
    engineered_cost(D, zone)
    np.testing.assert_array_equal(D, before)


@examples(120)
@given(any_clouds(), st.data())
def test_mass_zone_of_equal_weights_is_the_nearest_zone(
    points: Floats, data: st.DataObject
) -> None:
    n = len(points)
    k = data.draw(st.integers(1, n - 1))
    D = squared_distances(points, points)
    zone = mass_zone(D, k / n, np.full(n, 1.0 / n))
    np.testing.assert_array_equal(zone, nearest_zone(D, k))


@pytest.mark.parametrize("n", [49, 50, 100, 103, 300, 1000])
def test_mass_zone_counts_right_where_the_shares_do_not_sum_exactly(n: int) -> None:
    points = np.random.default_rng(n).normal(size=(n, 2))
    D = squared_distances(points, points)
    for k in (1, 2, n // 25, n // 3, n - 1):
        zone = mass_zone(D, k / n, np.full(n, 1.0) / n)
        assert (zone.sum(axis=1) == k + 1).all()


@examples(100)
@given(weighted_clouds(), st.sampled_from([0.013, 0.117, 0.31, 0.499, 0.83]))
def test_mass_zone_takes_others_until_they_hold_the_mass(
    table: tuple[Floats, Floats], alpha: float
) -> None:
    points, weights = table
    D = squared_distances(points, points)
    zone = mass_zone(D, alpha, weights / weights.sum())
    np.testing.assert_array_equal(zone, oracle.share_zone(D, alpha, weights))


def test_mass_zone_does_not_count_the_mass_of_the_row_itself() -> None:
    D = squared_distances(np.array([[0.0], [1.0], [3.0]]), np.array([[0.0], [1.0], [3.0]]))
    zone = mass_zone(D, 0.1, np.array([0.8, 0.1, 0.1]))
    np.testing.assert_array_equal(
        zone, [[True, True, False], [True, True, False], [False, True, True]]
    )


@examples(100)
@given(any_clouds(), st.data())
def test_ball_zone_is_open_and_holds_the_row_itself(points: Floats, data: st.DataObject) -> None:
    n = len(points)
    D = squared_distances(points, points)
    # Radii that are distances to rows of the table, so that "at exactly the radius" is the rule.
    radii = D[np.arange(n), data.draw(st.permutations(range(n)))]
    zone = ball_zone(D, radii)
    assert zone.diagonal().all()
    np.testing.assert_array_equal(zone, oracle.open_ball_zone(D, radii))


def test_a_row_at_exactly_the_radius_is_outside() -> None:
    points = np.array([[0.0], [2.0], [4.0], [2.0]])
    D = squared_distances(points, points)
    assert ball_zone(D, 4.0)[0].tolist() == [True, False, False, False]
    assert ball_zone(D, np.nextafter(4.0, 5.0))[0].tolist() == [True, True, False, True]


def test_a_ball_without_reach_holds_no_equal_rows() -> None:
    np.testing.assert_array_equal(ball_zone(np.zeros((4, 4)), 0.0), np.eye(4, dtype=bool))


@examples(100)
@given(any_clouds(), st.data(), st.sampled_from(["max", "zone", 0.0, 3.5, 7]))
def test_engineered_cost_of_a_given_zone(
    points: Floats, data: st.DataObject, ceiling: str | float
) -> None:
    n = len(points)
    D = oracle.distances(points)
    inside = data.draw(st.lists(st.booleans(), min_size=n * n, max_size=n * n))
    zone = np.array(inside).reshape(n, n) | np.eye(n, dtype=bool)
    expected = oracle.repelling_cost(D, zone, ceiling)
    np.testing.assert_array_equal(engineered_cost(D, zone, ceiling), expected)  # type: ignore[arg-type]


def test_an_unknown_ceiling_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"ceiling.*'mean'"):
        engineered_cost(np.ones((2, 2)), np.eye(2, dtype=bool), "mean")  # type: ignore[arg-type]


def test_coulomb_cost_repels_most_at_no_distance() -> None:
    D = np.array([[0.0, 9.0], [0.25, 1e12]])
    np.testing.assert_allclose(coulomb_cost(D), [[1.0, 0.25], [1 / 1.5, 1 / (1 + 1e6)]], rtol=1e-15)
