"""What many tasks cost: a real scheduler, the real graph, and next to nothing to do in each task.

    python -m benchmarks.tasks [--tasks 1e3,4e3,16e3] [--workers 2] [--out DIR]

A table is cut into as many chunks as there are to be tasks, of ten rows each, and scored: every
task is sent, run, written, journalled and published as in a large job. What is left of the time is
what scheduler, driver and files take for each.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.memory import run_watched
from benchmarks.record import claim_folder, json_lines, versions
from benchmarks.tables import write_table

REPORT = "tasks.json"
ROWS_PER_TASK = 10
N_FEATURES = 4
_LIBRARIES = ("dask", "distributed", "zarr", "numpy")
_SMALL = ("--set", "label_rows=1000", "--set", "hybrid=never", "--cluster", "inline")


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    if options.out:
        claim_folder(options.out, REPORT)
    rows = []
    for n_tasks in sorted(int(float(count)) for count in options.tasks.split(",")):
        with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
            rows.append(measure(Path(folder), n_tasks, options.workers))
        print(table(rows[-1:]), flush=True)
    print(f"\n{table(rows)}", flush=True)
    if (power := exponent(rows)) is not None:
        print(f"\nSeconds grow as tasks to the power {power:.2f}.", flush=True)
    if options.out:
        found = {"rows": rows, "exponent": exponent(rows), "versions": versions(_LIBRARIES)}
        (options.out / REPORT).write_text(json_lines(found), encoding="utf-8")


def measure(folder: Path, n_tasks: int, workers: int) -> dict[str, Any]:
    """Return the seconds of a scoring stage of so many tasks, and the driver's memory."""
    write_table(folder / "table.parquet", n_tasks * ROWS_PER_TASK, N_FEATURES)
    chunk = f"store.chunk_bytes={ROWS_PER_TASK * N_FEATURES * 4}"
    run = ["-m", "mrot_scale"]
    run_watched([*run, "ingest", "table.parquet", "store", "--set", chunk], folder)
    run_watched([*run, "fit", "table.parquet", "model", *_SMALL], folder)
    scored = [*run, "score", "model", "store", "scores", "--workers", str(workers)]
    found = run_watched(scored, folder)
    return {
        "tasks": n_tasks,
        "workers": workers,
        "seconds": found["stages"]["score"],
        "command_seconds": found["seconds"],
        "driver_mib": found["driver_mib"],
    }


def exponent(rows: list[dict[str, Any]]) -> float | None:
    """Return how the seconds grow with the number of tasks, from the smallest to the largest."""
    if len(rows) < 2:
        return None
    first, last = rows[0], rows[-1]
    ratio = np.log(last["seconds"] / first["seconds"])
    return float(ratio / np.log(last["tasks"] / first["tasks"]))


def table(rows: list[dict[str, Any]]) -> str:
    """Return what was measured as Markdown."""
    lines = ["| tasks | workers | stage, s | tasks/s | whole command, s | driver, MiB |"]
    lines.append("|---|---|---|---|---|---|")
    lines += [
        f"| {row['tasks']:,} | {row['workers']} | {row['seconds']:.1f} | "
        f"{row['tasks'] / row['seconds']:.0f} | {row['command_seconds']:.1f} | "
        f"{row['driver_mib']:.0f} |"
        for row in rows
    ]
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tasks", description=__doc__)
    parser.add_argument("--tasks", default="1e3,4e3,16e3")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--scratch", type=Path)
    return parser


if __name__ == "__main__":
    main()
