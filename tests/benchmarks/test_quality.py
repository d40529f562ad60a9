"""The parts of a quality benchmark: halves, splits, areas, ranks, tables."""

from functools import partial

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks import quality_peers
from benchmarks.quality_families import Family, Floats, Scored
from benchmarks.quality_methods import FAMILIES, marks
from benchmarks.quality_peers import PEERS
from benchmarks.quality_ranks import alike_groups, critical_difference, rank_methods
from benchmarks.quality_runs import Task, Unit, quality, run_unit
from benchmarks.quality_sets import at_most, halves, split_rows
from benchmarks.quality_tables import compare, set_table, summary
from tests.tables import normal_rows

CHOOSE = """
Cardiotocography InternetAds Lymphography Pima WBC annthyroid campaign cover optdigits shuttle
vertebral wine
"""
CONFIRM = """
ALOI Hepatitis Stamps WPBC Waveform donors fault landsat mnist pendigits satellite yeast
"""


def test_the_hash_parts_the_sets() -> None:
    choose, confirm = CHOOSE.split(), CONFIRM.split()
    expected = dict.fromkeys(choose, "choose") | dict.fromkeys(confirm, "confirm")
    assert halves(sorted(expected)) == expected
    assert list(halves(["a", "b", "c"]).values()).count("choose") == 2


def test_splits_are_stratified_and_the_seed_decides() -> None:
    rows, labels = normal_rows(100), np.repeat([0, 1], [90, 10])
    split = split_rows(rows, labels, 3)
    assert (len(split.train), len(split.test), split.labels.sum()) == (80, 20, 2)
    np.testing.assert_array_equal(split.test, split_rows(rows, labels, 3).test)
    assert not np.array_equal(split.test, split_rows(rows, labels, 4).test)


def test_smaller_samples_are_within_larger_ones() -> None:
    rows = np.arange(50.0)[:, None]
    small, large = (set(at_most(rows, limit, 0)[:, 0]) for limit in (10, 30))
    assert len(small) == 10
    assert small < large
    assert at_most(rows, None, 0) is rows


def test_areas_by_hand() -> None:
    labels, scores = np.array([0, 1, 0, 1]), np.array([0.1, 0.4, 0.35, 0.8])
    assert quality(labels, Scored("m", scores, 0.0, 0.0)) == {"roc": 100.0, "pr": 100.0}
    scores = np.array([0.1, 0.3, 0.35, 0.8])  # one of four pairs is the wrong way round
    found = quality(labels, Scored("m", scores, 0.0, 0.0))
    assert found["roc"] == pytest.approx(75.0)
    assert found["pr"] == pytest.approx(100 * (1 + 2 / 3) / 2)
    assert found["roc"] == 100 * roc_auc_score(labels, scores)
    assert found["pr"] == 100 * average_precision_score(labels, scores)


def test_extra_fields_tell_cells_apart() -> None:
    def score(train: Floats, test: Floats, seed: int) -> list[Scored]:
        return [Scored("sum", test.sum(axis=1), 0.1, 0.2)]

    load = partial(split_rows, normal_rows(50), np.repeat([0, 1], 25), 0)
    task = Task("plant", 0, load, 1, {"mode": 3, "share": 0.1})
    (cell,) = run_unit(Unit(task, Family(("sum",), score), max_train=20))
    assert (cell["mode"], cell["share"], cell["n_train"]) == (3, 0.1, 20)


def test_nan_scores_are_a_failure() -> None:
    def score(train: Floats, test: Floats, seed: int) -> list[Scored]:
        return [Scored("nan", np.full(len(test), np.nan), 0.1, 0.2)]

    load = partial(split_rows, normal_rows(50), np.repeat([0, 1], 25), 0)
    (cell,) = run_unit(Unit(Task("a", 0, load, 1), Family(("nan",), score)))
    assert cell["error"] == "DataError: 10 of 10 scores are not finite."


def test_peers_score_by_block_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = normal_rows(200), normal_rows(50, seed=1)
    (whole,) = PEERS["iforest"].score(train, test, 7)
    monkeypatch.setattr(quality_peers, "BLOCK_ROWS", 9)
    (blocks,) = PEERS["iforest"].score(train, test, 7)
    np.testing.assert_array_equal(whole.scores, blocks.scores)
    by_hand = -IsolationForest(random_state=7).fit(train).score_samples(test)
    np.testing.assert_array_equal(whole.scores, by_hand)


def test_dte_np_is_the_mean_distance_to_five_neighbours() -> None:
    train, test = normal_rows(100), normal_rows(4, seed=1)
    (found,) = PEERS["dte-np"].score(train, test, 0)
    distances = np.linalg.norm(test[:, None] - train[None], axis=2)
    np.testing.assert_allclose(found.scores, np.sort(distances, axis=1)[:, :5].mean(axis=1))


def test_limits_are_marked() -> None:
    found = marks(FAMILIES)
    assert found["exact MROT"] == found["Coulomb OT"] == "†"
    assert [m for m, sign in found.items() if sign == "‡"] == [
        "OCSVM",
        "k-NN",
        "LOF",
        "FeatureBagging",
        "DTE-NP",
    ]


def test_ranks_by_hand() -> None:
    found = rank_methods(
        {
            "a": {"x": 90.0, "y": 80.0, "z": 70.0},
            "b": {"x": 80.0, "y": 80.0, "z": 60.0, "extra": 1.0},
            "c": {"x": 70.0, "y": None, "z": 65.0},
        }
    )
    assert found.n_sets == 3
    assert found.mean_ranks == {
        "a": pytest.approx((1 + 1.5 + 1) / 3),
        "b": pytest.approx((2 + 1.5 + 3) / 3),
        "c": pytest.approx((3 + 3 + 2) / 3),
    }


def test_friedman_and_nemenyi_as_in_demsar() -> None:
    # Demsar (2006), tables 5 and 6: q = 2.569 for four classifiers, 14 sets: CD = 1.25.
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert critical_difference(2, 24) == pytest.approx(1.95996 * np.sqrt(6 / 144), abs=1e-4)
    # Always the same order of 3 methods on 4 sets: chi2 = 8 with 2 degrees, p = exp(-4).
    points = {m: dict.fromkeys("wxyz", float(p)) for p, m in enumerate("cba")}
    found = rank_methods({method: dict(sets) for method, sets in points.items()})
    assert found.p_value == pytest.approx(np.exp(-4))
    assert found.mean_ranks == {"a": 1.0, "b": 2.0, "c": 3.0}


def test_groups_that_are_not_told_apart() -> None:
    ranks = {"a": 1.0, "b": 1.5, "c": 2.4, "d": 4.0}
    assert alike_groups(ranks, 1.0) == [(1.0, 1.5), (1.5, 2.4)]
    assert alike_groups(ranks, 0.1) == []
    assert alike_groups(ranks, 9.0) == [(1.0, 4.0)]


def test_means_are_over_sets_and_gains_over_shared_ones() -> None:
    def cell(dataset: str, method: str, seed: int, roc: float) -> dict[str, object]:
        points = {"roc": roc, "pr": roc / 2, "fit_s": 1.0, "score_s": 0.5}
        return {"dataset": dataset, "method": method, "seed": seed, **points}

    cells = [cell("p", "base", 0, 60), cell("p", "base", 1, 80), cell("q", "base", 0, 50)]
    cells += [cell("p", "new", 0, 90), {"dataset": "q", "method": "new", "seed": 0, "error": "E"}]
    comparison = compare(
        cells,
        ["new", "base"],
        half_of={"p": "choose", "q": "confirm"},
        reference="base",
        marks={"new": "†"},
    )
    new, base = summary(comparison)
    assert (new["method"], new["roc"], new["roc_gain"], new["n_failed"]) == ("new", 90, 20, 1)
    assert (base["roc"], base["roc_choose"], base["roc_confirm"]) == (60, 70, 50)
    assert (base["fit_s"], base["score_s"], base["rank"]) == (3.0, 1.5, 1.5)
    lines = set_table(comparison, "roc").splitlines()
    assert lines[0] == "| set | half | new† | base |"
    assert lines[2:] == [
        "| p | choose | **90.00** | 70.00 |",
        "| q | confirm | failed | **50.00** |",
    ]
