"""One run at a time: who comes second is told who was first, and the dead hold nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mrot_scale.errors import LockedError, OutputError
from mrot_scale.running import lock
from mrot_scale.running.lock import holder, lock_place, locked
from mrot_scale.storing.location import Location
from tests.places import KINDS, fresh_place
from tests.servers import started, wait_until

HOLD = (
    "import sys, time; from mrot_scale.running.lock import locked;"
    "from mrot_scale.storing.location import Location\n"
    "with locked(Location(sys.argv[1])):\n    print('held', flush=True); time.sleep(120)\n"
)


@pytest.fixture(params=KINDS)
def output(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    with fresh_place(request.param, tmp_path) as found:
        yield found / "out"


@contextmanager
def another_holder(output: Location) -> Iterator[int]:
    """Yield the number of a process that holds an output."""
    with started([sys.executable, "-c", HOLD, output.address]) as process:
        wait_until(lambda: "held" in process.output, "the other process holds the lock")
        yield process.pid


def test_who_comes_second_is_told_who_was_first(output: Location) -> None:
    with locked(output), pytest.raises(LockedError) as caught, locked(output):
        pytest.fail("held twice")
    assert caught.value.exit_code == 77
    assert f"process {os.getpid()} on " in str(caught.value)
    assert "since 20" in str(caught.value)


def test_nothing_is_left_once_a_lock_is_given_back(output: Location) -> None:
    with locked(output):
        assert lock_place(output).exists()
        assert holder(output) is not None
    assert not lock_place(output).exists()
    assert holder(output) is None
    with locked(output):
        pass


def test_a_lock_is_given_back_when_the_work_fails(output: Location) -> None:
    with pytest.raises(RuntimeError), locked(output):
        raise RuntimeError
    with locked(output):
        pass


def test_many_outputs_are_held_together_or_none(output: Location) -> None:
    second = output.sibling("second")
    with locked(second), pytest.raises(LockedError, match="second"), locked(output, second):
        pytest.fail("held twice")
    with locked(output, second, output):
        pass


def test_another_process_is_told_at_once_and_the_holder_goes_on(tmp_path: Path) -> None:
    output = Location(tmp_path / "out")
    with another_holder(output) as pid:
        for _ in range(20):
            start = time.monotonic()
            with pytest.raises(LockedError, match=f"process {pid} on"), locked(output):
                pytest.fail("held twice")
            assert time.monotonic() - start < 10  # a hang, not a speed
        found = holder(output)
        assert found is not None
        assert found["pid"] == pid


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    output = Location(tmp_path / "out")
    with another_holder(output) as pid:
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: holder(output) is None, "the kernel lets go")
    assert lock_place(output).exists(), "the file stays, the lock does not"
    with locked(output):
        pass


def test_a_lock_file_removed_by_its_last_holder_is_not_mistaken_for_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = Location(tmp_path / "out")
    path = lock_place(output).path
    opened = lock._opened
    taken: list[int] = []

    def removed_meanwhile(path: Path, output: Location) -> int:
        descriptor = opened(path, output)
        if not taken:
            path.unlink()
        taken.append(descriptor)
        return descriptor

    monkeypatch.setattr(lock, "_opened", removed_meanwhile)
    with locked(output):
        assert len(taken) == 2
        assert path.exists()


def test_a_lock_is_no_way_to_write_elsewhere(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("x")
    lock_place(Location(tmp_path / "out")).path.symlink_to(precious)
    with pytest.raises(OutputError) as caught, locked(Location(tmp_path / "out")):
        pytest.fail("followed a link")
    assert caught.value.exit_code == 73
    assert precious.read_text() == "x"


def test_where_nothing_can_be_written_the_output_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match=r"Cannot write .*file/out"):  # noqa: SIM117
        with locked(Location(tmp_path / "file/out")):
            pytest.fail("locked below a file")


# On object stores ----------------------------------------------------------------------------


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[Location]:
    with fresh_place("memory", tmp_path) as found:
        yield found / "out"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_RENEWED_EVERY_S", 0.05)
    monkeypatch.setattr(lock, "_WATCHED_FOR_S", 1.5)


def leave_behind(output: Location, **changed: object) -> None:
    """Leave a lock as a process does that was killed."""
    found = lock._this_process() | {"id": "gone", "renewed": 3} | changed
    lock_place(output).write(json.dumps(found).encode())


def test_a_dead_holder_on_this_machine_is_replaced_at_once(remote: Location) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    leave_behind(remote, pid=dead.pid, born="1")
    with locked(remote):
        found = holder(remote)
        assert found is not None
        assert found["pid"] == os.getpid()
    assert holder(remote) is None


@pytest.mark.usefixtures("quick")
def test_a_holder_elsewhere_that_is_never_heard_of_is_replaced(remote: Location) -> None:
    leave_behind(remote, machine="another", host="another")
    with locked(remote):
        found = holder(remote)
        assert found is not None
        assert found["pid"] == os.getpid()


@pytest.mark.usefixtures("quick")
def test_a_holder_elsewhere_that_renews_its_lock_keeps_it(
    remote: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    with locked(remote):
        monkeypatch.setattr(lock, "_machine", lambda: "somewhere else")
        with pytest.raises(LockedError, match=f"process {os.getpid()} on"), locked(remote):
            pytest.fail("held twice")


@pytest.mark.usefixtures("quick")
def test_a_holder_that_was_replaced_takes_nothing_back(remote: Location) -> None:
    with locked(remote):
        leave_behind(remote, id="theirs")
        time.sleep(0.3)
    found = holder(remote)
    assert found is not None
    assert found["id"] == "theirs"


def test_a_lock_that_is_no_lock_of_ours_is_watched_like_any_other(
    remote: Location, quick: None
) -> None:
    lock_place(remote).write(b"garbage")
    with locked(remote):
        pass
