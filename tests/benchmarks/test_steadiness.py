"""The study of steadiness at toy size: by hand where it can be, nothing computed twice."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import quality_runs, steadiness_parts
from benchmarks.embedding_rows import embedding_table
from benchmarks.quality_peers import PEERS
from benchmarks.quality_runs import Unit, run_unit
from benchmarks.smaller_splits import load_smaller, training_rows
from benchmarks.steadiness import main
from benchmarks.steadiness_findings import (
    growth_findings,
    headroom_findings,
    largest_fall,
    repeat_findings,
    wide_findings,
)
from benchmarks.steadiness_methods import AVERAGE, DEFAULT, mean_rarity
from tests.tables import normal_rows

FEW_ROWS = ["--label-rows", "300", "--train-rows", "120"]
QUICK = [*FEW_ROWS, "--draws", "2", "--repeats", "2", "--splits", "1"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for seed, (name, n_rows) in enumerate({"large": 240, "small": 100}.items()):
        rows = np.vstack([normal_rows(n_rows - 10, seed=seed), 3 + normal_rows(10, seed=seed)])
        np.savez(folder / f"{name}.npz", X=rows, y=np.repeat([0, 1], [n_rows - 10, 10]))
    return folder


@pytest.fixture
def run(data: Path, tmp_path: Path) -> Callable[..., int]:
    places = ["--data", str(data), "--out", str(tmp_path / "out")]
    return lambda *words: main([*places, *QUICK, *words])


@pytest.fixture
def units_run(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """First method of each unit that was computed."""
    seen: list[str] = []

    def counted(unit: Unit) -> list[dict[str, Any]]:
        seen.append(unit.family.methods[0])
        return run_unit(unit)

    monkeypatch.setattr(quality_runs, "run_unit", counted)
    return seen


def numbers(tmp_path: Path, part: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / "out" / f"{part}.json").read_text())
    assert [cell["error"] for cell in found["cells"] if "error" in cell] == []
    return found


def test_growth_goes_from_small_to_all_rows(run: Callable[..., int], tmp_path: Path) -> None:
    assert run("--only", "growth", "--sets", "large") == 0
    found = numbers(tmp_path, "growth")
    sizes = [(line["method"], line["train_rows"], line["samples"]) for line in found["growth"]]
    of_each = [(120, 2), (192, 1)]  # there is only one sample of all rows
    assert sizes == [(method, *size) for method in ("model", "effort") for size in of_each]
    assert {cell["n_train"] for cell in found["cells"]} == {120, 192}
    assert (tmp_path / "out" / "growth.png").stat().st_size > 0


def test_a_part_goes_on_where_it_was(
    run: Callable[..., int], tmp_path: Path, units_run: list[str]
) -> None:
    words = ("--only", "repeat", "--large", "150")
    assert run(*words, "--repeats", "1") == 0
    assert units_run == ["model"]  # only the large set is large
    assert run(*words) == 0
    assert units_run == ["model"] * 2  # the second seed alone
    first = (tmp_path / "out" / "repeat.json").read_bytes()
    assert run(*words) == 0
    assert units_run == ["model"] * 2
    assert (tmp_path / "out" / "repeat.json").read_bytes() == first
    assert {line["seeds"] for line in numbers(tmp_path, "repeat")["repeat"]} == {2}


def test_other_settings_are_not_mixed_in(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--only", "growth", "--sets", "small")
    assert run(*words) == 0
    assert run(*words, "--label-rows", "200") != 0
    assert "growth.jsonl was computed with" in capsys.readouterr().err


def test_wide_compares_with_the_best_peer(
    run: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = {name: PEERS[name] for name in ("iforest", "pca", "ocsvm")}
    monkeypatch.setattr(steadiness_parts, "PEERS", quick)
    assert run("--only", "wide", "--wide-rows", "200", "--wide-columns", "30") == 0
    found = numbers(tmp_path, "wide")
    methods = [line["method"] for line in found["wide"]]
    assert methods == ["model", "effort", "IsolationForest", "PCA"]
    assert len(found["leads"]) == 4


def test_headroom_is_against_single_settings(run: Callable[..., int], tmp_path: Path) -> None:
    words = ("--sets", "small", "--alphas", "0.04,0.16", "--small-rows", "80")
    assert run("--only", "headroom", *words) == 0
    found = numbers(tmp_path, "headroom")
    (line,) = found["headroom"]
    assert len(line["singles"]) == 6
    assert line["best"] == max(line["singles"].values())
    assert line["default_shortfall"] == pytest.approx(line["best"] - line["default"])
    assert "headroom" in (tmp_path / "out" / "steadiness.md").read_text()
    assert (tmp_path / "out" / "headroom.png").stat().st_size > 0


def test_largest_fall_by_hand() -> None:
    assert largest_fall([80.0, 78.0, 79.0, 70.5]) == 8.5
    assert largest_fall([70.0, 71.0]) == largest_fall([70.0]) == 0.0


def cell(method: str, roc: float, **more: Any) -> dict[str, Any]:
    return {"dataset": "a", "method": method, "seed": 0, "roc": roc, "pr": roc / 2, **more}


def test_findings_by_hand() -> None:
    sizes = partial(cell, fit_s=1.0, n_test=5)
    two_samples = [sizes("model", points, train_rows=20) for points in (91.0, 93.0)]
    grown = growth_findings([sizes("model", 90.0, train_rows=30), *two_samples])
    assert [(line["roc"], line["samples"]) for line in grown["growth"]] == [(92.0, 2), (90.0, 1)]
    assert (grown["worst_roc_fall"], grown["worst_pr_fall"]) == (2.0, 1.0)
    repeated = repeat_findings([cell("model", 90.0), cell("model", 92.0)])
    assert repeated["largest_sd"] == pytest.approx(np.sqrt(2))
    wide = wide_findings([cell("model", 90.0), cell("PCA", 80.0), cell("LOF", 85.0)])
    assert [(lead["best_peer"], lead["lead"]) for lead in wide["leads"]] == [
        ("LOF", 5.0),
        ("LOF", 2.5),
    ]


def test_headroom_by_hand_and_without_what_failed() -> None:
    cells = [cell("none 0.04", 90.0), cell("robust 0.08", 94.0), cell(AVERAGE, 84.0)]
    failed = {"dataset": "b", "method": "none 0.04", "seed": 0, "error": "no"}
    found = headroom_findings([*cells, cell(DEFAULT, 92.0), failed])
    assert found["headroom"][0]["best_setting"] == "robust 0.08"
    assert found["mean"]["average_shortfall"] == 10.0
    assert found["smaller_by"] == pytest.approx(0.8)
    assert headroom_findings([failed])["smaller_by"] is None


def test_rarities_are_averaged_and_stay_finite() -> None:
    found = mean_rarity([np.array([0.0, 0.9, 1.0]), np.array([0.0, 0.99, 1.0])])
    assert found[:2] == pytest.approx([0.0, 1.5 * np.log(10)])
    assert np.isfinite(found[2])


def test_embeddings_have_unit_length_and_a_common_direction() -> None:
    rows, labels = embedding_table(0, 400, 64)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0)
    assert labels.sum() == 12
    assert 0.2 < (rows @ rows.T).mean() < 0.6
    np.testing.assert_array_equal(rows, embedding_table(0, 400, 64)[0])
    variances = np.linalg.eigvalsh(np.cov(rows.T))[::-1]
    assert variances[0] > 4 * variances[32]


def test_smaller_splits_have_the_rows_of_the_whole_one(data: Path) -> None:
    path = data / "large.npz"
    whole, small = load_smaller(path, 0), load_smaller(path, 0, test_rows=20, train_rows=50)
    assert len(whole.train) == training_rows(240) == 192
    assert (len(small.train), len(small.test), len(small.labels)) == (50, 20, 20)
    known, some = (
        {(*row, label) for row, label in zip(split.test, split.labels, strict=True)}
        for split in (whole, small)
    )
    assert some < known
