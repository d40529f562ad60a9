"""What a job of any size costs, from what the benchmark of scale measured.

    python -m benchmarks.cost_model SCALE_OUT [--tasks TASKS_OUT] [--rows 1e9] [--features 100]
        [--workers 100] [--chunk-mib 16,128] [--price 0.05]

For every stage, processor seconds and bytes are a constant, and so much for each column, each row
and each value: what comes nearest to all measured tables but the largest. The largest is then
foretold to see how far that holds. Below 250,000 rows LightGBM walks the trees: such tables are
left out of the law of scoring. Seconds of scheduler and driver for each task come from `python -m
benchmarks.tasks`. The plan multiplies it all; --price is for one core and hour.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.command_line import exit_code
from benchmarks.scale_grid import Size
from benchmarks.scale_tables import markdown, short
from mrot_scale.errors import ConfigError
from mrot_scale.model.lightgbm_model import WALKED_FROM

STAGES = ("ingest", "sample", "learn", "score")
"""ingest is one process; sample reads the store for the labelled rows; learn is the rest of fit."""

QUANTITIES = ("core_s", "read", "written")
_DEFAULT_CHUNK_MIB = 16
_VALUE_BYTES = 4
_OBJECTS_WRITTEN = 2
"""By a score task: scores and flags."""


@dataclass(frozen=True)
class Measured:
    """What one stage took at one size."""

    size: Size
    stage: str
    of: dict[str, float]
    """By quantity."""


@dataclass(frozen=True)
class Law:
    """A quantity as a constant and so much per column, per row and per value."""

    weights: tuple[float, float, float, float]

    def at(self, size: Size) -> float:
        return float(_terms(size) @ np.array(self.weights))


def _terms(size: Size) -> NDArray[np.float64]:
    return np.array([1.0, size.features, size.rows, size.rows * size.features])


def fit_law(sizes: Sequence[Size], values: Sequence[float]) -> Law:
    """Return the law without negative parts whose relative errors are smallest in squares."""
    from scipy.optimize import nnls

    kept = [(size, value) for size, value in zip(sizes, values, strict=True) if value > 0]
    if not kept:
        return Law((0.0, 0.0, 0.0, 0.0))
    terms = np.array([_terms(size) / value for size, value in kept])
    scale = terms.max(axis=0)
    weights, _ = nnls(terms / scale, np.ones(len(kept)))
    return Law(tuple(float(w) for w in weights / scale))  # type: ignore[arg-type]


def measured(cells: Sequence[dict[str, Any]]) -> list[Measured]:
    """Return what the stages of plain runs with most workers took, the medians of repeats."""
    plain = [c for c in cells if (c["kind"], c["method"]) == ("ours", "plain") and "error" not in c]
    most = max((cell["workers"] for cell in plain), default=0)
    by_size: dict[Size, list[dict[str, Any]]] = {}
    for cell in plain:
        if cell["workers"] == most:
            by_size.setdefault(Size(cell["n_rows"], cell["n_features"]), []).append(cell)
    return [
        Measured(size, stage, _median([_taken(cell, stage) for cell in found]))
        for size, found in sorted(by_size.items())
        for stage in STAGES
    ]


def _median(found: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.median([each[name] for each in found])) for name in QUANTITIES}


def _taken(cell: dict[str, Any], stage: str) -> dict[str, float]:
    """Return what one stage of a run took; the bytes of fit are those of its sample."""
    name = "fit" if stage in ("sample", "learn") else stage
    command = cell["commands"][name]
    if stage == "ingest":
        seconds = command["stage_s"]  # one process does it all
    elif stage == "score":
        seconds = command["stage_s"] * cell["workers"]
    else:
        sample = command["stages"].get("sample", 0.0)
        seconds = cell["workers"] * (sample if stage == "sample" else command["stage_s"] - sample)
    moved = (command["bytes"]["rchar"], command["bytes"]["wchar"]) if stage != "learn" else (0, 0)
    return {"core_s": float(seconds), "read": float(moved[0]), "written": float(moved[1])}


@dataclass(frozen=True)
class CostModel:
    """A law for every stage and quantity, and what a task costs beside its work."""

    laws: dict[tuple[str, str], Law]
    task_s: float
    """Seconds of scheduler and driver for each task."""

    @classmethod
    def of(cls, found: Sequence[Measured], task_s: float) -> "CostModel":
        laws = {}
        for stage in STAGES:
            mine = _of_one_law([m for m in found if m.stage == stage])
            for name in QUANTITIES:
                laws[stage, name] = fit_law([m.size for m in mine], [m.of[name] for m in mine])
        return cls(laws, task_s)

    def amount(self, stage: str, quantity: str, size: Size) -> float:
        return self.laws[stage, quantity].at(size)

    def seconds(self, stage: str, size: Size, workers: int, chunk_mib: int) -> tuple[float, str]:
        """Return how long a stage takes, and what it waits for."""
        core_s = self.amount(stage, "core_s", size)
        if stage == "ingest":
            return core_s, "one process"
        if stage == "learn":
            return core_s, "the labelled sample, one task for each set of anchors"
        by_scheduler = n_tasks(size, chunk_mib) * self.task_s
        working = core_s / workers
        return (working, "work") if working >= by_scheduler else (by_scheduler, "scheduler")


def _of_one_law(found: list[Measured]) -> list[Measured]:
    """Return what a law is fitted to: of scoring, the tables whose trees compiled code walks."""
    walked = [m for m in found if m.stage == "score" and m.size.rows >= WALKED_FROM]
    return walked if len(walked) > 1 else found


def n_tasks(size: Size, chunk_mib: int) -> int:
    """Return the chunks of a store, each a task of the stages that read all of it."""
    rows = max(1, chunk_mib * 2**20 // (_VALUE_BYTES * size.features))
    return -(-size.rows // rows)


def check_table(found: Sequence[Measured], task_s: float) -> str:
    """Return the largest table as the others foretell it, beside what was measured."""
    largest = max(m.size for m in found)
    model = CostModel.of([m for m in found if m.size != largest], task_s)
    lines = []
    for m in (m for m in found if m.size == largest):
        for name in QUANTITIES:
            if m.of[name] > 0:
                told = model.amount(m.stage, name, largest)
                lines.append([m.stage, name, short(told), short(m.of[name])])
                lines[-1].append(f"{told / m.of[name] - 1:+.0%}")
    head = ["stage", "quantity", f"foretold for {largest}", "measured", "off by"]
    return markdown(head, lines)


def law_table(model: CostModel) -> str:
    """Return the laws: what a run, a column, a million rows and a million values cost."""
    lines = []
    for (stage, name), law in model.laws.items():
        constant, column, row, value = law.weights
        parts = [constant, column, 1e6 * row, 1e6 * value]
        lines.append([stage, name, *(short(part) for part in parts)])
    head = ["stage", "quantity", "constant", "per column", "per million rows"]
    return markdown([*head, "per million values"], lines)


def plan_table(model: CostModel, size: Size, workers: int, chunk_mib: int) -> str:
    """Return what each stage of a job takes, and what it waits for."""
    lines = []
    for stage in STAGES:
        seconds, waits_for = model.seconds(stage, size, workers, chunk_mib)
        tasks = n_tasks(size, chunk_mib) if stage in ("sample", "score") else 0
        requests = tasks * (1 + (_OBJECTS_WRITTEN if stage == "score" else 1))
        amounts = [model.amount(stage, name, size) for name in QUANTITIES]
        counts = [f"{tasks:,}", f"{requests:,}", f"{seconds:,.0f}", waits_for]
        lines.append([stage, *(short(amount) for amount in amounts), *counts])
    head = ["stage", "core seconds", "bytes read", "bytes written", "tasks", "objects"]
    return markdown([*head, "seconds", "waits for"], lines)


def price(model: CostModel, size: Size, workers: int, chunk_mib: int, per_hour: float) -> float:
    """Return what the workers cost while the job runs, one core each."""
    seconds = sum(model.seconds(stage, size, workers, chunk_mib)[0] for stage in STAGES[1:])
    alone = model.seconds("ingest", size, workers, chunk_mib)[0]
    return (workers * seconds + alone) / 3600 * per_hour


def seconds_per_task(folder: Path | None) -> float:
    """Return what scheduler and driver take for each of the most tasks that were measured."""
    if folder is None:
        return 0.0
    rows = json.loads((folder / "tasks.json").read_text())["rows"]
    most = max(rows, key=lambda row: int(row["tasks"]))
    return float(most["seconds"] / most["tasks"])


def run(given: argparse.Namespace) -> None:
    """Print check, laws and plans."""
    found = measured(json.loads((given.scale / "scale.json").read_text())["cells"])
    if len({m.size for m in found}) < 2:
        raise ConfigError(f"{given.scale} holds fewer than two sizes: nothing to foretell.")
    task_s = seconds_per_task(given.tasks)
    model = CostModel.of(found, task_s)
    size = Size(int(float(given.rows)), given.features)
    print(f"## The largest table, foretold from the others\n\n{check_table(found, task_s)}\n")
    print(f"## What things cost\n\n{law_table(model)}\n\nA task besides: {1e3 * task_s:.2f} ms.\n")
    for chunk_mib in map(int, given.chunk_mib.split(",")):
        told = plan_table(model, size, given.workers, chunk_mib)
        money = price(model, size, given.workers, chunk_mib, given.price)
        print(f"## {size} on {given.workers} workers, chunks of {chunk_mib} MiB\n\n{told}\n")
        print(f"Workers at {given.price:g} an hour: {money:.2f} in all.\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost_model", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("scale", type=Path, help="folder of benchmarks.scale")
    parser.add_argument("--tasks", type=Path, help="folder of benchmarks.tasks")
    parser.add_argument("--rows", default="1e9")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--chunk-mib", default=f"{_DEFAULT_CHUNK_MIB},128")
    parser.add_argument("--price", type=float, default=0.05)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return exit_code(run, _parser().parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
