"""Interrupted or terminated: told in one line, nothing left running, gone on with later."""

import signal
import time

import pytest

import mrot_scale
from mrot_scale.storing.location import Location
from tests.running.jobs import SETTINGS, assert_same_files, contents, fit_command, make_table
from tests.servers import Process, mrot, run, session, started, wait_until

ENDINGS = {
    signal.SIGINT: (130, "mrot-scale: interrupted. The same command again goes on."),
    signal.SIGTERM: (143, "mrot-scale: terminated. The same command again goes on."),
}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Location:
    """A folder with a store to fit."""
    folder = tmp_path_factory.mktemp("signals")
    table = make_table(folder / "readings.parquet")
    mrot_scale.ingest(table, folder / "store", id="reading", config=SETTINGS)
    return Location(folder)


def n_lines(run_folder: Location) -> int:
    place = run_folder / "journal.jsonl"
    return place.read().count(b"\n") if place.exists() else 0


def fitting(work: Location, name: str, *options: str) -> list[str]:
    """Return the command that fits the store with two local workers."""
    _, store, _, *flags = fit_command(work, "--workers", "2", *options)
    return mrot("fit", store, (work / name).address, *flags)


def end(process: Process, number: signal.Signals, *, group: bool) -> None:
    """Send a signal and check how the command takes it."""
    start = time.monotonic()
    process.send(number, group=group)
    code = process.wait(15)
    assert time.monotonic() - start < 15
    expected_code, line = ENDINGS[number]
    told = [words for words in process.errors.splitlines() if " steps, " not in words]
    told = [words for words in told if " step, " not in words]
    assert (code, told) == (expected_code, [line])
    wait_until(lambda: not session(process.pid), "nothing is left running", 10)


@pytest.mark.slow
def test_ctrl_c_ends_a_run_that_the_same_command_finishes(work: Location) -> None:
    """A terminal sends the signal to all processes of the group, workers included."""
    command = fitting(work, "interrupted")
    with started(command) as process:
        wait_until(lambda: n_lines(work / "interrupted.run") > 5, "tasks are done", step_s=0.01)
        end(process, signal.SIGINT, group=True)
    done = n_lines(work / "interrupted.run")
    assert done > 5
    again = run(command)
    assert again.returncode == 0, again.stderr
    assert n_lines(work / "interrupted.run") > done
    mrot_scale.fit(
        str(work / "store"), str(work / "expected"), SETTINGS | {"cluster": {"kind": "inline"}}
    )
    assert_same_files(contents(work / "interrupted"), contents(work / "expected"))


@pytest.mark.long
@pytest.mark.parametrize("number", ENDINGS, ids=["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("group", [True, False], ids=["to the group", "to the driver alone"])
@pytest.mark.parametrize("moment", ["workers start", "tasks run"])
def test_a_signal_at_any_moment_ends_everything(
    number: signal.Signals, group: bool, moment: str, work: Location
) -> None:
    name = f"{number.name}-{group}-{moment.replace(' ', '-')}"
    with started(fitting(work, name)) as process:
        if moment == "workers start":
            wait_until(lambda: len(session(process.pid)) > 1, "a worker process starts")
        else:
            wait_until(lambda: n_lines(work / f"{name}.run") > 3, "tasks are done", step_s=0.01)
        end(process, number, group=group)
    assert not (work / name).exists()


@pytest.mark.parametrize("number", ENDINGS, ids=["SIGINT", "SIGTERM"])
def test_a_run_without_workers_ends_the_same_way(number: signal.Signals, work: Location) -> None:
    command = fitting(work, f"inline-{number.name}", "--cluster", "inline")
    with started([*command, "--set", "repeats=64"]) as process:
        journal = work / f"inline-{number.name}.run"
        wait_until(lambda: n_lines(journal) > 10, "tasks are done", step_s=0.01)
        end(process, number, group=True)
