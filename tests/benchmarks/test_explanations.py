"""Explanations name the columns that were planted; a toy run of the benchmark keeps it alive."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.explanation_cost import main as cost
from benchmarks.explanation_tables import planted_tables
from benchmarks.explanations import REPORT, is_right, main
from mrot_scale import MROT


def test_tables_remember_what_was_planted() -> None:
    for planted in planted_tables(2_000, 0.03, seed=1):
        odd = planted.disturbed.any(axis=1)
        assert (odd == (planted.kind != "normal")).all()
        assert 0 < odd.mean() <= 0.03
        assert np.isfinite(planted.rows).all()
        again = next(p for p in planted_tables(2_000, 0.03, 1) if p.name == planted.name)
        assert again.rows.tobytes() == planted.rows.tobytes()


def test_right_means_both_of_two_or_the_only_one() -> None:
    contributions = np.array([[3.0, 2, 1, 0]] * 5)
    planted = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 1], [1, 1, 1, 0], [0, 0, 1, 0]])
    found = is_right(contributions, planted.astype(bool))
    assert found.tolist() == [True, True, False, True, False]


@pytest.mark.slow
def test_a_toy_run_leaves_its_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--rows", "3000", "--share", "0.03", "--out", str(tmp_path / "out")])
    rows = json.loads((tmp_path / "out" / REPORT).read_text())["rows"]
    ours = {(r["table"], r["kind"]): r["right"] for r in rows if r["by"] == "contributions"}
    assert ours["pumps", "isolated"] > 0.9
    assert min(ours.values()) > 0.7
    assert "| pumps | isolated | contributions |" in capsys.readouterr().out


@pytest.mark.long
def test_isolated_and_local_anomalies_are_explained_by_the_right_columns() -> None:
    """Nine in ten of each kind, by the two strongest columns, at the defaults."""
    planted = next(planted_tables(20_000, 0.03, seed=0))
    detector = MROT(n_jobs=2, hybrid="never").fit(planted.rows)
    for kind in ("isolated", "local"):
        mine = planted.kind == kind
        found = is_right(detector.explain(planted.rows[mine]), planted.disturbed[mine])
        assert found.mean() >= 0.9, kind


@pytest.mark.slow
def test_a_toy_run_of_the_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cost(["--rows", "2000", "--repeats", "1", "--scratch", str(tmp_path)])
    assert "| 3 | 2,000 |" in capsys.readouterr().out
