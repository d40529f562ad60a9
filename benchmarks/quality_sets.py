"""Labelled data sets: read, split into training and test rows, and parted into two halves."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from mrot_scale.errors import DataError, MissingInputError
from mrot_scale.seeds import generator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TEST_SHARE = 0.2


@dataclass(frozen=True)
class Split:
    """What a method learns from and what it is judged by."""

    train: Floats
    test: Floats
    labels: Ints
    """1 for each test row that is an anomaly, 0 for the others."""


def set_paths(folder: Path, pattern: str = "*.npz") -> dict[str, Path]:
    """Return the files of a folder of data sets by name, sorted."""
    paths = {path.stem: path for path in sorted(folder.glob(pattern))}
    if not paths:
        raise MissingInputError(f"No {pattern} file in {folder}.")
    return paths


def load_set(path: Path) -> tuple[Floats, Ints]:
    """Return the rows (`X`) and labels (`y`, 1 = anomaly) of one file."""
    with np.load(path, allow_pickle=False) as arrays:
        rows = np.asarray(arrays["X"], dtype=np.float64)
        labels = np.asarray(arrays["y"], dtype=np.int64)
    if rows.ndim != 2 or labels.shape != rows.shape[:1] or set(np.unique(labels)) != {0, 1}:
        raise DataError(f"{path.name}: expected rows x features in X and 0 or 1 for each in y.")
    return rows, labels


def load_split(path: Path, seed: int) -> Split:
    """Return one split of one file."""
    return split_rows(*load_set(path), seed)


def split_rows(rows: Floats, labels: Ints, seed: int) -> Split:
    """Return one stratified split; the same for every method."""
    train, test, _, test_labels = train_test_split(
        rows, labels, test_size=TEST_SHARE, random_state=seed, stratify=labels
    )
    return Split(train, test, test_labels)


def at_most(rows: Floats, limit: int | None, seed: int) -> Floats:
    """Return the rows, or a uniform sample of `limit` of them; smaller samples are within larger.

    Rows keep their order.
    """
    if limit is None or len(rows) <= limit:
        return rows
    drawn = generator(seed, "training rows").permutation(len(rows))[:limit]
    return rows[np.sort(drawn)]


def halves(names: Sequence[str]) -> dict[str, str]:
    """Return the half of each set: settings are chosen on one and confirmed on the other.

    By hash of the name, so that nobody had a say in it. Give all sets of the folder: which half
    one is in depends on the others.
    """
    by_hash = sorted(names, key=lambda name: sha256(name.encode()).hexdigest())
    n_choose = (len(by_hash) + 1) // 2
    return {name: "choose" if i < n_choose else "confirm" for i, name in enumerate(by_hash)}
