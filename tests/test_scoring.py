"""How rare efforts against anchors are: by their mean, or set by set where columns differ."""

import numpy as np
import pytest
from numpy.typing import NDArray

from mrot_scale import MROT
from mrot_scale.method.calibrate import Calibration, calibrate_values
from mrot_scale.method.efforts import Problem
from mrot_scale.scoring import mean_rarity, rarity_rows
from tests.tables import normal_rows

Floats = NDArray[np.float64]

COULOMB = Problem(kind="coulomb")
ALL_SETS = Problem(average="mean")


def _routes(n_rows: int, n_sets: int, *, missing: float = 0.0, seed: int = 0) -> Floats:
    """Efforts of sets of different size and spread, some missing, none in all sets of a row."""
    rng = np.random.default_rng(seed)
    routes = np.exp(rng.normal(size=(n_rows, n_sets)) * np.arange(1, n_sets + 1) / 2)
    gone = rng.random(routes.shape) < missing
    gone[np.arange(n_rows), rng.integers(n_sets, size=n_rows)] = False
    return np.asarray(np.where(gone, np.nan, routes))


def _maps(n_sets: int, problem: Problem) -> tuple[Calibration, ...]:
    logs = problem.effort_sign * np.log(_routes(400, n_sets, seed=9))
    return tuple(calibrate_values(column) for column in logs.T)


@pytest.mark.parametrize("problem", [Problem(), COULOMB], ids=["engineered", "coulomb"])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_sets_that_see_different_columns_are_averaged_by_rarity(
    problem: Problem, missing: float
) -> None:
    routes, maps = _routes(50, 4, missing=missing), _maps(4, problem)
    floor = np.array([0.1, 0.5, 0.2, 1e-6])
    found = mean_rarity(routes, problem, floor, maps)
    sign = -1.0 if problem.kind == "coulomb" else 1.0
    for row, rarity in zip(routes, found, strict=True):
        rarities = [
            float(of_set.neg_log_survival(np.array([sign * np.log(max(effort, least))]))[0])
            for effort, least, of_set in zip(row, floor, maps, strict=True)
            if not np.isnan(effort)
        ]
        assert rarity == pytest.approx(sum(rarities) / len(rarities), rel=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_sets_alike_are_averaged_by_log_effort(missing: float) -> None:
    routes, maps = _routes(50, 4, missing=missing), _maps(1, Problem())
    found = mean_rarity(routes, ALL_SETS, np.array([0.1]), maps)
    for row, rarity in zip(routes, found, strict=True):
        logs = [np.log(max(effort, 0.1)) for effort in row if not np.isnan(effort)]
        expected = maps[0].neg_log_survival(np.array([sum(logs) / len(logs)]))[0]
        assert rarity == pytest.approx(float(expected), rel=1e-9)


def test_of_one_set_both_means_are_the_same() -> None:
    routes, maps = _routes(50, 1), _maps(1, Problem())
    floor = np.array([0.1])
    alike = mean_rarity(routes, Problem(), floor, maps)
    twice = mean_rarity(np.repeat(routes, 2, axis=1), Problem(), np.repeat(floor, 2), maps * 2)
    np.testing.assert_allclose(twice, alike, rtol=1e-12)


def test_a_set_of_the_same_effort_for_all_rows_does_not_change_their_order() -> None:
    routes, maps = _routes(80, 3), _maps(3, Problem())
    before = mean_rarity(routes[:, :2], Problem(), np.full(2, 1e-6), maps[:2])
    routes[:, 2] = 1.0
    after = mean_rarity(routes, Problem(), np.full(3, 1e-6), maps)
    np.testing.assert_array_equal(np.argsort(after), np.argsort(before))


@pytest.mark.parametrize("n_maps", [1, 3])
def test_a_larger_effort_in_any_set_is_rarer(n_maps: int) -> None:
    routes, maps = _routes(40, 3), _maps(n_maps, Problem())
    floor = np.full(n_maps, 1e-6)
    before = mean_rarity(routes, ALL_SETS, floor, maps)
    for column in range(3):
        harder = routes.copy()
        harder[:, column] *= 2
        assert (mean_rarity(harder, ALL_SETS, floor, maps) > before).all()


def test_larger_efforts_never_count_less_by_the_middle_half() -> None:
    routes, maps, floor = _routes(40, 6), _maps(1, Problem()), np.array([1e-6])
    before = mean_rarity(routes, Problem(), floor, maps)
    for column in range(6):
        harder = routes.copy()
        harder[:, column] *= 2
        assert (mean_rarity(harder, Problem(), floor, maps) >= before).all()
    assert (mean_rarity(2 * routes, Problem(), floor, maps) > before).all()


@pytest.mark.parametrize("n_maps", [1, 3])
def test_efforts_below_the_floor_count_as_the_floor(n_maps: int) -> None:
    maps, floor = _maps(n_maps, Problem()), np.full(n_maps, 0.25)
    below, at = np.zeros((4, 3)), np.full((4, 3), 0.25)
    found = mean_rarity(below, Problem(), floor, maps)
    np.testing.assert_array_equal(found, mean_rarity(at, Problem(), floor, maps))
    assert np.isfinite(found).all()


def test_rarities_do_not_depend_on_how_many_rows_are_sent_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = MROT(repeats=2, anchor_sets=5, hybrid="never").fit(normal_rows(200)).model_
    new = normal_rows(100, seed=1)
    together = model.rarity(new)
    monkeypatch.setattr("mrot_scale.scoring.RARITY_ROWS", 33)
    assert model.rarity(new).tobytes() == together.tobytes()
    assert model.rarity(new[:0]).shape == (0, 3)


def test_views_of_many_sets_are_sent_fewer_rows_at_a_time() -> None:
    assert [rarity_rows(n_sets) for n_sets in (1, 16, 32, 128)] == [65_536] * 3 + [16_384]
