"""A lake of pump readings, night by night, and a look at what a job left behind."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mrot_scale.digests import digest
from mrot_scale.scheduled.night import Night, nightly
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


def with_nightly(gates: dict[str, Any] | None = None, **settings: Any) -> dict[str, Any]:
    """The settings of most tests, with some of `nightly` or of `gates` otherwise."""
    return SETTINGS | {"nightly": SETTINGS["nightly"] | settings, "gates": gates or {}}


def spoil(path: Path) -> None:
    """Make a file one that nobody can read."""
    path.write_bytes(b"PAR1 no Parquet at all PAR1")


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of change of everything below a folder, links not followed."""
    found = {str(p.relative_to(folder)): p.lstat() for p in sorted(folder.rglob("*"))}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in found.items()}


@dataclass(frozen=True)
class Job:
    """A lake and what is made of it."""

    lake: Path
    output: Path

    @classmethod
    def of(cls, folder: Path, *numbers: int) -> "Job":
        """A lake with some nights in it, of which none has run."""
        for number in numbers:
            write_night(folder / "lake", number)
        return cls(folder / "lake", folder / "out")

    def copied(self, folder: Path) -> "Job":
        """The same elsewhere: files keep their times, links lead within the copy."""
        shutil.copytree(self.lake.parent, folder, symlinks=True, dirs_exist_ok=True)
        return Job(folder / "lake", folder / "out")

    def night(
        self,
        number: int,
        *,
        gates: dict[str, Any] | None = None,
        again: bool = False,
        **settings: Any,
    ) -> Night:
        """Run a night, some settings of `nightly` or of `gates` being otherwise."""
        config = with_nightly(gates, **settings)
        return nightly(self.lake, self.output, date=day(number), config=config, again=again)

    def write(self, number: int, table: pa.Table | None = None, name: str = "part-0") -> Path:
        return write_night(self.lake, number, table, name)

    def scores(self, number: int) -> pa.Table:
        """What plain readers find for a night."""
        return pq.read_table(self.output / "scores" / f"date={day(number)}")

    def state(self, number: int) -> dict[str, Any]:
        """How the last run of a night ended; nothing where none ran."""
        path = self.output / "runs" / "partitions" / f"date={day(number)}.json"
        return manifest(path) if path.exists() else {}

    def last_run(self, number: int) -> dict[str, Any]:
        """What the last run of a night recorded."""
        return manifest(self.output / "runs" / self.state(number)["run_id"] / "run.json")
