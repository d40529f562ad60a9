"""One thing looked at: its finding, within its time, whatever the look raises.

Like all of `doctor`, this imports nothing but the standard library at the top.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from threading import Thread
from typing import Literal

Status = Literal["ok", "warn", "fail"]
Checks = Iterator["Check"]

CHILD_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Check:
    """One thing looked at: what was found, and what to do where that is not well."""

    name: str
    status: Status
    found: str
    advice: str = ""

    def to_json(self) -> dict[str, str]:
        return asdict(self)


def looked(name: str, look: Callable[[], Checks], timeout_s: float) -> list[Check]:
    """Return what a look gives within its time; what it raises is a finding as well."""
    found: list[Check] = []
    failure: list[Exception] = []

    def run() -> None:
        try:
            for check in look():
                found.append(check)
        except Exception as error:
            failure.append(error)

    # A thread that nobody waits for at exit: storage that hangs would hang a pool's threads too.
    thread = Thread(target=run, name=f"doctor {name}", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if thread.is_alive():
        return [*found, _no_answer(name, timeout_s)]
    return [*found, *(failed(name, error) for error in failure)]


def _no_answer(name: str, timeout_s: float) -> Check:
    advice = "Check network, endpoint and mounts, then run again."
    return Check(name, "fail", f"no answer within {timeout_s:g} s", advice)


def failed(name: str, error: Exception) -> Check:
    """Return what a look raised as its finding."""
    if isinstance(error, ImportError):
        return Check(name, "fail", str(error), "Install mrot-scale again in a new environment.")
    is_ours = type(error).__module__.startswith("mrot_scale.")  # these say what to do themselves
    return Check(name, "fail", str(error) if is_ours else f"{type(error).__name__}: {error}")


def child(code: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run code in a process of its own."""
    return subprocess.run(  # noqa: S603 - our own code in our own interpreter
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=CHILD_TIMEOUT_S,
    )


def gib_text(n_bytes: int) -> str:
    """Return a size in one unit, so that sizes below each other compare."""
    return f"{n_bytes / 2**30:.1f} GiB"
