"""Workers killed in the middle of a run: the same bytes, every task journalled once.

`pytest -m slow` does one run, `pytest -m long` twenty. Seeds are printed.
"""

import os
import time
from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

import mrot_scale
from mrot_scale.running.commit import Journal
from mrot_scale.storing.location import Location
from tests.faults.killed import everything_of
from tests.running.jobs import SETTINGS, make_table
from tests.servers import mrot, started, wait_until

N_TASKS, N_KILLS = 61, 3
SMALL_CHUNKS = {"store": {"chunk_bytes": 660}}
"""Thirty-three rows of five columns in a chunk."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of many chunks, a model, and what scoring one by the other gives undisturbed."""
    work = tmp_path_factory.mktemp("loss")
    config: dict[str, Any] = {**SETTINGS, **SMALL_CHUNKS, "cluster": {"kind": "inline"}}
    mrot_scale.ingest(make_table(work / "table.parquet"), work / "store", config=config)
    mrot_scale.fit(work / "store", work / "model", config)
    mrot_scale.score(work / "model", work / "store", work / "expected", config)
    return work


def worker_pids(driver: int) -> list[int]:
    """Return the processes that run tasks: those that the nannies started."""
    found = []
    for process in psutil.Process(driver).children(recursive=True):
        try:
            if "from multiprocessing.spawn" in " ".join(process.cmdline()):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def has_committed(run: Path, number: int) -> bool:
    """Tell whether so many tasks are journalled."""
    return sum("key" in value for value in Journal(Location(run)).values()) >= number


def score_with_losses(work: Path, out: Path, random: Random) -> Counter[str]:
    """Score on two workers, killing one three times; return how often each task is journalled."""
    at = sorted(random.sample(range(2, N_TASKS - 4), N_KILLS))
    places = (str(work / "model"), str(work / "store"), str(out))
    command = mrot("score", *places, "--workers", "2", "--set", "scoring.percentile=true")
    slowly = {"MROT_TEST": "1", "MROT_FAULT": "begin score/*:*:sleep0.1"}
    run = out.with_name(f"{out.name}.run")
    with started(command, slowly) as process:
        for number in at:
            wait_until(partial(has_committed, run, number), f"{number} tasks are done")
            victims = wait_until(lambda: worker_pids(process.pid), "there is a worker")
            os.kill(random.choice(victims), 9)
            time.sleep(0.2)
        assert process.wait(200) == 0, process.errors
    return Counter(v["key"] for v in Journal(Location(run)).values() if "key" in v)


def lose_workers(made: Path, runs: int) -> None:
    seed = Random().randrange(2**32)
    print(f"seed {seed}")
    random = Random(seed)
    for number in range(runs):
        journalled = score_with_losses(made, made / f"out{number}", random)
        assert len(journalled) == N_TASKS
        assert set(journalled.values()) == {1}
        assert everything_of(made / f"out{number}") == everything_of(made / "expected")
    print(f"{runs} runs of {N_TASKS} tasks, {N_KILLS} workers killed in each")


@pytest.mark.slow
def test_three_workers_killed_in_a_run_change_nothing(made: Path) -> None:
    lose_workers(made, 1)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_three_workers_killed_in_each_of_twenty_runs_change_nothing(made: Path) -> None:
    lose_workers(made, 20)
