"""How well methods find faults of a chemical plant: the Tennessee Eastman process.

    python -m benchmarks.tep --data DIR --out OUT [--methods pipeline,iforest] [--modes mode1]
        [--windows 5,10,15,20,25,30] [--seeds 5] [--jobs 2]

The paper's protocol: DIR holds mode*.npz with windows in X and in `fault` the kind of each (0 =
normal). All normal windows and 5, 10, .. 30 of each fault (4.5% to 21.9% of all) are split 80/20,
stratified, and standardised by the training rows. Methods, cells and resuming are those of
benchmarks.adbench.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.adbench import chosen_families
from benchmarks.command_line import chosen_names, exit_code
from benchmarks.quality_cells import CELLS, CellFile
from benchmarks.quality_families import LIBRARIES
from benchmarks.quality_figures import draw_sets
from benchmarks.quality_methods import FAMILIES, SETTINGS
from benchmarks.quality_peers import PEERS
from benchmarks.quality_runs import Task, pending_units, run_units
from benchmarks.quality_sets import TEST_SHARE, set_paths
from benchmarks.quality_tables import (
    METRICS,
    Comparison,
    failures,
    set_table,
    summary,
    summary_table,
)
from benchmarks.record import claim_folder, json_lines, versions
from benchmarks.tep_figures import draw_shares
from benchmarks.tep_tables import by_mode, by_share, compare_windows, gain_table, gains, ours_of
from benchmarks.tep_windows import WINDOWS, fault_share, load_mode, load_windows
from mrot_scale.errors import ConfigError

DATASET = "tep"
_FIELDS = ("mode", "windows", "method", "seed")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return exit_code(run, _parser().parse_args(arguments))


def run(given: argparse.Namespace) -> None:
    """Compute what is missing, then write tables and figures of all that is there."""
    families = list(chosen_families(given.methods).values())
    tasks = chosen_tasks(given)
    settings = {"test_share": TEST_SHARE, "standardised": True, **SETTINGS}
    header = {"settings": settings, "versions": versions(LIBRARIES)}
    claim_folder(given.out, CELLS)
    cells = CellFile(given.out / CELLS, header, _FIELDS)
    units = pending_units(tasks, families, cells, retry_failed=given.retry_failed)
    run_units(units, cells, jobs=given.jobs, retry_failed=given.retry_failed)
    if cells.cells:
        print(write_results(given.out, cells, header))


def chosen_tasks(given: argparse.Namespace) -> list[Task]:
    """Return a task for each mode, number of windows per fault and seed asked for."""
    paths = set_paths(given.data, "mode*.npz")
    modes = chosen_names(given.modes, list(paths), "--modes")
    windows = _numbers_of(given.windows)
    return [task for mode in modes for task in _mode_tasks(paths[mode], windows, given.seeds)]


def _mode_tasks(path: Path, windows: Sequence[int], seeds: int) -> list[Task]:
    rows, faults = load_mode(path)
    shares = {number: fault_share(faults, number) for number in windows}
    return [
        Task(
            DATASET,
            seed,
            partial(load_windows, path, number, seed),
            rows.size,
            {"mode": path.stem, "windows": number, "share": share},
        )
        for number, share in shares.items()
        for seed in range(seeds)
    ]


def _numbers_of(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise ConfigError(f"--windows: {text!r} is not a list of positive numbers such as 5,10.")
    return sorted({int(word) for word in words})


def write_results(out: Path, cells: CellFile, header: dict[str, Any]) -> str:
    """Write the numbers, the tables and the figures, and return the summary."""
    comparison = compare_windows(cells.cells)
    numbers = json_lines(header | _numbers(comparison))
    (out / "tep.json").write_text(numbers, encoding="utf-8")
    (out / "tep.md").write_text(report(comparison), encoding="utf-8")
    ours = ours_of(comparison)
    peers = tuple(method for family in PEERS.values() for method in family.methods)
    draw_shares(comparison, ours, peers, out / "by-share.png")
    draw_sets(by_mode(comparison), ours, peers, out / "per-mode.png")
    return summary_table(comparison)


def _numbers(comparison: Comparison) -> dict[str, Any]:
    cells = [{**cell, "dataset": DATASET} for cell in comparison.cells]
    return {
        "summary": summary(comparison),
        "gains": gains(comparison),
        "failures": [cell for cell in cells if "error" in cell],
        "rows": [cell for cell in cells if "error" not in cell],
    }


def report(comparison: Comparison) -> str:
    """Return the tables in Markdown, with what is needed to read them."""
    parts = ["# Faults of the Tennessee Eastman process", _reading(comparison)]
    parts += [summary_table(comparison), "## Gain of ours over the others", gain_table(comparison)]
    for metric, name in METRICS.items():
        parts += [f"## {name} of each mode", set_table(by_mode(comparison), metric, "mode")]
        shares = set_table(by_share(comparison), metric, "windows (share of faults)")
        parts += [f"## {name} by share of faults", shares]
    for metric, name in METRICS.items():
        parts += [f"## {name} of each mode and share", set_table(comparison, metric, "mode, share")]
    return "\n\n".join([*parts, "## What failed", failures(comparison)]) + "\n"


def _reading(comparison: Comparison) -> str:
    seeds = len({cell["seed"] for cell in comparison.cells})
    modes = len({cell["mode"] for cell in comparison.cells})
    shares = len({cell["windows"] for cell in comparison.cells})
    lines = [
        "Areas under the ROC and the precision-recall curve of unseen windows, in points: means "
        f"over {modes} modes and {shares} shares of faults of the means over up to {seeds} "
        "stratified 80/20 splits, standardised by the training rows. Labels are not used for "
        "training. Methods run with their defaults. Gains in the first table are against "
        f"{comparison.reference}; seconds are totals on one core.",
        "A cell that failed is left out of the means. Shares of faults of one mode have all normal "
        "windows in common, so they are not independent; ranks are over the pairs of mode and "
        "share that every method was tried on.",
    ]
    return "\n\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tep",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    windows = ",".join(str(number) for number in WINDOWS)
    parser.add_argument("--data", type=Path, required=True, help="folder of mode*.npz")
    parser.add_argument("--out", type=Path, required=True, help="folder for cells and results")
    parser.add_argument("--methods", help=f"comma-separated, of {', '.join(FAMILIES)}")
    parser.add_argument("--modes", help="comma-separated names such as mode1; all when omitted")
    parser.add_argument("--windows", default=windows, help=f"per fault (default: {windows})")
    parser.add_argument("--seeds", type=int, default=5, help="splits of each (default: 5)")
    parser.add_argument("--jobs", type=int, default=1, help="processes, one core each")
    parser.add_argument("--retry-failed", action="store_true", help="compute failed cells again")
    return parser


if __name__ == "__main__":
    sys.exit(main())
