"""The solver benchmark still runs, and still notices a solver that is wrong."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from benchmarks import solver_timing, solvers
from benchmarks.solver_timing import (
    LAWS,
    SOLVERS,
    SolverLine,
    compare_routing,
    compare_solvers,
    total_cost,
)
from mrot_scale.errors import OutputError


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Any:
    with threadpool_limits(1):
        yield


def test_command_prints_both_tables_and_writes_their_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert solvers.main(["--rows", "32", "--columns", "4", "--out", str(tmp_path)]) == 0
    first, second = capsys.readouterr().out.strip().split("\n\n")
    assert len(first.splitlines()) == len(second.splitlines()) == 2 + len(LAWS)
    assert "WRONG" not in first
    numbers = json.loads((tmp_path / "solvers.json").read_text())
    assert [line["law"] for line in numbers["solvers"]] == list(LAWS)
    assert [line["columns"] for line in numbers["routing"]] == [4] * len(LAWS)


def test_solvers_agree_and_are_all_timed() -> None:
    for line in compare_solvers([32], repeats=2):
        assert line.difference < solver_timing.SAME_TOTAL
        assert line.runs == dict.fromkeys(SOLVERS, 2)
        assert all(ms is not None and ms > 0 for ms in line.ms.values())
        assert line.ratio["assignment"] == 1.0


def test_wrong_solver_is_marked_and_fails_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stay_put(cost: solver_timing.Floats) -> Any:
        return np.arange(len(cost)), np.arange(len(cost))

    monkeypatch.setitem(SOLVERS, "sparse matching", stay_put)
    assert solvers.main(["--rows", "32", "--columns", "4"]) == 1
    assert "WRONG" in capsys.readouterr().out


def test_solver_without_a_number_counts_as_wrong() -> None:
    assert SolverLine(32, "Gaussian", {}, {}, {}, difference=float("nan")).is_wrong


def test_slow_solver_is_dropped_for_its_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver_timing, "SLOW_S", 0.0)
    first, *_, last = compare_solvers([16, 32], repeats=2)
    others = [name for name in solver_timing.SOLVERS if name != "assignment"]
    assert first.runs == {"assignment": 2} | dict.fromkeys(others, 1)
    assert last.runs == {"assignment": 2} | dict.fromkeys(others, 0)
    assert last.ms["network simplex"] is None
    table = solvers.solver_table([first, last], repeats=2)
    assert "1 of 2 runs" in table
    assert "not run" in table


def test_plan_and_matching_have_one_unit_of_cost() -> None:
    cost = np.array([[5.0, 1.0], [2.0, 5.0]])
    swap = np.array([0, 1]), np.array([1, 0])
    assert total_cost(cost, swap) == total_cost(cost, np.array([[0, 0.5], [0.5, 0]])) == 3.0


def test_both_searches_route_gaussian_rows_alike() -> None:
    gaussian = compare_routing([8], routed_rows=64, repeats=1)[0]
    assert (gaussian.law, gaussian.chosen) == ("Gaussian", "dense")
    assert gaussian.differing == 0.0
    assert min(gaussian.dense_us, gaussian.lifted_us) > 0


@pytest.mark.parametrize("sizes", ["4", "32,many", ""])
def test_bad_sizes_are_refused(sizes: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        solvers.main(["--rows", sizes])
    assert "--rows" in capsys.readouterr().err


def test_foreign_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    assert solvers.main(["--rows", "32", "--out", str(tmp_path)]) == OutputError.exit_code
