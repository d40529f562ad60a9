"""A plan as values, as text and as a reason to refuse: what each stage needs, before any of it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mrot_scale.errors import BudgetError, OutputError
from mrot_scale.terminal_text import size_text

_HEADER = ("stage", "tasks", "read", "written", "memory/task", "work")


@dataclass(frozen=True)
class StagePlan:
    """The tasks of one stage, and what they need at most."""

    name: str
    n_tasks: int
    read_bytes: int
    """By all tasks together."""

    written_bytes: int
    """By all tasks together."""

    task_bytes: int
    """Peak memory of one task, on top of what the process itself takes."""

    arithmetic: str
    """The sum that gives `task_bytes`."""

    setting: str
    """What to change for a smaller task."""

    seconds: float | None = None
    """Estimated work of all tasks on one worker; None without calibration."""

    one_by_one: bool = False
    """Whether its tasks wait for each other, however many workers there are."""


@dataclass(frozen=True)
class Plan:
    """What a command will do, and on what."""

    command: str
    stages: tuple[StagePlan, ...]
    workers: int
    worker_bytes: int | None
    """Memory of one worker; None where only the cluster knows it."""

    base_bytes: int
    """Memory of a worker that has loaded everything and done nothing."""

    disk_bytes: int
    """Written by all stages and kept until the end, and the output."""

    @property
    def n_tasks(self) -> int:
        return sum(stage.n_tasks for stage in self.stages)

    @property
    def worst(self) -> StagePlan:
        """The stage with the largest task."""
        return max(self.stages, key=lambda stage: stage.task_bytes)

    @property
    def needed_bytes(self) -> int:
        """Memory a worker needs to be able to run every task."""
        return self.base_bytes + self.worst.task_bytes

    @property
    def seconds(self) -> float | None:
        """Estimated time from start to end; None without calibration."""
        total = 0.0
        for stage in self.stages:
            if stage.seconds is None:
                return None
            side_by_side = 1 if stage.one_by_one else min(self.workers, max(stage.n_tasks, 1))
            total += stage.seconds / side_by_side
        return total

    def check(self) -> None:
        """Refuse a plan with a task that would not fit a worker, showing the sum."""
        if self.worker_bytes is None or self.needed_bytes <= self.worker_bytes:
            return
        worst = self.worst
        raise BudgetError(
            f"Stage {worst.name!r} needs {size_text(worst.task_bytes)} per task "
            f"({worst.arithmetic}) on top of the process's {size_text(self.base_bytes)}, "
            f"{size_text(self.needed_bytes)} in all, but a worker has "
            f"{size_text(self.worker_bytes)}. Lower {worst.setting}, or give workers more memory: "
            "raise cluster.memory_limit, or lower cluster.workers."
        )

    def check_disk(self, free_bytes: int) -> None:
        """Refuse a plan that would fill the disk its run folder is on."""
        if self.disk_bytes > free_bytes:
            raise OutputError(
                f"{self.command} may write {size_text(self.disk_bytes)}, but only "
                f"{size_text(free_bytes)} are free. Make room, or set run.folder to another disk."
            )

    def to_json(self) -> dict[str, Any]:
        """Return the plan with its totals, in types that JSON has."""
        found = asdict(self) | {"stages": [asdict(stage) for stage in self.stages]}
        totals = {"n_tasks": self.n_tasks, "needed_bytes": self.needed_bytes}
        return found | totals | {"seconds": self.seconds}


def plan_text(plan: Plan) -> str:
    """Return the plan for people: a line per stage, then what it comes to."""
    rows = [_HEADER, *(_cells(stage) for stage in plan.stages), _total_cells(plan)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADER))]
    lines = [f"{plan.command}: {plan.n_tasks:,} task(s) on {_workers_text(plan)}", ""]
    lines += ["  ".join(_aligned(row, widths)).rstrip() for row in rows]
    return "\n".join([*lines, "", *_summary(plan)])


def duration_text(seconds: float | None) -> str:
    """Return an estimated time, rounded the way estimates deserve."""
    if seconds is None:
        return "unknown"
    if seconds < 1:
        return "under 1 s"
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"about {seconds / length:.3g} {unit}"
    return f"about {seconds:.2g} s" if seconds < 10 else f"about {seconds:.0f} s"


def _cells(stage: StagePlan) -> tuple[str, ...]:
    return (
        stage.name,
        f"{stage.n_tasks:,}",
        size_text(stage.read_bytes),
        size_text(stage.written_bytes),
        size_text(stage.task_bytes),
        duration_text(stage.seconds),
    )


def _total_cells(plan: Plan) -> tuple[str, ...]:
    known = [stage.seconds for stage in plan.stages if stage.seconds is not None]
    return (
        "total",
        f"{plan.n_tasks:,}",
        size_text(sum(stage.read_bytes for stage in plan.stages)),
        size_text(sum(stage.written_bytes for stage in plan.stages)),
        f"max {size_text(plan.worst.task_bytes)}",
        duration_text(sum(known) if len(known) == len(plan.stages) else None),
    )


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    first, *others = zip(cells, widths, strict=True)
    return [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]


def _workers_text(plan: Plan) -> str:
    memory = "memory unknown" if plan.worker_bytes is None else size_text(plan.worker_bytes)
    return f"{plan.workers} worker(s), {memory}" + ("" if plan.worker_bytes is None else " each")


def _summary(plan: Plan) -> list[str]:
    worst = plan.worst
    fits = plan.worker_bytes is None or plan.needed_bytes <= plan.worker_bytes
    return [
        f"Memory per worker: {size_text(plan.base_bytes)} + {size_text(worst.task_bytes)} "
        f"({worst.name}) = {size_text(plan.needed_bytes)} at most"
        + ("." if fits else ": does not fit."),
        f"  {worst.name}: {worst.arithmetic}; to lower it: {worst.setting}.",
        f"Disk: {size_text(plan.disk_bytes)} at most, until the run is done.",
        "Time: not estimated."
        if plan.seconds is None
        else f"Time: {duration_text(plan.seconds)}, an estimate from a short calibration here.",
    ]
