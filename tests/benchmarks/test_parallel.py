"""The benchmark of the scheduler's cost runs the same tasks on both sides."""

import json
from pathlib import Path

import pytest

from benchmarks.parallel import main, ratios


@pytest.mark.long
def test_both_sides_are_timed_on_the_same_stages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    sizes = ["--rows", "1500", "--features", "3", "--repeats", "1"]
    main([*sizes, "--scratch", str(tmp_path), "--out", str(out)])
    found = json.loads((out / "parallel.json").read_text())
    sides = [(r["side"], r["stage"]) for r in found["rows"]]
    assert sides == [(side, stage) for side in ("dask", "plain") for stage in ("efforts", "score")]
    assert set(found["ratios"]) == {"efforts", "score"}
    assert "efforts" in capsys.readouterr().out


def test_the_ratio_is_of_rates() -> None:
    rows = [
        {"side": side, "stage": stage, "repeat": 0, "seconds": seconds}
        for side, seconds in (("dask", 2.0), ("plain", 1.0))
        for stage in ("efforts", "score")
    ]
    assert ratios(rows) == {"efforts": 0.5, "score": 0.5}
