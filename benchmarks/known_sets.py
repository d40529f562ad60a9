"""Sets that the literature of anomaly detection uses, rebuilt from tables of the KEEL repository.

    python -m benchmarks.known_sets --tables DIR --out OUT

DIR holds ionosphere.dat, letter.dat, magic.dat, spambase.dat and wdbc.dat, as many of them as there
are, with their classes last. They are made as their descriptions say, so they are like the
published sets and not the same rows. `benchmarks.adbench` reads OUT.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.command_line import exit_code
from benchmarks.keel import read_classes, tables_parser
from benchmarks.quality_sets import Floats, Ints
from mrot_scale.errors import MissingInputError
from mrot_scale.seeds import generator

Words = NDArray[np.str_]

_USUAL_LETTERS = ("A", "B", "C")
_LETTER_ROWS = (1_500, 100)
"""Rows of usual letters, and of others."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return exit_code(
        run, tables_parser("python -m benchmarks.known_sets", __doc__).parse_args(arguments)
    )


def run(given: argparse.Namespace) -> None:
    """Write the set that is made of each table in the folder."""
    found = [name for name in RECIPES if (given.tables / f"{name}.dat").is_file()]
    if not found:
        raise MissingInputError(f"None of {', '.join(RECIPES)} (.dat) in {given.tables}.")
    given.out.mkdir(parents=True, exist_ok=True)
    for name in found:
        rows, classes = read_classes(given.tables / f"{name}.dat")
        rows, labels = RECIPES[name](rows, np.array(classes))
        np.savez(given.out / f"{name}.npz", X=rows, y=labels)
        print(f"{name}: {rows.shape[0]} x {rows.shape[1]}, {labels.sum()} anomalies")


def one_class(rare: str, kept: int | None, rows: Floats, classes: Words) -> tuple[Floats, Ints]:
    """Let the rows of a class stand for anomalies: all of them, or so many drawn evenly."""
    places = np.flatnonzero(classes == rare)
    drawn = generator(0, "known sets").permutation(places)[:kept]
    chosen = np.sort(np.concatenate([np.flatnonzero(classes != rare), drawn]))
    return rows[chosen], (classes[chosen] == rare).astype(np.int64)


def letter_pairs(rows: Floats, classes: Words) -> tuple[Floats, Ints]:
    """Join two rows of three usual letters to one; in an anomaly, the first is of another letter.

    So an anomaly is usual in half of its columns.
    """
    rng = generator(0, "known sets")
    usual = np.flatnonzero(np.isin(classes, _USUAL_LETTERS))
    others = np.setdiff1d(np.arange(len(rows)), usual)
    n_usual, n_others = _LETTER_ROWS
    first = np.concatenate([rng.choice(usual, n_usual), rng.choice(others, n_others)])
    second = rng.choice(usual, len(first))
    return np.hstack([rows[first], rows[second]]), np.repeat([0, 1], _LETTER_ROWS)


RECIPES: dict[str, Callable[[Floats, Words], tuple[Floats, Ints]]] = {
    "ionosphere": partial(one_class, "b", None),
    "letter": letter_pairs,
    "magic": partial(one_class, "h", None),
    "spambase": partial(one_class, "1", None),
    "wdbc": partial(one_class, "M", 10),
}
"""How the set is made of each table."""


if __name__ == "__main__":
    sys.exit(main())
