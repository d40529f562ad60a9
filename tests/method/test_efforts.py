"""Efforts of whole tables and of mini-batches: what may change them and what may not."""

import warnings
from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from mrot_scale.config.method import MethodConfig
from mrot_scale.errors import ConfigError, DataError, SolverError
from mrot_scale.method.batches import BatchPlan
from mrot_scale.method.efforts import (
    Average,
    Problem,
    effort_floor,
    log_efforts_over_sets,
    mean_log_efforts,
    middle_log_efforts,
    minibatch_efforts,
    solve_batches,
    transport_efforts,
)
from tests import oracle
from tests.strategies import any_clouds, clouds, examples, seeds, tied_clouds, weighted_clouds

Floats = NDArray[np.float64]


def _cost(points: Floats, k: int) -> Floats:
    D = oracle.distances(points)
    return oracle.repelling_cost(D, oracle.k_zone(D, k))


def _close_to_a_tie(points: Floats, k: int) -> bool:
    """Tell whether rounding could move a row across the edge of a zone."""
    D = oracle.distances(points)
    ranked = [[D[i, j] for j in oracle.ranked_others(D, i)] for i in range(len(D))]
    return any(r[k] - r[k - 1] <= 1e-9 * max(r) for r in ranked)


def _rotation(seed: int, n_columns: int) -> Floats:
    square = np.random.default_rng(seed).normal(size=(n_columns, n_columns))
    return np.asarray(np.linalg.qr(square)[0])


# --- what must not change an effort --------------------------------------------------------------


@examples(80)
@given(clouds(), st.integers(1, 3), st.data())
def test_permuting_rows_permutes_efforts(points: Floats, k: int, data: st.DataObject) -> None:
    assume(oracle.has_one_optimum(_cost(points, k)))
    order = data.draw(st.permutations(range(len(points))))
    efforts = transport_efforts(points, Problem(k=k))
    np.testing.assert_allclose(
        transport_efforts(points[order], Problem(k=k)), efforts[order], rtol=1e-12
    )


@examples(80)
@given(clouds(max_rows=24), st.integers(1, 3), st.data())
def test_permuting_rows_keeps_the_efforts_as_a_set(
    points: Floats, k: int, data: st.DataObject
) -> None:
    """Also where an odd cycle of the plan may be walked in either direction."""
    order = data.draw(st.permutations(range(len(points))))
    efforts = transport_efforts(points, Problem(k=k))
    shuffled = transport_efforts(points[order], Problem(k=k))
    np.testing.assert_allclose(np.sort(shuffled), np.sort(efforts), rtol=1e-12)


@examples(80)
@given(clouds(), st.integers(1, 3), st.floats(-100, 100))
def test_translation_changes_nothing(points: Floats, k: int, shift: float) -> None:
    assume(oracle.has_one_optimum(_cost(points, k)) and not _close_to_a_tie(points, k))
    efforts = transport_efforts(points, Problem(k=k))
    np.testing.assert_allclose(
        transport_efforts(points + shift, Problem(k=k)), efforts, rtol=1e-7, atol=1e-10
    )


@examples(80)
@given(clouds(), st.integers(1, 3), seeds)
def test_rotation_changes_nothing(points: Floats, k: int, seed: int) -> None:
    assume(oracle.has_one_optimum(_cost(points, k)) and not _close_to_a_tie(points, k))
    efforts = transport_efforts(points, Problem(k=k))
    turned = points @ _rotation(seed, points.shape[1])
    np.testing.assert_allclose(
        transport_efforts(turned, Problem(k=k)), efforts, rtol=1e-9, atol=1e-12
    )


@examples(40)
@given(any_clouds(), st.integers(1, 3), st.sampled_from([2.0**-20, 0.5, 4.0, 2.0**20]))
def test_efforts_grow_with_the_square_of_the_unit(points: Floats, k: int, unit: float) -> None:
    efforts = transport_efforts(points, Problem(k=k))
    np.testing.assert_array_equal(transport_efforts(points * unit, Problem(k=k)), efforts * unit**2)


@examples(60)
@given(any_clouds(min_rows=6), st.integers(1, 4), seeds)
def test_one_batch_of_all_rows_is_the_whole_problem(points: Floats, k: int, seed: int) -> None:
    problem = Problem(k=k)
    batched = minibatch_efforts(points, problem, batch_rows=None, seed=seed, repeats=5)
    np.testing.assert_array_equal(batched, transport_efforts(points, problem)[:, None])


def test_one_batch_of_all_rows_is_the_whole_problem_with_entropy() -> None:
    points = np.random.default_rng(0).normal(size=(20, 2))
    problem = Problem(alpha=0.2, eps=0.5)
    batched = minibatch_efforts(points, problem, batch_rows=None)
    np.testing.assert_array_equal(batched[:, 0], transport_efforts(points, problem))


# --- what an effort is ---------------------------------------------------------------------------


@examples(80)
@given(any_clouds(), st.integers(1, 3))
def test_efforts_of_a_table_cost_what_the_oracle_says(points: Floats, k: int) -> None:
    found = transport_efforts(points, Problem(k=k))
    expected = oracle.assignment_total(_cost(points, k))
    assert float(found.mean()) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@examples(80)
@given(any_clouds(), st.integers(1, 3))
def test_the_sup_over_the_zone_as_ceiling_gives_the_neighbour_distance(
    points: Floats, k: int
) -> None:
    efforts = transport_efforts(points, Problem(k=k, ceiling="zone"))
    distance = oracle.neighbour_distance(points, k)
    # No cost outside a zone is below its ceiling, so each row pays just that: unique despite ties.
    np.testing.assert_allclose(efforts, distance, rtol=1e-12, atol=0)


@examples(50)
@given(weighted_clouds(), st.integers(1, 3))
def test_the_sup_over_the_zone_gives_the_neighbour_distance_with_weights(
    table: tuple[Floats, Floats], k: int
) -> None:
    points, weights = table
    efforts = transport_efforts(points, Problem(k=k, ceiling="zone"), weights=weights)
    distance = oracle.neighbour_distance(points, k)
    rounding = 1e-9 * float(oracle.distances(points).max())  # of mass, in rows of little weight
    np.testing.assert_allclose(efforts, distance, rtol=1e-9, atol=rounding)


def test_the_default_ceiling_is_transport_not_a_neighbour_distance() -> None:
    points = np.random.default_rng(1).normal(size=(30, 2))
    efforts = transport_efforts(points, Problem(k=3))
    assert (efforts > 1.01 * oracle.neighbour_distance(points, 3)).sum() > 10


@examples(60)
@given(weighted_clouds(min_rows=7), st.sampled_from([0.113, 0.31]))
def test_with_weights_the_zone_is_counted_in_mass(
    table: tuple[Floats, Floats], alpha: float
) -> None:
    points, weights = table
    D = oracle.distances(points)
    cost = oracle.repelling_cost(D, oracle.share_zone(D, alpha, weights))
    efforts = transport_efforts(points, Problem(alpha=alpha), weights=weights)
    expected = oracle.program_total(cost, weights)
    found = float(efforts @ (weights / weights.sum()))
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-12)


@examples(40)
@given(clouds(min_rows=10, max_rows=10), st.integers(2, 5), st.floats(0.1, 10))
def test_equal_weights_are_no_weights(points: Floats, k: int, weight: float) -> None:
    problem = Problem(alpha=k / 10)
    weighted = transport_efforts(points, problem, weights=np.full(10, weight))
    plain = transport_efforts(points, problem)
    assert float(weighted.mean()) == pytest.approx(float(plain.mean()), rel=1e-9)


def test_a_radius_is_a_distance_and_its_ball_open() -> None:
    points = np.array([[0.0], [1.0], [3.0], [7.0], [7.5]])
    D = oracle.distances(points)
    for radius in (1.0, 3.0, np.nextafter(3.0, 4.0)):
        zone = oracle.open_ball_zone(D, np.full(5, radius**2))
        found = Problem(radius=radius).cost(points)
        np.testing.assert_allclose(found, oracle.repelling_cost(D, zone), rtol=1e-15)


def test_radii_of_rows_replace_the_mass_but_not_a_given_radius() -> None:
    points = np.array([[0.0], [1.0], [3.0], [7.0], [7.5]])
    radii = np.array([1.5, 10.0, 0.0, 1.0, 0.1])
    D = oracle.distances(points)
    own = oracle.repelling_cost(D, oracle.open_ball_zone(D, radii))
    np.testing.assert_array_equal(Problem().cost(points, squared_radii=radii), own)
    given_radius = Problem(radius=2.5).cost(points, squared_radii=radii)
    np.testing.assert_array_equal(given_radius, Problem(radius=2.5).cost(points))


def test_the_coulomb_cost_has_no_zone_and_the_opposite_sign() -> None:
    points = np.array([[0.0], [3.0], [10.0]])
    problem = Problem(kind="coulomb")
    expected = [[1, 1 / 4, 1 / 11], [1 / 4, 1, 1 / 8], [1 / 11, 1 / 8, 1]]
    np.testing.assert_allclose(problem.cost(points), expected, rtol=1e-15)
    assert problem.effort_sign == -1.0
    assert Problem().effort_sign == 1.0


def test_an_isolated_row_works_hardest() -> None:
    points = np.random.default_rng(2).normal(size=(100, 3))
    points[17] = 25.0
    assert int(np.argmax(transport_efforts(points))) == 17
    averaged = mean_log_efforts(minibatch_efforts(points, batch_rows=25), 1e-9)
    assert int(np.argmax(averaged)) == 17


# --- mini-batches --------------------------------------------------------------------------------


@examples(40)
@given(any_clouds(min_rows=12, max_rows=30), st.integers(1, 3), seeds)
def test_mini_batches_solve_each_batch_alone(points: Floats, k: int, seed: int) -> None:
    n_rows, size, repeats = len(points), 6, 3
    plan = BatchPlan(n_rows, size, repeats, seed)
    efforts = solve_batches(points, plan, Problem(k=k))
    assert efforts.shape == (n_rows, repeats)
    for batch in plan:
        cost = _cost(points[batch.rows], k)
        if batch.own.all():  # a total needs no uniqueness
            total = float(efforts[batch.rows, batch.repeat].mean())
            assert total == pytest.approx(oracle.assignment_total(cost), rel=1e-9, abs=1e-12)
        if oracle.has_one_optimum(cost):  # fillers pay too, but their efforts are not kept
            own = batch.rows[batch.own]
            expected = oracle.lone_efforts(cost)[batch.own]
            np.testing.assert_allclose(efforts[own, batch.repeat], expected, rtol=1e-9)


def test_mini_batches_use_the_plan_of_their_seed_and_half_of_a_small_table() -> None:
    points = np.random.default_rng(3).normal(size=(41, 2))
    for wanted, size in ((256, 20), (10, 10)):
        expected = solve_batches(points, BatchPlan(41, size, 4, 9), Problem())
        found = minibatch_efforts(points, batch_rows=wanted, repeats=4, seed=9)
        np.testing.assert_array_equal(found, expected)
    other = minibatch_efforts(points, batch_rows=10, repeats=4, seed=10)
    assert not np.array_equal(found, other)


def test_threads_change_nothing() -> None:
    points = np.random.default_rng(4).normal(size=(300, 3))
    one = minibatch_efforts(points, batch_rows=32, repeats=3)
    two = minibatch_efforts(points, batch_rows=32, repeats=3, threads=2)
    np.testing.assert_array_equal(one, two)


def test_threads_leave_the_warning_filters_alone() -> None:
    """`warnings.catch_warnings` in several threads at once puts back the wrong filters."""
    points = np.random.default_rng(10).normal(size=(200, 2))
    before = list(warnings.filters)
    for _ in range(5):
        minibatch_efforts(points, Problem(eps=0.5), batch_rows=10, repeats=2, threads=4)
    assert list(warnings.filters) == before


def test_radii_go_with_their_rows_into_the_batches() -> None:
    rng = np.random.default_rng(5)
    points, radii = rng.normal(size=(30, 2)), rng.uniform(0.1, 3.0, size=30)
    plan = BatchPlan(30, 10, 2, 0)
    efforts = minibatch_efforts(points, batch_rows=10, repeats=2, squared_radii=radii)
    for batch in plan:
        D = oracle.distances(points[batch.rows])
        cost = oracle.repelling_cost(D, oracle.open_ball_zone(D, radii[batch.rows]))
        total = float(efforts[batch.rows, batch.repeat].mean())
        assert total == pytest.approx(oracle.assignment_total(cost), rel=1e-9)


@pytest.mark.parametrize("threads", [1, 2])
def test_every_batch_is_reported_once(threads: int) -> None:
    plan = BatchPlan(50, 16, 3, 0)
    calls: list[int] = []
    points = np.random.default_rng(6).normal(size=(50, 2))
    solve_batches(points, plan, Problem(), threads=threads, on_batch=lambda: calls.append(1))
    assert len(calls) == 3 * 4


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_a_row_that_spoils_its_batch_is_refused_by_the_batch_name(
    value: float, threads: int
) -> None:
    points = np.random.default_rng(7).normal(size=(40, 2))
    points[11, 1] = value
    plan = BatchPlan(40, 10, 2, 0)
    number = next(b.number for b in plan if 11 in b.rows)
    with pytest.raises(SolverError, match=f"view 2, repeat 0, batch {number} is not finite"):
        solve_batches(points, plan, Problem(), name="view 2, ", threads=threads)


@pytest.mark.parametrize("weights", [None, np.ones(12)])
@pytest.mark.parametrize("value", [1e160, 1e200])
@pytest.mark.parametrize("ceiling", ["max", "zone", 1.0])
def test_a_row_that_spoils_its_table_is_refused(
    value: float, weights: Floats | None, ceiling: float
) -> None:
    points = np.random.default_rng(8).normal(size=(12, 2))
    points[3, 0] = value
    with pytest.raises(SolverError, match="sensor table"):
        transport_efforts(points, Problem(ceiling=ceiling), weights=weights, name="sensor table")


@pytest.mark.parametrize(
    "weights", [np.ones(11), np.r_[np.ones(11), 0.0], np.r_[np.ones(11), np.nan]]
)
def test_bad_weights_are_refused(weights: Floats) -> None:
    points = np.random.default_rng(9).normal(size=(12, 2))
    with pytest.raises(DataError, match="weights"):
        transport_efforts(points, weights=weights)


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(DataError, match="Found 3 row"):
        transport_efforts(np.zeros((3, 1)))
    with pytest.raises(DataError, match=r"Found 6 row.*at least 7"):
        minibatch_efforts(np.zeros((6, 1)), Problem(k=5))


def test_threads_must_be_positive() -> None:
    with pytest.raises(ConfigError, match="threads"):
        minibatch_efforts(np.zeros((20, 1)), threads=0)


# --- from efforts to one number a row ------------------------------------------------------------


@examples(30)
@given(tied_clouds(min_rows=8, max_rows=14))
def test_efforts_of_ties_and_equal_rows_are_finite_and_never_negative(points: Floats) -> None:
    efforts = minibatch_efforts(points, Problem(k=2), batch_rows=7, repeats=2)
    assert (efforts >= 0).all()
    assert np.isfinite(mean_log_efforts(efforts, effort_floor(efforts))).all()


def test_more_equal_rows_than_the_zone_holds_cost_nothing() -> None:
    points = np.zeros((10, 2))
    points[9] = 1.0
    efforts = transport_efforts(points, Problem(k=2))
    # Ties go to the lower position, so rows 0 and 1 lie in every zone: one of the equal rows serves
    # the odd row 9, one serves what is left of rows 0 and 1, and the other seven move for nothing.
    assert np.sort(efforts[:9]).tolist() == [0.0] * 7 + [2.0] * 2
    assert efforts[9] == 2.0


def test_the_floor_is_a_millionth_of_the_median_positive_effort() -> None:
    assert effort_floor(np.array([0.0, 0.0, 0.0, 2.0, 4.0, 1e9])) == pytest.approx(4e-6)
    assert effort_floor(np.zeros(3)) == 1.0


def test_mean_log_efforts_floor_zeros_and_skip_missing_repeats() -> None:
    efforts = np.array([[1.0, np.e**2], [0.0, np.e**3], [np.nan, np.e**5]])
    found = mean_log_efforts(efforts, np.exp(-1.0))
    np.testing.assert_allclose(found, [1.0, 1.0, 5.0], rtol=1e-12)


@given(
    arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 17)), elements=st.floats(0, 9)),
    st.integers(0, 2**32 - 1),
)
def test_the_middle_half_of_the_sets_counts(efforts: Floats, seed: int) -> None:
    gone = np.random.default_rng(seed).random(efforts.shape) < 0.3
    gone[:, 0] = False
    found = middle_log_efforts(np.where(gone, np.nan, efforts), 0.5)
    for row, missing, value in zip(efforts, gone, found, strict=True):
        logs = np.log(np.maximum(row[~missing], 0.5)).tolist()
        assert value == pytest.approx(oracle.middle_half(logs), rel=1e-9, abs=1e-12)


def test_a_few_sets_cannot_outvote_the_others() -> None:
    efforts = np.full((2, 16), 3.0)
    efforts[1, :4] = 1e-6
    middle = log_efforts_over_sets(efforts, 1e-9, "middle")
    assert middle[0] == middle[1]
    mean = log_efforts_over_sets(efforts, 1e-9, "mean")
    assert mean[1] < mean[0] - 3


def test_settings_know_the_same_averages() -> None:
    assert get_args(MethodConfig.model_fields["average"].annotation) == get_args(Average)


def test_no_other_row_changes_a_rows_middle_half() -> None:
    efforts = np.exp(np.random.default_rng(0).normal(size=(50, 16)))
    whole = middle_log_efforts(efforts, 1e-9)
    alone = [middle_log_efforts(efforts[i : i + 1], 1e-9)[0] for i in range(50)]
    np.testing.assert_array_equal(whole, alone)


@pytest.mark.parametrize("solve", [transport_efforts, minibatch_efforts])
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.ones(9), r"shape \(n, d\)"),
        (np.array([[0.0, 1.0]] * 8 + [[np.nan, 0.0]]), "row 8, column 0"),
        (np.array([[0.0, np.inf]] + [[0.0, 1.0]] * 8), "row 0, column 1"),
        (np.empty((0, 2)), "0 row"),
        (np.ones((2, 2)), "2 row"),
    ],
)
def test_rows_that_are_no_finite_table_are_refused(
    solve: Callable[..., Floats], rows: Floats, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        solve(rows)


@pytest.mark.parametrize(
    "settings",
    [
        {"k": -1},
        {"kind": "gravity"},
        {"radius": -1.0},
        {"alpha": float("nan")},
        {"eps": -1.0},
        {"average": "median"},
    ],
)
def test_a_problem_without_meaning_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings))):
        Problem(**settings)


@pytest.mark.parametrize("settings", [{"repeats": 0}, {"batch_rows": 0}, {"batch_rows": -5}])
def test_batches_without_meaning_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings))):
        minibatch_efforts(np.random.default_rng(0).normal(size=(20, 2)), **settings)
