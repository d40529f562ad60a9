"""Ours from end to end beside other detectors and the machine's limits, as tables grow.

    python -m benchmarks.scale --out OUT [--rows 1e5,1e6,1e7] [--features 8,32,128]
        [--workers 1,2] [--full] [--repeats 3] [--only 1e6x32,1e7x32] [--scratch DIR]

Every size has a generated Parquet table. `mrot-scale ingest`, `fit` and `score` run on it as
commands of their own (plain trees; at 1e6 x 32 also with fewer workers and with the default
`hybrid`), in turns with detectors that have the rows in memory and with what the machine can do at
best: copying, reading the store, walking trees, tasks without Dask. OUT/cells.jsonl keeps what is
finished: the same command goes on where it was stopped, and --only and --repeats may choose other
parts of the same grid (--repeats 0 only writes tables and figures again). Sizes above 1e7 x 32
values need --full.
"""

import argparse
import json
import os
import platform
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.command_line import exit_code
from benchmarks.quality_cells import CELLS, CellFile
from benchmarks.record import claim_folder, json_lines, versions
from benchmarks.scale_commands import made_model, run_commands
from benchmarks.scale_figures import draw
from benchmarks.scale_findings import Results, efficiencies, growth
from benchmarks.scale_grid import FIELDS, Cell, Grid, Size, Unit
from benchmarks.scale_peers import PEERS
from benchmarks.scale_place import Place
from benchmarks.scale_tables import report, short
from benchmarks.scale_targets import targets
from benchmarks.scale_watch import CommandFailedError, watched
from mrot_scale.threads import available_cores

PEER_S = 60.0
"""Seconds that a peer may take before it is given fewer rows."""

_LIBRARIES = ("numpy", "zarr", "dask", "distributed", "lightgbm", "numba", "pyarrow")
_PEER_LIBRARIES = ("scikit-learn", "pyod", "faiss-cpu")
_LONGEST_ERROR = 300


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    with _ended_by_signals():
        return exit_code(run, _parser().parse_args(arguments))


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let `timeout` and schedulers end what is being measured too."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def run(given: argparse.Namespace) -> None:
    """Measure what is missing, then write tables and figures of all that is there."""
    grid = Grid(given.rows, given.features, given.workers, given.full)
    sizes = grid.chosen(given.only)
    header = {"settings": grid.settings(), "versions": versions(_LIBRARIES + _PEER_LIBRARIES)}
    claim_folder(given.out, CELLS)
    cells = CellFile(given.out / CELLS, header, FIELDS)
    cells.append([])  # makes the folder ours, before anything else is in it
    scratch = given.scratch or given.out / "scratch"
    n_left = sum(len(grid.pending(size, given.repeats, cells.find)) for size in sizes)
    progress = Progress(n_left)
    for size in sizes:
        place = Place.of(scratch, size)
        for unit, repeat in grid.pending(size, given.repeats, cells.find):
            if grid.is_wanted(unit, repeat, cells.find):  # others may have told in between
                cells.append([measured_cell(place, unit, repeat, cells)])
                progress.tell(cells.find(unit.identity(repeat)) or {})
        place.remove()
        write_results(given.out, Results(grid, cells.cells), header)
    print((given.out / "scale.md").read_text(encoding="utf-8"))


class Progress:
    """A line for each cell."""

    def __init__(self, n_left: int) -> None:
        self._n_left, self._n_done, self._start = n_left, 0, time.perf_counter()

    def tell(self, cell: Cell) -> None:
        self._n_done += 1
        seconds = time.perf_counter() - self._start
        size = Size(cell["n_rows"], cell["n_features"])
        what = f"{cell['method']} by {cell['workers']} at {size}, turn {cell['repeat'] + 1}"
        place = f"[{self._n_done} of at most {self._n_left}, {seconds:.0f} s]"
        print(f"{place} {what}: {outcome(cell)}", file=sys.stderr, flush=True)


def outcome(cell: Cell) -> str:
    """Return what a cell says in a few words."""
    if "error" in cell:
        return f"FAILED: {cell['error']}"
    if cell["kind"] == "ours":
        told = (f"{name} {found['seconds']:.1f} s" for name, found in cell["commands"].items())
        return f"{', '.join(told)} ({cell['model_kind']})"
    if cell["kind"] == "peer":
        rows = f"{cell['measured_rows']:,} rows"
        return f"fit {cell['fit_s']:.2f} s, score {cell['score_s']:.2f} s of {rows}"
    return f"{short(cell['rows_per_s'])} rows/s"


def measured_cell(place: Place, unit: Unit, repeat: int, cells: CellFile) -> Cell:
    """Return one cell; a command that fails is told of in it, and tried again next time."""
    measure = {"ours": _ours, "peer": _peer, "limit": _limit}[unit.kind]
    try:
        found = measure(place, unit, cells.find(unit.identity(0)) if repeat else None)
    except CommandFailedError as error:
        found = {"error": " ".join(str(error).split())[-_LONGEST_ERROR:]}
    return unit.identity(repeat) | found


def _ours(place: Place, unit: Unit, _: Cell | None) -> dict[str, Any]:
    return run_commands(place, unit)


def _peer(place: Place, unit: Unit, first: Cell | None) -> dict[str, Any]:
    """Measure a peer: at as many rows as go in its minute, later at the same as the first time."""
    known = first.get("measured_rows") if first else None
    within = ["--within", str(PEER_S)] if PEERS[unit.method].is_cut and known is None else []
    rows = str(known or unit.size.rows)
    words = ["-m", "benchmarks.scale_peers", unit.method, str(place.table), rows, *within]
    found = watched(words)
    timing = json.loads(found.out.splitlines()[-1])
    figures = {name: f for name, f in found.figures().items() if name != "seconds"}
    return {**figures, **timing, "seconds": timing["fit_s"] + timing["score_s"]}


def _limit(place: Place, unit: Unit, _: Cell | None) -> dict[str, Any]:
    """Measure a limit on what our commands left with most workers."""
    words = ["-m", "benchmarks.scale_limits", unit.method, "--processes", str(unit.workers)]
    if unit.method == "copy":
        words += ["--rows", str(unit.size.rows), "--features", str(unit.size.features)]
    else:
        words += ["--folder", str(_model_folder(place, unit))]
    return dict(json.loads(watched(words).out.splitlines()[-1]))


def _model_folder(place: Place, unit: Unit) -> Path:
    """Return the folder of plain trees, whoever fitted them."""
    known = sorted(place.folder.glob("plain-*/model/validation.json"))
    if known:
        return known[-1].parent.parent
    made_by = replace(unit, kind="ours", method="plain", workers=available_cores())
    return made_model(place, made_by)


def write_results(out: Path, results: Results, header: dict[str, Any]) -> None:
    """Write numbers, tables and figures."""
    numbers = {
        **header,
        "machine": machine(),
        "targets": [target.to_json() for target in targets(results)],
        "growth": growth(results),
        "efficiencies": efficiencies(results),
        "cells": results.cells + results.failures,
    }
    (out / "scale.json").write_text(json_lines(numbers), encoding="utf-8")
    head = f"`python -m benchmarks.scale`, {header['settings']}, {numbers['machine']}."
    (out / "scale.md").write_text(report(results, head), encoding="utf-8")
    draw(results, out)


def machine() -> dict[str, Any]:
    """Return what the figures depend on besides the code."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": cpu.group(1) if cpu else platform.machine(),
        "cores": available_cores(),
        "memory_gib": round(pages / 2**30, 1),
        "kernel": platform.release(),
    }


def _whole_numbers(text: str) -> tuple[int, ...]:
    return tuple(int(float(part)) for part in text.split(","))


def _sizes(text: str) -> list[Size]:
    return [Size.parse(part) for part in text.split(",")]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--rows", type=_whole_numbers, default="1e5,1e6,1e7")
    parser.add_argument("--features", type=_whole_numbers, default="8,32,128")
    parser.add_argument("--workers", type=_whole_numbers, default="1,2")
    parser.add_argument("--full", action="store_true", help="sizes above 1e7 x 32 as well")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", type=_sizes, help="sizes of the grid to measure now")
    parser.add_argument("--scratch", type=Path, help="folder for tables; OUT/scratch by default")
    parser.add_argument("--out", type=Path, required=True)
    return parser


if __name__ == "__main__":
    sys.exit(main())
