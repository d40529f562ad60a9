"""Efforts next to those of the anchors around, against sums done one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from mrot_scale.method.anchors import (
    AnchorSet,
    Search,
    fit_anchor_set,
    route_costs,
    route_matrix,
)
from mrot_scale.method.efforts import Problem

Floats = NDArray[np.float64]

SEARCHES: tuple[Search, ...] = ("dense", "compiled", "lifted")


def solved(n_anchors: int, n_columns: int, problem: Problem, seed: int = 0) -> AnchorSet:
    rows = np.random.default_rng(seed).normal(size=(n_anchors, n_columns))
    return fit_anchor_set(rows, np.arange(n_anchors), problem, "test")


def paid_by_assignment(rows: Floats, k: int) -> Floats:
    """What each anchor pays in the cheapest one-to-one plan, by another solver."""
    D = ((rows[:, None] - rows) ** 2).sum(axis=2)
    cost = D.copy()
    for i, distances in enumerate(D):
        others = [j for j in np.argsort(distances, kind="stable") if j != i]
        cost[i, [i, *others[:k]]] = distances.max()
    senders, receivers = linear_sum_assignment(cost)
    return np.asarray(cost[senders, receivers])


def relative_by_hand(anchors: AnchorSet, row: Floats, k: int, paid: Floats) -> float:
    distances = [float(((row - anchor) ** 2).sum()) for anchor in anchors.rows]
    order = sorted(range(len(distances)), key=lambda j: distances[j])
    target = min(order[k:], key=lambda j: distances[j] - anchors.v[j])
    around = np.prod([paid[j] ** (1 / k) for j in order[:k]])
    return float(distances[target] / around)


@pytest.mark.parametrize("search", SEARCHES)
def test_an_effort_is_held_against_those_of_the_anchors_in_the_zone(search: Search) -> None:
    problem = Problem(k=3, relative=True)
    anchors = solved(40, 6, problem)
    assert anchors.efforts is not None
    np.testing.assert_allclose(anchors.efforts, paid_by_assignment(anchors.rows, 3), rtol=1e-9)
    rows = np.random.default_rng(1).normal(size=(30, 6))
    found = route_costs(anchors, rows, problem, search=search)
    expected = [relative_by_hand(anchors, row, 3, anchors.efforts) for row in rows]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@given(
    seed=st.integers(0, 10_000),
    n_anchors=st.integers(3, 40),
    n_columns=st.integers(1, 9),
    alpha=st.floats(0.01, 0.49),
    n_rows=st.integers(0, 40),
)
def test_compiled_code_gives_the_same_bits(
    seed: int, n_anchors: int, n_columns: int, alpha: float, n_rows: int
) -> None:
    rng = np.random.default_rng(seed)
    anchors = AnchorSet(
        np.round(rng.normal(size=(n_anchors, n_columns)), 1),  # some distances are equal
        np.round(rng.normal(size=n_anchors), 1),
        np.arange(n_anchors),
        0.0,
        efforts=np.round(rng.exponential(size=n_anchors), 1),
    )
    rows = np.round(rng.normal(size=(n_rows, n_columns)), 1)
    problem = Problem(alpha=alpha, relative=True)
    dense, compiled = (
        route_costs(anchors, rows, problem, search=search) for search in ("dense", "compiled")
    )
    assert compiled.tobytes() == dense.tobytes()


def test_the_unit_of_the_rows_does_not_matter() -> None:
    problem = Problem(k=4, relative=True)
    rows = np.random.default_rng(2).normal(size=(50, 8))
    found = [
        route_costs(
            fit_anchor_set(scale * rows[:30], np.arange(30), problem, "test"),
            scale * rows,
            problem,
        )
        for scale in (1.0, 2.0**10)
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


def test_a_row_among_equal_anchors_is_as_hard_to_move_as_they_are() -> None:
    problem = Problem(k=2, relative=True)
    equal = np.full((12, 2), 50.0)
    rows = np.vstack([np.random.default_rng(4).normal(size=(24, 2)), equal])
    anchors = fit_anchor_set(rows, np.arange(36), problem, "test")
    assert anchors.efforts is not None
    assert not anchors.efforts[24:].any()
    among, beside = route_costs(anchors, np.array([[50.0, 50.0], [50.0, 49.0]]), problem)
    assert among == pytest.approx(1.0)
    assert np.isfinite(beside)
    assert beside > 1e3


def test_efforts_that_stand_for_themselves_keep_none_of_their_anchors() -> None:
    anchors = solved(40, 6, Problem(k=3))
    assert anchors.efforts is None


def test_rows_of_a_loose_and_of_a_tight_region_count_alike() -> None:
    rng = np.random.default_rng(3)
    tight, loose = rng.normal(size=(400, 60)), 20 + 4 * rng.normal(size=(400, 60))
    drawn = np.vstack([tight[:128], loose[:128]])
    for relative, low, high in ((False, 10.0, 20.0), (True, 0.9, 1.1)):
        problem = Problem(alpha=0.02, relative=relative)
        anchors = fit_anchor_set(drawn, np.arange(256), problem, "test")
        in_tight, in_loose = (
            float(np.median(route_matrix([anchors], rows[128:], problem)))
            for rows in (tight, loose)
        )
        assert low < in_loose / in_tight < high
