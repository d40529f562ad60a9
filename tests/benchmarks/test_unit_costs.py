"""The benchmark of the smallest things runs and judges."""

import json
from pathlib import Path

import pytest

from benchmarks import unit_costs
from benchmarks.unit_costs import Figure, main, table


@pytest.mark.slow
def test_all_figures_are_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_costs, "_STARTS", 1)
    monkeypatch.setattr(unit_costs, "_CALLS", 3)
    main(["--features", "3", "--rows", "2000", "--repeats", "1", "--out", str(tmp_path / "out")])
    assert "mrot-scale --help" in capsys.readouterr().out
    found = json.loads((tmp_path / "out" / "unit_costs.json").read_text())["figures"]
    assert len(found) == 4
    assert all(figure["value"] > 0 for figure in found)


def test_figures_are_judged_by_their_bound() -> None:
    found = table(
        [
            Figure("a", 1.0, "s", 2.0),
            Figure("b", 3.0, "s", 2.0),
            Figure("c", 3.0, "/s", 2.0, is_least=True),
            Figure("d", 3.0, "/s", None),
        ]
    )
    verdicts = [line.split(" | ")[-1].rstrip(" |") for line in found.splitlines()[2:]]
    assert verdicts == ["met", "not met", "met", "reported"]
