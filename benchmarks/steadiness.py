"""How steady the estimator's quality is: as tables grow, over seeds, on wide tables, by settings.

    python -m benchmarks.steadiness --data DIR --out OUT [--only growth,repeat,wide,headroom]
        [--sets a,b] [--jobs N]

- growth: more training rows of the same split must not cost quality.
- repeat: the same split with other seeds of the method.
- wide: tables of hundreds of columns, beside peers.
- headroom: how far the default stays behind the best single view and zone mass of each set.

OUT/PART.jsonl keeps what is finished, so the same command goes on where it was stopped. Numbers are
written to OUT/PART.json, tables of all parts that have numbers to OUT/steadiness.md.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from benchmarks.command_line import chosen_names, exit_code
from benchmarks.quality_cells import CellFile
from benchmarks.quality_families import LIBRARIES
from benchmarks.quality_runs import Unit, run_units, unfinished
from benchmarks.quality_sets import set_paths
from benchmarks.record import claim_folder, json_lines, versions
from benchmarks.steadiness_figures import draw_growth, draw_headroom
from benchmarks.steadiness_findings import FINDINGS
from benchmarks.steadiness_parts import PARTS, Sizes, part_settings
from benchmarks.steadiness_tables import READING, TEXTS, failures

REPORT = "steadiness.md"
TITLE = "# Steadiness"
FIGURES: dict[str, Callable[[dict[str, Any], Path], None]] = {
    "growth": draw_growth,
    "headroom": draw_headroom,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return exit_code(run, _parser().parse_args(arguments))


def run(given: argparse.Namespace) -> None:
    """Compute what is missing of each part asked for, and report on all parts there are."""
    names = chosen_names(given.only, list(PARTS), "--only")
    paths = set_paths(given.data)
    asked = {name: paths[name] for name in chosen_names(given.sets, list(paths), "--sets")}
    claim_folder(given.out, REPORT)
    if not (given.out / REPORT).exists():
        (given.out / REPORT).write_text(f"{TITLE}\n", encoding="utf-8")
    for name in names:
        run_part(name, asked, given)
        (given.out / REPORT).write_text(report(given.out), encoding="utf-8")
    print(report(given.out))


def run_part(name: str, paths: dict[str, Path], given: argparse.Namespace) -> None:
    """Compute what is missing of one part and write its numbers and its figure."""
    part, sizes, retry = PARTS[name], _sizes(given), given.retry_failed
    own = paths if part.sets is None or given.sets is not None else part.sets
    chosen = {known: path for known, path in paths.items() if known in own}
    header = {"settings": part_settings(part, sizes), "versions": versions(LIBRARIES)}
    cells = CellFile(given.out / f"{name}.jsonl", header, part.fields)
    units = part.units(chosen, sizes)
    pending = unfinished(units, cells, retry_failed=retry)
    run_units(pending, cells, jobs=given.jobs, retry_failed=retry)
    found = FINDINGS[name](_finished(units, cells))
    document = header | {"sizes": asdict(sizes)} | found | {"cells": _finished(units, cells)}
    (given.out / f"{name}.json").write_text(json_lines(document), encoding="utf-8")
    if name in FIGURES:
        FIGURES[name](found, given.out / f"{name}.png")


def _finished(units: Sequence[Unit], cells: CellFile) -> list[dict[str, Any]]:
    """Return the cells of these units, in their order whatever order they were computed in."""
    found = (
        cells.find({**unit.task.identity, "method": method})
        for unit in units
        for method in unit.family.methods
    )
    return [cell for cell in found if cell is not None]


def report(out: Path) -> str:
    """Return the tables of every part with numbers in the folder."""
    parts = [TITLE]
    for name in PARTS:
        path = out / f"{name}.json"
        if path.is_file():
            found = json.loads(path.read_text(encoding="utf-8"))
            parts += [f"## {name}", READING[name], TEXTS[name](found), failures(found["cells"])]
    return "\n\n".join(part for part in parts if part) + "\n"


def _sizes(given: argparse.Namespace) -> Sizes:
    """Return the sizes with what the command line changes of them."""
    changed = {f.name: getattr(given, f.name) for f in fields(Sizes) if hasattr(given, f.name)}
    return Sizes(**{name: value for name, value in changed.items() if value is not None})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.steadiness",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of .npz files: X and y")
    parser.add_argument("--out", type=Path, required=True, help="folder for cells and results")
    parser.add_argument("--only", help=f"comma-separated, of {', '.join(PARTS)}")
    parser.add_argument("--sets", help="comma-separated names instead of each part's own")
    parser.add_argument("--jobs", type=int, default=1, help="processes, one core each")
    parser.add_argument("--retry-failed", action="store_true", help="compute failed cells again")
    parser.add_argument("--train-rows", type=_whole_numbers, help="sizes before all rows (growth)")
    parser.add_argument("--draws", type=int, help="samples of each of these sizes (growth)")
    parser.add_argument("--label-rows", type=int, help="rows given an effort (growth)")
    parser.add_argument("--large", type=int, help="rows a set must exceed (repeat)")
    parser.add_argument("--repeats", type=int, help="seeds of the method (repeat)")
    parser.add_argument("--splits", type=int, help="seeds of splits (wide, headroom)")
    parser.add_argument("--wide-rows", type=int, help="rows of the generated set (wide)")
    parser.add_argument("--wide-columns", type=int, help="columns of the generated set (wide)")
    parser.add_argument("--small-rows", type=int, help="training and test rows (headroom)")
    parser.add_argument("--alphas", type=_numbers, help="zone masses (headroom)")
    return parser


def _whole_numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(word) for word in text.split(","))


if __name__ == "__main__":
    sys.exit(main())
