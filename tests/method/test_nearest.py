"""The search for nearest rows against sorting all of them, by array operations and compiled."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mrot_scale.method import nearest
from mrot_scale.method.nearest import NearestRows, regions
from tests.strategies import any_clouds, examples

Floats = NDArray[np.float64]


def _sorted_by_hand(rows: Floats, point: Floats) -> list[tuple[float, int]]:
    """Return all rows by squared distance, then by position, added column after column."""
    found = []
    for position, row in enumerate(rows):
        squared = 0.0
        for a, b in zip(point, row, strict=True):
            squared += (a - b) * (a - b)
        found.append((squared, position))
    return sorted(found)


@pytest.fixture(params=["by_all", "by_regions"])
def search(request: pytest.FixtureRequest) -> Any:
    """Either way to search, as a function of rows, points and count."""
    nearest.compile_search()
    name = f"_{request.param}"
    return lambda rows, points, count: getattr(NearestRows(rows), name)(points, count)


@given(cloud=any_clouds(min_rows=6, max_rows=14), count=st.integers(1, 5))
@examples(60)
def test_any_way_finds_what_sorting_finds(cloud: Floats, count: int) -> None:
    nearest.compile_search()
    rows, points = cloud[: len(cloud) // 2 + 2], cloud
    count = min(count, len(rows))
    for way in ("_by_all", "_by_regions"):
        ids, squared = getattr(NearestRows(rows), way)(points, count)
        for point, found, apart in zip(points, ids, squared, strict=True):
            expected = _sorted_by_hand(rows, point)[:count]
            assert list(zip(apart.tolist(), found.tolist(), strict=True)) == expected


def test_points_asked_for_at_a_time_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows, points = rng.normal(size=(40, 3)), rng.normal(size=(50, 3))
    whole = NearestRows(rows)._by_all(points, 4)
    monkeypatch.setattr(nearest, "_BLOCK_ROWS", 7)
    assert nearest.block_rows(40) == 7
    for before, now in zip(whole, NearestRows(rows)._by_all(points, 4), strict=True):
        np.testing.assert_array_equal(before, now)


def test_the_more_rows_the_fewer_points_at_a_time() -> None:
    assert nearest.block_rows(100) == nearest.block_rows(20_000) == 128
    assert nearest.block_rows(200_000) == 12
    assert nearest.block_rows(10**9) == 1


@pytest.mark.parametrize("n_columns", [1, 3, 17])
@pytest.mark.parametrize("law", ["normal", "clusters", "lattice", "one point"])
def test_regions_that_are_passed_over_hold_nothing_nearer(law: str, n_columns: int) -> None:
    """With hundreds of rows there are many regions, and most of them are not looked at."""
    nearest.compile_search()
    rng = np.random.default_rng(n_columns)
    rows, points = rng.normal(size=(1_500, n_columns)), rng.normal(size=(200, n_columns))
    if law == "clusters":
        rows[:700] += 9.0
        points[:80] += 9.0
    if law == "lattice":
        rows, points = np.round(rows), np.round(points)
    if law == "one point":
        rows = np.ones_like(rows)
    searched = NearestRows(rows)
    ids, squared = searched._by_regions(points, 20)
    expected_ids, expected = searched._by_all(points, 20)
    np.testing.assert_array_equal(ids, expected_ids)
    assert squared.tobytes() == expected.tobytes()


@pytest.mark.parametrize("scale", [1e-160, 1e150, 1e200])
def test_extreme_units_are_no_exception(search: Any, scale: float) -> None:
    rng = np.random.default_rng(5)
    rows, points = scale * rng.normal(size=(150, 2)), scale * rng.normal(size=(9, 2))
    ids, squared = search(rows, points, 4)
    assert ((ids >= 0) & (ids < 150)).all()
    assert (squared[:, 1:] >= squared[:, :-1]).all()


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_and_other_points_change_nothing(threads: int) -> None:
    rng = np.random.default_rng(6)
    rows, points = rng.normal(size=(400, 3)), rng.normal(size=(3_500, 3))
    searched = NearestRows(rows)
    ids, squared = searched.search(points, 7, threads=threads)
    alone = [searched.search(point[None], 7) for point in points[::500]]
    np.testing.assert_array_equal(ids[::500], np.concatenate([found for found, _ in alone]))
    np.testing.assert_array_equal(squared[::500], np.concatenate([apart for _, apart in alone]))


def test_no_points_have_no_neighbours(search: Any) -> None:
    ids, squared = search(np.zeros((5, 2)), np.zeros((0, 2)), 3)
    assert ids.shape == squared.shape == (0, 3)


@pytest.mark.parametrize(("n_rows", "count"), [(1, 1), (7, 3), (100, 7), (1_000, 64), (3, 5)])
def test_regions_part_all_rows_evenly(n_rows: int, count: int) -> None:
    rows = np.random.default_rng(n_rows).normal(size=(n_rows, 2))
    parts = regions(rows, min(count, n_rows))
    sizes = [len(part) for part in parts]
    assert sorted(np.concatenate(parts).tolist()) == list(range(n_rows))
    assert max(sizes) - min(sizes) <= 1 + n_rows // (2 * count)
