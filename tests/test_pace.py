"""How fast a stage goes, by a clock that the tests hold."""

import pytest

from mrot_scale.pace import Pace, clock_text, done_before_text, seconds_text, short_number


def paced(*steps: tuple[float, int], before: int = 0, total: int = 10) -> Pace:
    pace = Pace.begin(before, total, 100.0)
    for after, done in steps:
        pace.advance(done, total, 100.0 + after)
    return pace


def test_nothing_is_said_before_the_first_step() -> None:
    pace = paced()
    assert pace.rate_text() == ""
    assert pace.remaining(105.0) is None


def test_speed_and_the_rest_come_from_the_steps_so_far() -> None:
    pace = paced((2.0, 1), (4.0, 2))
    assert pace.rate_text() == "0.50 steps/s"
    assert pace.remaining(104.0) == 16.0
    assert pace.remaining(105.0) == 15.0, "it counts down between steps"


def test_what_an_earlier_run_did_does_not_count() -> None:
    pace = paced((4.0, 9), before=8)
    assert pace.rate_text() == "0.25 steps/s"
    assert pace.remaining(104.0) == 4.0
    assert paced(before=8).remaining(104.0) is None
    assert done_before_text(pace) == "8 done before"


def test_a_step_that_is_slow_moves_the_end_away() -> None:
    pace = paced((1.0, 1))
    assert pace.remaining(101.0) == 9.0
    later = pace.remaining(141.0)
    assert later is not None
    assert later > 100.0


def test_the_end_is_never_in_the_past() -> None:
    assert paced((1.0, 9)).remaining(1_000.0) == 0.0


def test_nobody_knows_the_end_of_a_stage_that_grows() -> None:
    pace = Pace.begin(0, 1, 0.0)
    pace.advance(1, 3, 1.0)
    assert pace.remaining(1.0) is None
    unknown = Pace.begin(0, 0, 0.0)  # told with the first step: not the same
    unknown.advance(1, 3, 1.0)
    assert unknown.remaining(1.0) == 2.0


def test_speed_is_in_rows_where_these_are_known() -> None:
    pace = paced((2.0, 5))
    pace.rows = 100_000
    assert pace.rate_text() == "50.0k rows/s"


def test_one_step_has_no_speed_but_its_rows_have() -> None:
    pace = paced((2.0, 1), total=1)
    assert pace.rate_text() == ""
    pace.rows = 10
    assert pace.rate_text() == "5.00 rows/s"


@pytest.mark.parametrize(
    ("seconds", "clock", "words"),
    [
        (0.04, "0:00", "0.0 s"),
        (7.3, "0:07", "7.3 s"),
        (59.6, "1:00", "1 min 00 s"),
        (200, "3:20", "3 min 20 s"),
        (3_600, "1:00:00", "1 h 00 min"),
        (7_500, "2:05:00", "2 h 05 min"),
        (180_000, "2d 02h", "50 h 00 min"),
    ],
)
def test_durations(seconds: float, clock: str, words: str) -> None:
    assert clock_text(seconds) == clock
    assert seconds_text(seconds) == words


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.00"), (0.4151, "0.42"), (9.996, "10.0"), (17.26, "17.3"), (99.96, "100"),
     (812.4, "812"), (999.6, "1.00k"), (12_345, "12.3k"), (999_600, "1.00M"), (1.23e6, "1.23M"),
     (4.5e9, "4.50G")],
)  # fmt: skip
def test_numbers_are_short(value: float, text: str) -> None:
    assert short_number(value) == text
