"""Tables, settings and looks into folders that the tests of jobs share."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zarr
from numpy.typing import NDArray

from mrot_scale.running.commit import Record, RunFolder
from mrot_scale.storing.location import Location

INLINE: dict[str, Any] = {"cluster": {"kind": "inline"}}

SMALL: dict[str, Any] = INLINE | {
    "label_rows": 600,
    "repeats": 2,
    "anchor_sets": 2,
    "batch_rows": 64,
    "non_finite": "impute",
}
"""All three views and five folds, on few rows."""

TINY: dict[str, Any] = SMALL | {
    "label_rows": 200,
    "repeats": 1,
    "anchor_sets": 1,
    "folds": 2,
    "views": [{"scaling": "robust"}],
    "hybrid": "never",
}
"""As little as a fit can be, where the numbers do not matter."""

ROW_BYTES = 36
"""Size of a stored row of `mixed_table`: nine features."""

SITES = ("north", "south", "east side")


def mixed_table(n_rows: int = 1_500, *, seed: int = 0) -> pa.Table:
    """Numbers, booleans, categories and times, some missing, with identifiers as text."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n_rows)
    x[rng.random(n_rows) < 0.02] = np.nan
    moments = 1_700_000_000_000_000 + rng.integers(0, 10**13, n_rows)
    return pa.table(
        {
            "reading": [f"r{i:05d}" for i in range(n_rows)],
            "x": x,
            "y": rng.lognormal(size=n_rows),
            "kind": pa.array(_some_missing(rng, ["a", "b", "c", "a"], n_rows)),
            "at": pa.array(moments, pa.timestamp("us")),
            "on": pa.array(rng.random(n_rows) < 0.5),
            "site": pa.array([SITES[i] for i in rng.integers(0, len(SITES), n_rows)]),
            "note": pa.array([f"note {i % 7}" for i in range(n_rows)]),
        }
    )


def _some_missing(rng: np.random.Generator, words: Sequence[str], n_rows: int) -> list[str | None]:
    drawn, are_gone = rng.integers(0, len(words), n_rows), rng.random(n_rows) < 0.02
    return [None if gone else words[i] for i, gone in zip(drawn, are_gone, strict=True)]


FEATURES = ["x", "y", "kind", "at", "on"]


def write_parts(table: pa.Table, folder: Path, *, n_files: int = 1, group: int = 2**20) -> Path:
    """Write a table as a folder of Parquet files, cut evenly."""
    folder.mkdir(parents=True)
    bounds = np.linspace(0, table.num_rows, n_files + 1).astype(int).tolist()
    for number, (start, stop) in enumerate(pairwise(bounds)):
        path = folder / f"part-{number:03d}.parquet"
        pq.write_table(table.slice(start, stop - start), path, row_group_size=group)
    return folder


def write_hive(table: pa.Table, folder: Path, key: str) -> Path:
    """Write a table as folders `key=value`, in the order of the values."""
    for value in sorted(set(table[key].to_pylist())):
        mask = np.array([v == value for v in table[key].to_pylist()])
        place = folder / f"{key}={value}"
        place.mkdir(parents=True)
        pq.write_table(table.filter(pa.array(mask)).drop_columns([key]), place / "part.parquet")
    return folder


def folder_bytes(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, links followed, by its path."""
    root = folder.resolve()
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file below a folder, run folders left out."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.endswith(".run") for part in path.parts)
    }


def run_records(run: Path) -> dict[str, Record]:
    """What a run has committed, by task."""
    asked: Mapping[str, Any] = json.loads((run / "run.json").read_text())["fingerprint"]
    return RunFolder.open(Location(run), asked).records


def stage_arrays(run: Path, stage: str) -> dict[str, NDArray[Any]]:
    """The arrays of one stage of a run that kept its stages, by task and part."""
    place = Location(run)
    return {
        f"{key}.{part}": ref.read_array(place)
        for key, record in sorted(run_records(run).items())
        if key.startswith(f"{stage}/")
        for part, ref in record.objects.items()
        if ref.spec is not None
    }


def zarr_values(out: Path, name: str = "score") -> NDArray[Any]:
    """An array of published scores, as plain zarr reads it."""
    group: Any = zarr.open_group(str(out), mode="r")
    return np.asarray(group[name][:])


def auc(scores: NDArray[Any], is_anomaly: NDArray[Any]) -> float:
    """Share of pairs of an anomaly and another row that are in the right order."""
    from scipy.stats import rankdata

    ranks = rankdata(scores)
    n_bad = int(is_anomaly.sum())
    n_good = len(scores) - n_bad
    return float((ranks[is_anomaly].sum() - n_bad * (n_bad + 1) / 2) / (n_bad * n_good))
