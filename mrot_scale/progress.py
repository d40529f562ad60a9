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
from typing import TYPE_CHECKING, Any

from mrot_scale.pace import OpenStages, Pace, done_before_text, seconds_text
from mrot_scale.terminal_text import printable

if TYPE_CHECKING:
    from rich.console import Console

Report = Callable[[str, int, int], None]
"""Called with stage, steps done and steps in all.

The first call of a stage tells what was done before it began, 0 where nothing was. The number of
steps may grow, and a stage may come again after it was through. A report may have methods as well,
`rows_done(stage, rows)` and `dashboard(address)`; one that has not is not told.
"""


@dataclass
class StageTimes:
    """Seconds spent in each named step, in order."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start


def tell_rows(report: Report, stage: str, rows: int) -> None:
    """Tell how many rows the steps of a stage had since it began, to a report that shows speed."""
    _told_to(report, "rows_done", stage, rows)


def tell_dashboard(report: Report, address: str) -> None:
    """Tell where workers can be watched."""
    _told_to(report, "dashboard", address)


def _told_to(report: Report, method: str, *facts: Any) -> None:
    found = getattr(report, method, None)
    if found is not None:
        found(*facts)


@contextmanager
def shown_progress(*, quiet: bool = False) -> Iterator[Report]:
    """Yield a report function that draws bars where they can be drawn and writes lines elsewhere.

    In a notebook: ``with shown_progress() as report: fit(store, model, progress=report)``.
    """
    if quiet:
        yield silent
        return
    from rich.console import Console

    console = Console(stderr=True, highlight=False, soft_wrap=False)
    if _can_draw(console):
        from mrot_scale.progress_bars import drawn_bars

        with drawn_bars(console) as bars:
            yield bars
    else:
        yield StageLines()


@contextmanager
def logged_progress(*, quiet: bool = False) -> Iterator[Report]:
    """Yield the same for scheduled jobs: lines of JSON where nobody is looking."""
    if quiet or sys.stderr.isatty():
        with shown_progress(quiet=quiet) as report:
            yield report
    else:
        yield StageEvents()


def silent(stage: str, done: int, total: int) -> None:
    """Report to nobody."""


class TimedStages:
    """Hands everything on to another report, and keeps the seconds of each stage."""

    def __init__(self, report: Report | None, seconds: dict[str, float] | None = None) -> None:
        self._report = report or silent
        self.seconds: dict[str, float] = {} if seconds is None else seconds
        self._open = OpenStages()

    def __call__(self, stage: str, done: int, total: int) -> None:
        pace = self._open.step(stage, done, total)
        if pace.is_through:
            spent = self.seconds.get(stage, 0.0) + pace.last - pace.began
            self.seconds[stage] = round(spent, 3)
        self._report(stage, done, total)

    def rows_done(self, stage: str, rows: int) -> None:
        tell_rows(self._report, stage, rows)

    def dashboard(self, address: str) -> None:
        tell_dashboard(self._report, address)


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
        self._open = OpenStages()
        self.rows_done = self._open.rows_done

    def __call__(self, stage: str, done: int, total: int) -> None:
        pace = self._open.step(stage, done, total)
        if not pace.is_through:
            return
        seconds = round(pace.last - pace.began, 3)
        facts = {"steps": pace.total, "done_before": pace.done_before, "seconds": seconds}
        if pace.rows is not None:
            facts["rows"] = pace.rows
        write_event("stage", stage=stage, **facts)

    def dashboard(self, address: str) -> None:
        write_event("dashboard", address=address)


class StageLines:
    """Writes one line for each stage when it is through."""

    def __init__(self) -> None:
        self._open = OpenStages()
        self.rows_done = self._open.rows_done

    def __call__(self, stage: str, done: int, total: int) -> None:
        pace = self._open.step(stage, done, total)
        if pace.is_through:
            _print_line(f"{stage}: {_through_text(pace)}")

    def dashboard(self, address: str) -> None:
        _print_line(f"dashboard: {printable(address)}")


def _through_text(pace: Pace) -> str:
    steps = f"{pace.total} step{'s' if pace.total > 1 else ''}"
    took = "" if pace.done_now == 0 else seconds_text(pace.last - pace.began)
    rate = "" if pace.rows is None else pace.rate_text()
    return ", ".join(filter(None, [steps, took, rate, done_before_text(pace)]))


def _print_line(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _can_draw(console: "Console") -> bool:
    if console.is_jupyter:
        return find_spec("ipywidgets") is not None  # without it, rich shows nothing but a warning
    return sys.stderr.isatty() and not console.is_dumb_terminal
