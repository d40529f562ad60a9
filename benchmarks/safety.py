"""What safety costs: the same commands with and without it, side by side.

    python -m benchmarks.safety [--rows 1e6] [--features 32] [--workers 2] [--repeats 5] [--out DIR]

Without it nothing is synced to disk and only the first bytes of a file are digested, by a setting
that exists for this benchmark alone. The journal, the lock and the checksums in the encoding stay
in both. Each repeat runs both, in turns first; medians are compared.
"""

import argparse
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.memory import COMMANDS, measure
from benchmarks.record import claim_folder, json_lines, versions

REPORT = "safety.json"
_LIBRARIES = ("numpy", "zarr", "dask", "distributed", "lightgbm", "pyarrow")
_CARELESS = {"MROT_TEST": "1", "MROT_CARELESS": "1"}


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    if options.out:
        claim_folder(options.out, REPORT)
    rows: list[dict[str, Any]] = []
    for repeat in range(options.repeats):
        for safe in (True, False) if repeat % 2 else (False, True):
            rows += [{"repeat": repeat, "safe": safe, **row} for row in _measured(options, safe)]
        print(table(costs(rows)), flush=True)
    if options.out:
        found = {"rows": rows, "costs": costs(rows), "versions": versions(_LIBRARIES)}
        (options.out / REPORT).write_text(json_lines(found), encoding="utf-8")


def _measured(options: argparse.Namespace, safe: bool) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder, _environment(safe):
        return measure(Path(folder), int(options.rows), options.features, options.workers)


@contextmanager
def _environment(safe: bool) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update({} if safe else _CARELESS)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def costs(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each command, and for all together, what safety adds to time and memory."""
    return [_cost(rows, [name]) for name in COMMANDS] + [_cost(rows, list(COMMANDS))]


def _cost(rows: list[dict[str, Any]], commands: list[str]) -> dict[str, Any]:
    safe, careless = (_runs(rows, commands, s) for s in (True, False))
    seconds = [median(run["seconds"] for run in runs) for runs in (safe, careless)]
    memory = [median(run["mib"] for run in runs) for runs in (safe, careless)]
    return {
        "command": "all" if len(commands) > 1 else commands[0],
        "repeats": len(safe),
        "seconds": seconds[0],
        "careless_seconds": seconds[1],
        "added_time": seconds[0] / seconds[1] - 1,
        "added_mib": memory[0] - memory[1],
    }


def _runs(rows: list[dict[str, Any]], commands: list[str], safe: bool) -> list[dict[str, float]]:
    """Return seconds in all and the largest process of each repeat."""
    found = []
    for repeat in sorted({row["repeat"] for row in rows}):
        mine = [
            row
            for row in rows
            if row["repeat"] == repeat and row["safe"] is safe and row["command"] in commands
        ]
        found.append(
            {
                "seconds": sum(row["seconds"] for row in mine),
                "mib": max(max(row["driver_mib"], row["worker_mib"]) for row in mine),
            }
        )
    return found


def table(found: list[dict[str, Any]]) -> str:
    """Return the costs as a Markdown table."""
    head = "| command | repeats | seconds | without safety | added time | added MiB |"
    lines = [
        f"| {c['command']} | {c['repeats']} | {c['seconds']:.1f} | {c['careless_seconds']:.1f} | "
        f"{c['added_time']:+.1%} | {c['added_mib']:+.0f} |"
        for c in found
    ]
    return "\n".join([head, "|---|---|---|---|---|---|", *lines])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--scratch", help="folder for tables and stores; the system's by default")
    parser.add_argument("--out", type=Path)
    return parser


if __name__ == "__main__":
    main()
