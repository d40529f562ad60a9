"""A toy run of the benchmark keeps it alive, and what it prints is what was found."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.explanation_tables import Planted, wide_table
from benchmarks.planted import REPORT, TABLES, found_by_kind, main, table, tables_of
from mrot_scale import MROT
from mrot_scale.errors import ConfigError


def test_kinds_are_looked_for_among_normal_rows_alone() -> None:
    kind = np.array(["normal", "a", "b", "normal", "a"])
    planted = Planted("toy", np.zeros((5, 1)), kind, np.zeros((5, 1), dtype=bool))
    scores = {"right": np.array([0.1, 0.9, 0.0, 0.2, 0.8]), "wrong": np.arange(5.0)[::-1]}
    found = list(found_by_kind(planted, np.arange(5), scores, 0))
    areas = {(r["kind"], r["method"]): r["roc"] for r in found}
    expected = {("a", "right"): 100, ("a", "wrong"): 25, ("b", "right"): 0, ("b", "wrong"): 50}
    assert areas == pytest.approx(expected)
    assert table(found).splitlines()[2] == "| toy | a | 100.0 / 100.0 | 25.0 / 50.0 |"


def test_a_table_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--tables", "pumps,pipes"]) == ConfigError.exit_code
    assert (
        "'pipes' is not one of pumps, correlated, clusters, skewed, wide" in capsys.readouterr().err
    )


def test_every_table_can_be_asked_for_by_name() -> None:
    assert tuple(planted.name for planted in tables_of(100, 0.05, 0)) == TABLES


def test_the_wide_table_is_the_same_again_and_knows_what_was_planted() -> None:
    planted, again = wide_table(400, 40, 3), wide_table(400, 40, 3)
    assert planted.rows.tobytes() == again.rows.tobytes() != wide_table(400, 40, 4).rows.tobytes()
    kinds, counts = np.unique(planted.kind, return_counts=True)
    assert dict(zip(kinds.tolist(), counts.tolist(), strict=True)) == {
        "normal": 360,
        "grouped": 20,
        "broken": 20,
    }
    share = {kind: planted.disturbed[planted.kind == kind].mean() for kind in kinds}
    assert share == pytest.approx({"normal": 0, "grouped": 1, "broken": 0.5}, abs=0.05)


@pytest.mark.slow
def test_small_groups_in_a_wide_table_do_not_look_the_most_normal() -> None:
    planted = wide_table(3_000, 120, 0)
    detector = MROT(random_state=0, method="effort", hybrid="never").fit(planted.rows[::2])
    scores = detector.anomaly_score(planted.rows[1::2])
    kind = planted.kind[1::2]
    for name in ("grouped", "broken"):
        assert np.median(scores[kind == name]) > np.quantile(scores[kind == "normal"], 0.75)


@pytest.mark.slow
def test_a_toy_run_leaves_its_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--tables", "pumps", "--rows", "3000", "--share", "0.03"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    rows = json.loads((tmp_path / "out" / REPORT).read_text())["rows"]
    found = {(r["kind"], r["method"]): r["pr"] for r in rows if r["table"] == "pumps"}
    assert found["isolated", "effort, loneliness 0.5"] == 100.0  # what lies apart is lonely
    assert found["local", "effort, loneliness 0.5"] > found["local", "effort"]
    assert {"model", "IsolationForest", "k-NN", "LOF"} <= {method for _, method in found}
    assert "| pumps | isolated |" in capsys.readouterr().out
