"""The detection benchmark at toy size: same splits for all, nothing lost, nothing twice."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil  # type: ignore[import-untyped]
import pytest

from benchmarks import adbench, quality_cells, quality_methods, quality_runs
from benchmarks.adbench import main
from benchmarks.quality_methods import FAMILIES
from benchmarks.quality_runs import Unit, run_unit
from benchmarks.quality_sets import halves

QUICK = "iforest,hbos,knn"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two small sets with anomalies away from the rest, and a third that nobody asks for."""
    folder = tmp_path / "data"
    folder.mkdir()
    for number, name in enumerate(("first", "second", "third")):
        rng = np.random.default_rng(number)
        rows = np.vstack([rng.normal(size=(190, 3)), rng.normal(4.0, 2.0, size=(10, 3))])
        np.savez(folder / f"{name}.npz", X=rows, y=np.repeat([0, 1], [190, 10]))
    return folder


@pytest.fixture
def run(data: Path, tmp_path: Path) -> Callable[..., int]:
    def call(*words: str, out: str = "out", methods: str = QUICK) -> int:
        places = ["--data", str(data), "--out", str(tmp_path / out)]
        options = ["--methods", methods, "--sets", "first,second", "--seeds", "2"]
        return main([*places, *options, *words])

    return call


@pytest.fixture
def units_run(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, str]]:
    """What was computed: set, seed, and first method of the family."""
    seen: list[tuple[str, int, str]] = []

    def counted(unit: Unit) -> list[dict[str, Any]]:
        seen.append((unit.task.dataset, unit.task.seed, unit.family.methods[0]))
        return run_unit(unit)

    monkeypatch.setattr(quality_runs, "run_unit", counted)
    return seen


def numbers(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / "out" / "adbench.json").read_text())
    return found


def test_every_cell_is_recorded_and_shown(run: Callable[..., int], tmp_path: Path) -> None:
    assert run() == 0
    found = numbers(tmp_path)
    methods = ["IsolationForest", "k-NN", "HBOS"]
    assert [(r["dataset"], r["method"], r["seed"]) for r in found["rows"]] == [
        (name, method, seed)
        for name in ("first", "second")
        for method in methods
        for seed in (0, 1)
    ]
    fields = [
        "dataset",
        "seed",
        "method",
        "roc",
        "pr",
        "fit_s",
        "score_s",
        "n_train",
        "n_test",
        "d",
    ]
    assert all(list(row) == fields for row in found["rows"])
    assert {(r["n_train"], r["n_test"], r["d"]) for r in found["rows"]} == {(160, 40, 3)}
    assert all(row["roc"] > 80 for row in found["rows"])
    assert {record["method"] for record in found["summary"]} == set(methods)
    assert found["versions"]["pyod"]
    assert found["ranking"]["sets"] == 2
    for name in ("critical-difference.png", "per-set.png"):
        assert (tmp_path / "out" / name).read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "out" / "adbench.md").read_text()
    assert "| k-NN‡ |" in text
    assert "## What failed\n\nNone." in text


def test_stores_on_disk_and_the_estimator_find_the_same(
    run: Callable[..., int], tmp_path: Path
) -> None:
    run("--sets", "first", "--seeds", "1", methods="pipeline,memory")
    found = {row["method"]: (row["roc"], row["pr"]) for row in numbers(tmp_path)["rows"]}
    assert len(found) == 4
    assert found["mrot-scale model"] == found["mrot-scale in memory"]
    assert found["mrot-scale effort"] == found["mrot-scale in memory effort"]
    assert found["mrot-scale effort"][0] > 90


def test_a_second_run_computes_nothing(
    run: Callable[..., int], tmp_path: Path, units_run: list[Any]
) -> None:
    run()
    before = numbers(tmp_path)
    assert len(units_run) == 12
    units_run.clear()
    run()
    assert units_run == []
    assert numbers(tmp_path) == before


def test_a_torn_line_and_a_lost_cell_are_computed_again(
    run: Callable[..., int], tmp_path: Path, units_run: list[Any]
) -> None:
    run()
    path = tmp_path / "out" / quality_cells.CELLS
    lines = path.read_text().splitlines(keepends=True)
    lost = json.loads(lines.pop(3))
    torn = json.loads(lines[-1])
    path.write_text("".join(lines)[:-20])
    units_run.clear()
    run()
    expected = [(cell["dataset"], cell["seed"], cell["method"]) for cell in (lost, torn)]
    assert units_run == expected
    kept = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    assert len(kept) == len({(c["dataset"], c["method"], c["seed"]) for c in kept}) == 12


def test_of_a_family_only_the_lost_cell_is_written(
    run: Callable[..., int], tmp_path: Path, units_run: list[Any]
) -> None:
    run("--sets", "first", "--seeds", "1", methods="memory")
    path = tmp_path / "out" / quality_cells.CELLS
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    run("--sets", "first", "--seeds", "1", methods="memory")
    assert len(units_run) == 2
    again = path.read_text().splitlines()
    assert [json.loads(line)["method"] for line in again[1:]] == [
        "mrot-scale in memory",
        "mrot-scale in memory effort",
    ]
    both = [json.loads(line) for line in (lines[-1], again[-1])]
    assert both[0]["roc"] == both[1]["roc"]


def test_other_limits_are_refused(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    run(methods="hbos")
    assert run("--max-train", "50", methods="hbos") == 78
    assert "'max_train': 50" in capsys.readouterr().err


def test_limits_show_in_the_rows(
    run: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = replace(FAMILIES["knn"], row_limit=60)
    monkeypatch.setattr(adbench, "FAMILIES", {**FAMILIES, "knn": limited})
    monkeypatch.setattr(quality_methods, "MARKS", {60: "‡", **quality_methods.MARKS})
    run("--max-train", "100")
    trained = {row["method"]: row["n_train"] for row in numbers(tmp_path)["rows"]}
    assert trained == {"IsolationForest": 100, "HBOS": 100, "k-NN": 60}


def test_a_failure_is_shown_and_the_others_go_on(run: Callable[..., int], tmp_path: Path) -> None:
    run("--max-train", "6", methods="cblof,hbos")  # eight clusters of six rows
    found = numbers(tmp_path)
    assert {row["method"] for row in found["rows"]} == {"HBOS"}
    assert [set(cell) for cell in found["failures"]] == [{"dataset", "seed", "method", "error"}] * 4
    record = next(r for r in found["summary"] if r["method"] == "CBLOF")
    assert (record["n_failed"], record["n_failed_sets"], record["roc"]) == (4, 2, None)
    text = (tmp_path / "out" / "adbench.md").read_text()
    assert "- CBLOF on first, seed 0, 1: ValueError" in text
    assert "| failed |" in text


def test_failed_cells_are_computed_again_on_request(
    run: Callable[..., int], units_run: list[Any]
) -> None:
    run("--max-train", "6", methods="cblof,hbos")
    units_run.clear()
    run("--max-train", "6", methods="cblof,hbos")
    assert units_run == []
    run("--max-train", "6", "--retry-failed", methods="cblof,hbos")
    assert {method for _, _, method in units_run} == {"CBLOF"}


def test_two_processes_find_the_same(run: Callable[..., int], tmp_path: Path) -> None:
    run(methods="iforest")
    alone = numbers(tmp_path)["rows"]
    run("--jobs", "2", methods="iforest", out="spawned")
    spawned = json.loads((tmp_path / "spawned" / "adbench.json").read_text())["rows"]
    assert [row["roc"] for row in spawned] == [row["roc"] for row in alone]


def test_processes_end_when_the_run_is_killed(data: Path, tmp_path: Path) -> None:
    places = ["--data", str(data), "--out", str(tmp_path / "out"), "--seeds", "50", "--jobs", "2"]
    command = [sys.executable, "-m", "benchmarks.adbench", *places, "--methods", "pipeline"]
    started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert started.stderr is not None
    assert "[1/" in started.stderr.readline()
    children = psutil.Process(started.pid).children(recursive=True)
    started.kill()
    started.wait(timeout=60)
    assert len(children) >= 2
    assert psutil.wait_procs(children, timeout=60)[1] == []
    started.stderr.close()


def test_one_half_is_run_by_the_hash_over_the_whole_folder(
    run: Callable[..., int], tmp_path: Path
) -> None:
    run("--half", "choose", methods="hbos")
    half_of = halves(["first", "second", "third"])
    chosen = {name for name in ("first", "second") if half_of[name] == "choose"}
    assert {row["dataset"] for row in numbers(tmp_path)["rows"]} == chosen


def test_unknown_names_are_refused(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(methods="hbos,magic") == 78
    assert "--methods: 'magic' is not one of pipeline" in capsys.readouterr().err
    assert run("--sets", "fourth") == 78


def test_a_folder_of_others_is_left_alone(run: Callable[..., int], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("")
    assert run() != 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.tex"]
