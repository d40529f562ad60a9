"""Object storage that fails, runs killed on it, and runs that meet there: in the end, one result.

Requests go to a real object store on loopback, through a server that fails in the ways networks do.
"""

import itertools
import os
import signal
import time
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
import s3fs

import mrot_scale
from mrot_scale.errors import LockedError
from mrot_scale.running import lock
from mrot_scale.running.lock import holder, lock_place, locked
from mrot_scale.running.publish import POINTER, current, resolve
from mrot_scale.storing.location import Location
from tests.running.faults import Fault, Faults, faulty_server
from tests.running.jobs import (
    FLAGS,
    SETTINGS,
    Results,
    assert_same_files,
    contents,
    decoded,
    job_in_process,
    make_table,
)
from tests.servers import (
    S3,
    is_stopped,
    mrot,
    ordered,
    run,
    s3_environment,
    s3_server,
    started,
    told,
    wait_until,
)

INLINE: dict[str, Any] = {**SETTINGS, "cluster": {"kind": "inline"}}

REQUESTS = {
    "to take the lock": r"PUT .*\.lock if-none-match",
    "to look at the lock": r"HEAD .*\.lock$",
    "to read the lock": r"GET .*\.lock$",
    "to look for the output": r"GET .*prefix=work%2F(store|scores)%2F.*max-keys",
    "to begin the run": r"PUT .*/run\.json",
    "to write data": r"PUT .*/stages/",
    "to write the journal": r"PUT .*/journal/",
    "to look at data": r"HEAD .*/stages/",
    "to publish data": r"PUT .* copy",
    "to publish the list": r"PUT .*/_?MANIFEST\.json",
    "to write the log": r"PUT .*/logs/",
    "to list what is done with": r"GET .*prefix=.*stages%2F&delimiter=&",
    "to remove": r"POST .*delete",
}
"""Kinds of requests that every command makes."""

SCORE_REQUESTS = {
    **REQUESTS,
    "to read a store": r"GET .*/store/features/c",
    "to read identifiers": r"GET .*/store/ids/",
    "to look at the pointer": r"HEAD .*/CURRENT",
    "to move the pointer": r"PUT .*/CURRENT if-none-match",
    "to read the journal": r"GET .*/journal/",
}

PASSING: tuple[Fault, ...] = ("500", "503", "reset", "half", "cut", "short", "deaf")
"""Faults after which the same request, made again, succeeds at once."""


@pytest.fixture(scope="module")
def store_server() -> Iterator[S3]:
    with s3_server() as server:
        yield server


@pytest.fixture
def s3(store_server: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """The object store, as this process and those it starts find it."""
    lead_to(store_server.port, monkeypatch)
    yield store_server
    s3fs.S3FileSystem.clear_instance_cache()


def lead_to(port: int, environment: pytest.MonkeyPatch) -> None:
    """Let clients that are made from now on find an object store at a port."""
    for name, value in s3_environment(port).items():
        environment.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def work(s3: S3) -> Location:
    """A folder in a new bucket."""
    bucket = Location(f"s3://test-{uuid4().hex}")
    bucket.filesystem.mkdir(bucket.address)
    return bucket / "work"


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Location:
    """A folder on disk with a table, and what the job makes of it there."""
    folder = tmp_path_factory.mktemp("disk")
    job_in_process(Location(make_table(folder / "readings.parquet")), Location(folder))
    return Location(folder)


@pytest.fixture(scope="module")
def expected(disk: Location) -> Results:
    return Results.of(disk)


def put_store(disk: Location, work: Location) -> None:
    for name, content in contents(disk / "store").items():
        (work / "store" / name).write(content)


def ingest(disk: Location, work: Location) -> None:
    table, store = disk / "readings.parquet", work / "store"
    mrot_scale.ingest(table.address, store.address, id="reading", config=INLINE)


def score(disk: Location, work: Location) -> None:
    """Score a store on object storage by a model on disk."""
    score_store(work / "store", disk, work, INLINE)


def score_store(store: Location, disk: Location, work: Location, settings: Any) -> None:
    """Score a store to object storage; scores that are there are replaced."""
    mrot_scale.score(
        (disk / "model").address,
        store.address,
        (work / "scores").address,
        settings,
        parquet=(work / "scores.parquet").address,
        new_run=True,
    )


def flagging(share: float) -> dict[str, Any]:
    """Return settings that give other scores than the job's: that share of rows is flagged."""
    return INLINE | {"scoring": {"percentile": True, "contamination": share}}


def score_command(disk: Location, work: Location, *options: str) -> list[str]:
    """Return the command that scores a store on disk to object storage."""
    places = (disk / "model", disk / "store", work / "scores")
    outputs = ("--parquet", (work / "scores.parquet").address)
    flags = (*outputs, *FLAGS, "--cluster", "inline", *options)
    return mrot("score", *(place.address for place in places), *flags)


def scores_table(work: Location) -> pa.Table:
    found = mrot_scale.open_scores((work / "scores.parquet").address).to_table()
    return found.sort_by("reading")


def assert_scores(work: Location, expected: Results) -> None:
    scores = resolve(work / "scores")
    for name, values in expected.scores.items():
        np.testing.assert_array_equal(decoded(scores / name), values)
    assert scores_table(work).equals(expected.table.sort_by("reading"))


def slow_or_long(values: Sequence[str], slow: Sequence[str]) -> list[Any]:
    """Return parameters: some for every day, the others for those who change what is tested."""
    marks = {value: pytest.mark.slow if value in slow else pytest.mark.long for value in values}
    return [pytest.param(value, marks=mark) for value, mark in marks.items()]


# Requests that fail ----------------------------------------------------------------------------


def each_kind(requests: dict[str, str], faults: Sequence[Fault | None]) -> Faults:
    return Faults({pattern: list(faults) for pattern in requests.values()})


@pytest.mark.parametrize("fault", slow_or_long(PASSING, slow=("500", "reset", "short")))
def test_an_ingest_makes_requests_that_fail_again(
    fault: Fault,
    s3: S3,
    work: Location,
    disk: Location,
    expected: Results,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faults = each_kind(REQUESTS, [fault, None, fault])
    with faulty_server(s3.port, faults) as port:
        lead_to(port, monkeypatch)
        ingest(disk, work)
    lead_to(s3.port, monkeypatch)
    missed = [name for name, pattern in REQUESTS.items() if len(faults.left[pattern]) == 3]
    assert missed == [], "requests of each kind were hit"
    assert_same_files(contents(work / "store"), expected.store)
    assert not lock_place(work / "store").exists()


@pytest.mark.parametrize("fault", slow_or_long(PASSING, slow=("503", "cut", "deaf")))
def test_scoring_makes_requests_that_fail_again(
    fault: Fault,
    s3: S3,
    work: Location,
    disk: Location,
    expected: Results,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put_store(disk, work)
    faults = each_kind(SCORE_REQUESTS, [fault, None, fault])
    with faulty_server(s3.port, faults) as port:
        lead_to(port, monkeypatch)
        score(disk, work)
    lead_to(s3.port, monkeypatch)
    missed = [name for name, pattern in SCORE_REQUESTS.items() if len(faults.left[pattern]) == 3]
    assert missed == [], "requests of each kind were hit"
    assert_scores(work, expected)


@pytest.mark.long
def test_answers_that_come_too_late_are_asked_for_again(
    s3: S3,
    work: Location,
    disk: Location,
    expected: Results,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put_store(disk, work)
    names = [f"to {what}" for what in ("take the lock", "write data", "write the journal")]
    names += [f"to {what}" for what in ("publish data", "move the pointer", "read a store")]
    faults = each_kind({name: SCORE_REQUESTS[name] for name in names}, ["slow"])
    with faulty_server(s3.port, faults) as port:
        lead_to(port, monkeypatch)
        score(disk, work)
    lead_to(s3.port, monkeypatch)
    assert not any(faults.left.values())
    assert_scores(work, expected)


@pytest.mark.long
def test_a_whole_job_gets_by_with_a_store_that_fails_all_the_time(
    s3: S3,
    work: Location,
    disk: Location,
    expected: Results,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One request in twenty fails, in all ways in turn."""
    turns = itertools.islice(itertools.cycle(PASSING), 200)
    faults = Faults({"": [fault for turn in turns for fault in (*[None] * 19, turn)]})
    with faulty_server(s3.port, faults) as port:
        lead_to(port, monkeypatch)
        found = job_in_process(disk / "readings.parquet", work)
    assert len(faults.seen) > 1_000
    found.assert_same(expected)


VITAL = ("to take the lock", "to write data", "to write the journal", "to move the pointer")
ALSO = ("to look at the lock", "to begin the run", "to publish data", "to publish the list")


@pytest.mark.parametrize("kind", slow_or_long((*VITAL, *ALSO), slow=VITAL))
def test_requests_that_go_on_failing_end_a_run_that_is_gone_on_with_later(
    kind: str, s3: S3, work: Location, disk: Location, expected: Results
) -> None:
    command = score_command(disk, work)
    with faulty_server(s3.port, each_kind({kind: SCORE_REQUESTS[kind]}, ["500"] * 1_000)) as port:
        failed = run(command, s3_environment(port))
    assert failed.returncode == 75, failed.stderr
    (line,) = told(failed.stderr)
    assert line.startswith("mrot-scale: error[75]: Cannot ")
    assert "Run the same command again." in line
    assert not (work / "scores" / POINTER).exists()
    again = run(command, s3.environment)
    assert again.returncode == 0, again.stderr
    assert_scores(work, expected)


@pytest.mark.slow
def test_storage_that_fails_a_worker_is_told_like_any_other(
    s3: S3, work: Location, disk: Location, expected: Results
) -> None:
    command = score_command(disk, work, "--cluster", "local", "--workers", "1")
    kind = {"data": r"PUT .*/stages/score/00002\."}
    with faulty_server(s3.port, each_kind(kind, ["503"] * 1_000)) as port:
        failed = run(command, s3_environment(port))
    assert failed.returncode == 75, failed.stderr
    (line,) = told(failed.stderr)
    assert "stages/score/00002" in line
    again = run(command, s3.environment)
    assert again.returncode == 0, again.stderr
    assert_scores(work, expected)


@pytest.mark.slow
def test_a_store_that_goes_away_ends_a_run_that_is_gone_on_with_when_it_is_back(
    s3: S3, work: Location, disk: Location, expected: Results
) -> None:
    command, faults = score_command(disk, work), Faults({})
    journal = work / "scores.run/journal"
    with faulty_server(s3.port, faults) as port:
        slowly = s3_environment(port) | ordered("begin score/*:*:sleep1")
        with started(command, slowly) as process:
            wait_until(lambda: journal.exists() and len(journal.names()) > 1, "tasks are done")
            faults.left[""] = ["reset"] * 10_000
            assert process.wait(120) == 75, process.errors
            (line,) = told(process.errors)
    assert "un the same command again." in line
    assert len(journal.names()) < 4
    again = run(command, s3.environment)
    assert again.returncode == 0, again.stderr
    assert_scores(work, expected)


# Conditions that fail --------------------------------------------------------------------------


def test_a_lock_that_is_gone_again_when_looked_at_is_tried_for_again(
    s3: S3, work: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = Faults({r"PUT .*\.lock if-none-match": ["412", "412"]})
    with faulty_server(s3.port, faults) as port:
        lead_to(port, monkeypatch)
        with locked(work / "out"):
            found = holder(work / "out")
        assert found is not None
        assert found["pid"] == os.getpid()
        lead_to(s3.port, monkeypatch)
    assert not any(faults.left.values())


def test_a_file_that_is_there_is_not_written_whatever_the_store_says(
    s3: S3, work: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Amazon's answer tells which condition failed; other stores only tell that one did."""
    (work / "file").write(b"theirs")
    with faulty_server(s3.port, ["412"]) as port:
        lead_to(port, monkeypatch)
        assert not Location(work / "file").write_new(b"ours")
        assert not Location(work / "file").write_new(b"ours")
        assert Location(work / "file").write_new(b"theirs")
        lead_to(s3.port, monkeypatch)
    assert Location(work / "file").read() == b"theirs"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["to write the journal", "to move the pointer"])
def test_who_loses_a_race_is_told_and_may_try_again(
    kind: str, s3: S3, work: Location, disk: Location, expected: Results
) -> None:
    command = score_command(disk, work)
    with faulty_server(s3.port, each_kind({kind: SCORE_REQUESTS[kind]}, ["412"])) as port:
        lost = run(command, s3_environment(port))
    assert lost.returncode == 77, lost.stderr
    (line,) = told(lost.stderr)
    assert "by another run" in line
    again = run(command, s3.environment)
    assert again.returncode == 0, again.stderr
    assert_scores(work, expected)


@pytest.mark.slow
def test_a_pointer_moved_by_another_run_is_not_moved_back(
    work: Location, s3: S3, disk: Location, expected: Results
) -> None:
    command = score_command(disk, work)
    theirs = b'{"generation": "theirs", "history": ["theirs"]}'
    with started(command, s3.environment | ordered("publish.noted:2:stop")) as process:
        wait_until(lambda: is_stopped(process), "the pointer is about to be moved")
        (work / "scores" / POINTER).write(theirs)
        process.send(signal.SIGCONT)
        assert process.wait(60) == 77, process.errors
        (line,) = told(process.errors)
    assert f"{work / 'scores' / POINTER} was moved by another run" in line
    assert (work / "scores" / POINTER).read() == theirs
    again = run(command, s3.environment)
    assert again.returncode == 0, again.stderr
    assert_scores(work, expected)


@pytest.mark.slow
def test_a_journal_gone_on_with_by_another_run_is_left_to_it(
    work: Location, s3: S3, disk: Location, expected: Results
) -> None:
    """A run that hung so long that its lock was taken over finds out at its next task."""
    command = score_command(disk, work)
    with started(command, s3.environment | ordered("end score/00001:1:stop")) as process:
        wait_until(lambda: is_stopped(process), "a task is done and not committed")
        lock_place(work / "scores").remove()  # a holder that stays away loses it
        for name in ("scores.parquet", "scores.run"):
            lock_place(work / name).remove()
        second = run(command, s3.environment)
        assert second.returncode == 0, second.stderr
        process.send(signal.SIGCONT)
        assert process.wait(60) == 77, process.errors
        (line,) = told(process.errors)
    assert "was written by another run on this folder" in line
    assert_scores(work, expected)


# Runs that are killed --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "point", slow_or_long(["publish.written", "publish.noted"], slow=["publish.noted"])
)
@pytest.mark.parametrize("number", [1, 2], ids=["Parquet", "Zarr"])
def test_a_kill_between_data_and_pointer_leaves_the_old_scores(
    point: str, number: int, s3: S3, work: Location, disk: Location, expected: Results
) -> None:
    score_store(disk / "store", disk, work, flagging(0.3))
    old, old_flags = scores_table(work), decoded(resolve(work / "scores") / "flag")
    generation = current(work / "scores")
    command = score_command(disk, work, "--new-run")
    killed = run(command, s3.environment | ordered(f"{point}:{number}:kill"))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert current(work / "scores") == generation
    np.testing.assert_array_equal(decoded(resolve(work / "scores") / "flag"), old_flags)
    seen = old if number == 1 else expected.table.sort_by("reading")
    assert scores_table(work).equals(seen), "one generation, and whole"
    assert not old.equals(expected.table.sort_by("reading"))
    again = run(command, s3.environment)
    assert again.returncode == 0, again.stderr
    assert current(work / "scores") != generation
    assert_scores(work, expected)


@pytest.mark.slow
def test_a_lock_left_by_a_killed_process_of_this_machine_is_taken_over_at_once(
    s3: S3,
    work: Location,
    disk: Location,
    expected: Results,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    killed = run(score_command(disk, work), s3.environment | ordered("begin score/00002:1:kill"))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    for name in ("scores", "scores.parquet", "scores.run"):
        assert lock_place(work / name).exists()

    def watched(*_: Any) -> bool:
        raise AssertionError("its holder is known to be dead")

    monkeypatch.setattr(lock._Lease, "_watched", watched)
    score_store(disk / "store", disk, work, INLINE)
    assert_scores(work, expected)
    assert [name for name in work.names() if name.endswith(".lock")] == []


# Runs that meet --------------------------------------------------------------------------------


@pytest.mark.slow
def test_of_two_runs_on_one_output_the_second_is_told_who_is_first(
    s3: S3, work: Location, disk: Location, expected: Results
) -> None:
    command = score_command(disk, work)
    with started(command, s3.environment | ordered("begin score/00001:1:stop")) as first:
        wait_until(lambda: is_stopped(first), "the first run is at work")
        start = time.monotonic()
        second = run(command, s3.environment)
        assert second.returncode == 77, second.stderr
        assert time.monotonic() - start < 60  # a hang, not a speed
        (line,) = told(second.stderr)
        assert f"is being written by process {first.pid} on " in line
        first.send(signal.SIGCONT)
        assert first.wait(120) == 0, first.errors
    assert_scores(work, expected)


def test_a_lock_that_could_not_be_given_back_does_not_hold_up_its_own_process(
    s3: S3, work: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it undo what was done while it was held."""
    with faulty_server(s3.port, Faults({r"POST .*delete": ["500"] * 100})) as port:
        lead_to(port, monkeypatch)
        with locked(work / "out"):
            pass
        assert lock_place(work / "out").exists()
        lead_to(s3.port, monkeypatch)
    with locked(work / "out"), pytest.raises(LockedError), locked(work / "out"):
        pytest.fail("held twice")
    assert not lock_place(work / "out").exists()


# Going back ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_scores_on_object_storage_are_what_they_were_after_a_rollback(
    s3: S3, work: Location, disk: Location, expected: Results
) -> None:
    tables, generations = [], []
    for share in (0.3, 0.1):
        score_store(disk / "store", disk, work, flagging(share))
        tables.append(scores_table(work))
        generations.append(current(work / "scores"))
    assert not tables[0].equals(tables[1])
    command = mrot("rollback", *((work / n).address for n in ("scores", "scores.parquet")))
    back = run(command, s3.environment)
    assert back.returncode == 0, back.stderr
    assert back.stdout.count(f"generation {generations[1]} -> {generations[0]}") == 2
    assert scores_table(work).equals(tables[0])
    assert current(work / "scores") == generations[0]
    further = run(command, s3.environment)
    assert further.returncode == 66
    assert "no generation before" in further.stderr
    forward = run([*command, "--to", str(generations[1])], s3.environment)
    assert forward.returncode == 0, forward.stderr
    assert scores_table(work).equals(tables[1])


def test_scores_that_a_run_is_writing_cannot_be_rolled_back(s3: S3, work: Location) -> None:
    with locked(work / "scores"), pytest.raises(LockedError, match=f"process {os.getpid()} on"):
        mrot_scale.rollback((work / "scores").address)
