"""The coordinates of a view: scalings, column subsets, whitening, and columns without spread."""

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from mrot_scale.config import views as settings_of_views
from mrot_scale.errors import ConfigError
from mrot_scale.method.views import SCALINGS, Scaling, ViewSpec, evenness, fit_view
from tests.strategies import any_clouds, examples

Floats = NDArray[np.float64]


def _table(seed: int = 0, n_rows: int = 200) -> Floats:
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [rng.normal(5, 3, n_rows), rng.lognormal(0, 2, n_rows), rng.uniform(-1e4, 1e4, n_rows)]
    )


# --- scalings ------------------------------------------------------------------------------------


def test_no_scaling_keeps_all_differences() -> None:
    X = _table()
    Z = fit_view(ViewSpec("none"), X).apply(X)
    np.testing.assert_allclose(Z - Z[0], X - X[0], rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(np.median(Z, axis=0), 0.0, atol=1e-9)


def test_standard_scaling_gives_mean_0_and_deviation_1() -> None:
    X = _table()
    Z = fit_view(ViewSpec("standard"), X).apply(X)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(Z.std(axis=0), 1.0, rtol=1e-12)


def test_robust_scaling_is_the_arcsinh_of_median_and_quartiles() -> None:
    X = np.delete(_table(), 1, axis=1)  # none of them nearly all in one place
    Z = fit_view(ViewSpec("robust"), X).apply(X)
    for z, x in zip(Z.T, X.T, strict=True):
        ordered = np.sort(x)
        q1, q2, q3 = (np.percentile(ordered, p) for p in (25, 50, 75))
        np.testing.assert_allclose(np.sinh(z) * (q3 - q1) + q2, x, rtol=1e-9, atol=1e-9)


def test_gentle_scaling_leaves_the_bulk_as_it_is_and_draws_in_what_is_far_out() -> None:
    x = np.concatenate([np.linspace(-1.0, 1.0, 1_001), [1e6]])[:, None]  # an IQR of 1
    z = fit_view(ViewSpec("gentle"), x).apply(x)[:, 0]
    np.testing.assert_allclose(2.0 * np.sinh(z), x[:, 0], rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(2.0 * z[:-1], x[:-1, 0], rtol=5e-2, atol=1e-2)
    assert 2.0 * z[-1] < 50.0


UNIT_COLUMNS = np.random.default_rng(1).normal(0, 1, (500, 4))


@pytest.mark.parametrize(
    ("deviations", "decided"),
    [((1, 1, 1, 1), "none"), ((1, 2, 1, 2), "none"), ((1, 1, 1, 4), "gentle")],
)
def test_auto_keeps_columns_as_they_are_only_where_they_share_the_variance(
    deviations: tuple[float, ...], decided: Scaling
) -> None:
    X = UNIT_COLUMNS * deviations
    view = fit_view(ViewSpec("auto"), X)
    assert view.scaling == decided
    assert view.name == f"{decided} (auto)"
    np.testing.assert_array_equal(view.apply(X), fit_view(ViewSpec(decided), X).apply(X))


def test_auto_decides_for_its_own_columns_alone() -> None:
    X = UNIT_COLUMNS * [1, 1, 1e6, 1e3]
    both = fit_view(ViewSpec(("auto", "auto", "none", "standard")), X)
    assert both.squash.tolist() == [False] * 4
    three = fit_view(ViewSpec(("auto", "auto", "auto", "standard")), X)
    assert three.squash.tolist() == [True, True, True, False]
    assert both.scaling == ("none", "none", "none", "standard")
    assert three.scaling == ("gentle", "gentle", "gentle", "standard")
    assert (both.is_scaled_by_choice, three.is_scaled_by_choice) == (False, True)
    np.testing.assert_array_equal(
        three.apply(X), fit_view(ViewSpec(("gentle", "gentle", "gentle", "standard")), X).apply(X)
    )


def test_evenness_is_0_for_one_column_that_has_all_and_1_for_equal_ones() -> None:
    equal = np.column_stack([np.arange(9.0), np.arange(9.0)[::-1], 3 + np.arange(9.0)])
    assert evenness(equal) == pytest.approx(1)
    assert evenness(equal * [1, 1, 1e9]) == pytest.approx(0, abs=1e-9)
    assert evenness(equal * [1e150, 1e-150, 1e150]) == pytest.approx(0.5)  # two of three: halfway
    assert evenness(equal[:, :1]) == evenness(np.zeros((5, 3))) == 1


@given(flags=arrays(np.bool_, (60, 3)), unit=st.floats(1e-6, 1e6), constant=st.floats(-9, 9))
@examples(40)
def test_columns_of_at_most_two_values_have_no_part_in_evenness(
    flags: NDArray[np.bool_], unit: float, constant: float
) -> None:
    X = UNIT_COLUMNS[:60] * [1, 2, 3, 4]
    beside = np.column_stack([flags * unit, np.full(60, constant), X])
    assert evenness(beside) == evenness(X)


@pytest.mark.parametrize("reading", [30.0, 1e6, -1e30])
def test_a_few_bad_readings_do_not_decide_how_a_table_is_scaled(reading: float) -> None:
    X = UNIT_COLUMNS.copy()
    X[[3, 40, 77, 400], 2] = reading
    assert evenness(X) == pytest.approx(evenness(UNIT_COLUMNS), abs=0.02)
    assert fit_view(ViewSpec("auto"), X).scaling == "none"


@pytest.mark.parametrize(("deviation", "decided"), [(0.5, "none"), (1e4, "gentle")])
def test_one_wide_column_beside_flags_is_scaled(deviation: float, decided: Scaling) -> None:
    flags = UNIT_COLUMNS > 0
    X = np.column_stack([deviation * UNIT_COLUMNS[:, 0], flags, np.ones(len(flags))])
    assert fit_view(ViewSpec("auto"), X).scaling == decided


def test_columns_that_are_nearly_one_value_stay_as_they_are() -> None:
    X = np.zeros((500, 3))
    X[:4] = np.random.default_rng(0).uniform(1, 9, (4, 3))
    assert evenness(X) == 1


@given(unit=st.floats(1e-250, 1e250), order=st.permutations(range(4)))
@examples(40)
def test_evenness_is_about_columns_next_to_each_other(unit: float, order: list[int]) -> None:
    X = UNIT_COLUMNS * [1, 2, 3, 4]
    assert evenness(X[:, order] * unit) == pytest.approx(evenness(X), rel=1e-9)


def test_settings_know_the_same_scalings() -> None:
    assert get_args(settings_of_views.Scaling) == SCALINGS


def test_robust_scaling_is_the_default() -> None:
    X = _table()
    np.testing.assert_array_equal(
        fit_view(ViewSpec(), X).apply(X), fit_view(ViewSpec("robust"), X).apply(X)
    )


@pytest.mark.parametrize("scaling", ["standard", "robust", "gentle"])
def test_scaled_views_do_not_depend_on_the_unit_of_a_column(scaling: Scaling) -> None:
    X = _table()
    unit, origin = np.array([1e-3, 1e5, 12.0]), np.array([4.0, -1e3, 7e5])
    Z = fit_view(ViewSpec(scaling), X).apply(X)
    changed = fit_view(ViewSpec(scaling), X * unit + origin).apply(X * unit + origin)
    np.testing.assert_allclose(changed, Z, rtol=1e-7, atol=1e-7)


def test_statistics_come_from_the_sample_not_from_the_rows() -> None:
    view = fit_view(ViewSpec("standard"), np.array([[0.0], [2.0]]))
    np.testing.assert_allclose(view.apply(np.array([[1.0], [5.0]])), [[0.0], [4.0]])


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    ("zeros", "others", "is_raised"),
    [(3_700, (0.0, 1.0), True), (2_000, (0.0, 1.0), False), (2_490, (-1.0, 1.0), True)],
    ids=["most on one side", "few on one side", "half in the middle"],
)
def test_an_iqr_of_a_column_that_is_often_one_value_is_at_least_a_fifth_of_what_most_rows_span(
    zeros: int, others: tuple[float, float], is_raised: bool, sign: float
) -> None:
    x = sign * np.concatenate([np.zeros(zeros), np.linspace(*others, 5_000 - zeros)])[:, None]
    low, quarter, upper, high = np.percentile(x, [5, 25, 75, 95])
    least = 0.2 * (high - low)
    assert bool(0 < upper - quarter < least) is is_raised
    wanted = max(upper - quarter, least)
    assert fit_view(ViewSpec("robust"), x).scale[0] == pytest.approx(wanted)
    assert fit_view(ViewSpec("gentle"), x).scale[0] == pytest.approx(2 * wanted)


def test_a_column_of_several_regimes_keeps_its_iqr() -> None:
    rng = np.random.default_rng(0)
    x = (np.repeat([0.0, 10.0, 40.0], [250, 600, 150]) + rng.normal(0, 0.1, 1_000))[:, None]
    low, quarter, upper, high = np.percentile(x, [5, 25, 75, 95])
    assert upper - quarter < 0.1 * (high - low)
    assert fit_view(ViewSpec("robust"), x).scale[0] == pytest.approx(upper - quarter)


# --- columns without spread ----------------------------------------------------------------------


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("value", [0.0, 3.0, -7.0])
def test_a_constant_column_has_scale_1(scaling: Scaling, value: float) -> None:
    X = np.full((20, 1), value)
    view = fit_view(ViewSpec(scaling), X)
    assert view.scale.tolist() == [1.0]
    assert view.center.tolist() == [value]
    np.testing.assert_array_equal(view.apply(X), np.zeros((20, 1)))


@pytest.mark.parametrize("scaling", SCALINGS)
@examples(60)
@given(value=st.floats(-1e9, 1e9), n_rows=st.integers(1, 400))
def test_a_constant_column_has_scale_1_whatever_its_mean_rounds_to(
    scaling: Scaling, value: float, n_rows: int
) -> None:
    """The deviation of equal numbers may come out as 1e-16 instead of 0: it is no spread."""
    view = fit_view(ViewSpec(scaling), np.full((n_rows, 1), value))
    assert view.scale.tolist() == [1.0]


def test_a_constant_column_says_nothing_about_rows_like_it_and_something_about_others() -> None:
    X = np.full((109, 1), 1.257302210933933)
    for scaling in SCALINGS:
        view = fit_view(ViewSpec(scaling), X)
        np.testing.assert_allclose(view.apply(X), 0.0, atol=1e-9)
        assert 0.5 < float(view.apply(X + 1.0)[0, 0]) <= 1.0 + 1e-9


def test_a_column_without_quartile_spread_falls_back_to_its_deviation() -> None:
    x = np.zeros((100, 1))
    x[:10, 0] = 7.0
    view = fit_view(ViewSpec("robust"), x)
    assert view.scale[0] == pytest.approx(7.0 * np.sqrt(0.1 * 0.9), rel=1e-12)
    assert view.center[0] == 0.0


@examples(60)
@given(any_clouds(max_rows=20), st.sampled_from(SCALINGS))
def test_views_of_any_table_are_finite(points: Floats, scaling: Scaling) -> None:
    view = fit_view(ViewSpec(scaling), points)
    assert (view.scale > 0).all()
    Z = view.apply(points)
    assert Z.shape == points.shape
    assert np.isfinite(Z).all()
    # Equal rows stay equal, different rows stay different.
    assert len(np.unique(Z, axis=0)) == len(np.unique(points, axis=0))


# --- columns, each with its scaling --------------------------------------------------------------


def test_a_subset_of_columns_is_the_view_of_those_columns_in_that_order() -> None:
    X = _table()
    subset = fit_view(ViewSpec("robust", columns=(2, 0)), X).apply(X)
    alone = fit_view(ViewSpec("robust"), X[:, [2, 0]]).apply(X[:, [2, 0]])
    np.testing.assert_array_equal(subset, alone)
    assert subset.shape == (200, 2)


def test_each_column_may_have_its_own_scaling() -> None:
    X = _table()
    mixed = fit_view(ViewSpec(("none", "standard", "robust")), X)
    scalings: list[Scaling] = ["none", "standard", "robust"]
    for j, scaling in enumerate(scalings):
        alone = fit_view(ViewSpec(scaling, columns=(j,)), X)
        np.testing.assert_array_equal(mixed.apply(X)[:, [j]], alone.apply(X))
    assert mixed.squash.tolist() == [False, False, True]


def test_scalings_go_with_the_columns_chosen() -> None:
    X = _table()
    view = fit_view(ViewSpec(("standard", "none"), columns=(1, 2)), X)
    Z = view.apply(X)
    assert Z[:, 0].std() == pytest.approx(1.0)
    assert Z[:, 1].std() == pytest.approx(X[:, 2].std())


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (ViewSpec(("none", "robust")), "3 columns was given 2 scalings"),
        (ViewSpec(("none",) * 4), "3 columns was given 4 scalings"),
        (ViewSpec(("none",) * 3, columns=(0, 1)), "2 columns was given 3 scalings"),
        (ViewSpec("minmax"), r"robust, gentle, auto, got 'minmax'"),  # type: ignore[arg-type]
        (ViewSpec(("none", "none", "rank")), "got 'rank'"),  # type: ignore[arg-type]
    ],
)
def test_wrong_scalings_are_refused(spec: ViewSpec, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        fit_view(spec, _table())


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (ViewSpec(), "robust"),
        (ViewSpec("none", columns=(1, 4)), "none-2-columns"),
        (ViewSpec(("none", "robust"), columns=(1, 4), whiten=2), "mixed-2-columns-whiten-2"),
        (ViewSpec("standard", whiten=8), "standard-whiten-8"),
    ],
)
def test_view_names(spec: ViewSpec, name: str) -> None:
    assert spec.name == name


# --- whitening -----------------------------------------------------------------------------------


def _correlated(n_rows: int = 4_000) -> Floats:
    rng = np.random.default_rng(3)
    axes = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    spread = np.array([4.0, 3.0, 2.0, 1.5, 1.0])
    return np.asarray((rng.normal(size=(n_rows, 5)) * spread) @ axes + 7.0)


def test_whitening_gives_unit_variances_without_correlation() -> None:
    X = _correlated()
    Z = fit_view(ViewSpec("none", whiten=5), X).apply(X)
    assert Z.shape == X.shape
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(np.cov(Z.T), np.eye(5), atol=0.1)


def test_whitening_keeps_the_largest_components() -> None:
    X = _correlated()
    kept = fit_view(ViewSpec("none", whiten=2), X).apply(X)
    assert kept.shape == (len(X), 2)
    np.testing.assert_allclose(np.cov(kept.T), np.eye(2), atol=0.05)
    # The two kept explain as much of X as the two leading singular vectors do.
    centred = X - X.mean(axis=0)
    left = np.linalg.svd(centred, full_matrices=False)[0][:, :2]
    inside = left @ (left.T @ kept)
    np.testing.assert_allclose(inside, kept, atol=1e-6)


def test_whitening_comes_after_the_scaling() -> None:
    X = _correlated() * np.array([1e6, 1.0, 1.0, 1.0, 1e-6])
    Z = fit_view(ViewSpec("standard", whiten=5), X).apply(X)
    np.testing.assert_allclose(Z.var(axis=0), 1.0, atol=0.15)


def test_whitening_survives_columns_that_say_the_same() -> None:
    X = _correlated(300)
    doubled = np.hstack([X, X[:, :1], np.full((300, 1), 2.0)])
    Z = fit_view(ViewSpec("standard", whiten=7), doubled).apply(doubled)
    assert np.isfinite(Z).all()
    assert Z.shape == (300, 7)


@pytest.mark.parametrize("whiten", [0, -1, 4])
def test_a_number_of_components_out_of_range_is_refused(whiten: int) -> None:
    with pytest.raises(ConfigError, match=rf"whiten.*between 1 and 3.*got {whiten}"):
        fit_view(ViewSpec("standard", whiten=whiten), _table())


def test_a_view_gives_contiguous_float64_for_whatever_layout_it_gets() -> None:
    X = np.asfortranarray(_table())
    view = fit_view(ViewSpec("robust", columns=(0, 2)), X)
    Z = view.apply(X)
    assert Z.flags["C_CONTIGUOUS"]
    assert Z.dtype == np.float64
    np.testing.assert_array_equal(Z, view.apply(np.ascontiguousarray(X)))


@pytest.mark.parametrize("scaling", [*SCALINGS, ("none", "gentle", "standard")])
def test_rows_can_be_had_back_from_views_that_keep_columns(scaling: Any) -> None:
    rows = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 1e3, 1e6]
    view = fit_view(ViewSpec(scaling), rows)
    assert view.keeps_columns
    np.testing.assert_allclose(view.restored(view.apply(rows)), rows, rtol=1e-9, atol=1e-9)
    assert not fit_view(ViewSpec(columns=(0, 2)), rows).keeps_columns
    assert not fit_view(ViewSpec(whiten=2), rows).keeps_columns
