"""How rare sampled rows are: not by sets they belong to, in any unit, and who may be an anchor."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mrot_scale.config.method import MethodConfig
from mrot_scale.method.anchors import AnchorSet, fit_anchor_set, route_matrix
from mrot_scale.method.efforts import Average, Problem, minibatch_efforts
from mrot_scale.method.strata import draw_evenly
from mrot_scale.method.trust import trusted_rows
from mrot_scale.method.views import View, ViewSpec, fit_view
from mrot_scale.standing import (
    Targets,
    fit_targets,
    order_of_trust,
    stand_by_batches,
    stand_by_routes,
    unseen_routes,
)
from tests import oracle
from tests.strategies import examples, seeds
from tests.tables import normal_rows

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

PROBLEM = Problem(k=3)
N_ROWS = 120


def _sets_of(*members: list[int], columns: bool = False) -> tuple[AnchorSet, ...]:
    """Anchor sets of which only the members matter, and perhaps that each sees one column."""
    return tuple(
        AnchorSet(
            np.zeros((len(ids), 1)),
            np.zeros(len(ids)),
            np.array(ids, dtype=np.int64),
            0.0,
            np.array([i]) if columns else None,
        )
        for i, ids in enumerate(members)
    )


def _solved(
    rows: Floats, size: int, n_sets: int, *, separate: bool = False
) -> tuple[View, tuple[AnchorSet, ...], Floats]:
    view = fit_view(ViewSpec("none"), rows)
    points = view.apply(rows)
    drawn = draw_evenly(points, size, n_sets, 0)
    sets = tuple(
        fit_anchor_set(
            points[ids], ids, PROBLEM, "set", columns=np.array([i % 3]) if separate else None
        )
        for i, ids in enumerate(drawn)
    )
    return view, sets, route_matrix(sets, points, PROBLEM)


# --- without the sets a row belongs to -----------------------------------------------------------


@examples(60)
@given(seeds, st.integers(1, 5))
def test_a_row_is_measured_by_the_sets_it_is_not_in(seed: int, n_sets: int) -> None:
    rng = np.random.default_rng(seed)
    routes, own = rng.random((12, n_sets)), rng.random((12, n_sets))
    members = [rng.choice(12, 6, replace=False).tolist() for _ in range(n_sets)]
    before = routes.copy()
    found = unseen_routes(routes, _sets_of(*members), own)
    np.testing.assert_array_equal(routes, before)
    for row in range(12):
        others = [row not in ids for ids in members]
        expected = np.where(others, routes[row], np.nan) if any(others) else own[row]
        np.testing.assert_array_equal(found[row], expected)


@pytest.mark.parametrize("separate", [False, True])
def test_rows_that_are_no_anchors_stand_as_when_scored_again(separate: bool) -> None:
    rows = normal_rows(N_ROWS)
    view, sets, routes = _solved(rows, 12, 3, separate=separate)
    standing = stand_by_routes(view, sets, routes, PROBLEM)
    outside = np.setdiff1d(np.arange(N_ROWS), np.concatenate([s.ids for s in sets]))
    assert len(outside) == N_ROWS - 36
    np.testing.assert_array_equal(standing.seen_rarity[outside], standing.unseen_rarity[outside])
    again = standing.fitted.rarity(standing.fitted.routes(rows, PROBLEM, 1), PROBLEM)
    np.testing.assert_array_equal(standing.seen_rarity, again)
    np.testing.assert_array_equal(standing.target_rarity, standing.unseen_rarity)
    assert standing.of_batches is None


@pytest.mark.parametrize("average", ["middle", "mean"])
def test_the_averaged_log_effort_leaves_out_the_own_sets(average: Average) -> None:
    view, sets, routes = _solved(normal_rows(N_ROWS), 30, 3)
    standing = stand_by_routes(view, sets, routes, replace(PROBLEM, average=average))
    of_sets = oracle.middle_half if average == "middle" else np.mean
    for row in range(N_ROWS):
        others = [e for e, s in zip(routes[row], sets, strict=True) if row not in s.ids]
        expected = of_sets(np.log(others).tolist())
        assert standing.mean_logs[row] == pytest.approx(expected, rel=1e-9)


def test_a_table_that_is_its_own_only_anchor_set_stands_by_it() -> None:
    view, sets, routes = _solved(normal_rows(40), 40, 1)
    standing = stand_by_routes(view, sets, routes, PROBLEM)
    np.testing.assert_array_equal(standing.unseen_rarity, standing.seen_rarity)
    order = np.argsort(routes[:, 0], kind="stable")
    assert (np.diff(standing.unseen_rarity[order]) >= 0).all()


# --- one map for sets alike, one for each where columns differ -----------------------------------


def test_sets_of_all_columns_share_a_map_and_sets_of_one_have_their_own() -> None:
    rng = np.random.default_rng(0)
    routes, members = rng.lognormal(size=(50, 4)), [[i] for i in range(4)]
    view = fit_view(ViewSpec("none"), normal_rows(50))
    shared = stand_by_routes(view, _sets_of(*members), routes, PROBLEM).fitted
    own = stand_by_routes(view, _sets_of(*members, columns=True), routes, PROBLEM).fitted
    assert (len(shared.maps), shared.floor.shape) == (1, (1,))
    assert (len(own.maps), own.floor.shape) == (4, (4,))


def test_the_unit_of_a_column_looked_at_by_itself_does_not_matter() -> None:
    routes = np.random.default_rng(1).lognormal(size=(200, 3))
    view, sets = fit_view(ViewSpec("none"), normal_rows(200)), _sets_of([0], [1], [2], columns=True)
    units = np.exp(np.array([-512.0, 0.0, 1024.0]) / 256)  # whole steps of the counting grid
    one = stand_by_routes(view, sets, routes, PROBLEM).target_rarity
    other = stand_by_routes(view, sets, routes * units, PROBLEM).target_rarity
    np.testing.assert_allclose(other, one, rtol=0.01)


def test_a_column_without_efforts_stands_the_same_for_every_row() -> None:
    routes = np.random.default_rng(2).lognormal(size=(200, 3))
    routes[:, 1] = 0.0
    view, sets = fit_view(ViewSpec("none"), normal_rows(200)), _sets_of([], [], [], columns=True)
    standing = stand_by_routes(view, sets, routes, PROBLEM)
    others = [float(standing.fitted.floor[i]) for i in (0, 2)]
    alone = [
        standing.fitted.maps[i].neg_log_survival(np.log(np.maximum(routes[:, i], least)))
        for i, least in zip((0, 2), others, strict=True)
    ]
    left = 3 * standing.target_rarity - alone[0] - alone[1]
    assert np.isfinite(left).all()
    assert np.ptp(left) == pytest.approx(0.0, abs=1e-9)


def test_a_row_hard_to_move_in_one_column_alone_stands_out() -> None:
    routes = np.random.default_rng(3).lognormal(size=(200, 3))
    routes[7] = np.median(routes, axis=0) * [1.0, 1e3, 1.0]
    view, sets = fit_view(ViewSpec("none"), normal_rows(200)), _sets_of([], [], [], columns=True)
    rarity = stand_by_routes(view, sets, routes, PROBLEM).target_rarity
    assert (rarity < rarity[7]).mean() > 0.95


# --- in batches ----------------------------------------------------------------------------------


def _by_batches(config: MethodConfig) -> tuple[Floats, Floats, Floats]:
    """Return efforts in batches, and the target and mean log effort they give."""
    rows = normal_rows(N_ROWS)
    view, sets, routes = _solved(rows, 30, 3)
    efforts = minibatch_efforts(rows, PROBLEM, batch_rows=30, repeats=3)
    standing = stand_by_batches(view, efforts, sets, routes, config, PROBLEM)
    assert standing.of_batches is not None
    return efforts, standing.target_rarity, standing.mean_logs


def test_batches_are_averaged_by_log_effort() -> None:
    efforts, target, mean_logs = _by_batches(MethodConfig(distrust=0))
    expected = np.log(efforts).mean(axis=1)
    np.testing.assert_allclose(mean_logs, expected, rtol=1e-9)
    assert (np.diff(target[np.argsort(expected)]) > 0).all()


def test_raw_efforts_are_averaged_as_they_are() -> None:
    efforts, target, _ = _by_batches(MethodConfig(distrust=0, calibration="raw-effort"))
    assert (np.diff(target[np.argsort(efforts.mean(axis=1))]) > 0).all()


# --- who may be an anchor ------------------------------------------------------------------------


def _efforts(seed: int = 4) -> Floats:
    return np.random.default_rng(seed).lognormal(size=(100, 4))


def _trusted(efforts: list[Floats], config: MethodConfig, problem: Problem) -> Ids:
    return trusted_rows(order_of_trust(efforts, config, problem), config.distrust)


def _easiest(efforts: Floats, n_rows: int) -> list[int]:
    return sorted(np.argsort(np.log(efforts).mean(axis=1))[:n_rows].tolist())


@pytest.mark.parametrize("distrust", [0.05, 0.1, 0.5])
def test_the_rows_easiest_to_move_may_be_anchors(distrust: float) -> None:
    efforts = _efforts()
    found = _trusted([efforts], MethodConfig(distrust=distrust), Problem())
    assert found.tolist() == _easiest(efforts, round(100 * (1 - distrust)))


def test_by_the_coulomb_cost_the_hardest_to_move_may_be_anchors() -> None:
    efforts = _efforts()
    found = _trusted([efforts], MethodConfig(cost="coulomb"), Problem(kind="coulomb"))
    assert found.tolist() == _easiest(1 / efforts, 90)


def test_a_view_counts_as_often_as_it_is_looked_at_and_not_by_its_unit() -> None:
    one, other = _efforts(), _efforts(5)
    twice = _trusted([one, one], MethodConfig(), Problem())
    assert twice.tolist() == _easiest(one, 90)
    both = _trusted([one, other], MethodConfig(), Problem())
    swapped = _trusted([other, one * np.exp(2)], MethodConfig(), Problem())
    assert both.tolist() == swapped.tolist()
    assert both.tolist() not in (_easiest(one, 90), _easiest(other, 90))


def test_a_row_extreme_in_one_of_two_views_is_distrusted() -> None:
    one, other = _efforts(), _efforts(5)
    one[3] = 1e4
    assert 3 not in _trusted([one, other], MethodConfig(), Problem())


# --- what the score model learns -----------------------------------------------------------------


def test_of_one_view_targets_are_its_shares() -> None:
    rarity = np.random.default_rng(6).exponential(size=(50, 1))
    targets = fit_targets(rarity)
    assert targets == Targets(None)
    np.testing.assert_allclose(targets.shares(rarity), 1 - np.exp(-rarity[:, 0]), rtol=1e-12)


def test_of_several_views_targets_are_shares_of_rows_with_less_mean_rarity() -> None:
    rarity = np.random.default_rng(7).exponential(size=(2_000, 3))
    shares = fit_targets(rarity).shares(rarity)
    ranks = np.argsort(np.argsort(rarity.mean(axis=1)))
    assert ((shares > 0) & (shares < 1)).all()
    assert (np.diff(shares[np.argsort(ranks)]) >= 0).all()
    np.testing.assert_allclose(shares, ranks / 2_000, atol=0.05)


@pytest.mark.parametrize("n_views", [1, 3])
def test_rows_rarer_than_any_of_the_sample_have_targets_below_one(n_views: int) -> None:
    rarity = np.random.default_rng(8).exponential(size=(200, n_views))
    shares = fit_targets(rarity).shares(np.full((1, n_views), 20.0))
    assert fit_targets(rarity).shares(rarity).max() <= shares[0] <= 1
