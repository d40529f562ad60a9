"""Killing a job again and again, with readers on its output, and comparing what it leaves."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pandas as pd
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from mrot_scale.running.commit import Journal, is_run_folder
from mrot_scale.running.publish import resolve
from mrot_scale.storing.location import Location
from tests.servers import Process, started, wait_until

_POLL_S = 0.05
_LONGEST_S = 2.5
"""Seconds after its beginning within which a job is killed."""

READERS = {
    "pyarrow.dataset": lambda path: ds.dataset(path).to_table(columns=["score"])["score"],
    "pyarrow.parquet": lambda path: pq.read_table(path, columns=["score"])["score"],
    "pandas": lambda path: pd.read_parquet(path, columns=["score"])["score"],
    "duckdb": lambda path: [
        row[0] for row in duckdb.sql(f"SELECT score FROM '{path}/**/*.parquet'").fetchall()
    ],
}
"""Plain readers, which know nothing of generations."""


@dataclass
class Seen:
    """What readers saw."""

    reads: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


@contextmanager
def watched(path: Path, allowed: Mapping[str, tuple[float, ...]]) -> Iterator[Seen]:
    """Read the output twenty times a second while something happens to it.

    Each read must give one of the allowed generations, whole. A reader that lists names just as
    they change finds one gone: then the visible name must really have moved, and the next read
    must succeed.
    """
    seen, over = Seen(), threading.Event()

    def look() -> None:
        number = 0
        while not over.wait(_POLL_S):
            name, reader = list(READERS.items())[number % len(READERS)]
            number += 1
            _look_once(path, name, reader, allowed, seen)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def _look_once(path: Path, name: str, reader: Any, allowed: Any, seen: Seen) -> None:
    before = path.readlink()
    try:
        found = tuple(float(v) for v in _plain(reader(str(path))))
    except Exception as error:
        if path.readlink() == before:
            seen.wrong.append(f"{name}: {error!r}")
        else:
            seen.reads["crossed"] += 1
            _look_once(path, name, reader, allowed, seen)
        return
    which = [generation for generation, scores in allowed.items() if scores == found]
    seen.reads[which[0] if which else "mixed"] += 1
    if not which:
        seen.wrong.append(f"{name}: {len(found)} rows that are no generation")


def _plain(values: Any) -> Any:
    return values.to_pylist() if hasattr(values, "to_pylist") else list(values)


def everything(work: Path) -> dict[str, bytes]:
    """Return every byte of what the job makes that is meant to last."""
    return {
        f"{name}/{file}": content
        for name in ("store", "model", "scores", "scores.parquet")
        for file, content in everything_of(work / name).items()
    }


def everything_of(output: Path) -> dict[str, bytes]:
    """Return every byte behind a name."""
    place = resolve(Location(output))
    return {name: (place / name).read() for name in place.files_below()}


def scores_at(path: Path) -> tuple[float, ...]:
    """Return the scores in a Parquet folder."""
    return tuple(pq.read_table(path, columns=["score"])["score"].to_pylist())


@contextmanager
def begun_job(work: Path, workers: int = 0, **environment: str) -> Iterator[Process]:
    """Start the job and wait until it begins."""
    command = [sys.executable, "-m", "tests.faults.job", str(work), str(workers)]
    with started(command, {"MROT_TEST": "1", **environment}) as process:
        wait_until(
            lambda: "begin" in process.output or process.popen.poll() is not None, "it begins"
        )
        yield process


def finished_job(work: Path, workers: int = 0) -> dict[str, int]:
    """Run the job to its end; return how often its own process came to each point."""
    with begun_job(work, workers) as process:
        assert process.wait(240) == 0, process.errors
        found: dict[str, int] = json.loads(process.output.splitlines()[-1])
        return found


def killed_at_random(work: Path, random: Random, workers: int = 0) -> bool:
    """Run the job and kill its driver at some moment; tell whether it had ended before."""
    with begun_job(work, workers) as process:
        delay = random.uniform(0, _LONGEST_S * (10 if workers else 1))
        try:
            code = process.popen.wait(delay)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.popen.wait(10)
            return False
        assert code == 0, process.errors
        return True


def killed_at(work: Path, point: str, number: int) -> None:
    """Run the job until it reaches a point for the n-th time, where it is killed."""
    with begun_job(work, MROT_FAULT=f"{point}:{number}:kill") as process:
        code = process.wait(240)
        assert code == -signal.SIGKILL, f"{point} {number}: {code} {process.errors}"


def committed(work: Path) -> dict[str, int]:
    """Return how many tasks each run of the job has journalled, after seeing each there once."""
    found = {}
    for name in ("store.run", "model.run", "scores.input.run", "scores.run"):
        place = Location(work / name)
        if is_run_folder(place):
            keys = [value["key"] for value in Journal(place).values() if "key" in value]
            assert len(set(keys)) == len(keys), "a task is journalled twice"
            found[name] = len(keys)
    return found
