"""What could go wrong on this machine, found before a job does.

Nothing here raises and everything ends: what a check cannot find out is its finding. Only the
standard library is imported at the top, for a broken installation is one of the findings.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mrot_scale.doctor_checks import CHILD_TIMEOUT_S, Check, looked
from mrot_scale.doctor_disks import temporary_files
from mrot_scale.doctor_libraries import libraries, native_libraries, python
from mrot_scale.doctor_machine import memory, threads
from mrot_scale.doctor_storage import storage_look
from mrot_scale.doctor_workers import workers_look

if TYPE_CHECKING:
    from mrot_scale.config.cluster import ClusterConfig

STORAGE_TIMEOUT_S = 60.0
SCHEDULER_TIMEOUT_S = 120.0


def checks(
    storage: Sequence[str] = (), scheduler: "str | ClusterConfig | None" = None
) -> list[Check]:
    """Return what was found about installation, machine, storage and workers.

    `scheduler` is an address to connect to or the settings of a cluster; without it, a worker is
    started on this machine.
    """
    found: list[Check] = []
    for name, look in (
        ("python", python),
        ("libraries", libraries),
        ("native libraries", native_libraries),
        ("threads", threads),
        ("memory", memory),
        ("temporary files", temporary_files),
    ):
        found += looked(name, look, STORAGE_TIMEOUT_S + CHILD_TIMEOUT_S)
    sound = []
    for address in storage:
        there = looked(f"storage {address}", storage_look(address), STORAGE_TIMEOUT_S)
        found += there
        if all(check.status != "fail" for check in there):
            sound.append(address)
    return found + looked("workers", workers_look(scheduler, sound), SCHEDULER_TIMEOUT_S)


def doctor_text(found: Sequence[Check]) -> str:
    """Return the checks as aligned lines, each with what to do below it, and a summary."""
    width = max((len(_one_line(c.name)) for c in found), default=0)
    lines = []
    for check in found:
        lines.append(
            f"{check.status:<4}  {_one_line(check.name):<{width}}  {_one_line(check.found)}"
        )
        if check.advice:
            lines.append(f"{'':<{width + 6}}  -> {_one_line(check.advice)}")
    counts = {status: sum(c.status == status for c in found) for status in ("ok", "warn", "fail")}
    return "\n".join([*lines, "", ", ".join(f"{n} {status}" for status, n in counts.items())])


def _one_line(text: str) -> str:
    """Return a text without line breaks and control characters, whoever wrote it."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
