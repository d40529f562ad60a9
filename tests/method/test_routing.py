"""Compiled routes give, to the last bit, what array operations give."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrot_scale.method.anchors import (
    AnchorSet,
    can_be_compiled,
    fit_anchor_set,
    route_costs,
    route_matrix,
)
from mrot_scale.method.efforts import Problem
from mrot_scale.method.routing import can_route, routes_outside_nearest


def anchor_set(rng: np.random.Generator, n_anchors: int, n_columns: int) -> AnchorSet:
    rows = np.round(rng.normal(size=(n_anchors, n_columns)), 1)  # some distances are equal
    return AnchorSet(rows, np.round(rng.normal(size=n_anchors), 1), np.arange(n_anchors), 0.0)


def test_this_machine_adds_as_scipy_does() -> None:
    assert can_route()


@given(
    seed=st.integers(0, 10_000),
    n_anchors=st.integers(2, 40),
    n_columns=st.integers(1, 9),
    alpha=st.floats(0.01, 0.49),
    n_rows=st.integers(0, 60),
)
def test_any_rows_take_the_same_routes(
    seed: int, n_anchors: int, n_columns: int, alpha: float, n_rows: int
) -> None:
    rng = np.random.default_rng(seed)
    anchors, problem = anchor_set(rng, n_anchors, n_columns), Problem(alpha=alpha)
    rows = np.round(rng.normal(size=(n_rows, n_columns)), 1)
    if can_be_compiled(anchors, problem):
        dense, compiled = (
            route_costs(anchors, rows, problem, search=search) for search in ("dense", "compiled")
        )
        assert compiled.tobytes() == dense.tobytes()


@pytest.mark.parametrize("scale", [1e-160, 1.0, 1e150, 1e200])
def test_tiny_and_huge_distances_take_the_same_routes(scale: float) -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(64, 3))
    anchors = fit_anchor_set(rows, np.arange(64), Problem(), "test")
    far = np.vstack([rows, rng.normal(size=(50, 3))]) * scale
    found = []
    for search in ("dense", "compiled"):
        with np.errstate(over="ignore", invalid="ignore"):
            found.append(route_costs(anchors, far, Problem(), search=search))
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.parametrize(
    "problem", [Problem(kind="coulomb"), Problem(radius=0.5), Problem(ceiling="zone")]
)
def test_other_kinds_of_routes_are_left_to_array_operations(problem: Problem) -> None:
    assert not can_be_compiled(anchor_set(np.random.default_rng(0), 20, 3), problem)


def test_many_rows_are_routed_by_compiled_code_and_few_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng, used = np.random.default_rng(0), list[int]()
    sets = [anchor_set(rng, 30, 3) for _ in range(4)]
    rows = rng.normal(size=(300, 3))
    before = route_matrix(sets, rows, Problem())

    def noted(*given: Any) -> Any:
        used.append(1)
        return routes_outside_nearest(*given)

    monkeypatch.setattr("mrot_scale.method.anchors.routes_outside_nearest", noted)
    route_matrix(sets, rows, Problem())
    assert not used
    monkeypatch.setattr("mrot_scale.method.anchors.WORTH_COMPILING", 1_200)
    assert route_matrix(sets, rows, Problem()).tobytes() == before.tobytes()
    assert len(used) == 4
