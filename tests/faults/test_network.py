"""A network that parts: the run goes on with those it can reach, and what the others do is lost.

The cluster is set up by the commands that `mrot-scale certificates` prints.
"""

import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import mrot_scale
from mrot_scale.running.commit import STAGES, Journal
from mrot_scale.storing.location import Location
from tests.faults.networks import Network, network
from tests.running.jobs import SETTINGS, assert_same_files, contents, fit_command, make_table
from tests.servers import Process, mrot, run, started, wait_until

HUB, STEADY, VICTIM = "hub", "steady", "victim"
MANY = "sample"
"""The stage of one task per chunk, during which the network parts."""

SMALL_CHUNKS = SETTINGS | {"store": {"chunk_bytes": 500}}
TTL_S = 6
"""Seconds without a word after which this scheduler takes a worker for dead."""

SCHEDULER_SETTINGS = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{TTL_S}s"}
SLOW = {
    "MROT_TEST": "1",
    # Files are written, then the worker waits before it tells: time to cut it off in between.
    "MROT_FAULT": f"begin {MANY}/*:*:sleep0.5,end {MANY}/*:*:sleep2",
}
UNHURRIED = {"MROT_TEST": "1", "MROT_FAULT": f"begin {MANY}/*:*:sleep0.1"}


class Printed:
    """What `mrot-scale certificates` says is to be done."""

    def __init__(self, folder: Path, hosts: Sequence[str]) -> None:
        named = [word for host in hosts for word in ("--host", host)]
        done = run(mrot("certificates", str(folder / "tls"), *named))
        assert done.returncode == 0, done.stderr
        self._lines = done.stdout.splitlines()
        self.settings = folder / "cluster.yaml"
        start = self._lines.index("  cluster:")
        self.settings.write_text("\n".join(line[2:] for line in self._lines[start:]))

    def command(self, name: str) -> list[str]:
        """Return the command that starts a scheduler or workers."""
        (line,) = (line for line in self._lines if line.startswith(f"  dask {name} "))
        return [sys.executable, "-m", *shlex.split(line)]


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[Network, Printed]]:
    with network(HUB, STEADY, VICTIM) as made:
        yield made, Printed(tmp_path, [made.address(name) for name in made.names])


@contextmanager
def one_worker(
    command: Sequence[str], environment: Mapping[str, str], umask: int
) -> Iterator[Process]:
    """Start a worker whose files can be told by who may read them."""
    alone = [*command, "--nworkers", "1", "--no-nanny"]
    marked = ["sh", "-c", f"umask {umask:03o}; exec {shlex.join(alone)}"]
    with started(marked, environment) as process:
        wait_until(lambda: "Registered to" in process.errors, "a worker has registered")
        yield process


def journalled(run_folder: Location) -> list[dict[str, Any]]:
    """Return the tasks in the journal, one for each line."""
    return [value for value in Journal(run_folder).values() if "key" in value]


def accepted(run_folder: Location) -> set[str]:
    """Return the names of all files that the journal refers to."""
    records = journalled(run_folder)
    return {ref[0] for record in records for ref in record["objects"].values()}


def written_by_victim(run_folder: Location) -> dict[str, float]:
    """Return the files that only their owner may read, and when each was written."""
    found = (run_folder / STAGES).path.rglob("*")
    states = {p: p.stat() for p in found if p.is_file() and not p.name.endswith(".tmp")}
    return {
        str(p.relative_to(run_folder.path)): state.st_mtime
        for p, state in states.items()
        if state.st_mode & 0o077 == 0
    }


def untold(run_folder: Location) -> set[str]:
    """Return what the victim has written and not told of, once it has told of something."""
    mine, known = set(written_by_victim(run_folder)), accepted(run_folder)
    return mine - known if mine & known else set()


@dataclass(frozen=True)
class Parted:
    """A fit during which the network parted, and the same without workers."""

    run: Location
    alone: Location
    untold: set[str]
    """What the victim had written and not told of when it was cut off."""

    later: set[str]
    """What it wrote after that."""


def fit_alone(folder: Path, settings: Mapping[str, Any]) -> tuple[Location, Location]:
    """Return a folder with a store to fit, and one with what fitting it without workers gives."""
    work, alone = Location(folder / "work"), Location(folder / "alone")
    table = make_table(folder / "readings.parquet")
    mrot_scale.ingest(table, str(work / "store"), id="reading", config=settings)
    inline = {**settings, "cluster": {"kind": "inline"}}
    mrot_scale.fit(str(work / "store"), str(alone / "model"), inline)
    return work, alone


@pytest.fixture
def parted(machines: tuple[Network, Printed], tmp_path: Path) -> Parted:
    """Fit while a worker is cut off, given up by the scheduler, and back again."""
    made, printed = machines
    work, alone = fit_alone(tmp_path, SMALL_CHUNKS)
    journal, workers = work / "model.run", printed.command("worker")
    options = ("-c", str(printed.settings), "--workers", "2", "--set", "run.keep_stages=true")
    with (
        started(made.on(HUB, printed.command("scheduler")), SCHEDULER_SETTINGS) as scheduler,
        one_worker(made.on(STEADY, workers), UNHURRIED, 0o022),
        one_worker(made.on(VICTIM, workers), SLOW, 0o077) as zombie,
        started(made.on(HUB, mrot(*fit_command(work, *options)))) as driver,
    ):
        wait_until(lambda: untold(journal), "the victim has written and not told", step_s=0.02)
        made.cut(VICTIM)
        cut_at, lost = time.time(), untold(journal)
        wait_until(lambda: "failed to heartbeat" in scheduler.errors, "the victim is given up")
        assert zombie.popen.poll() is None, "it does not know"
        made.mend(VICTIM)
        assert driver.wait(120) == 0, driver.errors
        assert "Traceback" not in driver.errors
        wait_until(lambda: zombie.popen.poll() is not None, "the zombie has learnt of it")
    later = {name for name, at in written_by_victim(journal).items() if at > cut_at}
    return Parted(journal, alone / "model.run", lost, later)


@pytest.mark.slow
def test_a_worker_cut_off_and_back_as_a_zombie_changes_nothing(parted: Parted) -> None:
    keys = Counter(record["key"] for record in journalled(parted.run))
    assert len(keys) > 60
    assert set(keys.values()) == {1}, "each task is in the journal once"
    assert keys.keys() == {record["key"] for record in journalled(parted.alone)}
    model, same = (contents(run.sibling("model")) for run in (parted.run, parted.alone))
    assert_same_files(model, same)

    assert parted.untold
    assert parted.later
    ignored, known = parted.untold | parted.later, accepted(parted.run)
    assert attempts(ignored).isdisjoint(attempts(known))
    in_place = {name.rpartition(".")[0]: name for name in known}
    for name in ignored:
        other = in_place[name.rpartition(".")[0]]
        assert (parted.run / name).read() == (parted.run / other).read()


def attempts(names: set[str]) -> set[str]:
    """Return the attempts that files were written by."""
    return {name.rpartition(".")[2] for name in names}


KNOCK = """
import sys
from mrot_scale.errors import MrotError
from mrot_scale.running.greeting import check_greeting
for address in sys.argv[1:]:
    try:
        check_greeting(address, None, 10.0)
        print(address, "is open to all")
    except MrotError as error:
        print(error)
"""


def open_to_others(made: Network, name: str) -> list[str]:
    """Return the addresses of a machine that somebody listens at for more than itself."""
    listed = run(made.on(name, ["ss", "--listening", "--tcp", "--numeric", "--no-header"]))
    ends = {tuple(line.split()[3].rsplit(":", 1)) for line in listed.stdout.splitlines()}
    ports = {port for host, port in ends if host not in ("127.0.0.1", "[::1]")}
    return [f"tcp://{made.address(name)}:{port}" for port in sorted(ports)]


@pytest.mark.slow
def test_the_printed_commands_open_nothing_but_encrypted_ports(
    machines: tuple[Network, Printed],
) -> None:
    made, printed = machines
    with (
        started(made.on(HUB, printed.command("scheduler"))),
        started(made.on(STEADY, [*printed.command("worker"), "--nworkers", "1"])) as worker,
    ):
        wait_until(lambda: "Registered to" in worker.errors, "a worker has registered")
        found = [address for name in (HUB, STEADY) for address in open_to_others(made, name)]
        knocked = run(made.on(VICTIM, [sys.executable, "-c", KNOCK, *found]))
    told = knocked.stdout.splitlines()
    assert len(found) == len(told) == 3, "scheduler, nanny and worker"
    assert [line for line in told if "expects TLS" not in line] == []
