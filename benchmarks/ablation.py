"""What each setting is worth: one factor at a time around the defaults.

    python -m benchmarks.ablation --data DIR --out OUT [--sets a,b] [--seeds 2]
        [--max-train 4000] [--jobs 2] [--only alpha,eps]

On a folder of data sets such as ADBench: 80% of the rows of each set train without labels, the
other 20% are scored, by method "effort" unless the factor is about the score model. OUT/cells.jsonl
keeps what is finished, each settings once however many factors they belong to, so the same command
goes on where it was stopped; tables and figures show all cells of the folder (--seeds 0 only draws
them).
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.ablation_factors import FACTORS, Variant, variants
from benchmarks.ablation_figures import draw_factors
from benchmarks.ablation_scores import changed_family
from benchmarks.ablation_tables import (
    base_values,
    factor_rows,
    factor_tables,
    failed_rows,
    value_records,
)
from benchmarks.command_line import chosen_names, exit_code
from benchmarks.quality_cells import CELLS, Cell, CellFile
from benchmarks.quality_families import LIBRARIES
from benchmarks.quality_runs import Task, Unit, run_units, unfinished
from benchmarks.quality_sets import TEST_SHARE, load_set, load_split, set_paths
from benchmarks.record import claim_folder, json_lines, versions
from mrot_scale.config.method import MethodConfig
from mrot_scale.config.scoring import Method

_FIELDS = ("dataset", "changes", "method", "seed")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return exit_code(run, _parser().parse_args(arguments))


def run(given: argparse.Namespace) -> None:
    """Compute what is missing, then write tables and figures of all that is there."""
    units = chosen_units(given)
    # Cells hold changes of the defaults: those of other defaults are about something else.
    defaults = MethodConfig().model_dump(mode="json")
    settings = {"max_train": given.max_train, "test_share": TEST_SHARE, "defaults": defaults}
    header = {"settings": settings, "versions": versions(LIBRARIES)}
    claim_folder(given.out, CELLS)
    cells = CellFile(given.out / CELLS, header, _FIELDS)
    units = unfinished(units, cells, retry_failed=given.retry_failed)
    run_units(units, cells, jobs=given.jobs, retry_failed=given.retry_failed)
    if cells.cells:
        print(write_results(given.out, cells.cells, header))


def chosen_units(given: argparse.Namespace) -> list[Unit]:
    """Return a unit for each distinct settings, set and seed, the largest sets first."""
    factors = chosen_names(given.only, list(FACTORS), "--only")
    wanted = [v for factor in factors for v in variants(factor, given.max_train)]
    paths = set_paths(given.data)
    names = chosen_names(given.sets, list(paths), "--sets")
    sizes = {name: load_set(paths[name])[0].size for name in names}
    return [
        Unit(task, changed_family(changes, methods), given.max_train)
        for name in sorted(names, key=lambda name: -sizes[name])
        for seed in range(given.seeds)
        for changes, methods in methods_of(wanted).items()
        for task in (_task(paths[name], seed, sizes[name], changes),)
    ]


def _task(path: Path, seed: int, size: int, changes: str) -> Task:
    return Task(path.stem, seed, partial(load_split, path, seed), size, {"changes": changes})


def methods_of(wanted: Sequence[Variant]) -> dict[str, tuple[Method, ...]]:
    """Return the methods that each distinct settings are measured by: one fit serves both."""
    found: dict[str, set[Method]] = {}
    for variant in wanted:
        found.setdefault(variant.changes, set()).add(variant.method)
    return {changes: tuple(sorted(methods)) for changes, methods in found.items()}


def write_results(out: Path, cells: Sequence[Cell], header: dict[str, Any]) -> str:
    """Write the numbers, the tables and the figures, and return the tables."""
    max_train = header["settings"]["max_train"]
    known = [variant for factor in FACTORS for variant in variants(factor, max_train)]
    rows, bases = factor_rows(cells, known), base_values(known)
    numbers = {
        "summary": value_records(rows, bases),
        "failures": [row for row in rows if "error" in row],
        "rows": [row for row in rows if "error" not in row],
    }
    (out / "ablation.json").write_text(json_lines(header | numbers), encoding="utf-8")
    tables = factor_tables(rows, bases)
    parts = ["# What each setting is worth", _reading(cells, max_train), tables]
    text = "\n\n".join([*parts, "## What failed", failed_rows(rows)]) + "\n"
    (out / "ablation.md").write_text(text, encoding="utf-8")
    draw_factors(rows, bases, out)
    return tables


def _reading(cells: Sequence[Cell], max_train: int | None) -> str:
    seeds = len({cell["seed"] for cell in cells})
    limit = "all" if max_train is None else f"at most {max_train:,}"
    return (
        "Areas under the ROC and the precision-recall curve of unseen rows, in points: means over "
        f"sets of the means over up to {seeds} stratified 80/20 splits, training on {limit} rows "
        "of the 80%. One factor is changed at a time; gains, and on how many sets there are any, "
        "are against the value in bold on the same sets. Seconds are means of a set on one core. "
        "Scored by the effort of each row, unless the factor is about the score model."
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ablation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of .npz files: X and y")
    parser.add_argument("--out", type=Path, required=True, help="folder for cells and results")
    parser.add_argument("--sets", help="comma-separated names; all when omitted")
    parser.add_argument("--seeds", type=int, default=2, help="splits of each set (default: 2)")
    parser.add_argument("--max-train", type=int, default=4_000, help="training rows (4000)")
    parser.add_argument("--jobs", type=int, default=1, help="processes, one core each")
    parser.add_argument("--only", help=f"comma-separated factors, of {', '.join(FACTORS)}")
    parser.add_argument("--retry-failed", action="store_true", help="compute failed cells again")
    return parser


if __name__ == "__main__":
    sys.exit(main())
