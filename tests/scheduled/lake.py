"""A lake of pump readings, night by night, and a look at what a job left behind."""

import json
import os
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mrot_scale.digests import digest
from tests.jobs.made import TINY

FIRST = date(2026, 11, 1)
ROWS = 1_200

SETTINGS: dict[str, Any] = TINY | {"nightly": {"id": "reading"}}


def day(number: int) -> str:
    """The date of a night, the first being number 1."""
    return (FIRST + timedelta(days=number - 1)).isoformat()


def night_table(number: int, n_rows: int = ROWS, *, seed: int | None = None) -> pa.Table:
    """Readings of one night; the same number gives the same rows."""
    rng = np.random.default_rng(1_000 + number if seed is None else seed)
    heat = rng.normal(size=n_rows)
    moments = 1_793_491_200_000_000 + (number - 1) * 86_400_000_000
    return pa.table(
        {
            "reading": [f"n{number:02d}-{seed or 0}-{i:05d}" for i in range(n_rows)],
            "temperature": 40 + 5 * heat,
            "pressure": 3 + 0.4 * heat + 0.2 * rng.normal(size=n_rows),
            "vibration": rng.lognormal(sigma=0.5, size=n_rows),
            "site": [("north", "south", "east")[i] for i in rng.integers(0, 3, n_rows)],
            "read_at": pa.array(
                moments + rng.integers(0, 86_400_000_000, n_rows), pa.timestamp("us")
            ),
        }
    )


def write_night(
    lake: Path, number: int, table: pa.Table | None = None, name: str = "part-0"
) -> Path:
    """Write a night's rows, or a file of them, into the lake."""
    folder = lake / f"date={day(number)}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.parquet"
    pq.write_table(night_table(number) if table is None else table, path)
    return path


def changed(table: pa.Table, name: str, values: Any) -> pa.Table:
    """The table with other values in one column, or with one more column."""
    if name in table.column_names:
        return table.set_column(table.schema.get_field_index(name), name, pa.array(values))
    return table.append_column(name, pa.array(values))


def with_incident(table: pa.Table, share: float) -> pa.Table:
    """The table with some rows that no pump should give."""
    n_bad = int(share * len(table))
    for name in ("temperature", "pressure", "vibration"):
        values = table[name].to_numpy().copy()
        values[:n_bad] += 30 + np.arange(n_bad) % 17
        table = changed(table, name, values)
    return table


def command(*words: str, **environment: str) -> list[Any]:
    """Start the command line with TINY settings inline; return the process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mrot_scale", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    return [process]


def ran(*words: str, **environment: str) -> tuple[int, str, str]:
    """Run the command line; return exit code, output and log."""
    process = command(*words, **environment)[0]
    out, log = process.communicate(timeout=240)
    return process.returncode, out, log


def published_digests(output: Path) -> dict[str, str]:
    """The digest of the scores of every published partition."""
    return {p.name: digest(p) for p in sorted((output / "scores").glob("*=*")) if p.exists()}


def metrics(output: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "runs" / "metrics.json").read_text())
    return found


def manifest(path: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(path).read_text())
    return found
