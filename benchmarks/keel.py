"""Tables of the KEEL repository become sets that `benchmarks.adbench` reads.

    python -m benchmarks.keel --tables DIR --out OUT

DIR holds `.dat` files of imbalanced classification: comma-separated values, the class last, and
`positive` is the rare one. Columns of words become one column of 0 and 1 for each word. Left out
are tables with fewer than 20 positive rows, tables in which these are not the rare ones,
and tables of which an ADBench set was made that defaults were chosen on.
"""

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.command_line import exit_code
from benchmarks.quality_sets import Floats, Ints, set_paths
from mrot_scale.errors import DataError

SEEN = ("lymphography", "pima", "shuttle", "wisconsin", "yeast")
"""First words of tables that ADBench sets were made of, of that name or another."""

_POSITIVE = "positive"

_LEAST_POSITIVE = 20
"""Positive rows of a set: a fifth of fewer would say little of a method."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return exit_code(run, tables_parser("python -m benchmarks.keel", __doc__).parse_args(arguments))


def run(given: argparse.Namespace) -> None:
    """Write a set for every table that is fit to be one, and say which are not."""
    given.out.mkdir(parents=True, exist_ok=True)
    for name, path in set_paths(given.tables, "*.dat").items():
        rows, labels = read_table(path)
        reason = why_not(name, labels)
        if reason is None:
            np.savez(given.out / f"{name}.npz", X=rows, y=labels)
        shape = f"{rows.shape[0]} x {rows.shape[1]}, {labels.sum()} positive"
        print(f"{name}: {shape}{'' if reason is None else f'; left out: {reason}'}")


def read_table(path: Path) -> tuple[Floats, Ints]:
    """Return the rows of one file and 1 for each that is positive."""
    rows, classes = read_classes(path)
    return rows, np.array([name == _POSITIVE for name in classes], dtype=np.int64)


def read_classes(path: Path) -> tuple[Floats, tuple[str, ...]]:
    """Return the rows of one file and the class of each."""
    with path.open(newline="", encoding="utf-8") as lines:
        cells = [
            [cell.strip() for cell in line]
            for line in csv.reader(lines)
            if line and not line[0].startswith("@")  # the header that some files have
        ]
    widths = {len(line) for line in cells}
    if len(widths) != 1 or widths == {1}:
        raise DataError(f"{path.name}: expected rows of equal length, found {sorted(widths)}.")
    *columns, classes = zip(*cells, strict=True)
    return np.hstack([as_features(column) for column in columns]), classes


def as_features(cells: Sequence[str]) -> Floats:
    """Return a column of numbers as it is, or 0 and 1 for each word of a column of words."""
    try:
        return np.array(cells, dtype=np.float64)[:, None]
    except ValueError:
        words = np.unique(cells)
        return np.asarray(np.array(cells)[:, None] == words, dtype=np.float64)


def why_not(name: str, labels: Ints) -> str | None:
    """Return why a table is no set; None where it is one."""
    if name.startswith(SEEN):
        return "defaults were chosen on a set made of it"
    if labels.sum() < _LEAST_POSITIVE:
        return f"fewer than {_LEAST_POSITIVE} positive rows"
    return "positive rows are not the rare ones" if labels.mean() >= 0.5 else None


def tables_parser(prog: str, description: str | None) -> argparse.ArgumentParser:
    """Return the command line of what makes sets of a folder of tables."""
    parser = argparse.ArgumentParser(
        prog=prog, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=Path, required=True, help="folder of .dat files")
    parser.add_argument("--out", type=Path, required=True, help="folder for .npz files")
    return parser


if __name__ == "__main__":
    sys.exit(main())
