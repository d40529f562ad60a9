"""What the smallest things take: a start of the command line, one row, one effort.

    python -m benchmarks.unit_costs [--features 32] [--rows 2e5] [--repeats 3] [--out DIR]

Starts are processes of their own, single rows go through `score_rows` with the model loaded, as in
a service. An evaluation is one row sent to one set of 256 anchors, on one thread. Medians.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.record import claim_folder, json_lines, versions
from mrot_scale import Problem, fit, score_rows
from mrot_scale.config.cluster import ClusterConfig
from mrot_scale.config.job import Config
from mrot_scale.method.anchors import fit_anchor_set, route_matrix
from mrot_scale.threads import one_native_thread

REPORT = "unit_costs.json"
N_ANCHORS, N_SETS = 256, 4
_STARTS, _CALLS = 11, 300
_LIBRARIES = ("numpy", "numba", "lightgbm", "typer", "pyarrow")


@dataclass(frozen=True)
class Figure:
    """One figure and the bound it is to keep."""

    name: str
    value: float
    unit: str
    bound: float | None
    is_least: bool = False

    @property
    def verdict(self) -> str:
        if self.bound is None:
            return "reported"
        is_met = self.value >= self.bound if self.is_least else self.value <= self.bound
        return "met" if is_met else "not met"


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    if options.out:
        claim_folder(options.out, REPORT)
    n_rows, repeats = int(float(options.rows)), options.repeats
    with tempfile.TemporaryDirectory() as folder:
        model = small_model(Path(folder), options.features)
        figures = [
            start_of_help(),
            one_row(model, options.features),
            efforts_per_second(n_rows, options.features, repeats),
            rows_by_effort(model, n_rows // 10, options.features, repeats),
        ]
    print(table(figures))
    if options.out:
        found = {"figures": [asdict(f) for f in figures], "versions": versions(_LIBRARIES)}
        (options.out / REPORT).write_text(json_lines(found), encoding="utf-8")


def table(figures: Sequence[Figure]) -> str:
    """Return the figures as Markdown."""
    lines = ["| what | measured | target | verdict |", "|---|---|---|---|"]
    for f in figures:
        side = "at least" if f.is_least else "under"
        bound = "" if f.bound is None else f"{side} {f.bound:,g} {f.unit}"
        lines.append(f"| {f.name} | {f.value:,.4g} {f.unit} | {bound} | {f.verdict} |")
    return "\n".join(lines)


def small_model(folder: Path, n_features: int) -> Path:
    """Return a model with the default views, of few rows: that changes no row's cost."""
    rng = np.random.default_rng(0)
    columns = {f"c{i}": rng.normal(size=5_000) for i in range(n_features)}
    config = Config(hybrid="never", cluster=ClusterConfig(kind="inline"))
    fit(pa.table(columns), folder / "model", config)
    return folder / "model"


def start_of_help() -> Figure:
    """Measure `mrot-scale --help`, from nothing to its end."""
    words = [sys.executable, "-m", "mrot_scale", "--help"]
    seconds = [_seconds(lambda: subprocess.run(words, capture_output=True, check=True))]
    for _ in range(_STARTS - 1):
        seconds.append(_seconds(lambda: subprocess.run(words, capture_output=True, check=True)))
    return Figure("mrot-scale --help", statistics.median(seconds), "s", 0.3)


def one_row(model: Path, n_features: int) -> Figure:
    """Measure a call with one row on a loaded model."""
    rng = np.random.default_rng(1)
    rows = [{f"c{i}": float(x) for i, x in enumerate(rng.normal(size=n_features))}]
    score_rows(model, rows)  # loads it
    seconds = [_seconds(lambda: score_rows(model, rows)) for _ in range(_CALLS)]
    return Figure("one row by score_rows", 1e3 * statistics.median(seconds), "ms", 2.0)


def efforts_per_second(n_rows: int, n_features: int, repeats: int) -> Figure:
    """Measure how many efforts one thread finds: rows times sets of anchors."""
    rng = np.random.default_rng(2)
    problem, ids = Problem(alpha=0.04), np.arange(N_ANCHORS)
    sets = [
        fit_anchor_set(rng.normal(size=(N_ANCHORS, n_features)), ids, problem, f"set {number}")
        for number in range(N_SETS)
    ]
    rows = rng.normal(size=(n_rows, n_features))
    with one_native_thread():
        route_matrix(sets, rows, problem)  # compiles
        seconds = [_seconds(lambda: route_matrix(sets, rows, problem)) for _ in range(repeats)]
    rate = n_rows * N_SETS / statistics.median(seconds)
    name = f"efforts on one core, {n_features} columns, {N_ANCHORS} anchors"
    return Figure(name, rate, "/s", 300_000, is_least=True)


def rows_by_effort(model: Path, n_rows: int, n_features: int, repeats: int) -> Figure:
    """Measure the rows that one thread scores by effort with the default views and anchors."""
    rng = np.random.default_rng(3)
    rows = pa.table({f"c{i}": rng.normal(size=n_rows) for i in range(n_features)})
    score_rows(model, rows, method="effort")
    seconds = [_seconds(lambda: score_rows(model, rows, method="effort")) for _ in range(repeats)]
    name = f"rows by method effort on one core, defaults, {n_features} columns"
    return Figure(name, n_rows / statistics.median(seconds), "rows/s", None)


def _seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.unit_costs", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--rows", default="2e5")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    return parser


if __name__ == "__main__":
    main()
