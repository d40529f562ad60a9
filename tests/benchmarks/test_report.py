"""The benchmark of reports runs, and says what they cost."""

import json
from pathlib import Path

import pytest

from benchmarks.report import main


def test_a_small_run_measures_page_and_counting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--rows", "3e3", "--columns", "3", "--out", str(tmp_path / "out")])
    found = json.loads((tmp_path / "out" / "report.json").read_text())["figures"]
    assert (found["rows"], found["columns"]) == (3_000, 3)
    assert 20_000 < found["page_bytes"] < 5_000_000
    assert 0 < found["counting_seconds"] < found["stage_seconds"]
    assert found["writing_seconds"] > 0
    assert "| 3,000 | 3 |" in capsys.readouterr().out
