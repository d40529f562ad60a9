"""Rarities averaged with those of neighbours, against a loop that says what is meant."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mrot_scale import MROT
from mrot_scale.config.method import MethodConfig
from mrot_scale.errors import DamagedModelError
from mrot_scale.fitting.in_memory import fit_rows
from mrot_scale.method import company as company_module
from mrot_scale.method.company import (
    Company,
    most_company_rows,
    share_in_sample,
    weight_of,
    without,
)
from mrot_scale.model.persist import model_files, model_of
from tests.strategies import any_clouds, examples
from tests.tables import normal_rows

Floats = NDArray[np.float64]


def _nearest(rows: Floats, point: Floats, count: int, left_out: int | None) -> list[int]:
    apart = ((rows - point) ** 2).sum(axis=1)
    order = [int(i) for i in np.argsort(apart, kind="stable") if i != left_out]
    return order[:count]


def _by_hand(
    company: Company, point: Floats, rarity: Floats, left_out: int | None = None
) -> Floats:
    """Return the mean of a row's rarity and its neighbours', each by its weight."""
    total, weights = rarity.copy(), 1.0
    for j in _nearest(company.rows, point, company.count, left_out):
        squared = float(((company.rows[j] - point) ** 2).sum())
        weight = 1.0 if squared <= company.reach[j] else float(company.reach[j] / squared) ** 2
        total = total + weight * company.rarity[j]
        weights += weight
    return total / weights


def _sample(seed: int, n_rows: int = 80) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, 3)), *rng.exponential(size=(2, n_rows, 2))


@pytest.mark.parametrize("seed", range(5))
def test_shared_rarities_are_the_weighted_means_they_are_said_to_be(seed: int) -> None:
    points, seen, unseen = _sample(seed)
    drawn = np.sort(np.random.default_rng(seed).permutation(80)[:60])
    shared = share_in_sample(points, drawn, (seen, unseen), view=0, wanted=5)
    company = shared.company
    np.testing.assert_array_equal(company.rows, points[drawn])
    np.testing.assert_array_equal(company.rarity, unseen[drawn])
    for j, row in enumerate(company.rows):
        last = _nearest(company.rows, row, 5, j)[-1]
        assert company.reach[j] == pytest.approx(((company.rows[last] - row) ** 2).sum())
    places = {int(row): place for place, row in enumerate(drawn)}
    for row in range(80):
        again = _by_hand(company, points[row], seen[row])
        never = _by_hand(company, points[row], unseen[row], places.get(row))
        np.testing.assert_allclose(shared.seen[row], again)
        np.testing.assert_allclose(shared.unseen[row], never)
    strangers = np.random.default_rng(99).normal(size=(30, 3))
    found = company.shared(strangers, seen[:30])
    expected = [_by_hand(company, p, r) for p, r in zip(strangers, seen, strict=False)]
    np.testing.assert_allclose(found, expected)


@given(cloud=any_clouds(min_rows=5, max_rows=14), count=st.integers(1, 20))
@examples(60)
def test_shared_rarities_stay_among_those_that_are_shared(cloud: Floats, count: int) -> None:
    rarity = np.random.default_rng(len(cloud)).exponential(size=(len(cloud), 2))
    shared = share_in_sample(cloud, np.arange(len(cloud)), (rarity, rarity), view=0, wanted=count)
    for found in (shared.seen, shared.unseen):
        assert (found >= rarity.min(axis=0) - 1e-12).all()
        assert (found <= rarity.max(axis=0) + 1e-12).all()
    assert 1 <= shared.company.count <= min(count, len(cloud) // 4 + 1)


def test_a_row_that_stands_alone_keeps_its_rarity() -> None:
    points, _, rarity = _sample(7)
    company = share_in_sample(points, np.arange(80), (rarity, rarity), view=0, wanted=8).company
    own = np.array([[9.0, 1.0]])
    far = company.shared(np.full((1, 3), 1e4), own)
    near = company.shared(np.zeros((1, 3)), own)
    np.testing.assert_allclose(far, own, rtol=1e-6)
    assert near[0, 0] < 4.0


def test_members_of_a_group_share_what_single_ones_do_not_show() -> None:
    """Ten rows side by side, half of which look ordinary: all of them become rare."""
    rng = np.random.default_rng(8)
    points = np.concatenate([rng.normal(size=(200, 2)), 6.0 + 0.1 * rng.normal(size=(10, 2))])
    rarity = np.ones((210, 1))
    rarity[200:205] = 7.0
    shared = share_in_sample(points, np.arange(210), (rarity, rarity), view=0, wanted=9)
    assert shared.unseen[200:].min() > 3.0
    assert shared.unseen[:200].max() < 1.5


@pytest.mark.parametrize(
    ("reach", "squared", "weight"),
    [(4.0, 1.0, 1.0), (4.0, 4.0, 1.0), (4.0, 8.0, 0.25), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0)],
)
def test_neighbours_count_within_their_reach_and_less_beyond(
    reach: float, squared: float, weight: float
) -> None:
    assert weight_of(np.array([reach]), np.array([squared])).tolist() == [weight]


def test_a_row_is_left_out_of_its_own_company_by_its_place() -> None:
    """Equal rows are not: of 0 and 2, the same point, each keeps the other."""
    ids = np.array([[0, 2, 1], [1, 0, 2], [0, 2, 1], [0, 1, 2]])
    squared = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0], [0.5, 0.6, 0.7]])
    kept, apart = without(np.array([0, 1, 2, -1]), (ids, squared))
    assert kept.tolist() == [[2, 1], [0, 2], [0, 1], [0, 1]]
    assert apart.tolist() == [[0.0, 1.0], [1.0, 1.0], [0.0, 1.0], [0.5, 0.6]]


# --- in a fitted model ---------------------------------------------------------------------------

FEW: dict[str, Any] = {"repeats": 2, "anchor_sets": 2, "hybrid": "never", "method": "effort"}


@pytest.mark.parametrize(
    ("settings", "view"),
    [
        ({}, 1),
        ({"views": ["none"]}, 0),
        ({"views": ["none", "standard", "robust"]}, 2),
        ({"company": 0}, None),
        ({"distrust": 0.0}, None),
        ({"batch_rows": None}, None),
        ({"views": [{"relative": True}]}, None),
        ({"views": ["none", {"scaling": "robust", "columns": [2]}]}, 0),
        ({"views": [{"columns": [0, 1]}, {"columns": [2], "scaling": "none"}]}, 0),
        ({"views": ["none", {"scaling": ["robust", "gentle", "gentle"]}]}, 1),
        ({"views": ["none", {"scaling": ["robust", "none", "gentle"]}]}, 0),
    ],
)
def test_rows_keep_company_in_a_scaled_view_after_a_first_pass(
    settings: dict[str, Any], view: int | None
) -> None:
    assert MethodConfig.model_validate(_spelt(settings)).for_columns(3).company_view == view


def _spelt(settings: dict[str, Any]) -> dict[str, Any]:
    views = [{"scaling": v} if isinstance(v, str) else v for v in settings.get("views", [])]
    return settings | ({"views": views} if views else {})


@pytest.mark.parametrize(
    ("n_columns", "label_rows", "n_rows"),
    [
        (10, 50, 20_000),
        (10, 20_000, 20_000),
        (10, 30_000, 30_000),
        (10, 300_000, 200_000),
        (1, 10**9, 2_000_000),
        (1_000, 10**9, 20_000),
    ],
)
def test_more_rows_keep_company_only_if_as_many_are_labelled_and_a_model_can_hold_them(
    n_columns: int, label_rows: int, n_rows: int
) -> None:
    assert most_company_rows(n_columns, label_rows) == n_rows


@pytest.fixture
def few_keep_company(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(company_module, "_ALWAYS_ROWS", 60)
    monkeypatch.setattr(company_module, "_MOST_VALUES", 240)


@pytest.mark.usefixtures("few_keep_company")
@pytest.mark.parametrize(("label_rows", "n_kept"), [(40, 40), (100, 100), (150, 120)])
def test_company_is_found_among_as_many_rows_of_the_sample(label_rows: int, n_kept: int) -> None:
    found = fit_rows(normal_rows(150, 2), MethodConfig(label_rows=label_rows)).model.company
    assert found is not None
    assert len(found.rows) == n_kept


def test_wide_tables_keep_no_company() -> None:
    assert MethodConfig().for_columns(500).company_view is None


def test_scores_of_unseen_rows_are_shared_and_depend_on_no_other_row() -> None:
    rows = normal_rows(300, 3)
    alone, shared = (MROT(company=k, **FEW).fit(rows) for k in (0, 20))
    assert alone.model_.company is None
    company = shared.model_.company
    assert company is not None
    tonight = np.round(normal_rows(40, 3) * 2, 4)
    own = alone.model_.rarity(tonight)
    points = shared.model_.views[1].view.apply(tonight)
    np.testing.assert_array_equal(shared.model_.rarity(tonight), company.shared(points, own))
    one_by_one = [float(shared.anomaly_score(row[None])[0]) for row in tonight]
    np.testing.assert_array_equal(shared.anomaly_score(tonight), one_by_one)


@pytest.mark.parametrize("n_rows", [5, 9, 15, 21, 22, 40])
def test_an_outlier_of_few_rows_is_still_one(n_rows: int) -> None:
    """Were all rows each other's neighbours, all would share one rarity."""
    rows = normal_rows(n_rows, 3)
    rows[3] += 9.0
    detector = MROT(**FEW).fit(rows)
    company = detector.model_.company
    assert company is not None
    assert company.count <= max(1, n_rows // 4)
    assert detector.anomaly_score(rows).argmax() == 3


@pytest.mark.parametrize("views", [["none"], [{"whiten": 2}], ["none", {"columns": [0, 2]}]])
def test_any_view_may_be_that_of_company(views: list[Any], tmp_path: Path) -> None:
    rows = normal_rows(120, 3)
    detector = MROT(views=views, **FEW).fit(rows)
    detector.save(tmp_path / "model")
    again = MROT.load(tmp_path / "model").model_
    assert again.company is not None
    assert again.company.view == detector.model_.company.view  # type: ignore[union-attr]
    for method in ("model", "effort"):
        expected = detector.model_.score(rows, method)
        np.testing.assert_array_equal(again.score(rows, method), expected)


def test_targets_of_one_view_are_shares_though_rarities_are_shared() -> None:
    rows = normal_rows(400, 3)
    detector = MROT(views=["robust"], **FEW).fit(rows)
    scores = detector.anomaly_score(normal_rows(400, 3), method="model")
    for share in (0.25, 0.5, 0.75):
        assert (scores < share).mean() == pytest.approx(share, abs=0.1)


@pytest.mark.parametrize("view", [-1, 3, "1", 0.5])
def test_a_view_of_company_that_is_none_is_refused(view: Any) -> None:
    files = model_files(MROT(**FEW).fit(normal_rows(60, 3)).model_)
    files.put_json("model.json", files.json("model.json") | {"company_view": view})
    with pytest.raises(DamagedModelError, match="company_view cannot be"):
        model_of(files)


@pytest.mark.parametrize("harm", ["rows", "rarity", "reach", "sign"])
def test_company_that_does_not_fit_the_views_is_refused(harm: str) -> None:
    files = model_files(MROT(**FEW).fit(normal_rows(60, 3)).model_)
    if harm == "sign":
        files.put_array("company.reach", -1.0 - files.array("company.reach", np.float64, 1))
    else:
        ndim = 1 if harm == "reach" else 2
        files.put_array(f"company.{harm}", files.array(f"company.{harm}", np.float64, ndim)[1:])
    with pytest.raises(DamagedModelError, match="company does not fit"):
        model_of(files)


def test_models_of_before_company_was_kept_still_score() -> None:
    fitted = MROT(**FEW).fit(normal_rows(60, 3)).model_
    files = model_files(fitted)
    content = {n: c for n, c in files.content.items() if not n.startswith("company.")}
    assert len(content) == len(files.content) - 3
    header = json.loads(content["model.json"])
    del header["company_view"]
    content["model.json"] = json.dumps(header).encode()
    before, _ = model_of(type(files).of(content))
    assert before.company is None
    assert np.isfinite(before.score(normal_rows(9, 3), "effort")).all()
