"""What explanations add to scoring: the same rows by the same plain trees, with and without.

    python -m benchmarks.explanation_cost [--rows 1e6] [--repeats 5] [--scratch DIR]

Seconds are of the processor, in one process, so that little depends on what else the machine does.
A first pair of runs is left out: it compiles.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import pyarrow as pa

from mrot_scale import fit, ingest, score
from mrot_scale.synthetic import COLUMNS, pump_readings

TOPS = (0, 3)
_SETTINGS = {"hybrid": "never", "label_rows": 5_000, "cluster": {"kind": "inline"}}


def main(arguments: Sequence[str] | None = None) -> None:
    """Score in turns, and print what the columns of flagged rows cost."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        print(table(measured(Path(folder), int(options.rows), options.repeats), int(options.rows)))


def measured(folder: Path, n_rows: int, repeats: int) -> dict[int, tuple[float, int]]:
    """Return for each number of columns the median seconds, and the rows flagged."""
    readings = pump_readings(n_rows).rows.T
    ingest(pa.table(dict(zip(COLUMNS, readings, strict=True))), folder / "store", config=_SETTINGS)
    fit(folder / "store", folder / "model", _SETTINGS)
    seconds: dict[int, list[float]] = {top: [] for top in TOPS}
    flagged = 0
    for repeat in range(repeats + 1):
        for top in TOPS:
            settings = _SETTINGS | {"scoring": {"top_columns": top}}
            out = folder / f"scores-{repeat}-{top}"
            start = time.process_time()
            flagged = score(folder / "model", folder / "store", out, settings).n_flagged
            seconds[top] += [time.process_time() - start] if repeat else []
    return {top: (median(found), flagged) for top, found in seconds.items()}


def table(found: dict[int, tuple[float, int]], n_rows: int) -> str:
    """Return the costs as a Markdown table."""
    plain = found[TOPS[0]][0]
    lines = [
        f"| {top} | {n_rows:,} | {flagged:,} | {seconds:.2f} | {seconds / plain - 1:+.0%} |"
        for top, (seconds, flagged) in found.items()
    ]
    head = "| top_columns | rows | flagged | processor seconds | added |"
    return "\n".join([head, "|---|---|---|---|---|", *lines])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--scratch", help="folder for stores and scores; the system's by default")
    return parser


if __name__ == "__main__":
    main()
