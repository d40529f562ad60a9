"""Bars on a terminal or in a notebook: open stages move, those that are through stay above."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from mrot_scale.pace import OpenStages, Pace, clock_text, done_before_text
from mrot_scale.terminal_text import printable

_NAME, _STEPS, _TIME, _RATE, _LEFT = 12, 9, 7, 12, 14
_WIDEST_BAR, _NARROWEST_BAR = 40, 8
_REFRESHES_PER_S = 4

HEAVY, LIGHT = "━", "─"
"""Two lines that differ without colours as well."""


class StageBars:
    """Draws a bar for each stage that is going on, with its speed and the time that is left."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._open = OpenStages()
        self.rows_done = self._open.rows_done

    def __call__(self, stage: str, done: int, total: int) -> None:
        pace = self._open.step(stage, done, total)
        if pace.is_through:
            self._console.print(self._line(stage, pace, pace.last))

    def dashboard(self, address: str) -> None:
        self._console.print(_plain(f"{'dashboard':>{_NAME}} {printable(address)}"))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        now = time.perf_counter()
        for stage, pace in list(self._open.paces.items()):
            yield self._line(stage, pace, now)

    def _line(self, stage: str, pace: Pace, now: float) -> Text:
        is_ascii = not self._console.encoding.startswith("utf")
        text = bar_line(stage, pace, now, self._console.width - 1, is_ascii=is_ascii)
        line = _plain(text)
        if not self._console.no_color:
            line.highlight_regex(f"[{HEAVY}#]+", "green" if pace.is_through else "cyan")
            line.highlight_regex(f"{LIGHT}+", "dim")
        return line


@contextmanager
def drawn_bars(console: Console) -> Iterator[StageBars]:
    """Yield bars that move until the end; what went wrong in between leaves them where they are."""
    bars = StageBars(console)
    with Live(
        bars, console=console, refresh_per_second=_REFRESHES_PER_S, redirect_stdout=False
    ):  # results on standard output are none of its business
        yield bars


def _plain(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ellipsis", end="\n")


def bar_line(stage: str, pace: Pace, now: float, width: int, *, is_ascii: bool = False) -> str:
    """Return one line of at most `width` characters; where it is narrow, less is told."""
    left = pace.remaining(now)
    note = done_before_text(pace)
    fields = {
        "steps": f"{pace.done}/{pace.total or '?'}".rjust(_STEPS),
        "time": clock_text(pace.seconds(now)).rjust(_TIME),
        "rate": pace.rate_text().rjust(_RATE),
        "left": ("" if left is None else f"{clock_text(left)} left").rjust(_LEFT),
        "note": note,
    }
    if pace.is_through and note:
        fields["left"] = fields.pop("note").rjust(_LEFT)
    name = printable(stage)[:_NAME].rjust(_NAME)
    for dropped in ("note", "time", "rate", "left"):
        if _room(name, fields, width) >= _NARROWEST_BAR:
            break
        fields.pop(dropped, None)
    room = _room(name, fields, width)
    bar = [_bar(pace, min(room, _WIDEST_BAR), is_ascii)] if room >= _NARROWEST_BAR else []
    return " ".join([name, *bar, *filter(None, fields.values())]).rstrip()[:width]


def _room(name: str, fields: dict[str, str], width: int) -> int:
    taken = [name, *filter(None, fields.values())]
    return width - sum(map(len, taken)) - len(taken)


def _bar(pace: Pace, length: int, is_ascii: bool) -> str:
    full = length * min(pace.done, pace.total) // pace.total if pace.total else 0
    heavy, light = ("#", ".") if is_ascii else (HEAVY, LIGHT)
    return heavy * full + light * (length - full)
