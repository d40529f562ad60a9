"""Whatever is lost, stuck or full: a run ends, says so, and is gone on with to the same bytes."""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil  # type: ignore[import-untyped]
import pytest
import s3fs

import mrot_scale
from mrot_scale.running import cluster, underway
from mrot_scale.running.commit import Journal
from mrot_scale.running.publish import resolve
from mrot_scale.storing.location import Location
from tests.running import jobs
from tests.running.jobs import assert_same_files, contents, make_table
from tests.servers import (
    S3,
    Mounts,
    Process,
    Scheduler,
    is_stopped,
    mounted,
    mrot,
    ordered,
    run,
    s3_server,
    scheduler,
    session,
    started,
    told,
    wait_until,
    worker,
    worker_command,
)

N_CHUNKS = 20
MANY_CHUNKS: dict[str, Any] = {**jobs.SETTINGS, "store": {"chunk_bytes": 1_600}}
INLINE = {**MANY_CHUNKS, "cluster": {"kind": "inline"}}
FLAGS = (*jobs.FLAGS, "--set", "store.chunk_bytes=1600")
"""The same as `MANY_CHUNKS`."""

SLOWLY = ordered("begin score/*:*:sleep0.3")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Location:
    """A table, a store of many chunks, a model, and what scoring one by the other gives."""
    folder = tmp_path_factory.mktemp("made")
    table = make_table(folder / "readings.parquet")
    mrot_scale.ingest(table, folder / "store", id="reading", config=INLINE)
    mrot_scale.fit(folder / "store", folder / "model", INLINE)
    mrot_scale.score(folder / "model", folder / "store", folder / "scores", INLINE)
    return Location(folder)


def scoring(made: Location, out: Location, *options: str) -> list[str]:
    """Return the command that scores the store."""
    places = (made / "model", made / "store", out)
    return mrot("score", *(place.address for place in places), *FLAGS, *options)


def commands(made: Location, work: Location, *options: str) -> dict[str, list[str]]:
    """Return each command, with what it reads in one folder and what it makes in another."""
    table, store, model = (made / n for n in ("readings.parquet", "store", "model"))
    ingest = ["ingest", table.address, (work / "store").address, "--id", "reading", *FLAGS]
    fit = ["fit", store.address, (work / "model").address, *FLAGS, *options]
    score = ["score", model.address, store.address, (work / "scores").address, *FLAGS, *options]
    return {"ingest": mrot(*ingest), "fit": mrot(*fit), "score": mrot(*score)}


OUTPUTS = {"ingest": "store", "fit": "model", "score": "scores"}


def assert_made(made: Location, output: Location) -> None:
    """Compare a store, a model or scores with what was made undisturbed."""
    assert_same_files(contents(resolve(output)), contents(resolve(made / output.name)))


def run_of(output: Location) -> Location:
    return output.sibling(f"{output.name}.run")


def keys(run_folder: Location) -> list[str]:
    """Return the tasks that a run has journalled."""
    if not run_folder.exists():
        return []
    return [str(value["key"]) for value in Journal(run_folder).values() if "key" in value]


def end_of(process: Process, code: int, within_s: float) -> str:
    """Wait for the end of a command; return the one line it says."""
    start = time.monotonic()
    assert process.wait(within_s) == code, process.errors
    print(f"exit code {code} after {time.monotonic() - start:.1f} s")
    assert "Traceback" not in process.errors
    (line,) = told(process.errors)
    return line


def finish(command: Sequence[str], made: Location, output: Location) -> None:
    """Run a command again, to the end, and compare what it made."""
    again = run(command)
    assert again.returncode == 0, again.stderr
    assert_made(made, output)
    journalled = Counter(keys(run_of(output)))
    assert set(journalled.values()) == {1}


# Workers and schedulers ----------------------------------------------------------------------


@contextmanager
def two_workers(
    first: Mapping[str, str], second: Mapping[str, str], ttl: str = "300s"
) -> Iterator[tuple[Scheduler, Process, Process]]:
    """Start a scheduler and two workers, each with an environment."""
    with (
        scheduler({"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": ttl}) as found,
        worker(found.address, first) as one,
        worker(found.address, second) as another,
    ):
        yield found, one, another


def on(found: Scheduler) -> tuple[str, ...]:
    return ("--cluster", found.address, "--workers", "2")


def wait_for_tasks(out: Location, number: int) -> None:
    wait_until(lambda: len(keys(run_of(out))) >= number, f"{number} tasks are done", step_s=0.02)


@pytest.mark.long
def test_a_run_whose_workers_are_all_lost_ends(made: Location, tmp_path: Path) -> None:
    out = Location(tmp_path / "scores")
    with (
        two_workers(SLOWLY, SLOWLY) as (found, one, another),
        started(scoring(made, out, *on(found))) as driver,
    ):
        wait_for_tasks(out, 4)
        one.kill()
        another.kill()
        line = end_of(driver, 75, cluster._PATIENCE_S + 30)
    assert "run the same command again" in line
    assert not out.exists()
    finish(scoring(made, out, "--cluster", "inline"), made, out)


@pytest.mark.slow
def test_a_run_whose_scheduler_is_killed_ends_at_once(made: Location, tmp_path: Path) -> None:
    out = Location(tmp_path / "scores")
    with (
        two_workers(SLOWLY, SLOWLY) as (found, *_),
        started(scoring(made, out, *on(found))) as driver,
    ):
        wait_for_tasks(out, 4)
        found.process.kill()
        line = end_of(driver, 75, 30)
    assert "run the same command again" in line
    assert not out.exists()
    finish(scoring(made, out, "--cluster", "inline"), made, out)


@pytest.mark.long
def test_a_run_whose_scheduler_hangs_ends(made: Location, tmp_path: Path) -> None:
    out = Location(tmp_path / "scores")
    with (
        two_workers(SLOWLY, SLOWLY) as (found, *_),
        started(scoring(made, out, *on(found))) as driver,
    ):
        wait_for_tasks(out, 4)
        found.process.send(signal.SIGSTOP)
        line = end_of(driver, 75, 120)
    assert "run the same command again" in line
    finish(scoring(made, out, "--cluster", "inline"), made, out)


@pytest.mark.slow
@pytest.mark.parametrize("action", ["kill", "raise"])
def test_a_task_that_fails_wherever_it_runs_is_named(
    action: str, made: Location, tmp_path: Path
) -> None:
    out = Location(tmp_path / "scores")
    command = scoring(made, out, "--workers", "2")
    with started(command, ordered(f"begin score/00003:*:{action}")) as driver:
        line = end_of(driver, 1, 120)
    assert line.startswith("mrot-scale: error[1]: ")
    assert "score/00003" in line
    assert not out.exists()
    assert "score/00003" not in keys(run_of(out))
    finish(scoring(made, out, "--cluster", "inline"), made, out)


@pytest.mark.slow
def test_a_task_that_needs_more_memory_than_a_worker_has_is_named(
    made: Location, tmp_path: Path
) -> None:
    """Workers that outgrow their limit are ended by their nannies, again and again."""
    (tmp_path / "sitecustomize.py").write_text(GREEDY)
    out = Location(tmp_path / "scores")
    greedily = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    with scheduler() as found:
        words = worker_command(found.address, "--memory-limit", "700MiB")
        with_nanny = [word for word in words if word != "--no-nanny"]
        command = scoring(made, out, "--cluster", found.address)
        with started(with_nanny, greedily), started(command) as driver:
            line = end_of(driver, 1, 200)
    assert "Task score/00003 ended every worker it ran on: out of memory" in line
    assert "cluster.memory_limit" in line
    finish(scoring(made, out, "--cluster", "inline"), made, out)


GREEDY = """
import time, mrot_scale.faults as faults
reach = faults.reach
def grow(point):
    if point == "begin score/00003":
        held = [bytearray(b"x" * 2**25) for _ in range(40)]
        time.sleep(60)
    reach(point)
faults.reach = grow
"""
"""Lets a task take 1.25 GiB."""


@pytest.mark.slow
def test_a_worker_that_hangs_is_done_without(made: Location, tmp_path: Path) -> None:
    out = Location(tmp_path / "scores")
    with (
        two_workers(SLOWLY, SLOWLY, ttl="6s") as (found, victim, _),
        started(scoring(made, out, *on(found))) as driver,
    ):
        wait_for_tasks(out, 4)
        victim.send(signal.SIGSTOP)
        assert driver.wait(90) == 0, driver.errors
        assert told(driver.errors) == []
    assert_made(made, out)


@pytest.mark.slow
def test_a_worker_that_hangs_from_the_beginning_is_told(made: Location, tmp_path: Path) -> None:
    out = Location(tmp_path / "scores")
    with two_workers({}, {}, ttl="6s") as (found, victim, _):
        victim.send(signal.SIGSTOP)
        with started(scoring(made, out, *on(found))) as driver:
            line = end_of(driver, 75, 90)
        assert "run the same command again" in line
        finish(scoring(made, out, "--cluster", found.address), made, out)


@pytest.mark.long
def test_a_local_worker_that_hangs_is_done_without(made: Location, tmp_path: Path) -> None:
    out = Location(tmp_path / "scores")
    with started(scoring(made, out, "--workers", "2"), SLOWLY) as driver:
        wait_for_tasks(out, 4)
        victim = local_workers_of(driver)[0]
        victim.suspend()
        assert driver.wait(150) == 0, driver.errors
        assert told(driver.errors) == []
        wait_until(lambda: not session(driver.pid), "nothing is left running", 20)
    assert_made(made, out)


def local_workers_of(driver: Process) -> list[Any]:
    """Return the processes that run the tasks of a driver's own cluster."""
    found = psutil.Process(driver.pid).children(recursive=True)
    return [process for process in found if "multiprocessing.spawn" in " ".join(process.cmdline())]


@pytest.mark.slow
def test_local_workers_killed_all_at_once_come_back(made: Location, tmp_path: Path) -> None:
    out = Location(tmp_path / "scores")
    with started(scoring(made, out, "--workers", "2"), SLOWLY) as driver:
        wait_for_tasks(out, 4)
        for process in local_workers_of(driver):
            process.kill()
        assert driver.wait(120) == 0, driver.errors
        assert told(driver.errors) == []
    assert_made(made, out)


@pytest.mark.slow
def test_a_task_on_a_slow_worker_is_sent_to_another_and_counts_once(
    made: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(underway, "_SLOW_S", 4.0)
    monkeypatch.setattr(cluster, "_LOOK_S", 1.0)
    model, store = (str(made / name) for name in ("model", "store"))
    out = Location(tmp_path / "scores")
    # The first, which it is sure to get; the third may be stolen by the other. Waiting for it would
    # take longer than a test may.
    with two_workers(ordered("begin score/*:1:sleep3600"), {}) as (found, *_):
        config = MANY_CHUNKS | {"cluster": {"address": found.address, "workers": 2}}
        mrot_scale.score(model, store, out.address, config)
    log = [json.loads(line) for line in (run_of(out) / "log.jsonl").read().splitlines()]
    slow = [event for event in log if event["event"] == "slow"]
    assert slow
    assert all(event["seconds"] > 4 for event in slow)
    assert Counter(keys(run_of(out))) == Counter(f"score/{n:05d}" for n in range(N_CHUNKS))
    assert_made(made, out)


@pytest.mark.slow
def test_a_slow_task_is_waited_for_where_there_is_no_other_worker(
    made: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(underway, "_SLOW_S", 2.0)
    monkeypatch.setattr(underway, "_SLOW_TIMES", 0.0)
    monkeypatch.setattr(cluster, "_LOOK_S", 0.5)
    model, store = (str(made / name) for name in ("model", "store"))
    out = Location(tmp_path / "scores")
    with scheduler() as found, worker(found.address, ordered("begin score/*:3:sleep8")):
        config = MANY_CHUNKS | {"cluster": {"address": found.address}}
        mrot_scale.score(model, store, out.address, config)
    assert_made(made, out)


@pytest.mark.slow
def test_a_run_in_which_nothing_finishes_gives_up(made: Location, tmp_path: Path) -> None:
    out = Location(tmp_path / "scores")
    hangs = ordered("begin score/*:*:sleep600")
    with two_workers(hangs, hangs) as (found, *_):
        command = scoring(made, out, *on(found), "--set", "cluster.silence_s=4")
        with started(command) as driver:
            line = end_of(driver, 75, 60)
    assert "No task has finished for 4 s; score/00000 and 7 more are on their way" in line
    assert "cluster.silence_s" in line
    finish(scoring(made, out, "--cluster", "inline"), made, out)


@pytest.mark.slow
def test_a_local_run_in_which_nothing_finishes_gives_up(made: Location, tmp_path: Path) -> None:
    out = Location(tmp_path / "scores")
    command = scoring(made, out, "--workers", "1", "--set", "cluster.silence_s=20")
    with started(command, ordered("begin score/*:3:sleep600")) as driver:
        line = end_of(driver, 75, 120)
        wait_until(lambda: not session(driver.pid), "nothing is left running", 20)
    assert "No task has finished for 20 s; score/" in line
    assert len(keys(run_of(out))) == 2
    finish(scoring(made, out, "--cluster", "inline"), made, out)


# Signals -------------------------------------------------------------------------------------

SIGNALS = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (143, "terminated")}
PACES = {
    "ingest": ordered("write.begin:*:sleep0.1"),
    "fit": ordered("begin efforts/*:*:sleep0.5"),
    "score": SLOWLY,
}


def stop(process: Process, number: signal.Signals, *, group: bool = False) -> None:
    """Send a signal and check that nothing is left of the command soon after."""
    process.send(number, group=group)
    code, word = SIGNALS[number]
    line = end_of(process, code, 10)
    assert line == f"mrot-scale: {word}. The same command again goes on."
    wait_until(lambda: not session(process.pid), "nothing is left running", 10)


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS, ids=["SIGINT", "SIGTERM"])
@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("ingest", ()),
        ("fit", ("--cluster", "inline")),
        ("score", ("--cluster", "inline")),
        ("score", ("--workers", "2")),
    ],
    ids=["ingest", "fit inline", "score inline", "score local"],
)
def test_a_signal_ends_a_command_that_goes_on_to_the_same_bytes(
    command: str,
    options: tuple[str, ...],
    number: signal.Signals,
    made: Location,
    tmp_path: Path,
) -> None:
    words = commands(made, Location(tmp_path), *options)[command]
    output = Location(tmp_path / OUTPUTS[command])
    with started(words, PACES[command]) as process:
        wait_for_tasks(output, 3)
        stop(process, number, group=number == signal.SIGINT)
    assert not output.exists()
    assert [path.name for path in tmp_path.iterdir()] == [f"{output.name}.run"]
    before = len(keys(run_of(output)))
    assert before >= 3
    finish(commands(made, Location(tmp_path), "--cluster", "inline")[command], made, output)
    assert len(keys(run_of(output))) > before


@pytest.mark.slow
def test_a_signal_ends_a_run_whose_workers_hang(made: Location, tmp_path: Path) -> None:
    out = Location(tmp_path / "scores")
    command = scoring(made, out, "--workers", "2")
    with started(command, ordered("begin score/00004:*:sleep600")) as process:
        wait_for_tasks(out, 4)
        for hanging in local_workers_of(process):
            hanging.suspend()
        stop(process, signal.SIGTERM)
    finish(scoring(made, out, "--cluster", "inline"), made, out)


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[S3, Location]]:
    """An object store of one's own, and a bucket in it."""
    with s3_server() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()
        bucket = Location(f"s3://test-{uuid4().hex}")
        bucket.filesystem.mkdir(bucket.address)
        yield server, bucket
        s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.slow
def test_a_signal_ends_a_run_whose_object_storage_hangs(
    made: Location, storage: tuple[S3, Location]
) -> None:
    server, bucket = storage
    out = bucket / "work/scores"
    command = scoring(made, out, "--cluster", "inline")
    with started(command, SLOWLY) as process:
        wait_for_tasks(out, 3)
        server.process.send(signal.SIGSTOP)
        time.sleep(1)  # for a request that is never answered
        stop(process, signal.SIGTERM)
    server.process.send(signal.SIGCONT)
    finish(command, made, out)


@pytest.mark.long
def test_a_run_whose_object_storage_hangs_ends(
    made: Location, storage: tuple[S3, Location]
) -> None:
    server, bucket = storage
    out = bucket / "work/scores"
    command = scoring(made, out, "--cluster", "inline")
    with started(command, SLOWLY) as process:
        wait_for_tasks(out, 3)
        server.process.send(signal.SIGSTOP)
        line = end_of(process, 75, 200)
    assert "un the same command again." in line
    server.process.send(signal.SIGCONT)
    finish(command, made, out)


@pytest.mark.slow
def test_a_signal_while_the_scheduler_hangs_ends_the_run(made: Location, tmp_path: Path) -> None:
    out = Location(tmp_path / "scores")
    with (
        two_workers(SLOWLY, SLOWLY) as (found, *_),
        started(scoring(made, out, *on(found))) as driver,
    ):
        wait_for_tasks(out, 4)
        found.process.send(signal.SIGSTOP)
        stop(driver, signal.SIGTERM)
    finish(scoring(made, out, "--cluster", "inline"), made, out)


# Disks ---------------------------------------------------------------------------------------


@contextmanager
def small_disk(folder: Path, n_kib: int) -> Iterator[Mounts]:
    """Mount a disk of a few pages on a folder; what it holds at the end stays there."""
    folder.mkdir()
    copy = folder.with_name(f"{folder.name}-copy")
    with mounted(f"mount -t tmpfs -o size={n_kib}k tmpfs {folder}") as mounts:
        yield mounts
        mounts.change("cp", "-a", str(folder), str(copy))
    folder.rmdir()
    copy.rename(folder)


def fail_for_want_of_space(
    mounts: Mounts, disk: Path, command: Sequence[str], output: Path
) -> None:
    """Run a command on a small disk, then, with more room, again."""
    failed = run(mounts.inside(command))
    assert failed.returncode in (73, 75), failed.stderr
    (line,) = told(failed.stderr)
    assert "No space left on device" in line
    mounts.change("sh", "-c", f"! test -e {output} && test -z \"$(find {disk} -name '*.tmp')\"")
    mounts.change("mount", "-o", "remount,size=64m", str(disk))
    again = run(mounts.inside(command))
    assert again.returncode == 0, again.stderr


@pytest.mark.slow
@pytest.mark.parametrize("n_kib", [4, 16, 40, 80, 120])
@pytest.mark.parametrize("command", ["ingest", "score"])
def test_a_full_disk_ends_a_command_that_goes_on_when_there_is_room(
    command: str, n_kib: int, made: Location, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, n_kib) as mounts:
        words = commands(made, Location(disk), "--cluster", "inline")[command]
        fail_for_want_of_space(mounts, disk, words, disk / OUTPUTS[command])
    assert_made(made, Location(disk / OUTPUTS[command]))


@pytest.mark.slow
@pytest.mark.parametrize("n_kib", [4, 200])
def test_a_full_disk_ends_a_fit_on_workers_that_goes_on_when_there_is_room(
    n_kib: int, made: Location, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, n_kib) as mounts:
        words = commands(made, Location(disk), "--workers", "1")["fit"]
        fail_for_want_of_space(mounts, disk, words, disk / "model")
    assert_made(made, Location(disk / "model"))


@pytest.mark.slow
@pytest.mark.parametrize(("full", "n_kib"), [("output", 4), ("output", 40), ("run folder", 40)])
def test_a_full_disk_under_output_or_run_folder_alone_leaves_nothing_half_done(
    full: str, n_kib: int, made: Location, tmp_path: Path
) -> None:
    disk, roomy = tmp_path / "disk", tmp_path / "roomy"
    roomy.mkdir()
    out, run_folder = (disk, roomy) if full == "output" else (roomy, disk)
    scores = Location(out / "scores")
    with small_disk(disk, n_kib) as mounts:
        words = scoring(made, scores, "--cluster", "inline")
        words += ["--set", f"run.folder={run_folder / 'run'}"]
        fail_for_want_of_space(mounts, disk, words, scores.path)
    assert_made(made, scores)


@pytest.mark.slow
def test_scores_on_a_disk_that_fills_up_stay_what_they_were(made: Location, tmp_path: Path) -> None:
    """The next generation does not fit: readers go on seeing this one."""
    disk = tmp_path / "disk"
    scores = Location(disk / "scores")
    command = scoring(made, scores, "--cluster", "inline")
    with small_disk(disk, 4_096) as mounts:
        first = run(mounts.inside(command))
        assert first.returncode == 0, first.stderr
        used = f"$(du -sk {disk} | cut -f1)"
        mounts.change("sh", "-c", f"mount -o remount,size=$(({used} + 60))k {disk}")
        other = [*command, "--set", "scoring.contamination=0.3", "--new-run"]
        failed = run(mounts.inside(other))
        assert failed.returncode == 75, failed.stderr
    assert_made(made, scores)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["ingest", "fit", "score"])
def test_a_folder_that_cannot_be_written_is_told_before_any_work(
    command: str, made: Location, tmp_path: Path
) -> None:
    lines = (
        f"mount --bind {tmp_path} {tmp_path}",
        f"mount -o remount,bind,ro {tmp_path}",
    )
    with mounted(*lines) as mounts:
        words = commands(made, Location(tmp_path))[command]
        refused = run(mounts.inside(words), ordered("begin *:*:kill"))
    assert refused.returncode == 73, refused.stderr
    (line,) = told(refused.stderr)
    assert str(tmp_path / OUTPUTS[command]) in line
    assert "Read-only file system" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_run_folder_that_cannot_be_written_is_told_before_any_work(
    made: Location, tmp_path: Path
) -> None:
    closed, scores = tmp_path / "closed", Location(tmp_path / "scores")
    closed.mkdir()
    lines = (f"mount --bind {closed} {closed}", f"mount -o remount,bind,ro {closed}")
    with mounted(*lines) as mounts:
        command = scoring(made, scores, "--set", f"run.folder={closed / 'run'}")
        refused = run(mounts.inside(command), ordered("begin *:*:kill"))
    assert refused.returncode == 73, refused.stderr
    (line,) = told(refused.stderr)
    assert "Read-only file system" in line
    assert [path.name for path in tmp_path.iterdir()] == ["closed"]


# Runs that meet ------------------------------------------------------------------------------


@pytest.mark.slow
def test_of_two_runs_on_one_output_the_second_is_refused_at_once(
    made: Location, tmp_path: Path
) -> None:
    out = Location(tmp_path / "scores")
    command = scoring(made, out, "--cluster", "inline")
    with started(command, ordered("begin score/00005:1:stop")) as first:
        wait_until(lambda: is_stopped(first), "the first run is at work")
        for _ in range(3):
            with started(command) as second:
                line = end_of(second, 77, 30)
            assert f"is being written by process {first.pid} on " in line
        elsewhere = [*command, "--set", f"run.folder={tmp_path / 'other.run'}"]
        with started(elsewhere) as second:
            end_of(second, 77, 30)
        first.send(signal.SIGCONT)
        assert first.wait(60) == 0, first.errors
        assert told(first.errors) == []
    assert_made(made, out)
    assert not (Location(tmp_path) / "other.run").exists()
