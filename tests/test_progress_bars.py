"""Bars as a terminal gets them, and what is told where there is none."""

import subprocess
import sys

import pytest

from mrot_scale.pace import Pace
from mrot_scale.progress_bars import HEAVY, LIGHT, bar_line
from tests.terminals import shown

STAGES = """
import sys, time
from mrot_scale.progress import shown_progress, tell_dashboard, tell_rows
with shown_progress(quiet="quiet" in sys.argv) as report:
    tell_dashboard(report, "http://127.0.0.1:8787/status")
    for stage, before in (("ingest", 0), ("neighbours", 3), ("fit", 5)):
        report(stage, before, 5)
        for done in range(before + 1, 6):
            time.sleep(0.15)
            if stage == "ingest":
                tell_rows(report, stage, done * 12_345)
            report(stage, done, 5)
    if "fail" in sys.argv:
        report("score", 0, 1_000)
        time.sleep(0.3)
        report("score", 417, 1_000)
        raise SystemExit("went wrong")
print("result")
"""


def pace(done: int, total: int, *, before: int = 0, now: float = 10.0) -> Pace:
    found = Pace.begin(before, total, 0.0)
    found.advance(done, total, now)
    return found


def test_a_line_has_bar_steps_time_speed_and_what_is_left() -> None:
    line = bar_line("score", pace(30, 40), 10.0, 119)
    bar, *rest = line.split()[1:]
    assert bar == HEAVY * 30 + LIGHT * 10
    assert rest == ["30/40", "0:10", "3.00", "steps/s", "0:03", "left"]


def test_lines_of_one_width_stand_below_each_other() -> None:
    first = bar_line("score", pace(3, 40), 10.0, 79)
    second = bar_line("neighbours", pace(111, 4_000), 10.0, 79)
    assert first.index("/s") == second.index("/s")
    assert first.index(LIGHT + " ") == second.index(LIGHT + " ")


@pytest.mark.parametrize("width", [1, 20, 39, 59, 60, 79, 119, 300])
@pytest.mark.parametrize("steps", [(1, 3), (123_456, 999_999), (0, 0)])
def test_no_line_is_wider_than_the_terminal(width: int, steps: tuple[int, int]) -> None:
    slow = pace(*steps, before=min(steps[0], 1), now=3_000_000.0)
    line = bar_line("a stage with a long name", slow, 3_000_001.0, width)
    assert len(line) <= width


def test_where_it_is_narrow_less_is_told() -> None:
    some = pace(30, 40, before=20)
    assert bar_line("score", some, 10.0, 119).endswith("left 20 done before")
    assert bar_line("score", some, 10.0, 59).endswith("left")
    assert bar_line("score", some, 10.0, 40).endswith("30/40")


def test_terminals_without_such_characters_get_others() -> None:
    line = bar_line("score", pace(20, 40), 10.0, 119, is_ascii=True)
    assert f" {'#' * 20}{'.' * 20} " in line
    assert line.isascii()


@pytest.mark.parametrize("columns", [60, 120])
def test_bars_on_a_terminal_fit_its_width(columns: int) -> None:
    found = shown(["-c", STAGES], columns)
    assert found.exit_code == 0
    assert found.out == "result\n"
    assert max(map(len, found.lines)) < columns
    assert "dashboard http://127.0.0.1:8787/status" in found.written
    assert any(line.endswith("left") for line in found.lines)
    last = {line.split()[0]: line for line in found.lines}
    assert "5/5" in last["ingest"]
    assert last["ingest"].endswith("rows/s")
    assert last["neighbours"].endswith("3 done before")
    assert last["fit"].endswith(" done before")
    assert found.has_colours


def test_a_bar_stays_where_it_was_when_something_goes_wrong() -> None:
    found = shown(["-c", STAGES, "fail"])
    assert found.exit_code == 1
    assert [line.split()[0] for line in found.lines][-2:] == ["score", "went"]
    assert "417/1000" in found.lines[-2]


def test_no_colours_where_none_are_wanted() -> None:
    found = shown(["-c", STAGES], NO_COLOR="1")
    assert not found.has_colours
    assert HEAVY in found.written


def test_a_dumb_terminal_gets_lines() -> None:
    found = shown(["-c", STAGES], TERM="dumb")
    assert "\x1b" not in found.written
    assert [line.split(":")[0] for line in found.lines] == EACH_ONCE


def test_a_pipe_gets_lines_without_escape_codes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STAGES], capture_output=True, text=True, check=True, timeout=60
    )
    assert "\x1b" not in done.stderr
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == EACH_ONCE


EACH_ONCE = ["dashboard", "ingest", "neighbours", "fit"]


def test_quiet_is_quiet_everywhere() -> None:
    assert shown(["-c", STAGES, "quiet"]).written == ""
    done = subprocess.run(
        [sys.executable, "-c", STAGES, "quiet"], capture_output=True, check=True, timeout=60
    )
    assert done.stderr == b""
