"""Compare, in one run, the exact solvers with each other and two ways to route rows to anchors.

    python -m benchmarks.solvers --rows 128,256,512,1024

Everything runs on one thread, interleaved, so that a busy machine slows all rivals alike; times are
medians of processor time. Every repeat of the first table draws new rows. The exit code is 1 when
two solvers that should both be exact disagree. On heavy tails SciPy's sparse matching can take
minutes where the others take milliseconds; it is dropped for that law once it has been slow.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.record import claim_folder, json_lines, versions
from benchmarks.solver_timing import (
    ANCHOR_ROWS,
    PROBLEM,
    REFERENCE,
    SAME_EFFORT,
    SOLVER_COLUMNS,
    SOLVERS,
    RoutingLine,
    SolverLine,
    compare_routing,
    compare_solvers,
)
from mrot_scale.errors import MrotError

NUMBERS = "solvers.json"
REPEATS = 5
ROUTED_ROWS = 2_048
LIBRARIES = ("numpy", "scipy", "POT", "faiss-cpu")


def solver_table(lines: Sequence[SolverLine], repeats: int) -> str:
    """Return the first table in Markdown."""
    rivals = [name for name in SOLVERS if name != REFERENCE]
    heads = [f"{name}, ms (ratio)" for name in rivals]
    head = ["rows", "law", f"{REFERENCE}, ms", *heads, "largest difference of total cost"]
    body = [
        [
            str(line.rows),
            line.law,
            f"{line.ms[REFERENCE]:.2f}",
            *(_time_cell(line, name, repeats) for name in rivals),
            f"{line.difference:.0e}" + (" WRONG" if line.is_wrong else ""),
        ]
        for line in lines
    ]
    return _markdown(head, body)


def _time_cell(line: SolverLine, name: str, repeats: int) -> str:
    if not line.runs[name]:
        return "not run"
    runs = f", {line.runs[name]} of {repeats} runs" if line.runs[name] < repeats else ""
    return f"{line.ms[name]:.2f} ({line.ratio[name]:.2f}{runs})"


def routing_table(lines: Sequence[RoutingLine]) -> str:
    """Return the second table in Markdown."""
    head = ["columns", "law", "dense, us/row", "lifted, us/row", "lifted / dense"]
    head += [f"rows differing by > {SAME_EFFORT:g}", "auto uses"]
    body = [
        [
            str(line.columns),
            line.law,
            f"{line.dense_us:.1f}",
            f"{line.lifted_us:.1f}",
            f"{line.lifted_us / line.dense_us:.2f}",
            f"{line.differing:.2%}",
            line.chosen,
        ]
        for line in lines
    ]
    return _markdown(head, body)


def _markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    rule = ["---"] * len(head)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *body))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    given = _parser().parse_args(arguments)
    try:
        if given.out:
            claim_folder(given.out, NUMBERS)
        with threadpool_limits(1):
            compare_solvers([32], repeats=1)  # loads and warms up
            solvers = compare_solvers(given.rows, repeats=REPEATS, seed=given.seed)
            routing = compare_routing(
                given.columns, routed_rows=ROUTED_ROWS, repeats=REPEATS, seed=given.seed
            )
    except MrotError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    _report(given, solvers, routing)
    return int(any(line.is_wrong for line in solvers))


def _report(
    given: argparse.Namespace, solvers: Sequence[SolverLine], routing: Sequence[RoutingLine]
) -> None:
    print(solver_table(solvers, REPEATS), routing_table(routing), sep="\n\n")
    if given.out:
        document = {
            "settings": {
                "seed": given.seed,
                "repeats": REPEATS,
                "alpha": PROBLEM.alpha,
                "columns_of_solver_rows": SOLVER_COLUMNS,
                "anchor_rows": ANCHOR_ROWS,
                "routed_rows": ROUTED_ROWS,
                "threads": 1,
            },
            "versions": versions(LIBRARIES),
            "solvers": [asdict(line) for line in solvers],
            "routing": [asdict(line) for line in routing],
        }
        (given.out / NUMBERS).write_text(json_lines(document), encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.solvers",
        description="Exact solvers and anchor searches, compared in one run on one thread.",
        epilog="example: python -m benchmarks.solvers --rows 128,256 --out results/solvers",
    )
    for option, default, minimum, what in (
        ("--rows", "128,256,512,1024", 8, "sizes of the transport problems"),
        ("--columns", "8,32,64,128,512", 1, "widths of the routed rows"),
    ):
        parser.add_argument(
            option,
            type=_numbers_from(minimum),
            default=default,
            metavar="N,N,...",
            help=f"{what} (default: {default})",
        )
    parser.add_argument("--seed", type=int, default=0, help="seed of the rows (default: 0)")
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"folder for {NUMBERS}")
    return parser


def _numbers_from(minimum: int) -> Callable[[str], list[int]]:
    """Return the reader of a comma-separated list of numbers, none below the minimum."""

    def numbers(text: str) -> list[int]:
        found = [int(part) for part in text.split(",")]
        if min(found) < minimum:
            raise argparse.ArgumentTypeError(f"needs numbers from {minimum} on, got {min(found)}")
        return found

    return numbers


if __name__ == "__main__":
    sys.exit(main())
