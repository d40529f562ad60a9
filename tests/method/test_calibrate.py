"""Rarity and score: their shares, their tail, their order far beyond anything seen."""

from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import gaussian_kde

from mrot_scale.errors import DataError
from mrot_scale.method.calibrate import (
    LOG_EFFORT_STEP,
    Calibration,
    GridCounts,
    calibrate_values,
    count_on_grid,
    fit_calibration,
    merge_counts,
    score_of_rarity,
)
from mrot_scale.method.combine import combine_views
from tests.strategies import chunk_sizes, examples, seeds

Floats = NDArray[np.float64]

FACTORS = np.array([1.0, 10.0, 1e3, 1e6])
"""Unseen efforts, in units of the largest training effort."""


def _training_efforts(kind: str, n_rows: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    if kind == "thin-tailed":
        return rng.uniform(1.0, 1.1, n_rows)
    if kind == "constant":
        return np.full(n_rows, rng.uniform(0.1, 10.0))
    if kind == "two-valued":
        return np.where(np.arange(n_rows) % 3 == 0, 2.0, 1.0)
    if kind == "gap":
        high = np.arange(n_rows) % 2 == 0
        return np.where(high, rng.uniform(1e6, 1.1e6, n_rows), rng.uniform(1.0, 1.1, n_rows))
    if kind == "heavy-tailed":
        return np.asarray(np.exp(3 * rng.standard_t(2, n_rows).clip(-30, 30)))
    if kind == "one-outlier":
        efforts = rng.chisquare(5, n_rows)
        efforts[0] = 1e9
        return efforts
    return rng.chisquare(5, n_rows)


KINDS = [
    "ordinary",
    "thin-tailed",
    "constant",
    "two-valued",
    "gap",
    "heavy-tailed",
    "one-outlier",
]


def _log_effort_calibration(efforts: Floats) -> Calibration:
    return fit_calibration(count_on_grid(np.log(efforts), LOG_EFFORT_STEP))


def _final_scores(views: list[Floats]) -> tuple[Floats, NDArray[np.float32]]:
    """Return rarities in each view (far rows, views) and final scores of far rows."""
    calibrations = [_log_effort_calibration(efforts) for efforts in views]
    train = np.column_stack(
        [c.neg_log_survival(np.log(e)) for c, e in zip(calibrations, views, strict=True)]
    )
    far = np.column_stack(
        [
            c.neg_log_survival(np.log(e.max() * FACTORS))
            for c, e in zip(calibrations, views, strict=True)
        ]
    )
    last = calibrate_values(combine_views(train))
    return far, last.score(combine_views(far))


def _assert_order_kept(views: list[Floats]) -> None:
    rarity, scores = _final_scores(views)
    assert np.isfinite(rarity).all()
    assert (np.diff(rarity, axis=0) > 0).all()
    assert scores.dtype == np.float32
    assert (np.diff(scores) > 0).all(), scores.tolist()
    assert scores.max() < 1.0


# --- order beyond anything seen ------------------------------------------------------------------


@pytest.mark.parametrize("n_views", [1, 3])
@pytest.mark.parametrize("n_rows", [8, 500, 5_000])
@pytest.mark.parametrize("kind", KINDS)
def test_far_efforts_keep_their_order_in_every_view_and_in_the_score(
    kind: str, n_rows: int, n_views: int
) -> None:
    # Each view in its own unit: the first row is then the far one in all of them.
    _assert_order_kept([_training_efforts(kind, n_rows, 0) * 10.0**v for v in range(n_views)])


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_far_efforts_keep_their_order_when_views_differ(first: str, second: str) -> None:
    views = [_training_efforts(first, 300, 1), _training_efforts(second, 300, 2)]
    _assert_order_kept(views)


@examples(60)
@given(st.sampled_from(KINDS), st.sampled_from([8, 9, 40, 300]), st.integers(1, 3), seeds)
def test_far_efforts_keep_their_order_for_other_draws(
    kind: str, n_rows: int, n_views: int, seed: int
) -> None:
    _assert_order_kept([_training_efforts(kind, n_rows, seed + v) for v in range(n_views)])


@examples(60)
@given(st.floats(1.0, 1.05), st.sampled_from([8, 300]), seeds)
def test_far_efforts_keep_their_order_over_almost_equal_efforts(
    width: float, n_rows: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    _assert_order_kept([rng.uniform(1.0, width, n_rows)])


# --- the map -------------------------------------------------------------------------------------


@examples(120)
@given(
    st.lists(st.floats(-30, 30), min_size=1, max_size=40),
    st.lists(st.integers(-60_000, 60_000), min_size=2, max_size=40, unique=True),
    st.sampled_from([0.25, 1.0]),
)
def test_the_map_is_strictly_increasing_positive_and_finite(
    sample: list[float], places: list[int], smoothing: float
) -> None:
    counts = count_on_grid(np.array(sample), LOG_EFFORT_STEP)
    calibration = fit_calibration(counts, smoothing=smoothing)
    values = np.sort(np.array(places)) / 1_000  # at least a thousandth of a log effort apart
    rarity = calibration.neg_log_survival(values)
    assert np.isfinite(rarity).all()
    assert (rarity > 0).all()
    assert (np.diff(rarity) > 0).all()
    assert (np.diff(calibration.knots) > 0).all()
    assert (np.diff(calibration.rarity) > 0).all()
    assert calibration.tail_scale > 0


@examples(80)
@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=40),
    st.floats(1e-6, 1e6),
    st.floats(-1e3, 1e3),
)
def test_values_of_any_unit_get_a_strictly_increasing_map(
    places: list[int], unit: float, origin: float
) -> None:
    values = origin + unit * np.array(places, dtype=np.float64)
    calibration = calibrate_values(values)
    probes = np.unique(np.concatenate([values, values.max() + unit * 10.0 ** np.arange(7)]))
    rarity = calibration.neg_log_survival(probes)
    assert np.isfinite(rarity).all()
    assert (np.diff(calibration.knots) > 0).all()
    assert (np.diff(rarity) > 0).all()


@pytest.mark.parametrize(
    ("value", "n_values"),
    [
        (0.0, 5),
        (1.0, 8),
        (1.257302210933933, 109),
        (-752.1490784673149, 334),
        (0.0816728680574694, 224),
    ],
)
def test_equal_values_get_a_map_as_wide_as_one_grid_step(value: float, n_values: int) -> None:
    """Also where rounding makes the deviation of equal numbers 1e-16 instead of 0."""
    calibration = calibrate_values(np.full(n_values, value))
    assert (np.diff(calibration.knots) > 0).all()
    assert calibration.tail_scale > 1e-6
    scores = calibration.score(value + np.array([-1.0, 0.0, 1.0]))
    assert (np.diff(scores) > 0).all()
    assert scores[1] == pytest.approx(0.5, abs=0.3)


def test_rarity_is_continuous_where_the_tail_begins() -> None:
    values = np.random.default_rng(0).normal(size=5_000)
    calibration = fit_calibration(count_on_grid(values, LOG_EFFORT_STEP))
    for edge in (calibration.knots[0], calibration.knots[-1]):
        below, at, above = calibration.neg_log_survival(edge + np.array([-1e-7, 0.0, 1e-7]))
        assert below == pytest.approx(at, rel=1e-5)
        assert above == pytest.approx(at, rel=1e-5)


def test_the_body_is_a_gaussian_kernel_estimate_with_scotts_bandwidth() -> None:
    values = np.random.default_rng(1).gamma(3.0, size=2_000)
    calibration = fit_calibration(count_on_grid(values, LOG_EFFORT_STEP))
    kernel = gaussian_kde(values, bw_method="scott")
    for share in (0.01, 0.1, 0.5, 0.9, 0.99):
        x = float(np.quantile(values, share))
        expected = -np.log(kernel.integrate_box_1d(x, np.inf))
        assert calibration.neg_log_survival(np.array([x]))[0] == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("n_values", [8, 40, 400])
def test_the_knots_hold_the_kernel_survival_of_the_grid_centers(n_values: int) -> None:
    cells = np.random.default_rng(n_values).integers(-900, 900, n_values)
    values = np.asarray((cells + 0.5) * LOG_EFFORT_STEP, dtype=np.float64)
    calibration = fit_calibration(count_on_grid(values, LOG_EFFORT_STEP))
    kernel = gaussian_kde(values, bw_method="scott")
    expected = [-np.log(kernel.integrate_box_1d(x, np.inf)) for x in calibration.knots]
    np.testing.assert_allclose(calibration.rarity, expected, rtol=1e-6, atol=2e-6)


@pytest.mark.parametrize("n_values", [10, 1_000, 100_000])
def test_order_is_kept_across_a_gap_the_kernel_does_not_reach_into(n_values: int) -> None:
    counts = count_on_grid(np.repeat([0.0, 10.0], n_values // 2), LOG_EFFORT_STEP)
    calibration = fit_calibration(counts, smoothing=0.25)
    rarity = calibration.neg_log_survival(np.linspace(-20, 30, 2_000))
    assert (np.diff(rarity) > 0).all()
    assert calibration.neg_log_survival(np.array([5.0]))[0] == pytest.approx(np.log(2), abs=0.01)


def test_more_values_than_the_default_sample_smooth_as_much_as_it_does() -> None:
    """Few distinct rows would otherwise rank differently the more of them are labelled."""
    few = np.random.default_rng(0).choice(np.log([1.0, 1.1, 2.0, 9.0]), 20_000)
    maps = [fit_calibration(count_on_grid(np.tile(few, n), LOG_EFFORT_STEP)) for n in (1, 10)]
    np.testing.assert_allclose(maps[1].rarity, maps[0].rarity, rtol=1e-3)
    fewer = fit_calibration(count_on_grid(few[:2_000], LOG_EFFORT_STEP))
    assert np.diff(fewer.knots)[0] > 1.4 * np.diff(maps[0].knots)[0]


def test_smoothing_multiplies_the_bandwidth() -> None:
    values = np.repeat([0.0, 1.0], 500)
    counts = count_on_grid(values, LOG_EFFORT_STEP)
    kernel = gaussian_kde(values)
    for smoothing in (0.25, 0.5, 1.0):
        kernel.set_bandwidth(smoothing * 1_000**-0.2)
        expected = -np.log(kernel.integrate_box_1d(0.4, np.inf))
        found = fit_calibration(counts, smoothing=smoothing).neg_log_survival(np.array([0.4]))[0]
        assert found == pytest.approx(expected, rel=0.03)


def test_the_tail_is_exponential_and_has_the_mean_excess_of_the_top_values() -> None:
    values = np.random.default_rng(2).exponential(2.0, size=40_000)
    calibration = fit_calibration(count_on_grid(values, LOG_EFFORT_STEP))
    start = float(np.quantile(values, 0.995))
    assert calibration.knots[-1] == pytest.approx(start, abs=0.1)
    excess = values[values > start] - start
    assert calibration.tail_scale == pytest.approx(excess.mean(), rel=0.05)
    far = calibration.neg_log_survival(start + np.array([1.0, 3.0, 5.0, 1e6]))
    np.testing.assert_allclose(np.diff(far[:3]), 2.0 / calibration.tail_scale, rtol=1e-9)
    true = (start + np.array([1.0, 3.0, 5.0])) / 2.0
    np.testing.assert_allclose(far[:3], true, rtol=0.1)


def test_the_tail_of_a_small_sample_is_fitted_to_more_than_one_value() -> None:
    values = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 100.0] * 5)  # forty: ten top values
    calibration = fit_calibration(count_on_grid(values, LOG_EFFORT_STEP))
    assert calibration.knots[-1] == pytest.approx(6.0, abs=LOG_EFFORT_STEP)


@pytest.mark.parametrize("law", ["normal", "lognormal", "two-modes", "far-from-zero"])
def test_one_in_a_hundred_new_values_scores_above_99(law: str) -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=100_000)
    if law == "lognormal":
        values = np.exp(values)
    if law == "two-modes":
        values[::2] += 8.0
    if law == "far-from-zero":
        values = 1.0 + 1e-6 * values
    train, new = values[:50_000], values[50_000:]
    scores = calibrate_values(train).score(new)
    for share in (0.99, 0.9, 0.5):
        assert (scores > share).mean() == pytest.approx(1 - share, abs=0.2 * (1 - share))
    assert (scores > 0.99).mean() == pytest.approx(0.01, abs=0.002)


# --- the score -----------------------------------------------------------------------------------


def test_the_score_is_the_share_below_until_float32_needs_help() -> None:
    rarity = np.linspace(0.0, 9.0, 200)
    np.testing.assert_allclose(score_of_rarity(rarity), 1 - np.exp(-rarity), rtol=1e-6, atol=1e-7)


def test_the_score_rises_over_its_whole_range_and_stays_below_1() -> None:
    rarity = np.concatenate([np.linspace(0, 11, 100), np.geomspace(12.0, 3e3, 8)])
    scores = score_of_rarity(rarity)
    assert scores.dtype == np.float32
    assert scores[0] == 0.0
    assert (np.diff(scores) > 0).all()
    assert (np.diff(score_of_rarity(np.geomspace(1, 1e12, 10_000))) >= 0).all()
    assert score_of_rarity(np.array([1e12]))[0] < 1.0


def test_scores_of_values_are_scores_of_their_rarity() -> None:
    values = np.random.default_rng(4).normal(size=500)
    calibration = calibrate_values(values)
    expected = score_of_rarity(calibration.neg_log_survival(values))
    np.testing.assert_array_equal(calibration.score(values), expected)


# --- counts --------------------------------------------------------------------------------------


def _same(first: GridCounts, second: GridCounts) -> bool:
    return (
        first.step == second.step
        and first.cells.tobytes() == second.cells.tobytes()
        and first.counts.tobytes() == second.counts.tobytes()
    )


@examples(60)
@given(st.lists(st.floats(-20, 20), min_size=2, max_size=80), st.data())
def test_counts_merge_in_any_order_to_the_same_bytes(
    sample: list[float], data: st.DataObject
) -> None:
    values = np.array(sample)
    cuts = np.cumsum(data.draw(chunk_sizes(len(values))))[:-1]
    parts = [count_on_grid(part, 0.5) for part in np.split(values, cuts)]
    order = data.draw(st.permutations(range(len(parts))))
    whole = count_on_grid(values, 0.5)
    assert _same(reduce(merge_counts, parts), whole)
    assert _same(reduce(merge_counts, [parts[i] for i in order]), whole)
    if len(parts) >= 3:  # also as a tree
        right = reduce(merge_counts, parts[1:])
        assert _same(merge_counts(parts[0], right), whole)


def test_counts_are_of_cells_closed_below() -> None:
    counts = count_on_grid(np.array([-0.5, -0.25, 0.0, 0.4999, 0.5, 7.3]), 0.5)
    assert counts.cells.tolist() == [-1, 0, 1, 14]
    assert counts.counts.tolist() == [2, 2, 1, 1]
    assert counts.centers.tolist() == [-0.25, 0.25, 0.75, 7.25]
    assert counts.n_values == 6
    assert counts.cells.dtype == counts.counts.dtype == np.int64


@examples(40)
@given(st.lists(st.floats(-20, 20), min_size=1, max_size=40), st.sampled_from([0.5, 2.0**-8]))
def test_no_value_is_further_than_half_a_step_from_its_center(
    sample: list[float], step: float
) -> None:
    for value in sample:
        counts = count_on_grid(np.array([value]), step)
        assert abs(float(counts.centers[0]) - value) <= step / 2
        assert counts.n_values == 1


@pytest.mark.parametrize("values", [[], [1.0, np.nan], [np.inf], [-np.inf, 0.0]])
def test_values_that_are_not_finite_are_refused(values: list[float]) -> None:
    with pytest.raises(DataError, match="finite"):
        count_on_grid(np.array(values), 0.5)


def test_counts_on_different_grids_are_refused() -> None:
    first, second = count_on_grid(np.ones(3), 0.5), count_on_grid(np.ones(3), 0.25)
    with pytest.raises(DataError, match=r"0\.5 and 0\.25"):
        merge_counts(first, second)
