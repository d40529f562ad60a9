"""Costs of any size follow from those measured."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cost_model import CostModel, Law, fit_law, main, measured, n_tasks, price
from benchmarks.scale_grid import Size, Unit

SIZES = [Size(rows, columns) for rows in (10**5, 10**6, 10**7) for columns in (8, 32, 128)]


def cell(size: Size, repeat: int = 0) -> dict[str, Any]:
    """A run by two workers whose score stage takes 2 s and 1 us for each value, on each of them."""
    values = size.rows * size.features
    moved = {"rchar": 4 * values, "wchar": 8 * size.rows}

    def command(**stages: float) -> dict[str, Any]:
        return {"stages": stages, "stage_s": sum(stages.values()), "bytes": moved}

    commands = {
        "ingest": command(ingest=1e-7 * values),
        "fit": command(sample=1e-7 * values, train=20.0),
        "score": command(score=2.0 + 1e-6 * values),
    }
    return {**Unit("ours", "plain", size, 2).identity(repeat), "commands": commands}


def test_a_law_is_found_again() -> None:
    law = Law((3.0, 0.5, 2e-6, 1e-7))
    found = fit_law(SIZES, [law.at(size) for size in SIZES])
    assert found.weights == pytest.approx(law.weights, rel=1e-6)


def test_laws_have_no_negative_part() -> None:
    found = fit_law(SIZES, [1e-6 * size.rows**0.9 for size in SIZES])
    assert min(found.weights) >= 0


def test_what_was_never_seen_costs_nothing() -> None:
    assert fit_law(SIZES, [0.0] * len(SIZES)).at(SIZES[0]) == 0.0


def test_stages_are_core_seconds_of_all_workers_but_for_ingest() -> None:
    found = {m.stage: m.of for m in measured([cell(Size(10**6, 10))])}
    assert found["ingest"]["core_s"] == pytest.approx(1.0)
    assert found["sample"]["core_s"] == pytest.approx(2.0)
    assert found["learn"]["core_s"] == pytest.approx(40.0)
    assert found["score"]["core_s"] == pytest.approx(24.0)
    assert found["score"]["read"] == 4e7


def test_tasks_are_chunks() -> None:
    assert n_tasks(Size(10**9, 100), 16) == 23_842
    assert n_tasks(Size(1, 100), 16) == 1


def test_a_stage_waits_for_work_or_for_the_scheduler() -> None:
    found = measured([cell(size) for size in SIZES])
    size = Size(10**9, 100)
    seconds, waits_for = CostModel.of(found, 0.01).seconds("score", size, 100, 16)
    assert seconds == pytest.approx(2e5 / 100, rel=1e-3)
    assert waits_for == "work"
    seconds, waits_for = CostModel.of(found, 1.0).seconds("score", size, 100, 16)
    assert seconds == pytest.approx(23_842.0)
    assert waits_for == "scheduler"
    assert CostModel.of(found, 0.01).seconds("ingest", size, 100, 16)[1] == "one process"


def test_scoring_has_the_law_of_tables_that_compiled_code_walks() -> None:
    cells = [cell(size) for size in SIZES]
    for small in (c for c in cells if c["n_rows"] < 250_000):
        small["commands"]["score"]["stage_s"] *= 50
    model = CostModel.of(measured(cells), 0.0)
    assert model.amount("score", "core_s", SIZES[-1]) == pytest.approx(2 * (2.0 + 1280.0))


def test_the_price_counts_all_workers_while_they_wait() -> None:
    found = measured([cell(size) for size in SIZES])
    model, size = CostModel.of(found, 0.0), Size(10**9, 100)
    stages = ("sample", "learn", "score")
    busy = sum(100 * model.seconds(stage, size, 100, 16)[0] for stage in stages)
    alone = model.seconds("ingest", size, 100, 16)[0]
    assert price(model, size, 100, 16, 0.05) == pytest.approx((busy + alone) / 3600 * 0.05)


def test_the_command_foretells_the_largest_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [cell(size) for size in SIZES]
    (tmp_path / "scale.json").write_text(json.dumps({"cells": cells}))
    (tmp_path / "tasks.json").write_text(json.dumps({"rows": [{"tasks": 1000, "seconds": 9.0}]}))
    assert main([str(tmp_path), "--tasks", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "| score | core_s |" in told
    assert told.count("0% |") == 10  # foretold without error
    assert "A task besides: 9.00 ms." in told
    assert "1,000,000,000 x 100 on 100 workers, chunks of 128 MiB" in told


def test_one_size_foretells_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "scale.json").write_text(json.dumps({"cells": [cell(SIZES[0])]}))
    assert main([str(tmp_path)]) == 78
    assert "fewer than two sizes" in capsys.readouterr().err
