"""Progress of long work: bars on a terminal, one line per stage anywhere else."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Report = Callable[[str, int, int], None]
"""Called with stage, steps done and steps in all."""


@dataclass
class StageTimes:
    """Seconds spent in each named step, in order."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start


@contextmanager
def shown_progress() -> Iterator[Report]:
    """Yield a report function that draws bars on a terminal and writes lines elsewhere."""
    if sys.stderr.isatty():
        with _bars() as report:
            yield report
    else:
        yield _line_per_stage()


@contextmanager
def _bars() -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = TextColumn("{task.description:>10}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bars:
        tasks: dict[str, object] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)  # type: ignore[arg-type]

        yield report


def _line_per_stage() -> Report:
    started: dict[str, float] = {}

    def report(stage: str, done: int, total: int) -> None:
        started.setdefault(stage, time.perf_counter())
        if done == total:
            took = time.perf_counter() - started[stage]
            print(f"{stage}: {total} steps, {took:.1f} s", file=sys.stderr, flush=True)

    return report
