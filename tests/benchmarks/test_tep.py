"""The Tennessee Eastman benchmark at toy size: the paper's draws, splits and shares."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import quality_runs
from benchmarks.quality_cells import CELLS
from benchmarks.quality_runs import Unit, run_unit
from benchmarks.tep import main
from benchmarks.tep_figures import share_line
from benchmarks.tep_tables import compare_windows, gains
from benchmarks.tep_windows import WINDOWS, drawn_windows, fault_share, load_windows

QUICK = "iforest,knn,pca"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two modes of 120 normal windows and three faults of 10, one of them plain to see."""
    folder = tmp_path / "data"
    folder.mkdir()
    for number in (1, 2):
        rng = np.random.default_rng(number)
        faults = np.repeat([0, 1, 2, 3], [120, 10, 10, 10])
        rows = rng.normal(loc=3.0 * number, size=(150, 4)) + 4.0 * (faults == 1)[:, None]
        rows[:, 3] = 7.0  # some sensors never move
        np.savez(folder / f"mode{number}.npz", X=rows.astype(np.float32), fault=faults)
    np.savez(folder / "notes.npz", notes=np.zeros(1))
    return folder


@pytest.fixture
def run(data: Path, tmp_path: Path) -> Callable[..., int]:
    def call(*words: str, methods: str = QUICK) -> int:
        places = ["--data", str(data), "--out", str(tmp_path / "out")]
        options = ["--methods", methods, "--windows", "5,10", "--seeds", "2"]
        return main([*places, *options, *words])

    return call


def numbers(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / "out" / "tep.json").read_text())
    return found


def test_shares_are_those_of_the_paper() -> None:
    faults = np.repeat(np.arange(29), [3000] + [30] * 28)
    found = [100 * fault_share(faults, windows) for windows in WINDOWS]
    paper = [4.45, 8.53, 12.28, 15.73, 18.92, 21.87]
    np.testing.assert_allclose(found, paper, atol=0.011)  # the paper cuts digits off


def test_smaller_draws_are_within_larger_ones() -> None:
    faults = np.repeat([0, 1, 2], [50, 10, 3])
    few, many = (drawn_windows(faults, number, 4) for number in (2, 6))
    assert np.bincount(faults[few]).tolist() == [50, 2, 2]
    assert np.bincount(faults[many]).tolist() == [50, 6, 3]
    assert set(few) < set(many)
    assert set(few) != set(drawn_windows(faults, 2, 5))


def test_training_rows_are_standardised(data: Path) -> None:
    split = load_windows(data / "mode2.npz", 5, 0)
    assert (len(split.train), len(split.test), split.labels.sum()) == (108, 27, 3)
    np.testing.assert_allclose(split.train.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(split.train.std(axis=0), [1, 1, 1, 0], atol=1e-6)
    assert abs(split.test.mean(axis=0)).max() > 1e-3


def test_every_cell_is_recorded_and_shown(run: Callable[..., int], tmp_path: Path) -> None:
    assert run() == 0
    found = numbers(tmp_path)
    assert len(found["rows"]) == 2 * 2 * 3 * 2
    expected = "dataset mode windows share method seed roc pr fit_s score_s n_train n_test d"
    assert all(set(row) == set(expected.split()) for row in found["rows"])
    assert {row["dataset"] for row in found["rows"]} == {"tep"}
    assert {row["mode"] for row in found["rows"]} == {"mode1", "mode2"}
    places = {(r["windows"], r["share"], r["n_train"], r["n_test"]) for r in found["rows"]}
    assert places == {(5, 0.1111, 108, 27), (10, 0.2, 120, 30)}
    assert {record["n_sets"] for record in found["summary"]} == {4}
    for name in ("by-share.png", "per-mode.png"):
        assert (tmp_path / "out" / name).read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "out" / "tep.md").read_text()
    assert "choosing half" not in text
    assert "| mode | IsolationForest | k-NN | PCA |" in text
    assert "|   5 per fault (11.1%) |" in text
    assert "| mode2,  10 per fault (20.0%) |" in text


def test_a_second_run_computes_what_is_missing(
    run: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("--modes", "mode1")
    path = tmp_path / "out" / CELLS
    lines = path.read_text().splitlines(keepends=True)
    lost = json.loads(lines.pop(3))
    path.write_text("".join(lines))
    seen: list[dict[str, Any]] = []

    def counted(unit: Unit) -> list[dict[str, Any]]:
        seen.append({**unit.task.identity, "method": unit.family.methods[0]})
        return run_unit(unit)

    monkeypatch.setattr(quality_runs, "run_unit", counted)
    run("--modes", "mode1")
    assert seen == [{name: lost[name] for name in seen[0]}]
    seen.clear()
    run("--modes", "mode1", "--windows", "5")
    assert seen == []
    assert len(numbers(tmp_path)["rows"]) == 12


def test_ours_are_set_against_each_other_method(run: Callable[..., int], tmp_path: Path) -> None:
    run("--modes", "mode1", "--windows", "5", "--seeds", "1", methods="memory,pca")
    found = numbers(tmp_path)["gains"]
    ours = ["mrot-scale in memory", "mrot-scale in memory effort"]
    assert [(gain["method"], gain["over"]) for gain in found] == [(m, "PCA") for m in ours]
    assert "| mrot-scale in memory | PCA | " in (tmp_path / "out" / "tep.md").read_text()


def test_gains_and_lines_by_hand() -> None:
    def cell(mode: str, windows: int, method: str, roc: float) -> dict[str, Any]:
        place = {"dataset": "tep", "mode": mode, "windows": windows, "share": windows / 100}
        return {**place, "method": method, "seed": 0, "roc": roc, "pr": roc / 2}

    ours = "mrot-scale effort"
    cells = [cell("a", 5, ours, 90), cell("a", 10, ours, 70), cell("b", 5, ours, 80)]
    cells += [cell("a", 5, "HBOS", 80), cell("a", 10, "HBOS", 75)]
    (gain,) = gains(compare_windows(cells))
    assert (gain["roc"], gain["pr"], gain["roc_better"], gain["n_pairs"]) == (2.5, 1.25, 1, 2)
    np.testing.assert_allclose(share_line(cells, ours), [(5, 85), (10, 70)])


def test_wrong_names_and_files_are_refused(
    run: Callable[..., int], data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--modes", "mode7") == 78
    assert "--modes: 'mode7' is not one of mode1, mode2." in capsys.readouterr().err
    assert run("--windows", "5,few") == 78
    np.savez(data / "mode3.npz", X=np.zeros((4, 2)), y=np.zeros(4))
    assert run() != 0
    assert "mode3.npz: expected arrays X and fault" in capsys.readouterr().err
