"""Where the time of ingest, fit and score goes, part by part.

    python -m benchmarks.profile [--rows 1e6] [--features 32] [--stage ingest|fit|score|all]
        [--out OUT] [--scratch DIR]

Everything runs in this process, one task after another, with stop-watches around the functions that
do the work; each counts only what none inside it does. So seconds are those of one core, and of
writing that nothing else hides. Settings come from the environment: MROT_HYBRID=never shows trees
without efforts. Earlier commands run too where a later one needs what they make.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.command_line import exit_code
from benchmarks.profile_stages import Seconds, profile_fit, profile_ingest, profile_score
from benchmarks.record import claim_folder, json_lines, versions
from benchmarks.scale_data import write_rows

COMMANDS = ("ingest", "fit", "score")
REPORT = "profile.json"
_LIBRARIES = ("numpy", "zarr", "lightgbm", "numba", "pyarrow")
_SHORTEST_S = 0.0005
"""Parts below this are not listed: a function that was passed through."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return exit_code(run, _parser().parse_args(arguments))


def run(given: argparse.Namespace) -> None:
    """Profile the commands up to the one asked for, and show that one or all."""
    if given.out:
        claim_folder(given.out, REPORT)
    last = COMMANDS[-1] if given.stage == "all" else given.stage
    wanted = COMMANDS if given.stage == "all" else (given.stage,)
    shown: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory(dir=given.scratch) as folder:
        for command, work in _works(Path(folder), given).items():
            found = work()
            if command in wanted:
                shown[command] = parts_of(found, given.rows)
                print(f"{table(command, shown[command], given)}\n", flush=True)
            if command == last:
                break
    if given.out:
        _write(given, shown)


def _works(folder: Path, given: argparse.Namespace) -> dict[str, Callable[[], Seconds]]:
    path = folder / "table.parquet"
    write_rows(path, given.rows, given.features)
    return {
        "ingest": lambda: profile_ingest(path, folder),
        "fit": lambda: profile_fit(folder),
        "score": lambda: profile_score(folder),
    }


def parts_of(seconds: Seconds, n_rows: int) -> list[dict[str, Any]]:
    """Return each part with its rate and its share, the largest first."""
    total = sum(seconds.values())
    return [
        {"part": part, "seconds": s, "rows_per_s": n_rows / s, "share": s / total}
        for part, s in sorted(seconds.items(), key=lambda item: -item[1])
        if s >= _SHORTEST_S
    ]


def table(command: str, parts: list[dict[str, Any]], given: argparse.Namespace) -> str:
    """Return the parts of a command as Markdown."""
    total = sum(part["seconds"] for part in parts)
    head = f"| {command}, {given.rows:,} x {given.features} | seconds | rows/s | share |"
    lines = [
        f"| {p['part']} | {p['seconds']:.3f} | {p['rows_per_s']:,.0f} | {p['share']:.1%} |"
        for p in parts
    ]
    last = f"| all | {total:.3f} | {given.rows / total:,.0f} | 100.0% |"
    return "\n".join([head, "|---|---|---|---|", *lines, last])


def _write(given: argparse.Namespace, shown: dict[str, list[dict[str, Any]]]) -> None:
    sizes = {"rows": given.rows, "features": given.features}
    (given.out / REPORT).write_text(
        json_lines({**sizes, **shown, "versions": versions(_LIBRARIES)}), encoding="utf-8"
    )
    tables = [table(command, parts, given) for command, parts in shown.items()]
    (given.out / "profile.md").write_text("\n\n".join(tables) + "\n", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=1_000_000)
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--stage", choices=(*COMMANDS, "all"), default="all")
    parser.add_argument("--scratch", help="folder for tables and stores; the system's by default")
    parser.add_argument("--out", type=Path)
    return parser


if __name__ == "__main__":
    sys.exit(main())
