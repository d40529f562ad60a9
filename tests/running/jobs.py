"""One small job, run in many ways: its results must be the same to the last byte."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import mrot_scale
from mrot_scale.running.publish import resolve
from mrot_scale.storing.arrays import METADATA, ArraySpec
from mrot_scale.storing.location import Location

N_ROWS = 2_000
SETTINGS = {
    "label_rows": 800,
    "repeats": 2,
    "anchor_sets": 2,
    "store": {"chunk_bytes": 8_000},
    "scoring": {"percentile": True},
}
FLAGS = (
    *("--set", "label_rows=800", "--set", "repeats=2", "--set", "anchor_sets=2"),
    *("--set", "store.chunk_bytes=8000", "--set", "scoring.percentile=true"),
)
"""The same as `SETTINGS`."""


def make_table(path: Path) -> Path:
    """Write the job's table."""
    rng = np.random.default_rng(7)
    columns: dict[str, Any] = {"reading": np.arange(N_ROWS) + 10}
    columns |= {f"c{i}": rng.normal(size=N_ROWS) for i in range(4)}
    pq.write_table(pa.table(columns), path)
    return path


@dataclass(frozen=True)
class Results:
    """Everything a job leaves that is meant to last, decoded where encodings may differ."""

    store: dict[str, bytes]
    model: dict[str, bytes]
    scores: dict[str, NDArray[Any]]
    table: Any
    """The scores as an Arrow table, from their Parquet files."""

    @classmethod
    def of(cls, work: Location) -> "Results":
        """Return what `fit` and `score` made in a folder."""
        scores, tables = resolve(work / "scores"), resolve(work / "scores.parquet")
        parts = [n for n in tables.files_below() if n.endswith(".parquet")]
        read = [pq.read_table(io.BytesIO((tables / name).read())) for name in parts]
        return cls(
            contents(work / "store"),
            contents(work / "model"),
            {n: decoded(scores / n) for n in ("score", "flag", "percentile")},
            pa.concat_tables(read),
        )

    def assert_same(self, other: "Results") -> None:
        assert self.store == other.store
        assert_same_files(self.model, other.model)
        for name, values in self.scores.items():
            np.testing.assert_array_equal(values, other.scores[name])
        assert self.table.num_rows == N_ROWS
        assert self.table.equals(other.table)


def contents(folder: Location) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {name: (folder / name).read() for name in folder.files_below()}


def assert_same_files(first: dict[str, bytes], second: dict[str, bytes]) -> None:
    """Compare two folders so that a difference is told by name."""
    assert first, "nothing to compare"
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []


def decoded(array: Location) -> NDArray[Any]:
    """Return an array of one dimension, chunk by chunk."""
    spec = ArraySpec.from_metadata((array / METADATA).read(), str(array))
    (n_rows,), (chunk_rows,) = spec.shape, spec.chunk_shape
    starts = range(0, n_rows, chunk_rows)
    chunks = [
        spec.decode(
            (array / spec.chunk_name(number)).read(),
            str(array),
            (min(chunk_rows, n_rows - start),),
        )
        for number, start in enumerate(starts)
    ]
    return np.concatenate(chunks)


def job_in_process(table: Location, work: Location) -> Results:
    """Ingest, fit and score in this process."""
    settings = SETTINGS | {"cluster": {"kind": "inline"}}
    names = ("store", "model", "scores", "scores.parquet")
    store, model, scores, parquet = ((work / name).address for name in names)
    mrot_scale.ingest(table.address, store, id="reading", config=settings)
    mrot_scale.fit(store, model, settings)
    mrot_scale.score(model, store, scores, settings, parquet=parquet)
    return Results.of(work)


def ingest_command(table: Location, work: Location) -> list[str]:
    return ["ingest", table.address, (work / "store").address, "--id", "reading", *FLAGS]


def fit_command(work: Location, *options: str) -> list[str]:
    return ["fit", (work / "store").address, (work / "model").address, *FLAGS, *options]


def score_command(work: Location, *options: str) -> list[str]:
    names = ("model", "store", "scores")
    places = [(work / name).address for name in names]
    parquet = (work / "scores.parquet").address
    return ["score", *places, "--parquet", parquet, *FLAGS, *options]
