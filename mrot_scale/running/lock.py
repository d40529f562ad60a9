"""One run at a time on an output; another is told at once who holds it.

On disk the kernel keeps the lock and frees it when its holder dies, however it dies. Object stores
have no such thing: there the holder renews an object every few seconds, and one that nobody renews
while another run watches is taken over. Clocks are never compared. A holder that comes back after
that finds its journal gone on without it.
"""

import fcntl
import json
import os
import socket
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from mrot_scale.errors import LockedError, MrotError, OutputError
from mrot_scale.faults import reach
from mrot_scale.storing.location import Location

_RENEWED_EVERY_S = 3.0
_WATCHED_FOR_S = 20.0
"""How long a lock must stay as it is before its holder counts as dead."""

_GIVEN_BACK_S = 3.0
"""How long giving a lock back may take; storage that hangs shows others that nobody renews it."""

_held_here: set[str] = set()
"""The locks on object stores that this process holds or tries to get."""


class UnlockedStorageWarning(UserWarning):
    """Files cannot be locked where an output is to be."""


@contextmanager
def locked(*outputs: Location) -> Iterator[None]:
    """Hold outputs for this run."""
    with ExitStack() as held:
        for place in sorted(set(outputs), key=str):
            held.enter_context(_held_file(place) if place.is_local else _held_object(place))
        reach("lock.taken")
        yield


def lock_place(output: Location) -> Location:
    """Return where the lock of an output is, while somebody holds it."""
    return output.sibling(f".{output.name}.lock")


def holder(output: Location) -> dict[str, Any] | None:
    """Return who holds an output, as far as it can be told; None if nobody does."""
    place = lock_place(output)
    if not place.is_local:
        found = place.read_marked()
        return None if found is None else _read_holder(found[0])
    try:
        descriptor = os.open(place.path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_holder(os.read(descriptor, 4096))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None


def _locked(output: Location, found: dict[str, Any]) -> LockedError:
    who = (
        f"process {found.get('pid')} on {found.get('host')} since {found.get('since')}"
        if found
        else "a run that is just beginning"
    )
    return LockedError(f"{output} is being written by {who}. Wait for it, or stop it.")


def _this_process() -> dict[str, Any]:
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": _machine(),
        "born": _born(os.getpid()),
    }


def _read_holder(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


# On disk -------------------------------------------------------------------------------------


@contextmanager
def _held_file(output: Location) -> Iterator[None]:
    path = lock_place(output).path
    descriptor = _lock_file(path, output)
    try:
        with suppress(OSError):  # a full disk: who it is cannot be told, but it is held
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(_this_process()).encode(), 0)
        yield
    finally:
        with suppress(OSError):
            path.unlink()  # held until closed: whoever gets the old file sees that it is gone
        os.close(descriptor)


def _lock_file(path: Path, output: Location) -> int:
    while True:
        descriptor = _opened(path, output)
        try:
            _take(descriptor, output)
            if _is_at(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its holder removed it as it ended


def _is_at(descriptor: int, path: Path) -> bool:
    """Tell whether an open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _opened(path: Path, output: Location) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise OutputError(f"Cannot write {output}: {error.strerror}.") from error


def _take(descriptor: int, output: Location) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _locked(output, _read_holder(os.pread(descriptor, 4096, 0))) from None
    except OSError as error:
        warnings.warn(
            f"Files cannot be locked beside {output} ({error.strerror}): see to it that no other "
            "run writes there.",
            UnlockedStorageWarning,
            stacklevel=2,
        )


# On object stores ----------------------------------------------------------------------------


@contextmanager
def _held_object(output: Location) -> Iterator[None]:
    lease = _Lease(output)
    lease.take()
    try:
        yield
    finally:
        lease.give_back()


class _Lease:
    """An object that says who is at work, renewed as long as that is so."""

    def __init__(self, output: Location) -> None:
        self._output, self._place = output, lock_place(output)
        self._holder = _this_process() | {"id": uuid4().hex}
        self._renewed = 0
        self._mark = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)

    def take(self) -> None:
        _held_here.add(self._holder["id"])
        try:
            while not self._place.write_new(self._content()):
                found = self._place.read_marked()
                if found is not None and self._take_over(*found):
                    break
            self._remember_mark()
        except BaseException:
            _held_here.discard(self._holder["id"])
            raise
        self._thread.start()

    def give_back(self) -> None:
        """Let go, or soon cease to hold: a run that is over does not fail for want of storage."""
        self._ended.set()
        ending = threading.Thread(target=self._remove, daemon=True)
        ending.start()
        ending.join(_GIVEN_BACK_S)
        _held_here.discard(self._holder["id"])

    def _remove(self) -> None:
        self._thread.join()
        with suppress(MrotError):
            found = self._place.read_marked()
            if found is not None and _read_holder(found[0]).get("id") == self._holder["id"]:
                self._place.remove()

    def _content(self) -> bytes:
        return json.dumps(self._holder | {"renewed": self._renewed}).encode()

    def _remember_mark(self) -> None:
        found = self._place.read_marked()
        self._mark = "" if found is None else found[1]

    def _take_over(self, content: bytes, mark: str) -> bool:
        """Take the place of a holder that has died; refuse where it is alive."""
        found = _read_holder(content)
        alive = _is_alive(found)
        if alive is None:
            alive = self._watched(mark)
        if alive:
            raise _locked(self._output, found)
        return self._place.replace_marked(self._content(), mark)

    def _watched(self, mark: str) -> bool:
        """Tell whether a holder on another machine renews its lock, or gives it back."""
        give_up = time.monotonic() + _WATCHED_FOR_S
        while time.monotonic() < give_up:
            time.sleep(0.5)
            found = self._place.read_marked()
            if found is None:
                return False
            if found[1] != mark:
                return True
        return False

    def _renew(self) -> None:
        while not self._ended.wait(_RENEWED_EVERY_S):
            self._renewed += 1
            with suppress(MrotError):  # storage may be away for a while: the journal will tell
                if not self._place.replace_marked(self._content(), self._mark):
                    return  # taken over: from now on, the journal refuses what this run adds
                self._remember_mark()


def _is_alive(found: dict[str, Any]) -> bool | None:
    """Tell whether a holder on this machine lives; None for one elsewhere."""
    if found.get("machine") != _machine():
        return None
    if found.get("pid") == os.getpid():  # it may have failed to give it back
        return found.get("id") in _held_here
    return isinstance(found.get("pid"), int) and _born(found["pid"]) == found.get("born")


def _machine() -> str:
    """Return what tells process numbers here from those elsewhere: host, boot and namespace."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    namespace = Path("/proc/self/ns/pid")
    return " ".join(
        [
            socket.gethostname(),
            boot.read_text().strip() if boot.exists() else "",
            str(namespace.readlink()) if namespace.is_symlink() else "",
        ]
    )


def _born(pid: int) -> str | None:
    """Return when a process was started, in ticks: its number may be used again."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return None
