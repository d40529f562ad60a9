"""Progress of long work: bars on a terminal or in a notebook, one line per stage anywhere else."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

Report = Callable[[str, int, int], None]
"""Called with stage, steps done and steps in all.

The first call of a stage tells what was done before it began, 0 where nothing was. The number of
steps may grow, and a stage may come again after it was through.
"""

_DONE_BEFORE = "done before"


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
    """Yield a report function that draws bars where they can be drawn and writes lines elsewhere.

    In a notebook: ``with shown_progress() as report: fit(store, model, progress=report)``.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if _can_draw(console):
        with _drawn(console) as bars:
            yield StageBars(bars)
    else:
        yield StageLines()


@contextmanager
def logged_progress() -> Iterator[Report]:
    """Yield the same for scheduled jobs: lines of JSON where nobody is looking."""
    if sys.stderr.isatty():
        with shown_progress() as report:
            yield report
    else:
        yield StageEvents()


def write_event(event: str, **facts: object) -> None:
    """Write one line of JSON to standard error, with the id of the run it belongs to."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    found = {"at": at, "run_id": _RUN_ID.get(), "event": event, **facts}
    print(json.dumps(found, default=str), file=sys.stderr, flush=True)


_RUN_ID: ContextVar[str | None] = ContextVar("run_id", default=None)


@contextmanager
def in_run(run_id: str) -> Iterator[None]:
    """Let all events within be of one run."""
    before = _RUN_ID.set(run_id)
    try:
        yield
    finally:
        _RUN_ID.reset(before)


def is_logging_events() -> bool:
    """Whether a scheduled run is going on that nobody is looking at."""
    return _RUN_ID.get() is not None and not sys.stderr.isatty()


class StageEvents:
    """Writes a line of JSON for each stage when it is through."""

    def __init__(self) -> None:
        self._open: dict[str, _Begun] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        begun = self._open.setdefault(stage, _Begun(time.perf_counter(), done))
        if _is_through(done, total):
            del self._open[stage]
            seconds = round(time.perf_counter() - begun.at, 3)
            facts = {"steps": total, "done_before": begun.done_before, "seconds": seconds}
            write_event("stage", stage=stage, **facts)


def _can_draw(console: "Console") -> bool:
    if console.is_jupyter:
        return find_spec("ipywidgets") is not None  # without it, rich shows nothing but a warning
    return sys.stderr.isatty() and not console.is_dumb_terminal


def _drawn(console: "Console") -> "Progress":
    from rich import progress

    return progress.Progress(
        progress.TextColumn("{task.description:>12}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("{task.fields[note]}"),
        console=console,
    )


class StageBars:
    """Draws a bar for each stage, below those before it."""

    def __init__(self, bars: "Progress") -> None:
        self._bars = bars
        self._open: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage not in self._open:
            note = _note(done, total)
            self._open[stage] = self._bars.add_task(stage, total=total or None, note=note)
        self._bars.update(self._open[stage], completed=done, total=total or None)
        if _is_through(done, total):
            del self._open[stage]


@dataclass
class _Begun:
    at: float
    done_before: int


class StageLines:
    """Writes one line for each stage when it is through."""

    def __init__(self) -> None:
        self._open: dict[str, _Begun] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        begun = self._open.setdefault(stage, _Begun(time.perf_counter(), done))
        if not _is_through(done, total):
            return
        del self._open[stage]
        steps = f"{total} step{'s' if total > 1 else ''}"
        took = f"{time.perf_counter() - begun.at:.1f} s"
        note = _note(begun.done_before, total)
        said = [steps, note] if begun.done_before == total else [steps, took, note]
        print(f"{stage}: {', '.join(filter(None, said))}", file=sys.stderr, flush=True)


def _is_through(done: int, total: int) -> bool:
    return 0 < total <= done  # a stage that does not know its steps yet begins with 0 of 0


def _note(done_before: int, total: int) -> str:
    """Return what to say of steps that an earlier run has done."""
    if done_before == 0:
        return ""
    return _DONE_BEFORE if done_before >= total else f"{done_before} {_DONE_BEFORE}"
