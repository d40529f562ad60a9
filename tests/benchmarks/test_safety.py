"""The benchmark of what safety costs runs, and compares like with like."""

import json
import os
from pathlib import Path

import pytest

from benchmarks.safety import costs, main, table


@pytest.mark.long
def test_each_command_is_run_with_and_without(tmp_path: Path) -> None:
    sizes = ["--rows", "2e3", "--features", "3", "--workers", "1", "--repeats", "1"]
    main([*sizes, "--scratch", str(tmp_path), "--out", str(tmp_path / "out")])
    found = json.loads((tmp_path / "out/safety.json").read_text())
    assert [r["safe"] for r in found["rows"]] == [False] * 3 + [True] * 3
    assert [c["command"] for c in found["costs"]] == ["ingest", "fit", "score", "all"]
    assert "MROT_CARELESS" not in os.environ


def test_costs_are_medians_over_repeats() -> None:
    rows = [
        {
            "repeat": repeat,
            "safe": safe,
            "command": command,
            "seconds": seconds * (1.1 if safe else 1.0),
            "driver_mib": 100.0,
            "worker_mib": 120.0 if safe else 110.0,
        }
        for repeat, seconds in enumerate((10.0, 100.0, 12.0))
        for safe in (True, False)
        for command in ("ingest", "fit", "score")
    ]
    found = costs(rows)
    assert found[0]["careless_seconds"] == 12.0
    assert [c["added_time"] for c in found] == pytest.approx([0.1] * 4)
    assert [c["added_mib"] for c in found] == [10.0] * 4
    assert "| all | 3 | 39.6 | 36.0 | +10.0% | +10 |" in table(found)
