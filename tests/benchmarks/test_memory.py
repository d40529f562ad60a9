"""The memory benchmark runs, and watches the right processes."""

import json
from pathlib import Path

import pytest

from benchmarks.memory import COMMANDS, growth, main, stage_seconds


@pytest.mark.long
def test_each_command_is_measured_as_the_table_grows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    sizes = ["--rows", "2e3,4e3", "--features", "3", "--workers", "1"]
    main([*sizes, "--scratch", str(tmp_path), "--out", str(out)])
    found = json.loads((out / "memory.json").read_text())
    assert [(r["command"], r["n_rows"]) for r in found["rows"]] == [
        (command, n) for n in (2_000, 4_000) for command in COMMANDS
    ]
    assert all(row["driver_mib"] > 50 for row in found["rows"])
    assert [row["worker_mib"] > 50 for row in found["rows"]] == [False, True, True] * 2
    assert "time exponent" in capsys.readouterr().out


def test_stage_lines_are_read() -> None:
    log = (
        "sample: 4 steps, 1.5 s\nodd line\nroutes: 1,612 steps, 1 min 38 s, 3 done before\n"
        "score: 12 steps, 0.3 s, 86.3k rows/s\n"
    )
    assert stage_seconds(log) == {"sample": 1.5, "routes": 98.0, "score": 0.3}


def test_growth_compares_neighbouring_sizes() -> None:
    def row(n: int, seconds: float, mib: float) -> dict[str, object]:
        return {
            "command": "score",
            "n_rows": n,
            "stages": {"score": seconds},
            "seconds": seconds + 5,
            "driver_mib": mib,
            "worker_mib": 2 * mib,
        }

    (found,) = growth([row(1_000, 1.0, 100.0), row(10_000, 10.0, 105.0)])
    assert found["seconds_exponent"] == pytest.approx(1.0)
    assert found["driver_ratio"] == pytest.approx(1.05)
