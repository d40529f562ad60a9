"""Splits of labelled sets with no more rows than asked for."""

from pathlib import Path

import numpy as np

from benchmarks.quality_sets import TEST_SHARE, Split, at_most, load_split
from mrot_scale.seeds import generator


def load_smaller(
    path: Path, seed: int, *, test_rows: int | None = None, train_rows: int | None = None
) -> Split:
    """Return one split of one file, with a uniform draw of its rows where it has too many."""
    split = load_split(path, seed)
    drawn = np.sort(generator(seed, "test rows").permutation(len(split.test))[:test_rows])
    return Split(at_most(split.train, train_rows, seed), split.test[drawn], split.labels[drawn])


def training_rows(n_rows: int) -> int:
    """Return how many rows of a set are trained on."""
    return n_rows - int(np.ceil(TEST_SHARE * n_rows))
