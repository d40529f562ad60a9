"""Windows of the Tennessee Eastman process: some of each fault among the normal ones, split."""

from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler

from benchmarks.quality_sets import Floats, Ints, Split, split_rows
from mrot_scale.errors import DataError
from mrot_scale.seeds import generator

WINDOWS = (5, 10, 15, 20, 25, 30)
"""Windows kept of each fault in the paper: 4.5% to 21.9% of all windows."""


def load_mode(path: Path) -> tuple[Floats, Ints]:
    """Return the windows (`X`) of one mode and the fault of each (`fault`, 0 = none)."""
    with np.load(path, allow_pickle=False) as arrays:
        if not {"X", "fault"} <= set(arrays.files):
            raise DataError(f"{path.name}: expected arrays X and fault, found {arrays.files}.")
        rows = np.asarray(arrays["X"], dtype=np.float64)
        faults = np.asarray(arrays["fault"], dtype=np.int64)
    if rows.ndim != 2 or faults.shape != rows.shape[:1] or faults.min() != 0 or not faults.any():
        raise DataError(f"{path.name}: expected windows x features in X, normal ones and faults.")
    return rows, faults


def drawn_windows(faults: Ints, per_fault: int, seed: int) -> Ints:
    """Return all normal windows and so many of each fault, or all where it has fewer.

    With the same seed smaller draws are within larger ones, so that shares of faults differ in
    nothing else.
    """
    kept = [np.flatnonzero(faults == 0)]
    for fault in np.unique(faults[faults > 0]):
        windows = np.flatnonzero(faults == fault)
        order = generator(seed, "fault windows", int(fault)).permutation(len(windows))
        kept.append(windows[order[:per_fault]])
    return np.sort(np.concatenate(kept))


def fault_share(faults: Ints, per_fault: int) -> float:
    """Return the share of faults among the windows drawn."""
    n_faults = int(np.minimum(np.bincount(faults)[1:], per_fault).sum())
    return round(n_faults / (n_faults + int((faults == 0).sum())), 4)


def load_windows(path: Path, per_fault: int, seed: int) -> Split:
    """Return one split of one mode, standardised."""
    rows, faults = load_mode(path)
    drawn = drawn_windows(faults, per_fault, seed)
    labels = (faults[drawn] > 0).astype(np.int64)
    return standardised(split_rows(rows[drawn], labels, seed))


def standardised(split: Split) -> Split:
    """Return the split with mean 0 and deviation 1 in each column of the training rows."""
    scaler = StandardScaler().fit(split.train)
    return Split(scaler.transform(split.train), scaler.transform(split.test), split.labels)
