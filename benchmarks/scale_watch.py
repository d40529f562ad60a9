"""A Python command in a process of its own: seconds, memory and bytes of it and all below it."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import benchmarks
from benchmarks.memory import _tree as process_tree
from mrot_scale.errors import MrotError

ROOT = Path(benchmarks.__file__).parent.parent
"""Where `python -m benchmarks` works from."""

_LOOK_S = 0.1
_BYTES = ("rchar", "wchar", "read_bytes", "write_bytes")
_LONGEST_LOG = 2_000


class CommandFailedError(MrotError):
    """A measured command ended with an error."""


@dataclass
class Peaks:
    """The most that was seen of a tree of processes."""

    root: int
    of_process: dict[int, int] = field(default_factory=dict)
    """KiB by process, as the kernel has them (VmHWM)."""

    tree: int = 0
    """KiB of all processes at the time they were most together."""

    bytes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_BYTES, 0))
    """The kernel adds those of a child that has ended to its parent: sums over the living count."""

    cpu_s: float = 0.0
    """Seconds of processors, likewise."""

    def look(self) -> None:
        """Take note of what the tree is now."""
        together, cpu_s, moved = 0, 0.0, dict.fromkeys(_BYTES, 0)
        for pid in process_tree(self.root):
            status, io = _numbers(pid, "status"), _numbers(pid, "io")
            peak = max(self.of_process.get(pid, 0), status.get("VmHWM", 0))
            self.of_process[pid] = peak
            together += status.get("VmRSS", 0)
            cpu_s += _cpu_seconds(pid)
            moved = {name: n + io.get(name, 0) for name, n in moved.items()}
        self.tree, self.cpu_s = max(self.tree, together), max(self.cpu_s, cpu_s)
        self.bytes = {name: max(n, self.bytes[name]) for name, n in moved.items()}

    def figures(self) -> dict[str, Any]:
        """Return the figures by role, in MiB and bytes."""
        below = [peak for pid, peak in self.of_process.items() if pid != self.root]
        return {
            "driver_mib": self.of_process.get(self.root, 0) / 1024,
            "worker_mib": max(below, default=0) / 1024,
            "tree_mib": self.tree / 1024,
            "bytes": self.bytes,
            "cpu_s": self.cpu_s,
        }


def _numbers(pid: int, name: str) -> dict[str, int]:
    """Return the numbers of a file in /proc; none of a process that is gone."""
    try:
        text = Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return {}
    return {key: int(n) for key, n in re.findall(r"^(\w+):\s+(\d+)", text, re.MULTILINE)}


def _cpu_seconds(pid: int) -> float:
    """Return what a process and its children that have ended took of the processors."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    ticks = text.rpartition(")")[2].split()[11:15]  # the name before may hold anything
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Watched:
    """What a command said, and what it took."""

    out: str
    log: str
    began: float
    """Seconds since the epoch, as run logs have them."""

    seconds: float
    peaks: Peaks

    def figures(self) -> dict[str, Any]:
        return {"seconds": self.seconds, **self.peaks.figures()}


def watched(
    words: list[str], *, folder: Path = ROOT, environment: Mapping[str, str] | None = None
) -> Watched:
    """Run a Python command to its end and return what was seen of it."""
    began, start = time.time(), time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    peaks = Peaks(process.pid)
    watcher = threading.Thread(target=_watch, args=(process, peaks), daemon=True)
    watcher.start()
    try:
        out, log = process.communicate()
        seconds = time.perf_counter() - start
    finally:
        process.terminate()  # where we are being stopped; one that has ended does not mind
        process.wait()
        watcher.join()
    if process.returncode:
        told = log[-_LONGEST_LOG:] or f"exit code {process.returncode}"
        raise CommandFailedError(f"{' '.join(words)} failed: {told}")
    return Watched(out, log, began, seconds, peaks)


def _watch(process: "subprocess.Popen[str]", peaks: Peaks) -> None:
    while process.poll() is None:
        peaks.look()
        time.sleep(_LOOK_S)
