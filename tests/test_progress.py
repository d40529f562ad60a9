"""What is shown while work goes on."""

import io
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
import rich.console
from rich.console import Console

from mrot_scale import progress
from mrot_scale.progress import StageBars, StageLines, shown_progress


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


def drawn(console: Console, *calls: tuple[str, int, int]) -> str:
    with progress._drawn(console) as bars:
        report = StageBars(bars)
        for call in calls:
            report(*call)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_bars_show_steps_and_what_was_done_before() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)
    last = drawn(console, ("fit", 2, 5), ("fit", 4, 5), ("ingest", 0, 0), ("ingest", 3, 3))
    plain = re.sub(r"\x1b\[\??\d*[A-Za-z]", "", last)
    shown = [line.split() for line in plain.splitlines() if line.strip()][-2:]
    assert [line[0] for line in shown] == ["fit", "ingest"]
    assert "4/5" in shown[0]
    assert shown[0][-3:] == ["2", "done", "before"]
    assert "3/3" in shown[1]


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
