"""How fast a stage goes, and how long the rest of it will take."""

import time
from dataclasses import dataclass

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


@dataclass
class Pace:
    """The steps of one stage in time; what an earlier run did says nothing about the speed."""

    began: float
    done_before: int
    done: int
    total: int
    last: float
    """When the latest step ended."""

    rows: int | None = None
    """Rows of the steps done since it began, where steps are about rows."""

    has_grown: bool = False
    """Whether there turned out to be more steps: then nobody knows how many are left."""

    @classmethod
    def begin(cls, done: int, total: int, now: float) -> "Pace":
        return cls(now, done, done, total, now)

    @property
    def done_now(self) -> int:
        return self.done - self.done_before

    @property
    def is_through(self) -> bool:
        return 0 < self.total <= self.done  # one that does not know its steps begins with 0 of 0

    def advance(self, done: int, total: int, now: float) -> None:
        if done != self.done:
            self.last = now
        self.has_grown |= total > self.total > 0
        self.done, self.total = done, total

    def seconds(self, now: float) -> float:
        """Return how long it has been going on, or went on."""
        return (self.last if self.is_through else now) - self.began

    def rate_text(self) -> str:
        """Return rows or steps per second; nothing before there is anything to say."""
        spent = self.last - self.began
        if self.done_now <= 0 or spent <= 0:
            return ""
        if self.rows is not None:
            return f"{short_number(self.rows / spent)} rows/s"
        if self.total == 1:
            return ""
        return f"{short_number(self.done_now / spent)} steps/s"

    def remaining(self, now: float) -> float | None:
        """Return the seconds that are left if the rest goes like the steps done so far.

        A step that takes longer than those before it raises the mean as it does so.
        """
        if self.done_now <= 0 or self.is_through or self.has_grown:
            return None
        mean = (self.last - self.began) / self.done_now
        mean = max(mean, (now - self.began) / (self.done_now + 1))
        return max((self.total - self.done) * mean - (now - self.last), 0.0)


class OpenStages:
    """The stages that are going on, by name."""

    def __init__(self) -> None:
        self.paces: dict[str, Pace] = {}

    def step(self, stage: str, done: int, total: int) -> Pace:
        """Return how a stage goes after a step; one that is through is forgotten."""
        now = time.perf_counter()
        pace = self.paces.setdefault(stage, Pace.begin(done, total, now))
        pace.advance(done, total, now)
        if pace.is_through:
            del self.paces[stage]
        return pace

    def rows_done(self, stage: str, rows: int) -> None:
        """Take note of the rows that the steps of a stage had so far."""
        if stage in self.paces:
            self.paces[stage].rows = rows


def done_before_text(pace: Pace) -> str:
    """Return what to say of steps that an earlier run has done."""
    if pace.done_before == 0:
        return ""
    return "done before" if pace.done_before >= pace.total else f"{pace.done_before} done before"


def clock_text(seconds: float) -> str:
    """Return a duration as clocks show it: 0:07, 12:30, 1:02:03, 2d 03h."""
    whole = round(seconds)
    if whole >= _DAY:
        return f"{whole // _DAY}d {whole % _DAY // _HOUR:02d}h"
    minutes, rest = divmod(whole, _MINUTE)
    if whole >= _HOUR:
        return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
    return f"{minutes}:{rest:02d}"


def seconds_text(seconds: float) -> str:
    """Return a duration in words: 0.3 s, 42 s, 3 min 20 s, 2 h 05 min."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    minutes, rest = divmod(whole, _MINUTE)
    return (
        f"{minutes} min {rest:02d} s"
        if whole < _HOUR
        else f"{minutes // 60} h {minutes % 60:02d} min"
    )


def short_number(value: float) -> str:
    """Return a number in at most five characters: 0.42, 17.3, 812, 12.3k, 1.23M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size * 0.9995:
            return f"{_three_digits(value / size)}{letter}"
    return _three_digits(value)


def _three_digits(value: float) -> str:
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
