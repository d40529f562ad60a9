"""Memory and time of ingest, fit and score as tables grow, each command a process of its own.

    python -m benchmarks.memory [--rows 1e6,1e7] [--features 32] [--workers 2] [--out DIR]

Peak resident memory is the kernel's own figure for each process (VmHWM), read while it runs: the
driver's and the largest worker's. Exponents are of seconds in rows between neighbouring sizes.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.record import claim_folder, json_lines, versions
from benchmarks.tables import write_table

COMMANDS = ("ingest", "fit", "score")
_LIBRARIES = ("numpy", "zarr", "dask", "distributed", "lightgbm", "pyarrow")


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    sizes = sorted(int(float(size)) for size in options.rows.split(","))
    out = Path(options.out) if options.out else None
    if out:
        claim_folder(out, "memory.json")
    rows: list[dict[str, Any]] = []
    for n_rows in sizes:
        with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
            rows += measure(Path(folder), n_rows, options.features, options.workers)
        print(_table(rows[-len(COMMANDS) :]), flush=True)
    grown = growth(rows)
    result = {"rows": rows, "growth": grown, "versions": versions(_LIBRARIES)}
    print(_growth_table(grown))
    if out:
        (out / "memory.json").write_text(json_lines(result))


def measure(folder: Path, n_rows: int, n_features: int, workers: int) -> list[dict[str, Any]]:
    """Return seconds and peak memory of each command on one table."""
    write_table(folder / "table.parquet", n_rows, n_features)
    words = {
        "ingest": ["table.parquet", "store"],
        "fit": ["store", "model", "--workers", str(workers)],
        "score": ["model", "store", "scores", "--workers", str(workers)],
    }
    return [
        {"command": name, "n_rows": n_rows, "n_features": n_features, "workers": workers}
        | run_watched(["-m", "mrot_scale", name, *words[name]], folder)
        for name in COMMANDS
    ]


def run_watched(words: list[str], folder: Path) -> dict[str, Any]:
    """Run a Python command and return its seconds, stage seconds and peak memory by role."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    peaks: dict[int, int] = {}
    watcher = threading.Thread(target=_watch, args=(process, peaks), daemon=True)
    watcher.start()
    log = process.communicate()[1].decode()
    seconds = time.perf_counter() - start
    watcher.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{log}")
    below = [peak for pid, peak in peaks.items() if pid != process.pid]
    return {
        "seconds": seconds,
        "stages": stage_seconds(log),
        "driver_mib": peaks[process.pid] / 1024,
        "worker_mib": max(below, default=0) / 1024,
    }


def stage_seconds(log: str) -> dict[str, float]:
    """Return the seconds of each stage from a command's own lines."""
    lines = r"^(\w+): [\d,]+ steps?, (?:(\d+) min )?([\d.]+) s\b"
    found = re.findall(lines, log, re.MULTILINE)
    return {name: 60.0 * int(minutes or 0) + float(seconds) for name, minutes, seconds in found}


def _watch(process: "subprocess.Popen[bytes]", peaks: dict[int, int]) -> None:
    while process.poll() is None:
        for pid in _tree(process.pid):
            peaks[pid] = max(peaks.get(pid, 0), _peak_kib(pid))
        time.sleep(0.05)


def _tree(pid: int) -> list[int]:
    """Return a process and all below it."""
    found, todo = [], [pid]
    while todo:
        current = todo.pop()
        found.append(current)
        for task in Path(f"/proc/{current}/task").glob("*/children"):
            try:
                todo += [int(child) for child in task.read_text().split()]
            except OSError:
                continue
    return found


def _peak_kib(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    match = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(match.group(1)) if match else 0


def growth(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for neighbouring sizes how memory and time grew, for each command."""
    found = []
    for command in COMMANDS:
        mine = [row for row in rows if row["command"] == command]
        for small, large in pairwise(mine):
            times = [row["stages"].get(command, row["seconds"]) for row in (small, large)]
            ratio = large["n_rows"] / small["n_rows"]
            found.append(
                {
                    "command": command,
                    "from_rows": small["n_rows"],
                    "to_rows": large["n_rows"],
                    "driver_ratio": large["driver_mib"] / small["driver_mib"],
                    "worker_ratio": large["worker_mib"] / max(small["worker_mib"], 1e-9),
                    "seconds_exponent": float(np.log(times[1] / times[0]) / np.log(ratio)),
                }
            )
    return found


def _table(rows: list[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        stages = ", ".join(f"{name} {s:.1f}" for name, s in row["stages"].items())
        lines.append(
            f"{row['command']:<7}{row['n_rows']:>12,} rows {row['seconds']:>8.1f} s   driver "
            f"{row['driver_mib']:>6.0f} MiB   worker {row['worker_mib']:>6.0f} MiB   ({stages})"
        )
    return "\n".join(lines)


def _growth_table(found: list[dict[str, Any]]) -> str:
    return "\n".join(
        f"{g['command']:<7}{g['from_rows']:>12,} to {g['to_rows']:>12,} rows: driver memory x "
        f"{g['driver_ratio']:.2f}, worker x {g['worker_ratio']:.2f}, time exponent "
        f"{g['seconds_exponent']:.2f}"
        for g in found
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", default="1e6,1e7")
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--scratch", help="folder for tables and stores; the system's by default")
    parser.add_argument("--out")
    return parser


if __name__ == "__main__":
    main()
