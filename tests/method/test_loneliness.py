"""What rows get for lying apart from their neighbours, against a loop that says what is meant."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mrot_scale import MROT
from mrot_scale.config.method import MethodConfig
from mrot_scale.errors import ConfigError, DamagedModelError
from mrot_scale.method.company import Shared, share_in_sample
from mrot_scale.method.loneliness import apartness, fit_loneliness, units_of
from mrot_scale.model.persist import model_files, model_of
from tests.strategies import any_clouds, examples
from tests.tables import normal_rows

Floats = NDArray[np.float64]

FEW: dict[str, Any] = {"repeats": 2, "anchor_sets": 2, "hybrid": "never", "method": "effort"}


def _shared(points: Floats, loneliness: float, wanted: int = 20) -> Shared:
    flat = np.ones((len(points), 2))
    drawn = np.arange(len(points))
    return share_in_sample(
        points, drawn, (flat, flat), view=0, wanted=wanted, loneliness=loneliness
    )


def _apart_by_hand(rows: Floats, point: Floats, reach: Floats, left_out: int, count: int) -> float:
    """Return the mean log distance over all neighbours but the last, in units of their reach."""
    apart = np.sqrt(((rows - point) ** 2).sum(axis=1))
    nearest = [int(i) for i in np.argsort(apart, kind="stable") if i != left_out]
    return float(np.mean([np.log(apart[i] / np.sqrt(reach[i])) for i in nearest[: count - 1]]))


def test_apartness_is_the_mean_of_log_distances_in_units_of_the_neighbours_reach() -> None:
    points = normal_rows(60, 3)
    reach = _shared(points, 0.25, wanted=6).company.reach
    squared = ((points[:, None] - points) ** 2).sum(axis=2)
    ids = np.argsort(squared, axis=1)[:, 1:7]
    found = (ids, np.take_along_axis(squared, ids, axis=1))
    expected = [_apart_by_hand(points, p, reach, i, 6) for i, p in enumerate(points)]
    np.testing.assert_allclose(apartness(found, units_of(reach)), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("squared", "expected"),
    [
        ([4.0, 9.0, 16.0], np.log(6) / 2),  # the last is left out
        ([0.0, 4.0, 9.0], np.log(6) / 2),  # the row itself is
        ([4.0], np.log(2)),
        ([4.0, 9.0], np.log(2)),
        ([0.0, 4.0], np.log(2)),
    ],
)
def test_one_neighbour_is_left_out_the_row_itself_if_it_is_there(
    squared: list[float], expected: float
) -> None:
    found = np.arange(len(squared))[None], np.array([squared])
    assert apartness(found, units_of(np.ones(3))) == pytest.approx(expected)


@pytest.mark.parametrize("spread", [0.0, 1e-9])
def test_a_clump_of_copies_does_not_hide_who_is_lonely(spread: float) -> None:
    rng = np.random.default_rng(4)
    clump = spread * rng.normal(size=(200, 3))
    points = np.concatenate([rng.normal(size=(800, 3)), clump, [[8.0, 8.0, 8.0]]])
    added = _shared(points, 1.0).unseen[:, 0] - 1.0
    assert added[1_000] > 1.0
    assert (added > 0).mean() < 0.08


def test_equal_rows_get_nothing() -> None:
    np.testing.assert_array_equal(_shared(np.ones((80, 2)), 1.0).unseen, np.ones((80, 2)))


@given(cloud=any_clouds(min_rows=5, max_rows=14), count=st.integers(1, 20))
@examples(60)
def test_what_is_added_is_finite_and_never_negative(cloud: Floats, count: int) -> None:
    """Whatever the rows are, copies and huge values among them."""
    alone, lonely = (_shared(cloud, weight, count) for weight in (0.0, 2.0))
    assert alone.company.loneliness is None
    for kind in ("seen", "unseen"):
        added = getattr(lonely, kind) - getattr(alone, kind)
        assert np.isfinite(added).all()
        assert (added >= 0).all()


def test_the_loneliest_twentieth_gets_more_in_proportion_to_the_weight() -> None:
    points = normal_rows(4_000, 3)
    one, two = (_shared(points, weight).unseen - 1.0 for weight in (0.5, 1.0))
    np.testing.assert_allclose(two, 2 * one, atol=1e-12)
    np.testing.assert_array_equal(one[:, 0], one[:, 1])
    assert (one[:, 0] > 0).mean() == pytest.approx(np.exp(-3.0), abs=0.005)


def test_dense_or_thin_a_region_its_rows_are_not_lonely_but_one_between_them_is() -> None:
    rng = np.random.default_rng(5)
    dense, thin = 0.05 * rng.normal(size=(300, 2)), [20.0, 0.0] + 5 * rng.normal(size=(300, 2))
    points = np.concatenate([dense, thin, [[0.6, 0.0]]])
    added = _shared(points, 1.0).unseen[:, 0] - 1.0
    assert added.argmax() == 600
    assert abs((added[:300] > 0).mean() - (added[300:600] > 0).mean()) < 0.08


def test_a_row_that_finds_itself_is_as_lonely_as_before_it_was_seen() -> None:
    """Thresholds are shares of training rows: new ones like them must not be lonelier."""
    shared = _shared(normal_rows(900, 3), 1.0)
    np.testing.assert_allclose(shared.seen, shared.unseen, atol=1e-9)
    assert shared.seen.max() > 2.0


def test_rows_are_as_lonely_asked_one_by_one() -> None:
    company = _shared(normal_rows(400, 3), 1.0).company
    strangers, own = 2 * normal_rows(50, 3), np.ones((50, 2))
    together = company.shared(strangers, own)
    for threads in (1, 2):
        np.testing.assert_array_equal(company.shared(strangers, own, threads=threads), together)
    single = [company.shared(row[None], own[:1])[0] for row in strangers]
    np.testing.assert_array_equal(single, together)
    assert together.max() > 1.5


def test_fitting_needs_no_more_than_two_rows() -> None:
    found, units = (np.array([[1], [0]]), np.array([[4.0], [4.0]])), units_of(np.full(2, 4.0))
    assert np.isfinite(fit_loneliness(found, units, 1.0).added(found, units)).all()


# --- in a fitted model ---------------------------------------------------------------------------


def _sheet(n_rows: int) -> tuple[Floats, Floats]:
    """Return rows on a bent sheet, and rows off it whose columns are ordinary one by one."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-2, 2, size=(n_rows, 2))
    rows = np.column_stack([x, x.prod(axis=1) + 0.05 * rng.normal(size=n_rows)])
    broken = rows[:20].copy()
    broken[:, 2] = rng.permutation(rows[:, 2])[:20]
    off = np.abs(broken[:, 2] - broken[:, :2].prod(axis=1)) > 0.8
    return rows, broken[off]


def test_rows_that_break_a_relation_rank_higher_than_by_efforts_alone() -> None:
    rows, broken = _sheet(2_000)
    alone, lonely = (MROT(loneliness=w, **FEW).fit(rows) for w in (0.0, 0.5))
    assert lonely.anomaly_score(broken).mean() > alone.anomaly_score(broken).mean() + 0.02
    assert lonely.anomaly_score(broken).min() > 0.95


def test_nothing_is_added_where_rows_keep_no_company() -> None:
    rows = normal_rows(200, 3)
    with_weight, without = (MROT(company=0, loneliness=w, **FEW).fit(rows) for w in (0.5, 0.0))
    np.testing.assert_array_equal(with_weight.anomaly_score(rows), without.anomaly_score(rows))


@pytest.mark.parametrize("weight", [-0.1, 11, "much", None])
def test_a_weight_that_makes_no_sense_is_refused(weight: Any) -> None:
    with pytest.raises(ConfigError, match="loneliness"):
        MROT(loneliness=weight).fit(normal_rows(60, 3))


def test_models_keep_what_loneliness_counts() -> None:
    rows = normal_rows(120, 3)
    fitted = MROT(loneliness=0.7, **FEW).fit(rows).model_
    again, _ = model_of(model_files(fitted))
    assert again.company is not None
    assert again.company.loneliness is not None
    assert again.company.loneliness.weight == 0.7
    np.testing.assert_array_equal(again.score(rows, "effort"), fitted.score(rows, "effort"))


def test_models_of_before_loneliness_counted_score_as_they_did() -> None:
    rows = normal_rows(120, 3)
    fitted = MROT(loneliness=0.0, **FEW).fit(rows).model_
    files = model_files(fitted)
    assert not [name for name in files.content if "loneliness" in name]
    header = files.json("model.json")
    del header["config"]["loneliness"]
    files.put_json("model.json", header)
    before, _ = model_of(files)
    assert before.config.loneliness == 0.0
    np.testing.assert_array_equal(before.score(rows, "effort"), fitted.score(rows, "effort"))


def test_a_damaged_map_of_loneliness_is_refused() -> None:
    files = model_files(MROT(loneliness=0.5, **FEW).fit(normal_rows(60, 3)).model_)
    rarity = files.array("company.loneliness.rarity", np.float64, 1)
    files.put_array("company.loneliness.rarity", rarity[::-1].copy())
    with pytest.raises(DamagedModelError, match="loneliness is not a strictly increasing"):
        model_of(files)


def test_only_as_many_rows_are_flagged_as_asked_for() -> None:
    settings: dict[str, Any] = FEW | {"contamination": 0.02, "loneliness": 1.0}
    rows = np.random.default_rng(6).normal(size=(8_000, 3))
    detector = MROT(**settings).fit(rows[:4_000])
    assert (detector.predict(rows[4_000:]) == -1).mean() == pytest.approx(0.02, abs=0.008)


def test_nothing_is_added_by_default() -> None:
    assert MethodConfig().loneliness == 0.0
