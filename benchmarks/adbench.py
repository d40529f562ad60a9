"""How well methods find labelled anomalies, on a folder of data sets such as ADBench.

    python -m benchmarks.adbench --data DIR --out OUT [--methods pipeline,iforest] [--sets a,b]
        [--seeds 5] [--max-train N] [--jobs 2] [--half choose|confirm|all]

Every method learns without labels from the same 80% of the rows of each set and scores the other
20%, for each seed. OUT/cells.jsonl keeps what is finished, so the same command goes on where it
was stopped; tables and figures show all cells of the folder, also those of earlier commands with
other methods, sets or seeds (--seeds 0 only draws them). The settings of methods were chosen on
one half of the sets; the other half shows whether they hold.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.command_line import chosen_names, exit_code
from benchmarks.quality_cells import CELLS, CellFile
from benchmarks.quality_families import LIBRARIES, Family
from benchmarks.quality_figures import draw_ranks, draw_sets
from benchmarks.quality_methods import FAMILIES, OURS, REFERENCE, SETTINGS, marks
from benchmarks.quality_peers import PEERS
from benchmarks.quality_runs import Task, pending_units, run_units
from benchmarks.quality_sets import TEST_SHARE, halves, load_set, load_split, set_paths
from benchmarks.quality_tables import (
    METRICS,
    Comparison,
    compare,
    failures,
    set_table,
    summary,
    summary_table,
)
from benchmarks.record import claim_folder, json_lines, versions


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return exit_code(run, _parser().parse_args(arguments))


def run(given: argparse.Namespace) -> None:
    """Compute what is missing, then write tables and figures of all that is there."""
    families = chosen_families(given.methods)
    paths = set_paths(given.data)
    tasks = chosen_tasks(paths, given)
    settings = {"max_train": given.max_train, "test_share": TEST_SHARE, **SETTINGS}
    header = {"settings": settings, "versions": versions(LIBRARIES)}
    claim_folder(given.out, CELLS)
    cells = CellFile(given.out / CELLS, header, ("dataset", "method", "seed"))
    options = {"max_train": given.max_train, "retry_failed": given.retry_failed}
    units = pending_units(tasks, list(families.values()), cells, **options)
    run_units(units, cells, jobs=given.jobs, retry_failed=given.retry_failed)
    if cells.cells:
        print(write_results(given.out, cells, header, halves(list(paths))))


def chosen_families(names: str | None) -> dict[str, Family]:
    """Return the families named, in order; all when none is."""
    return {name: FAMILIES[name] for name in chosen_names(names, list(FAMILIES), "--methods")}


def chosen_tasks(paths: dict[str, Path], given: argparse.Namespace) -> list[Task]:
    """Return a task for each seed of each set asked for."""
    half_of = halves(list(paths))
    names = [
        name
        for name in chosen_names(given.sets, list(paths), "--sets")
        if given.half in ("all", half_of[name])
    ]
    sizes = {name: load_set(paths[name])[0].size for name in names}
    return [
        Task(name, seed, partial(load_split, paths[name], seed), sizes[name])
        for name in names
        for seed in range(given.seeds)
    ]


def write_results(
    out: Path, cells: CellFile, header: dict[str, Any], half_of: dict[str, str]
) -> str:
    """Write the numbers, the tables and the figures, and return the summary."""
    known = [method for family in FAMILIES.values() for method in family.methods]
    comparison = compare(
        cells.cells, known, half_of=half_of, reference=REFERENCE, marks=marks(FAMILIES)
    )
    numbers = json_lines(header | _numbers(comparison))
    (out / "adbench.json").write_text(numbers, encoding="utf-8")
    (out / "adbench.md").write_text(report(comparison, header["settings"]), encoding="utf-8")
    ours = OURS["pipeline"].methods
    peers = tuple(method for family in PEERS.values() for method in family.methods)
    draw_ranks(comparison, ours, out / "critical-difference.png")
    draw_sets(comparison, ours, peers, out / "per-set.png")
    return summary_table(comparison)


def _numbers(comparison: Comparison) -> dict[str, Any]:
    ranking = comparison.ranking()
    return {
        "halves": {name: comparison.half_of.get(name) for name in comparison.sets()},
        "ranking": {
            "sets": ranking.n_sets,
            "friedman_p": ranking.p_value,
            "critical_difference": ranking.critical_difference,
        },
        "summary": summary(comparison),
        "failures": [cell for cell in comparison.cells if "error" in cell],
        "rows": [cell for cell in comparison.cells if "error" not in cell],
    }


def report(comparison: Comparison, settings: dict[str, Any]) -> str:
    """Return the tables in Markdown, with what is needed to read them."""
    parts = ["# Detection quality", _reading(comparison, settings), summary_table(comparison)]
    for metric, name in METRICS.items():
        parts += [f"## {name} of each set", set_table(comparison, metric)]
    return "\n\n".join([*parts, "## What failed", failures(comparison)]) + "\n"


def _reading(comparison: Comparison, settings: dict[str, Any]) -> str:
    ranking = comparison.ranking()
    seeds = len({cell["seed"] for cell in comparison.cells})
    lines = [
        "Areas under the ROC and the precision-recall curve of unseen rows, in points: means over "
        f"sets of the means over up to {seeds} stratified 80/20 splits. Labels are not used for "
        "training. Methods run with their defaults, peers on the features as they are. Gains are "
        f"against {comparison.reference}; seconds are totals on one core.",
        f"† trains on at most {settings['exact_rows']:,} rows, ‡ on at most "
        f"{settings['quadratic_rows']:,}, drawn evenly from the training rows. {_limit(settings)}",
        "A cell that failed is left out of the means; a set on which all cells of a method failed "
        f"ranks it last. Ranks are by ROC over the {ranking.n_sets} sets that every method was "
        f"tried on; {_difference(ranking.critical_difference)}",
    ]
    return "\n\n".join(line.strip() for line in lines)


def _limit(settings: dict[str, Any]) -> str:
    limit = settings["max_train"]
    return "" if limit is None else f"In this run no method trains on more than {limit:,} rows."


def _difference(difference: float | None) -> str:
    if difference is None:
        return "there is nothing to compare yet."
    return f"mean ranks less than {difference:.2f} apart are not told apart (Nemenyi, 5%)."


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.adbench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of .npz files: X and y")
    parser.add_argument("--out", type=Path, required=True, help="folder for cells and results")
    parser.add_argument("--methods", help=f"comma-separated, of {', '.join(FAMILIES)}")
    parser.add_argument("--sets", help="comma-separated names; all when omitted")
    parser.add_argument("--seeds", type=int, default=5, help="splits of each set (default: 5)")
    parser.add_argument("--max-train", type=int, help="training rows of any method; all if omitted")
    parser.add_argument("--jobs", type=int, default=1, help="processes, one core each")
    parser.add_argument("--half", choices=("choose", "confirm", "all"), default="all")
    parser.add_argument("--retry-failed", action="store_true", help="compute failed cells again")
    return parser


if __name__ == "__main__":
    sys.exit(main())
