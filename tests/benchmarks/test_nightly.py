"""The benchmark of nights runs, and compares what it says it compares."""

import json
from pathlib import Path

import pytest

from benchmarks.nightly import cost, main


@pytest.mark.slow
def test_a_small_run_measures_both_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MROT_LABEL_ROWS", "500")
    monkeypatch.setenv("MROT_CLUSTER__KIND", "inline")
    sizes = ["--rows", "3000", "--features", "4", "--workers", "1", "--repeats", "1"]
    main([*sizes, "--out", str(tmp_path / "out")])
    found = json.loads((tmp_path / "out" / "nightly.json").read_text())
    assert {row["command"] for row in found["rows"]} == {"score", "nightly"}
    assert f"{found['cost']['added']:+.1%}" in capsys.readouterr().out


def test_what_is_added_is_the_ratio_of_medians() -> None:
    rows = [
        {"command": name, "seconds": seconds}
        for name, all_seconds in {"score": (9.0, 10.0, 30.0), "nightly": (11.0, 99.0, 1.0)}.items()
        for seconds in all_seconds
    ]
    assert cost(rows) == {
        "score": 10.0,
        "nightly": 11.0,
        "repeats": 3,
        "added": pytest.approx(0.1),
    }
