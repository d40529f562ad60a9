"""Two passes: groups of anomalies cannot hide, anchors can be trusted, columns speak alone."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from mrot_scale import MROT, MethodConfig, load_config
from mrot_scale.config.method import method_config, paper_settings
from mrot_scale.config.views import ViewConfig, view_config
from mrot_scale.errors import ConfigError
from mrot_scale.fitting.anchored import anchor_plan
from mrot_scale.method.efforts import Problem, minibatch_efforts
from tests import oracle
from tests.tables import normal_rows, uneven_clusters

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

SEPARATE = {"scaling": "robust", "separate": True, "alpha": 0.1}


# --- what settings go together -------------------------------------------------------------------


def _scalings(config: MethodConfig) -> list[tuple[Any, bool]]:
    return [(view.scaling, view.separate) for view in config.views]


WHOLE = [("none", False), ("standard", False), ("robust", False)]


def test_by_default_there_are_two_passes_and_columns_are_looked_at_alone_too() -> None:
    config = MethodConfig().for_columns(4)
    assert config.two_passes
    assert _scalings(config) == [("auto", False), ("gentle", False), ("robust", True)]
    assert config.batch_views == (0, 1)
    assert config.for_batches.alpha == config.first_alpha > config.alpha
    assert config.for_batches.model_copy(update={"alpha": config.alpha}) == config


@pytest.mark.parametrize("unit", [1.0, 1e6])
def test_a_view_that_auto_scaled_is_the_gentle_one_with_other_anchors(unit: float) -> None:
    rows = normal_rows(600) * np.array([unit, *[1.0] * (normal_rows(1).shape[1] - 1)])
    first, second, _ = MROT(hybrid="never").fit(rows).model_.views
    same_coordinates = np.array_equal(first.view.apply(rows), second.view.apply(rows))
    assert same_coordinates == (unit != 1.0)
    for own, other in zip(first.anchors, second.anchors, strict=True):
        assert not np.array_equal(own.rows, other.rows)


@pytest.mark.parametrize("settings", [{"distrust": 0}, {"distrust": 0.0}, {"batch_rows": None}])
def test_a_single_pass_has_three_plain_views_and_its_own_zones(settings: dict[str, Any]) -> None:
    config = method_config(**settings)
    assert not config.two_passes
    assert _scalings(config) == WHOLE
    assert config.batch_views == (0, 1, 2)
    assert config.for_batches == config


def test_settings_from_files_and_the_environment_have_the_views_of_their_passes() -> None:
    from_environment = load_config(environment={"MROT_DISTRUST": "0"})
    from_flags = load_config(environment={}, overrides={"distrust": 0.0})
    assert _scalings(from_environment) == _scalings(from_flags) == WHOLE


def test_views_given_by_hand_stay() -> None:
    for settings in ({"distrust": 0}, {"batch_rows": None}, {}):
        config = method_config(views=[{"scaling": "standard"}], **settings)
        assert _scalings(config) == [("standard", False)]


@pytest.mark.parametrize("settings", [{"distrust": 0}, {"batch_rows": None}])
def test_separate_columns_without_a_first_pass_are_refused(settings: dict[str, Any]) -> None:
    views = [{"scaling": "none"}, SEPARATE]
    with pytest.raises(ConfigError, match=r"views with separate columns, .* need a first pass: .*"):
        method_config(views=views, **settings)
    with pytest.raises(ConfigError, match=r"set distrust above 0 and give batch_rows"):
        MROT(views=views, **settings).fit(normal_rows(40))


@pytest.mark.parametrize("settings", [{"distrust": 0}, {"batch_rows": None}])
def test_zones_and_distrust_of_its_own_are_refused_for_a_view_of_a_single_pass(
    settings: dict[str, Any],
) -> None:
    for own in ({"alpha": 0.2}, {"distrust": 0.2}, {"distrust": 0.0}):
        with pytest.raises(ConfigError, match=r"an alpha of their own need a first pass: .*"):
            method_config(views=[{"scaling": "none", **own}], **settings)


def test_a_first_pass_without_a_view_of_all_columns_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"needs a view of all columns: give one without sep"):
        method_config(views=[SEPARATE])


def test_whitened_columns_cannot_be_looked_at_alone() -> None:
    with pytest.raises(ConfigError, match=r"whiten mixes the columns that separate would look at"):
        view_config({"separate": True, "whiten": 2})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"distrust": 0.6}, "distrust: Input should be less than or equal to 0.5"),
        ({"distrust": -0.1}, "distrust: Input should be greater than or equal to 0"),
        ({"first_alpha": 0.0}, "first_alpha: Input should be greater than 0"),
        ({"first_alpha": 0.5}, "first_alpha: Input should be less than 0.5"),
        ({"hybrid": "sometimes"}, "hybrid: Input should be 'auto', 'never' or 'always'"),
    ],
)
def test_settings_out_of_range_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        MROT(**settings).fit(normal_rows(40))


def test_the_zone_of_a_view_out_of_range_is_named() -> None:
    with pytest.raises(ConfigError, match=r"views: alpha: Input should be less than 0\.5"):
        view_config({"alpha": 0.7})


def test_the_paper_knows_one_pass_and_plain_trees() -> None:
    config = method_config(**paper_settings())
    assert (config.distrust, config.hybrid) == (0.0, "never")
    assert not config.two_passes


# --- how many anchors there are ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_trusted", "n_columns", "separate", "size", "n_sets"),
    [
        (5_000, 3, False, 512, 16),
        (5_000, 3, True, 512, 18),
        (5_000, 50, True, 512, 50),
        (5_000, 300, True, 512, 128),
        (300, 3, False, 150, 16),
        (5, 3, False, 5, 1),  # the whole of a tiny table, once
        (5, 3, True, 5, 3),  # and once for each of its columns
    ],
)
def test_anchors_planned(
    n_trusted: int, n_columns: int, separate: bool, size: int, n_sets: int
) -> None:
    view = ViewConfig(scaling="none", separate=separate)
    plan = anchor_plan(n_trusted, n_columns, view, MethodConfig())
    assert (plan.anchor_rows, plan.n_sets) == (size, n_sets)
    assert (plan.columns is not None) is separate
    assert plan.columns is None or len(plan.columns) == n_sets


@pytest.mark.parametrize(
    ("settings", "size"),
    [
        ({"anchor_rows": 300}, 300),
        ({"anchor_rows": None}, 256),
        ({"anchor_rows": None, "batch_rows": 100}, 100),
        ({"anchor_rows": 300, "k": 5}, 256),  # k of 256 rows is another share of them than k of 300
        ({"anchor_rows": 300, "batch_rows": None}, 5_000),  # whoever solves all rows keeps them
    ],
)
def test_anchors_in_a_set(settings: dict[str, Any], size: int) -> None:
    config = MethodConfig(**settings)
    assert anchor_plan(5_000, 3, ViewConfig(scaling="none"), config).anchor_rows == size


@pytest.mark.parametrize("anchor_sets", [1, 2, 7, 40])
@pytest.mark.parametrize("distrust", [0.0, 0.1])
def test_there_are_as_many_sets_as_asked_for_however_often_rows_meet(
    anchor_sets: int, distrust: float
) -> None:
    few = MethodConfig(anchor_sets=anchor_sets, repeats=1, distrust=distrust)
    many = few.model_copy(update={"repeats": 9})
    whole, separate = ViewConfig(scaling="none"), ViewConfig(scaling="none", separate=True)
    for config in (few, many):
        assert anchor_plan(5_000, 3, whole, config).n_sets == anchor_sets
        assert anchor_plan(5_000, 3, separate, config).n_sets == 3 * -(-anchor_sets // 3)


@pytest.mark.parametrize(
    ("settings", "n_sets"),
    [
        ({"anchor_sets": 5}, [5, 5, 6]),
        ({"anchor_sets": 5, "distrust": 0.0}, [5, 5, 5]),
        ({"anchor_sets": 5, "batch_rows": None}, [1, 1, 1]),
        ({"preset": "paper"}, [1]),
        ({"preset": "paper", "batch_rows": 64}, [1]),
    ],
)
def test_a_fitted_model_has_the_sets_asked_for(settings: dict[str, Any], n_sets: list[int]) -> None:
    fitted = MROT(repeats=2, hybrid="never", **settings).fit(normal_rows(150, 3))
    assert [len(view.anchors) for view in fitted.model_.views] == n_sets


# --- the point of it -----------------------------------------------------------------------------


def _beside_a_group(seed: int) -> tuple[Floats, NDArray[np.bool_]]:
    """A normal cloud and, beside it, a tight group of one row in fourteen."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(600, 3))
    is_group = np.arange(600) < 42
    rows[is_group] = 3.0 + 0.05 * rng.normal(size=(42, 3))
    order = rng.permutation(600)
    return rows[order], is_group[order]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_group_hides_from_one_pass_and_not_from_two(seed: int) -> None:
    rows, is_group = _beside_a_group(seed)
    settings: dict[str, Any] = {
        "views": ["robust"], "alpha": 0.04, "repeats": 3, "anchor_sets": 3, "hybrid": "never",
        "method": "effort", "random_state": seed,
    }  # fmt: skip
    once = MROT(distrust=0, **settings).fit(rows)
    twice = MROT(**settings).fit(rows)
    assert roc_auc_score(is_group, once.anomaly_score(rows)) < 0.3
    assert roc_auc_score(is_group, twice.anomaly_score(rows)) > 0.97
    anchors = np.concatenate([s.ids for s in twice.model_.views[0].anchors])
    assert not is_group[anchors].any()


def _agreement_of_seeds(rows: Floats, anchor_sets: int) -> float:
    """Rank correlation of the scores that two seeds give."""
    settings: dict[str, Any] = {"repeats": 2, "hybrid": "never", "method": "effort"}
    one, other = (
        MROT(anchor_sets=anchor_sets, random_state=seed, **settings).fit(rows).anomaly_score(rows)
        for seed in (0, 1)
    )
    return float(spearmanr(one, other).statistic)


@pytest.mark.parametrize("law", ["normal", "clusters", "copies"])
def test_with_more_sets_scores_are_less_a_matter_of_the_seed(law: str) -> None:
    rows = uneven_clusters(700) if law == "clusters" else normal_rows(700, 4)
    rows = np.round(rows) if law == "copies" else rows
    few, many = (_agreement_of_seeds(rows, n_sets) for n_sets in (2, 32))
    assert 1 - many < 0.7 * (1 - few)


def _mixed_units(unit: Floats) -> tuple[Floats, Floats]:
    rows = np.random.default_rng(3).standard_t(4, (800, 3)) * unit
    return rows[:600], rows[600:]


def _efforts_told(train: Floats, test: Floats) -> NDArray[np.float32]:
    detector = MROT(anchor_sets=3, repeats=2, label_rows=400).fit(train)
    return detector.anomaly_score(test, method="effort")


def test_scores_do_not_depend_on_the_units_of_columns_that_have_different_ones() -> None:
    first, second = (
        _efforts_told(*_mixed_units(np.exp2(exponents)))  # powers of two: no unit rounds
        for exponents in ([0, 9, -5], [7, 0, -16])
    )
    np.testing.assert_array_equal(first, second)


def test_where_columns_share_a_unit_how_widely_they_vary_counts() -> None:
    train, test = _mixed_units(np.array([1.0, 1.0, 1.0]))
    alike = _efforts_told(train, test)
    wider = _efforts_told(train * [1, 1, 1.2], test * [1, 1, 1.2])
    assert 0.9 < spearmanr(alike, wider).statistic < 1 - 1e-4


# --- anchors and columns of a fitted model -------------------------------------------------------


def _rounded_rows(n_rows: int, n_columns: int = 3) -> Floats:
    """Rows as the estimator sees them."""
    return normal_rows(n_rows, n_columns).astype(np.float32).astype(np.float64)


@pytest.fixture(scope="module")
def rows() -> Floats:
    return _rounded_rows(300)


@pytest.fixture(scope="module")
def fitted(rows: Floats) -> MROT:
    views = ["none", {**SEPARATE, "scaling": "none"}]
    sizes: dict[str, Any] = {"batch_rows": 64, "repeats": 4, "anchor_rows": 64, "anchor_sets": 4}
    return MROT(views=views, zone="batch", hybrid="never", **sizes).fit(rows)


def _anchor_ids(fitted: MROT, view: int) -> list[Ids]:
    return [anchor_set.ids for anchor_set in fitted.model_.views[view].anchors]


def test_no_anchor_is_among_the_rows_hardest_to_move(fitted: MROT, rows: Floats) -> None:
    problem = Problem(alpha=MethodConfig().first_alpha)
    efforts = minibatch_efforts(rows, problem, batch_rows=64, repeats=4)
    hardest = np.argsort(np.log(efforts).mean(axis=1))[-30:]
    easier = np.setdiff1d(np.arange(300), hardest)
    for view in (0, 1):
        drawn = np.concatenate(_anchor_ids(fitted, view))
        assert not np.isin(drawn, hardest).any()
        assert np.isin(drawn, easier).all()
    drawn_somewhere = np.unique(np.concatenate(_anchor_ids(fitted, 0)))
    assert len(drawn_somewhere) == 4 * 64  # disjoint, as there are rows enough


def test_a_view_may_trust_more_rows_than_the_others() -> None:
    rows = normal_rows(300)
    views = [{"scaling": "none"}, {"scaling": "none", "distrust": 0.0}]
    fitted = MROT(views=views, distrust=0.5, batch_rows=64, anchor_sets=4).fit(rows)
    drawn = [np.unique(np.concatenate(_anchor_ids(fitted, view))) for view in (0, 1)]
    assert len(drawn[0]) <= 150 < len(drawn[1])


def test_anchors_are_the_rows_they_say_they_are(fitted: MROT, rows: Floats) -> None:
    for view in fitted.model_.views:
        points = view.view.apply(rows)
        for anchor_set in view.anchors:
            expected = anchor_set.among(points[anchor_set.ids])
            np.testing.assert_array_equal(anchor_set.rows, expected)


def test_separate_anchors_live_in_one_column_each_and_in_all_equally_often(fitted: MROT) -> None:
    whole, separate = fitted.model_.views
    assert all(s.columns is None and s.rows.shape == (64, 3) for s in whole.anchors)
    columns = [s.columns for s in separate.anchors if s.columns is not None]
    assert len(columns) == len(separate.anchors)
    assert sorted(c.tolist() for c in columns) == [[0], [0], [1], [1], [2], [2]]
    assert all(s.rows.shape == (64, 1) for s in separate.anchors)


def test_efforts_kept_are_geometric_means_over_the_middle_half_of_the_sets_a_row_is_not_in(
    fitted: MROT, rows: Floats
) -> None:
    """But over all sets of separate columns, which are too few to leave any out."""
    for number, view in enumerate(fitted.model_.views):
        alpha = (0.04, 0.1)[number]
        routes = view.routes(rows, Problem(alpha=alpha), 1)
        for row in range(0, 300, 7):
            pairs = zip(routes[row], view.anchors, strict=True)
            others = [e for e, s in pairs if number == 1 or row not in s.ids]
            average = oracle.middle_half if number == 0 else np.mean
            expected = np.exp(average(np.log(others).tolist()))
            assert fitted.efforts_[row, number] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("column", [0, 1, 2])
def test_a_row_extreme_in_one_column_alone_is_rarer(fitted: MROT, column: int) -> None:
    usual = np.zeros((1, 3))
    extreme = usual.copy()
    extreme[0, column] = 6.0
    before, after = (fitted.model_.rarity(x)[0, 1] for x in (usual, extreme))
    assert after > before
    view = fitted.model_.views[1]
    moved = view.routes(extreme, Problem(alpha=0.1), 1) != view.routes(usual, Problem(alpha=0.1), 1)
    seen = [s.columns is not None and s.columns[0] == column for s in view.anchors]
    assert moved[0].tolist() == seen


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_column_of_one_value_changes_nothing(position: int) -> None:
    plain = _rounded_rows(200, 2)
    table = np.insert(plain, position, 7.0, axis=1)
    sizes: dict[str, Any] = {"repeats": 3, "anchor_sets": 3}
    settings = sizes | {"views": ["robust", SEPARATE], "hybrid": "never"}
    without, with_it = MROT(**settings).fit(plain), MROT(**settings).fit(table)
    seen = [s.columns for s in with_it.model_.views[1].anchors]
    assert all(columns is not None and position not in columns for columns in seen)
    expected = without.model_.rarity(plain)
    np.testing.assert_allclose(with_it.model_.rarity(table), expected, rtol=1e-9)


def test_the_zone_of_a_view_is_its_own() -> None:
    table = _rounded_rows(200)
    settings: dict[str, Any] = {"repeats": 2, "anchor_sets": 2, "hybrid": "never"}
    own = MROT(views=[{"scaling": "none", "alpha": 0.2}], **settings).fit(table)
    shared = MROT(views=["none"], alpha=0.2, **settings).fit(table)
    other = MROT(views=["none"], **settings).fit(table)
    for method in ("model", "effort"):
        expected = shared.anomaly_score(table, method)
        np.testing.assert_array_equal(own.anomaly_score(table, method), expected)
        assert not np.array_equal(other.anomaly_score(table, method), expected)


@pytest.mark.parametrize("n_rows", [5, 8, 13, 30])
def test_small_tables_have_two_passes_too(n_rows: int) -> None:
    table = normal_rows(n_rows)
    table[0] += 20
    scores = MROT(method="effort").fit(table).anomaly_score(table)
    assert np.isfinite(scores).all()
    assert scores.argmax() == 0


def test_the_seed_decides_both_passes() -> None:
    table = normal_rows(200)
    few: dict[str, Any] = {"repeats": 2, "anchor_sets": 2, "hybrid": "never"}
    one, again, other = (MROT(random_state=seed, **few).fit(table) for seed in (1, 1, 2))
    for view in range(3):
        same = zip(_anchor_ids(one, view), _anchor_ids(again, view), strict=True)
        assert all(np.array_equal(a, b) for a, b in same)
    assert not np.array_equal(_anchor_ids(one, 0)[0], _anchor_ids(other, 0)[0])


@pytest.mark.parametrize("change", [{"distrust": 0.0}, {"batch_rows": None}])
def test_a_default_config_can_be_changed_to_a_single_pass(change: dict[str, Any]) -> None:
    fitted = MROT(config=MethodConfig(), regressor="knn", **change).fit(normal_rows(60))
    assert [v.view.spec.scaling for v in fitted.model_.views] == ["none", "standard", "robust"]
