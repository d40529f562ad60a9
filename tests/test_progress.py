"""What is shown while work goes on."""

import io
import json
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
import rich.console

from mrot_scale import progress
from mrot_scale.progress import (
    StageEvents,
    StageLines,
    TimedStages,
    shown_progress,
    tell_dashboard,
    tell_rows,
)
from mrot_scale.progress_bars import StageBars


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    def report(*calls: tuple[str, int, int]) -> list[str]:
        lines = StageLines()
        for call in calls:
            lines(*call)
        return capsys.readouterr().err.splitlines()

    return report


def test_a_stage_is_told_once_when_it_is_through(told: Callable[..., list[str]]) -> None:
    assert told(("fit", 0, 2), ("fit", 1, 2)) == []
    assert told(("fit", 0, 2), ("fit", 1, 2), ("fit", 2, 2)) == ["fit: 2 steps, 0.0 s"]


def test_what_an_earlier_run_did_is_told(told: Callable[..., list[str]]) -> None:
    assert told(("fit", 2, 2)) == ["fit: 2 steps, done before"]
    assert told(("fit", 1, 2), ("fit", 2, 2)) == ["fit: 2 steps, 0.0 s, 1 done before"]


def test_steps_may_grow_and_a_stage_may_come_again(told: Callable[..., list[str]]) -> None:
    ingest = [("ingest", 0, 0), ("ingest", 1, 3), ("ingest", 3, 4), ("ingest", 4, 4)]
    assert told(*ingest, *ingest) == ["ingest: 4 steps, 0.0 s"] * 2


def test_a_stage_without_steps_is_not_told(told: Callable[..., list[str]]) -> None:
    assert told(("nothing", 0, 0)) == []


def test_rows_are_told_as_speed(told: Callable[..., list[str]]) -> None:
    lines = StageLines()
    lines("score", 0, 2)
    tell_rows(lines, "score", 5)
    lines("score", 2, 2)
    (line,) = told()
    assert re.fullmatch(r"score: 2 steps, \d\.\d s, [\d.]+[kMG]? rows/s", line)


def test_a_report_that_knows_no_rows_and_dashboards_is_not_told_of_them() -> None:
    calls: list[tuple[str, int, int]] = []
    report = lambda *call: calls.append(call)  # noqa: E731
    tell_rows(report, "score", 5)
    tell_dashboard(report, "http://127.0.0.1:8787/status")
    assert calls == []


def test_times_are_kept_and_everything_is_handed_on(capsys: pytest.CaptureFixture[str]) -> None:
    timed = TimedStages(StageEvents())
    tell_dashboard(timed, "http://127.0.0.1:8787/status")
    for call in (("score", 0, 2), ("score", 1, 2), ("fit", 1, 1)):
        timed(*call)
    tell_rows(timed, "score", 7)
    timed("score", 2, 2)
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [event["event"] for event in events] == ["dashboard", "stage", "stage"]
    assert events[0]["address"] == "http://127.0.0.1:8787/status"
    assert events[2]["rows"] == 7
    assert list(timed.seconds) == ["fit", "score"]
    timed("fit", 1, 1)
    assert list(timed.seconds) == ["fit", "score"], "a stage that comes again is added to"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("error_stream", "terminal", "expected"),
    [(_Terminal(), "xterm", StageBars), (_Terminal(), "dumb", StageLines),
     (io.StringIO(), "xterm", StageLines)],
)  # fmt: skip
def test_bars_are_for_terminals(
    error_stream: io.StringIO, terminal: str, expected: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", error_stream)
    monkeypatch.setenv("TERM", terminal)
    with shown_progress() as report:
        assert isinstance(report, expected)


@pytest.mark.parametrize(("widgets", "expected"), [(object(), StageBars), (None, StageLines)])
def test_notebooks_get_bars_where_they_can_draw_them(
    widgets: Any, expected: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    monkeypatch.setattr(progress, "find_spec", lambda _: widgets)
    monkeypatch.setattr("rich.live.Live.refresh", lambda _: None)  # would look for a kernel
    with shown_progress() as report:
        assert isinstance(report, expected)
