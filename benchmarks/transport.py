"""What the mass constraint adds to plain neighbour distances, at the same zones.

    python -m benchmarks.transport [--out OUT] [--seeds 5] [--data DIR]

On generated tables, over a range of difficulties: AUC-ROC of the transport effort, of the distance
to the zone's edge (k-NN), and of transport with more room at its targets, all from the same batches
and zones. With --data also on a folder of labelled sets: efforts and neighbour distances to the
same anchors, and whether sets differ. With --out numbers, tables and figures are written.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import transport_sets as real
from benchmarks import transport_tables as tables
from benchmarks.command_line import exit_code
from benchmarks.quality_sets import set_paths
from benchmarks.record import claim_folder, json_lines, versions
from benchmarks.transport_figures import draw_scenarios
from benchmarks.transport_identities import identity_gaps
from benchmarks.transport_runs import ALL, TOLD_APART, Record, run_scenario, summarise
from benchmarks.transport_scenarios import N_ROWS, Scenario
from benchmarks.transport_sides import ALPHA, BATCH_ROWS, REPEATS
from mrot_scale.errors import ConfigError
from mrot_scale.threads import one_native_thread

NUMBERS = "transport.json"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "POT")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    with one_native_thread():
        return exit_code(run, _parser().parse_args(arguments))


def run(given: argparse.Namespace) -> None:
    """Compute everything, print what matters, write the rest."""
    scenarios = chosen_scenarios(given.scenarios)
    paths = set_paths(given.data) if given.data else {}
    if given.out:
        claim_folder(given.out, NUMBERS)
    records = []
    for scenario in scenarios:
        print(f"{scenario.name} ...", file=sys.stderr, flush=True)
        records += list(run_scenario(scenario, given.seeds, given.rows))
    on_sets = list(real.run_sets(paths, given.seeds)) if paths else []
    document = study(records, on_sets, _settings(given))
    print(printed(document))
    if given.out:
        (given.out / NUMBERS).write_text(json_lines(document), encoding="utf-8")
        (given.out / "transport.md").write_text(report(document), encoding="utf-8")
        draw_scenarios(document["summary"], given.out)


def chosen_scenarios(names: str | None) -> list[Scenario]:
    """Return the scenarios named, separated by semicolons; all when none is."""
    known = {scenario.name: scenario for scenario in ALL}
    wanted = list(known) if names is None else [name.strip() for name in names.split(";")]
    for name in wanted:
        if name not in known:
            raise ConfigError(f"--scenarios: {name!r} is not one of {'; '.join(known)}.")
    return [known[name] for name in wanted]


def _settings(given: argparse.Namespace) -> dict[str, Any]:
    return {
        "seeds": given.seeds,
        "rows": given.rows,
        "alpha": ALPHA,
        "batch_rows": BATCH_ROWS,
        "repeats": REPEATS,
        "told_apart": TOLD_APART,
        "set_rows": real.ROWS,
        "anchor_rows": real.ANCHOR_ROWS,
        "anchor_sets": real.ANCHOR_SETS,
    }


def study(
    records: Sequence[Record], on_sets: Sequence[Record], settings: dict[str, Any]
) -> dict[str, Any]:
    """Return everything that was found, as it is written to JSON."""
    document: dict[str, Any] = {
        "settings": settings,
        "versions": versions(LIBRARIES),
        "identities": identity_gaps(),
        "summary": summarise(records),
        "rows": list(records),
    }
    if on_sets:
        document |= {
            "set_tests": real.setting_tests(on_sets),
            "set_differences": real.set_differences(on_sets),
            "set_rows": list(on_sets),
        }
    return document


def printed(document: dict[str, Any]) -> str:
    """Return the short tables."""
    parts = [tables.short_table(document["summary"]), tables.identity_table(document["identities"])]
    if "set_tests" in document:
        parts += [tables.gain_table(document["set_tests"])]
        parts += [tables.set_table(document["set_differences"])]
    return "\n\n".join(parts)


def report(document: dict[str, Any]) -> str:
    """Return all tables in Markdown, with what is needed to read them."""
    parts = ["# What the mass constraint adds", _reading(document["settings"])]
    parts += [tables.short_table(document["summary"]), *tables.scenario_parts(document["summary"])]
    parts += [
        "## Capacity and neighbours",
        _CAPACITY,
        tables.identity_table(document["identities"]),
    ]
    if "set_tests" in document:
        failed = sum("error" in record for record in document["set_rows"])
        parts += ["## Real sets", _on_sets(document["settings"], failed)]
        parts += [tables.gain_table(document["set_tests"])]
        parts += [tables.set_table(document["set_differences"])]
    return "\n\n".join(parts) + "\n"


def _reading(settings: dict[str, Any]) -> str:
    return (
        f"AUC-ROC in points, mean and standard deviation over {settings['seeds']} seeds; tables of "
        f"{settings['rows']:,} rows in batches of {settings['batch_rows']}, zone mass "
        f"{settings['alpha']:g}, mean log effort over {settings['repeats']} batches. All sides see "
        "the same batches and zones (weighted rows: one problem each). Transport is called ahead "
        "or behind where all seeds agree and the mean difference is at least "
        f"{TOLD_APART} points; below chance, a lead is worth nothing. What the constraint alone "
        "adds is transport less no limit, the (k+1)-th neighbour; the double zone shows whether a "
        "larger zone would have done as much without it."
    )


_CAPACITY = (
    "Capacity c lets a place receive up to c times its own mass. Without a limit every row goes to "
    "its cheapest place outside the zone, its (k+1)-th neighbour: the semi-relaxed problem is a "
    "neighbour distance. Both are checked by a linear program over the whole plan."
)


def _on_sets(settings: dict[str, Any], failed: int) -> str:
    return (
        f"Unseen rows of stratified 80/20 splits, at most {settings['set_rows']:,} training and as "
        f"many test rows, {settings['anchor_sets']} sets of {settings['anchor_rows']} anchors, one "
        "view at a time. Gains are transport less k-NN, or less no limit (alone: what the mass "
        "constraint adds to the next neighbour), in points; tests are over the sets' mean gains. "
        "The table by set is the mean over views and zone masses. "
        f"{failed} problems could not be solved and are left out."
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.transport",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, help="folder for numbers, tables and figures")
    parser.add_argument("--seeds", type=int, default=5, help="tables of each kind (default: 5)")
    parser.add_argument("--rows", type=int, default=N_ROWS, help="rows of a generated table")
    parser.add_argument("--scenarios", help="names separated by semicolons; all when omitted")
    parser.add_argument("--data", type=Path, help="folder of .npz files: X and y")
    return parser


if __name__ == "__main__":
    sys.exit(main())
