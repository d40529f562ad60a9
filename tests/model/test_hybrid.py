"""Trees that are given efforts: when they are wanted, and what they then know."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score

from mrot_scale import MROT
from mrot_scale.config.method import MethodConfig
from mrot_scale.config.scoring import Method
from mrot_scale.model.hybrid import (
    LOSS_LIMIT,
    TOP_SHARES,
    distillation_loss,
    mean_of_copies,
    wants_hybrid,
)
from tests.strategies import examples, seeds
from tests.tables import normal_rows

Floats = NDArray[np.float64]

METHODS: tuple[Method, ...] = ("model", "effort")


# --- how much trees lose -------------------------------------------------------------------------


def _told(seed: int, n_rows: int, noise: float) -> tuple[Floats, Floats]:
    """Targets, all different, and outputs that follow them more or less, some of them equal."""
    rng = np.random.default_rng(seed)
    targets = rng.permutation(n_rows) / n_rows
    return np.round(targets + noise * rng.normal(size=n_rows), 2), targets


def _slow_loss(outputs: Floats, targets: Floats) -> float:
    sizes = {max(1, round(share * len(targets))) for share in TOP_SHARES}
    areas = []
    for size in sizes:
        is_top = targets >= np.sort(targets)[-size]
        areas.append(float(roc_auc_score(is_top, outputs)))
    return 100 * max(1 - float(np.mean(areas)), 1 - float(spearmanr(outputs, targets).statistic))


@examples(60)
@given(seeds, st.integers(10, 300), st.sampled_from([0.01, 0.1, 1.0]))
def test_the_loss_is_the_larger_of_two_known_ones(seed: int, n_rows: int, noise: float) -> None:
    outputs, targets = _told(seed, n_rows, noise)
    expected = _slow_loss(outputs, targets)
    assert distillation_loss(outputs, targets) == pytest.approx(expected, abs=1e-9)


def test_a_loss_at_the_top_alone_counts_and_so_does_one_below() -> None:
    targets = np.arange(1_000.0)
    top_lost, rest_lost = targets.copy(), targets.copy()
    top_lost[-10:] = -1
    rest_lost[:500] = rest_lost[:500][::-1]
    # One of three tops is lost wholly, a fifth of the second and a tenth of the third.
    assert distillation_loss(top_lost, targets) == pytest.approx(100 * (1 + 0.2 + 0.1) / 3, abs=1)
    rank_loss = 100 * (1 - spearmanr(rest_lost, targets).statistic)
    assert distillation_loss(rest_lost, targets) == pytest.approx(rank_loss)


@pytest.mark.parametrize("n_rows", [2, 3, 10, 500])
def test_the_same_order_loses_nothing(n_rows: int) -> None:
    targets = np.random.default_rng(0).permutation(n_rows) / n_rows
    for outputs in (targets, np.exp(targets), 5 * targets - 100):
        assert distillation_loss(outputs, targets) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("change", [np.exp, np.arctan, lambda x: 3 * x - 7])
def test_only_the_order_matters(change: Callable[[Floats], Floats]) -> None:
    outputs, targets = _told(1, 200, 0.1)
    expected = distillation_loss(outputs, targets)
    assert distillation_loss(change(outputs), targets) == pytest.approx(expected, abs=1e-9)
    assert distillation_loss(outputs, change(targets)) == pytest.approx(expected, abs=1e-9)


def test_outputs_that_are_all_the_same_know_nothing() -> None:
    assert distillation_loss(np.ones(200), np.arange(200.0)) == pytest.approx(100.0)


def test_the_opposite_order_is_worse_than_knowing_nothing() -> None:
    assert distillation_loss(-np.arange(200.0), np.arange(200.0)) == pytest.approx(200.0)


# --- when they are wanted ------------------------------------------------------------------------


WELL, BADLY = _told(2, 500, 0.0), _told(2, 500, 0.5)


def test_the_examples_lie_on_both_sides_of_the_limit() -> None:
    assert distillation_loss(*WELL) < LOSS_LIMIT < distillation_loss(*BADLY)


@pytest.mark.parametrize(
    ("hybrid", "told", "wanted"),
    [
        ("auto", WELL, False),
        ("auto", BADLY, True),
        ("never", BADLY, False),
        ("always", WELL, True),
    ],
)
def test_trees_are_given_efforts_where_asked_or_where_they_lose(
    hybrid: Any, told: tuple[Floats, Floats], wanted: bool
) -> None:
    assert wants_hybrid(MethodConfig(hybrid=hybrid), "lightgbm", distillation_loss(*told)) is wanted


@pytest.mark.parametrize("kind", ["boosting", "svr", "knn", "custom"])
def test_no_other_regressor_is_given_efforts(kind: str) -> None:
    assert not wants_hybrid(MethodConfig(hybrid="always"), kind, distillation_loss(*BADLY))


@pytest.mark.parametrize("settings", [{"distrust": 0.0}, {"batch_rows": None}])
def test_a_single_pass_gives_no_efforts(settings: dict[str, Any]) -> None:
    config = MethodConfig(hybrid="always", **settings)
    assert not wants_hybrid(config, "lightgbm", distillation_loss(*BADLY))


@pytest.mark.parametrize("targets", [np.ones(100), np.repeat([0.1, 0.9], [1_900, 100])])
def test_equal_targets_told_as_equal_lose_nothing(targets: Floats) -> None:
    assert distillation_loss(targets, targets) == pytest.approx(0.0, abs=1e-9)


def test_trees_are_not_blamed_for_targets_that_differ_between_equal_rows() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 5, size=(2_000, 2)).astype(np.float64)
    ideal = rows.sum(axis=1)
    targets = ideal + rng.normal(size=2_000)
    known = mean_of_copies(rows, targets)
    for row in np.unique(rows, axis=0):
        same = (rows == row).all(axis=1)
        np.testing.assert_allclose(known[same], targets[same].mean())
    assert distillation_loss(known, known) < 1e-9 < distillation_loss(known, targets)


# --- what they then know -------------------------------------------------------------------------


def _rotated_sheet(n_rows: int, *, seed: int = 0) -> Floats:
    """Rows near a plane across the axes, a twentieth of them further off: hard to cut by axes."""
    axes = np.linalg.qr(np.random.default_rng(99).normal(size=(4, 4)))[0]
    rng = np.random.default_rng(seed)
    flat = rng.normal(size=(n_rows, 4)) * [1.0, 1.0, 0.02, 0.02]
    flat[: n_rows // 20, 2:] *= 10
    return np.asarray(flat @ axes)


@pytest.fixture(scope="module")
def hybrid() -> MROT:
    return MROT(views=["none"], repeats=4, anchor_sets=4, company=0).fit(_rotated_sheet(600))


@pytest.fixture(scope="module")
def plain() -> MROT:
    settings: dict[str, Any] = {"repeats": 4, "anchor_sets": 4, "company": 0}
    return MROT(views=["none"], hybrid="never", **settings).fit(_rotated_sheet(600))


def _agreement(fitted: MROT, rows: Floats) -> float:
    by_model, by_effort = (fitted.anomaly_score(rows, method) for method in METHODS)
    return float(spearmanr(by_model, by_effort).statistic)


def test_trees_that_lose_too_much_become_hybrid(hybrid: MROT, plain: MROT) -> None:
    assert hybrid.model_.score_model.kind == "hybrid"
    assert plain.model_.score_model.kind == "lightgbm"


def test_hybrid_trees_rank_unseen_rows_as_their_efforts_do(hybrid: MROT, plain: MROT) -> None:
    rows = _rotated_sheet(1_000, seed=1)
    assert _agreement(hybrid, rows) > 0.995
    assert _agreement(plain, rows) < 0.99
    np.testing.assert_array_equal(
        hybrid.anomaly_score(rows, "effort"), plain.anomaly_score(rows, "effort")
    )


def test_hybrid_trees_tell_the_top_apart_and_go_on_beyond_the_sample(hybrid: MROT) -> None:
    """Rows made of two others are what teaches them so: without, both are lower by far."""
    rows = _rotated_sheet(1_000, seed=1)
    by_effort = hybrid.anomaly_score(rows, "effort")
    assert _agreement(hybrid, rows[np.argsort(by_effort)[-100:]]) > 0.995
    assert _agreement(hybrid, 1.5 * rows) > 0.998


def test_hybrid_scores_are_still_shares_of_rows(hybrid: MROT) -> None:
    scores = hybrid.anomaly_score(_rotated_sheet(2_000, seed=2))
    assert np.isfinite(scores).all()
    for share in (0.1, 0.5, 0.9):
        assert (scores < share).mean() == pytest.approx(share, abs=0.06)


def test_hybrid_models_explain_by_the_columns_of_the_table(hybrid: MROT, plain: MROT) -> None:
    rows = _rotated_sheet(30, seed=3)
    explained, by_plain = hybrid.explain(rows), plain.explain(rows)
    assert explained.shape == rows.shape
    # Each model shares out the rarity it finds, and both in the same way.
    of_hybrid, of_plain = (e / e.sum(axis=1, keepdims=True) for e in (explained, by_plain))
    np.testing.assert_allclose(of_hybrid, of_plain, rtol=1e-12)


def test_hybrid_scores_depend_on_no_other_row_and_no_thread(hybrid: MROT) -> None:
    rows = _rotated_sheet(25, seed=4)
    together = hybrid.anomaly_score(rows)
    alone = [float(hybrid.anomaly_score(row[None])[0]) for row in rows]
    np.testing.assert_array_equal(together, alone)
    threaded = hybrid.model_.score(hybrid.model_.rounded(rows), "model", threads=2)
    np.testing.assert_array_equal(threaded, together)


def test_a_saved_hybrid_model_scores_and_explains_to_the_bit(hybrid: MROT, tmp_path: Path) -> None:
    hybrid.save(tmp_path / "model")
    loaded = MROT.load(tmp_path / "model")
    assert loaded.model_.score_model.kind == "hybrid"
    rows = _rotated_sheet(200, seed=5)
    for method in METHODS:
        expected = hybrid.anomaly_score(rows, method)
        np.testing.assert_array_equal(loaded.anomaly_score(rows, method), expected)
    np.testing.assert_array_equal(loaded.explain(rows), hybrid.explain(rows))
    loaded.save(tmp_path / "again")
    for path in (tmp_path / "model").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"hybrid": "always"}, "hybrid"),
        ({"hybrid": "always", "distrust": 0.0}, "lightgbm"),
        ({"hybrid": "always", "regressor": "knn"}, "knn"),
        ({"hybrid": "always", "regressor": Ridge()}, "custom"),
        ({"hybrid": "always", "preset": "paper"}, "boosting"),
    ],
)
def test_the_kind_of_the_score_model(settings: dict[str, Any], kind: str) -> None:
    fitted = MROT(repeats=1, anchor_sets=1, batch_rows=32, **settings).fit(normal_rows(80))
    assert fitted.model_.score_model.kind == kind
