"""Kill the driver anywhere: the same command again gives the same bytes, and readers see no break.

`pytest -m slow` kills a few times at random and once at most points, `pytest -m long` all of them.
Seeds are printed; TEST_KILL_SEED repeats one.
"""

import os
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from mrot_scale.running.commit import Journal
from mrot_scale.storing.location import Location
from tests.faults import job
from tests.faults.killed import (
    committed,
    everything,
    finished_job,
    killed_at,
    killed_at_random,
    scores_at,
    watched,
)

POINTS = (
    *("lock.taken", "append.begin", "append.written", "append.synced"),
    *("write.begin", "write.written", "write.synced", "write.renamed", "write.done"),
    *("publish.committed", "publish.staged", "publish.renamed", "publish.written"),
    *("publish.noted", "publish.linked", "publish.moved", "publish.done", "clear.stages-gone"),
)
"""Every boundary between before and after in the code that makes things last."""
MOMENTS = [
    pytest.param(point, when, marks=pytest.mark.slow if when == "first" else pytest.mark.long)
    for point in POINTS
    for when in ("first", "middle", "last")
]


@dataclass(frozen=True)
class Prepared:
    """A folder with a template of old scores, and what the job makes of it undisturbed."""

    folder: Path
    expected: dict[str, bytes]
    generations: dict[str, tuple[float, ...]]
    hits: dict[str, int]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("kill")
    (folder / "work").mkdir()
    job.prepare(folder / "work")
    shutil.copytree(folder / "work", folder / "template", symlinks=True)
    old = scores_at(folder / "work/scores.parquet")
    hits = finished_job(folder / "work")
    new = scores_at(folder / "work/scores.parquet")
    assert old != new
    return Prepared(folder, everything(folder / "work"), {"old": old, "new": new}, hits)


@pytest.fixture
def work(prepared: Prepared) -> Callable[[], Path]:
    """Return a function that gives a fresh copy, at the same path: paths are among the terms."""

    def fresh() -> Path:
        shutil.rmtree(prepared.folder / "work", ignore_errors=True)
        found = shutil.copytree(
            prepared.folder / "template", prepared.folder / "work", symlinks=True
        )
        return Path(found)

    return fresh


def check(work: Path, prepared: Prepared) -> None:
    """Compare every byte, and see that nothing of ours is left lying about."""
    found = everything(work)
    names = found.keys() | prepared.expected.keys()
    assert [n for n in sorted(names) if found.get(n) != prepared.expected.get(n)] == []
    left = [p.name for p in work.iterdir() if p.name.startswith(".")]
    assert left == []


def kill_at_random(
    work: Callable[[], Path], prepared: Prepared, kills: int, workers: int = 0
) -> None:
    """Kill the job so many times, going on with it each time, and beginning anew when it ends."""
    seed = int(os.environ.get("TEST_KILL_SEED", Random().randrange(2**32)))
    print(f"seed {seed}")
    random, met, ends = Random(seed), 0, 0
    place = work()
    reads: Counter[str] = Counter()
    while met < kills:
        with watched(place / "scores.parquet", prepared.generations) as seen:
            ended = killed_at_random(place, random, workers)
            if not ended:
                met += 1
                committed(place)
        assert seen.wrong == []
        reads += seen.reads
        if ended:
            check(place, prepared)
            place, ends = work(), ends + 1
    finished_job(place, workers)
    check(place, prepared)
    print(f"{met} kills, {ends + 1} jobs ended, reads: {dict(reads)}")


@pytest.mark.slow
def test_every_point_is_one_that_the_job_comes_to(prepared: Prepared) -> None:
    reached = {name for name in prepared.hits if " " not in name}
    assert reached == set(POINTS)


@pytest.mark.parametrize(("point", "when"), MOMENTS)
def test_a_job_killed_at_a_point_goes_on_to_the_same_bytes(
    work: Callable[[], Path], prepared: Prepared, point: str, when: str
) -> None:
    times = prepared.hits[point]
    number = {"first": 1, "middle": -(-times // 2), "last": times}[when]
    place = work()
    with watched(place / "scores.parquet", prepared.generations) as seen:
        killed_at(place, point, number)
        committed(place)
        finished_job(place)
    assert seen.wrong == []
    check(place, prepared)


@pytest.mark.slow
def test_a_job_killed_at_random_goes_on_to_the_same_bytes(
    work: Callable[[], Path], prepared: Prepared
) -> None:
    kill_at_random(work, prepared, kills=6)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_job_killed_180_times_at_random_goes_on_to_the_same_bytes(
    work: Callable[[], Path], prepared: Prepared
) -> None:
    kill_at_random(work, prepared, kills=180)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_job_on_a_local_cluster_killed_20_times_goes_on_to_the_same_bytes(
    work: Callable[[], Path], prepared: Prepared
) -> None:
    kill_at_random(work, prepared, kills=20, workers=2)


@pytest.mark.slow
def test_what_a_killed_job_had_journalled_is_not_done_again(
    work: Callable[[], Path], prepared: Prepared
) -> None:
    place = work()
    killed_at(place, "begin routes/*", 2)
    done = committed(place)["model.run"]
    assert done > 5
    hits = finished_job(place)
    check(place, prepared)
    keys = {v["key"] for v in Journal(Location(place / "model.run")).values() if "key" in v}
    fitted = sum(count for name, count in hits.items() if name.removeprefix("begin ") in keys)
    assert fitted == len(keys) - done, "what was on its way, and nothing else, is done again"
