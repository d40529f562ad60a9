"""The speed benchmark runs, and its arithmetic is what it says."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.speed import main


def test_the_ratio_is_extrapolated_from_the_faster_solver(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--exact-rows", "60,120,240", "--rows", "600", "--out", str(tmp_path)])
    found = json.loads((tmp_path / "speed.json").read_text())
    fastest = [min(e["assignment_s"], e["network_simplex_s"]) for e in found["exact"]]
    growth_per_doubling = fastest[2] / fastest[1]
    expected = fastest[2] * growth_per_doubling ** np.log2(600 / 240)
    assert found["exact_extrapolated_s"] == pytest.approx(expected)
    assert found["ratio"] == pytest.approx(expected / found["minibatch_s"])
    assert "ratio:" in capsys.readouterr().out
