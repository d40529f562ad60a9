"""The ablation at toy size: one factor at a time, each settings computed once."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import quality_runs
from benchmarks.ablation import main, methods_of
from benchmarks.ablation_factors import FACTORS, Variant, variants
from benchmarks.ablation_scores import changed_config, median_radius
from benchmarks.ablation_tables import factor_rows, value_records
from benchmarks.quality_cells import CELLS
from benchmarks.quality_runs import Unit, run_unit
from mrot_scale.config.method import MethodConfig
from tests.tables import normal_rows


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for number, name in enumerate(("first", "second")):
        rng = np.random.default_rng(number)
        rows = np.vstack([rng.normal(size=(110, 3)), rng.normal(4.0, 2.0, size=(10, 3))])
        np.savez(folder / f"{name}.npz", X=rows, y=np.repeat([0, 1], [110, 10]))
    return folder


@pytest.fixture
def run(data: Path, tmp_path: Path) -> Callable[..., int]:
    def call(*words: str) -> int:
        places = ["--data", str(data), "--out", str(tmp_path / "out")]
        return main([*places, "--seeds", "1", "--max-train", "90", *words])

    return call


@pytest.fixture
def units_run(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The changes of the settings that were computed."""
    seen: list[str] = []

    def counted(unit: Unit) -> list[dict[str, Any]]:
        seen.append(unit.task.extra["changes"])
        return run_unit(unit)

    monkeypatch.setattr(quality_runs, "run_unit", counted)
    return seen


def numbers(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / "out" / "ablation.json").read_text())
    return found


@pytest.mark.parametrize("name", list(FACTORS))
def test_every_value_is_a_setting_and_one_is_the_base(name: str) -> None:
    found = variants(name, 4_000)
    rows = normal_rows(60)
    for variant in found:
        changed_config(json.loads(variant.changes), rows, 0)
    assert sum(variant.is_base for variant in found) == 1
    assert len({(v.changes, v.method) for v in found}) == len(found) >= 2


def test_the_default_is_added_where_no_value_is_it() -> None:
    assert [v.value for v in variants("scaling", None) if v.is_base] == ["default"]
    assert [v.value for v in variants("label_rows", None)][-2:] == ["4000", "default"]
    # All rows are labelled, as by default.
    assert [v.value for v in variants("label_rows", 4_000) if v.is_base] == ["4000"]


def test_one_fit_serves_all_factors_and_methods() -> None:
    wanted = [v for name in ("alpha", "eps", "regressor") for v in variants(name, None)]
    found = methods_of(wanted)
    assert found["{}"] == ("effort", "model")
    assert found['{"eps": 1.0}'] == ("effort",)
    assert len(found) == 1 + 4 + 3 + 3


def test_the_ball_holds_the_zone_mass_around_the_median_row() -> None:
    rows = np.random.default_rng(0).normal(size=(400, 2)) * [1.0, 1e3]
    radius = median_radius(rows, 0.1, 0)
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    within = np.linalg.norm(scaled[:, None] - scaled[None], axis=2) < radius
    assert np.median(within.sum(axis=1) - 1) == pytest.approx(40, abs=1)
    assert median_radius(np.ones((20, 2)), 0.1, 0) == 1.0
    config = changed_config({"radius": "median"}, rows, 5)
    assert config.radius == median_radius(rows, MethodConfig().alpha, 5)
    assert config.seed == 5


def test_every_value_is_measured_and_shown(run: Callable[..., int], tmp_path: Path) -> None:
    assert run("--only", "calibration,zone,regressor") == 0
    found = numbers(tmp_path)
    assert found["failures"] == []
    expected = "dataset factor value seed changes method roc pr fit_s score_s n_train n_test d"
    assert all(set(row) == set(expected.split()) for row in found["rows"])
    asked = [row for row in found["rows"] if row["factor"] in ("calibration", "zone", "regressor")]
    assert len(asked) == 2 * (2 + 4 + 5)
    assert {(row["n_train"], row["n_test"], row["d"]) for row in found["rows"]} == {(90, 24, 3)}
    base = next(r for r in found["summary"] if r["value"] == "log-effort")
    assert (base["is_base"], base["roc_gain"], base["n_sets"]) == (True, 0.0, 2)
    text = (tmp_path / "out" / "ablation.md").read_text()
    assert "## Score model (`regressor`)" in text
    assert "| **lightgbm** |" in text
    assert "`alpha`" not in text  # only its default was computed
    for factor in ("calibration", "zone", "regressor"):
        path = tmp_path / "out" / f"ablation-{factor}.png"
        assert path.read_bytes().startswith(b"\x89PNG")


def test_a_second_run_computes_what_is_missing(
    run: Callable[..., int], tmp_path: Path, units_run: list[str]
) -> None:
    run("--only", "repeats", "--sets", "first")
    assert len(units_run) == 5
    path = tmp_path / "out" / CELLS
    lines = path.read_text().splitlines(keepends=True)
    lost = json.loads(lines.pop(2))
    path.write_text("".join(lines))
    units_run.clear()
    run("--only", "repeats", "--sets", "first")
    assert units_run == [lost["changes"]]
    units_run.clear()
    run("--only", "first_alpha", "--sets", "first")
    assert units_run == ['{"first_alpha": 0.04}', '{"first_alpha": 0.3}']
    assert {row["factor"] for row in numbers(tmp_path)["summary"]} == {"repeats", "first_alpha"}


def test_gains_are_over_shared_sets() -> None:
    values = [
        Variant("alpha", "0.04", "{}", "effort", is_base=True),
        Variant("alpha", "0.08", '{"alpha": 0.08}', "effort", is_base=False),
    ]

    def cell(dataset: str, changes: str, roc: float) -> dict[str, Any]:
        place = {"dataset": dataset, "seed": 0, "changes": changes, "method": "effort"}
        return {**place, "roc": roc, "pr": roc / 2, "fit_s": 1.0, "score_s": 0.5}

    cells = [cell("p", "{}", 80), cell("q", "{}", 60), cell("p", '{"alpha": 0.08}', 90)]
    failed = {"dataset": "q", "seed": 0, "changes": '{"alpha": 0.08}', "method": "effort"}
    rows = factor_rows([*cells, {**failed, "error": "E"}], values)
    base, other = value_records(rows, {"alpha": "0.04"})
    assert (base["roc"], base["roc_gain"]) == (70, 0)
    assert (other["roc"], other["roc_gain"], other["pr_gain"]) == (90, 10, 5)
    assert (other["roc_better"], other["roc_worse"], other["n_failed"]) == (1, 0, 1)


def test_other_limits_and_names_are_refused(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    run("--only", "calibration", "--sets", "first")
    assert run("--only", "calibration", "--max-train", "50") == 78
    assert "'max_train': 50" in capsys.readouterr().err
    assert run("--only", "colour") == 78
    assert "--only: 'colour' is not one of alpha" in capsys.readouterr().err
