"""The benchmark of tasks runs, and says how their cost grows."""

import json
from pathlib import Path

import pytest

from benchmarks.tasks import exponent, main


@pytest.mark.long
def test_a_small_run_counts_its_tasks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--tasks", "120", "--workers", "1", "--out", str(tmp_path / "out")])
    found = json.loads((tmp_path / "out" / "tasks.json").read_text())
    assert [row["tasks"] for row in found["rows"]] == [120]
    assert all(row["seconds"] > 0 for row in found["rows"])
    assert "| 120 | 1 |" in capsys.readouterr().out


def test_ten_times_the_seconds_for_ten_times_the_tasks_is_an_exponent_of_one() -> None:
    rows = [{"tasks": 100, "seconds": 2.0}, {"tasks": 1_000, "seconds": 20.0}]
    assert exponent(rows) == pytest.approx(1.0)
