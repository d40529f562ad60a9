"""Processes that tests start and end: an object store, a scheduler, workers, the command itself.

Everything listens on loopback. A process can be given a file system of its own in which nothing of
the machine's temporary folders is seen, as on another machine.
"""

import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

LOOPBACK = "127.0.0.1"
PROJECT = Path(__file__).parent.parent
_STAGING = "/mnt"
_START_S = 120.0


def free_port() -> int:
    """Return a port nobody listens on."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def wait_until(
    happened: Callable[[], Any], what: str, timeout_s: float = _START_S, step_s: float = 0.05
) -> Any:
    """Return what is true at last; fail with `what` when it stays false."""
    give_up = time.monotonic() + timeout_s
    while not (found := happened()):
        assert time.monotonic() < give_up, f"not within {timeout_s:g} s: {what}"
        time.sleep(step_s)
    return found


def answers(port: int) -> bool:
    """Tell whether somebody listens on a port of this machine."""
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True


@dataclass
class Process:
    """A process in a session of its own, with what it wrote so far."""

    popen: "subprocess.Popen[bytes]"
    log: Path
    out: Path

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def errors(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def output(self) -> str:
        return self.out.read_text(errors="replace")

    def wait(self, timeout_s: float) -> int:
        """Return the exit code."""
        return self.popen.wait(timeout_s)

    def send(self, number: signal.Signals, *, group: bool = False) -> None:
        """Send a signal to the process, or to its group as a terminal does."""
        (os.killpg if group else os.kill)(self.pid, number)

    def kill(self) -> None:
        """End the whole session the hard way."""
        for left in session(self.pid):
            left.kill()
        self.popen.wait(10)


def session(leader: int) -> list[Any]:
    """Return the processes of a session that are alive."""
    found = []
    for process in psutil.process_iter():
        try:
            alive = process.status() != psutil.STATUS_ZOMBIE
            if alive and os.getsid(process.pid) == leader:
                found.append(process)
        except (psutil.NoSuchProcess, ProcessLookupError):
            continue
    return found


def listening_hosts(pid: int) -> list[str]:
    """Return the addresses that a process and those it started listen on, one for each port."""
    root = psutil.Process(pid)
    return [
        str(connection.laddr.ip)
        for process in [root, *root.children(recursive=True)]
        if os.getsid(process.pid) == os.getsid(pid)
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    ]


@contextmanager
def started(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Iterator[Any]:
    """Start a process; at the end, nothing of its session is left."""
    with tempfile.TemporaryDirectory(prefix="mrot-test-") as folder:
        log, out = Path(folder) / "stderr", Path(folder) / "stdout"
        with log.open("wb") as errors, out.open("wb") as output:
            popen = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        process = Process(popen, log, out)
        try:
            yield process
        finally:
            process.kill()


@dataclass(frozen=True)
class Mounts:
    """A view of the file system in which something else is mounted."""

    holder: Process

    def inside(self, command: Sequence[str]) -> list[str]:
        """Return a command that sees it."""
        return ["nsenter", f"--target={self.holder.pid}", "--mount", *command]

    def change(self, *command: str) -> None:
        """Run a short command in it."""
        subprocess.run(self.inside(command), check=True, capture_output=True, timeout=60)


@contextmanager
def mounted(*lines: str) -> Iterator[Mounts]:
    """Mount as these lines of shell say; nobody else sees it, and it is gone at the end."""
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs the right to make mount namespaces")
    script = "\n".join(["set -e", *lines, "echo mounted", "exec sleep 3600"])
    with started(["unshare", "-m", "sh", "-c", script]) as process:
        wait_until(
            lambda: "mounted" in process.output or process.popen.poll() is not None, "it is mounted"
        )
        assert process.popen.poll() is None, process.errors
        yield Mounts(process)


def private(command: Sequence[str], *hidden: Path) -> list[str]:
    """Return a command that sees empty temporary folders of its own, and our code read-only."""
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs the right to make mount namespaces")
    covered = ["/tmp", "/var/tmp", "/dev/shm", tempfile.gettempdir(), *map(str, hidden)]
    seen = dict.fromkeys(str(Path(p).resolve()) for p in (PROJECT, sys.prefix, sys.base_prefix))
    lines = ["set -e", f"mount -t tmpfs tmpfs {_STAGING}"]
    for number, place in enumerate(seen):
        lines += [f"mkdir {_STAGING}/{number}", f"mount --bind {place} {_STAGING}/{number}"]
    for folder in dict.fromkeys(covered):
        lines += [f"mkdir -p {folder}", f"mount -t tmpfs tmpfs {folder}"]
    for number, place in enumerate(seen):
        lines += [
            f"mkdir -p {place}",
            f"mount --bind {_STAGING}/{number} {place}",
            f"mount -o remount,bind,ro {place}",
        ]
    lines += [f"umount -R {_STAGING}", "cd /tmp", f"exec {shlex.join(command)}"]
    return ["unshare", "-m", "sh", "-c", "\n".join(lines)]


def mrot(*arguments: str) -> list[str]:
    """Return the command as users run it."""
    return [sys.executable, "-c", "from mrot_scale.cli import main; main()", *arguments]


def run(
    command: Sequence[str], environment: Mapping[str, str] | None = None, timeout_s: float = 150
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    with started(command, environment) as process:
        code = process.wait(timeout_s)
        return subprocess.CompletedProcess(command, code, process.output, process.errors)


def ordered(faults: str) -> dict[str, str]:
    """Return the environment of a process to which something is to happen: `mrot_scale.faults`."""
    return {"MROT_TEST": "1", "MROT_FAULT": faults}


def told(errors: str) -> list[str]:
    """Return what the command said beside its progress."""
    progress = (" steps, ", " step, ", "dashboard: ")
    return [line for line in errors.splitlines() if not any(part in line for part in progress)]


def is_stopped(process: Process) -> bool:
    """Tell whether a process was stopped and can be sent on its way again."""
    return bool(psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)


@dataclass(frozen=True)
class S3:
    """An object store that speaks S3's protocol, and how clients find it."""

    port: int
    process: Process
    environment: dict[str, str] = field(default_factory=dict)


def s3_environment(port: int) -> dict[str, str]:
    """Return the variables that lead S3 clients to a port of this machine."""
    return {
        "AWS_ENDPOINT_URL": f"http://{LOOPBACK}:{port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@contextmanager
def s3_server(**environment: str) -> Iterator[S3]:
    """Start an object store in memory."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", LOOPBACK, "-p", str(port)]
    with started(command, environment) as process:
        wait_until(lambda: answers(port), "the object store listens")
        yield S3(port, process, s3_environment(port))


@dataclass(frozen=True)
class Scheduler:
    """A Dask scheduler."""

    port: int
    process: Process

    @property
    def address(self) -> str:
        return f"tcp://{LOOPBACK}:{self.port}"


@contextmanager
def scheduler(environment: Mapping[str, str] | None = None) -> Iterator[Scheduler]:
    """Start a scheduler."""
    port = free_port()
    command = [
        *(sys.executable, "-m", "dask", "scheduler", "--dashboard-address", f"{LOOPBACK}:0"),
        *("--host", LOOPBACK, "--port", str(port)),
    ]
    with started(command, environment) as process:
        wait_until(lambda: answers(port), "the scheduler listens")
        yield Scheduler(port, process)


def worker_command(address: str, *options: str) -> list[str]:
    """Return the command that starts a worker of one thread."""
    return [
        *(sys.executable, "-m", "dask", "worker", address, "--no-nanny", "--nthreads", "1"),
        *("--host", LOOPBACK, "--dashboard-address", f"{LOOPBACK}:0", "--death-timeout", "60"),
        *options,
    ]


@contextmanager
def worker(
    address: str, environment: Mapping[str, str] | None = None, *, hidden: Sequence[Path] = ()
) -> Iterator[Process]:
    """Start a worker; with hidden folders, in a file system of its own."""
    command = worker_command(address)
    with started(private(command, *hidden) if hidden else command, environment) as process:
        wait_until(lambda: "Registered to" in process.errors, "a worker has registered")
        yield process
