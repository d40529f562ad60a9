"""Which model scores which partition: by days counted one by one, and by what somebody chose."""

from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrot_scale.scheduled.policy import Promotion, due, first_fit, is_before, promoted
from tests.strategies import examples

DAYS = st.dates(date(2024, 1, 1), date(2027, 12, 31))


def day_counted(value: date, first: date, every: int) -> date:
    """Go from fit to fit as long as the next one is not after the day."""
    if value < first:
        return first
    fit = first
    while fit + timedelta(days=every) <= value:
        fit += timedelta(days=every)
    return fit


@examples(200)
@given(DAYS, DAYS, st.integers(1, 400))
def test_models_of_days_are_due_every_so_many_days(value: date, first: date, every: int) -> None:
    expected = str(day_counted(value, first, every))
    assert due(str(value), str(first), every, []) == expected
    assert due(str(value), str(first), every, [str(value)]) == expected, "whatever there is"


@examples(50)
@given(DAYS, DAYS, st.integers(1, 40), st.lists(DAYS, max_size=5))
def test_a_model_is_due_for_itself(value: date, first: date, every: int, others: Any) -> None:
    """The model a partition gets is the one its own partition gets."""
    values = [str(day) for day in others]
    found = due(str(value), str(first), every, values)
    assert due(found, str(first), every, values) == found
    assert not is_before(found, str(first))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-11-13", "2026-11-14"),
        ("2026-11-14", "2026-11-14"),
        ("2026-11-20", "2026-11-14"),
        ("2026-11-21", "2026-11-21"),
        ("2026-12-01", "2026-11-28"),
    ],
)
def test_a_week_begins_with_the_first_model(value: str, expected: str) -> None:
    assert due(value, "2026-11-14", 7, []) == expected


def test_without_a_period_the_first_model_serves_all() -> None:
    for value in ("2026-01-01", "2026-11-14", "2031-01-01", "a"):
        assert due(value, "2026-11-14", None, [value]) == "2026-11-14"


@examples(200)
@given(st.sets(st.integers(0, 60), min_size=1), st.data(), st.integers(1, 9))
def test_models_of_other_keys_are_due_every_so_many_partitions(
    numbers: set[int], data: Any, every: int
) -> None:
    ordered = sorted(numbers)
    first, value = data.draw(st.sampled_from(ordered)), data.draw(st.sampled_from(ordered))
    since = [n for n in ordered if n >= first]
    expected = first
    for number, n in enumerate(since):  # every so-manieth partition is one to fit for
        if n <= value and number % every == 0:
            expected = n
    assert due(str(value), str(first), every, [str(n) for n in numbers]) == str(expected)


def test_a_partition_that_is_not_there_gets_the_model_of_the_last_one_before_it() -> None:
    assert due("35", "10", 2, ["10", "20", "30", "40"]) == "30"
    assert due("25", "10", 2, ["10", "20", "30", "40"]) == "10"


@pytest.mark.parametrize(
    ("value", "fitted", "start", "expected"),
    [
        ("2026-11-14", [], None, "2026-11-14"),
        ("2026-11-14", [], "2026-11-01", "2026-11-01"),
        ("2026-11-14", [], "2026-11-14", "2026-11-14"),
        ("2026-11-14", ["2026-11-20", "2026-11-13"], "2026-11-01", "2026-11-01"),
        ("2026-11-14", ["2026-11-20", "2026-11-13"], None, "2026-11-13"),
        ("2026-11-14", ["2026-11-20"], None, "2026-11-20"),
        ("9", ["10", "9", "100"], None, "9"),
    ],
)
def test_the_first_model_is_the_earliest_fitted_or_the_one_to_count_from(
    value: str, fitted: list[str], start: str | None, expected: str
) -> None:
    assert first_fit(value, fitted, start) == expected


def test_what_to_count_from_does_not_depend_on_which_partition_ran_first() -> None:
    """A setting that says what to count from says so after an earlier partition has run, too."""
    start = "2026-11-10"
    early = first_fit("2026-11-08", [], start)
    first_way = due("2026-11-20", first_fit("2026-11-20", [early], start), 7, [])
    other_way = due("2026-11-20", first_fit("2026-11-20", [], start), 7, [])
    assert first_way == other_way == "2026-11-17"


def test_before_is_strict_and_by_number_where_both_are_numbers() -> None:
    assert is_before("9", "10")
    assert not is_before("10", "9")
    assert not is_before("9", "9")
    assert is_before("2026-11-09", "2026-11-10")
    assert is_before("a", "b")


# --- what somebody chose


CHOSEN = Promotion("2026-11-10", "chosen-0123456789")


@pytest.mark.parametrize(
    ("value", "fitted_for", "is_chosen"),
    [
        ("2026-11-09", "2026-11-01", False),
        ("2026-11-10", "2026-11-01", True),
        ("2026-11-20", "2026-11-01", True),
        ("2026-11-10", "2026-11-10", True),
        ("2026-11-20", "2026-11-10", True),
        ("2026-11-11", "2026-11-11", False),
        ("2026-11-20", "2026-11-11", False),
    ],
)
def test_a_later_fit_overrules_a_promotion(value: str, fitted_for: str, is_chosen: bool) -> None:
    assert promoted(value, fitted_for, [CHOSEN]) == (CHOSEN if is_chosen else None)


def test_a_promotion_holds_for_partitions_before_the_first_fit() -> None:
    """Such a partition gets a later model for want of any other; no fit came in between."""
    assert promoted("2026-11-12", "2026-11-15", [CHOSEN]) == CHOSEN


def test_of_several_promotions_the_last_to_start_is_in_force() -> None:
    later = Promotion("2026-11-15", "later-0123456789")
    never = Promotion("2027-01-01", "never-0123456789")
    for all_of_them in ([CHOSEN, later, never], [never, later, CHOSEN]):
        assert promoted("2026-11-14", "2026-11-01", all_of_them) == CHOSEN
        assert promoted("2026-11-16", "2026-11-01", all_of_them) == later
        assert promoted("2026-11-16", "2026-11-12", all_of_them) == later
        assert promoted("2026-11-16", "2026-11-16", all_of_them) is None


def test_promotions_of_numbered_partitions_are_in_the_order_of_numbers() -> None:
    nine, ten = Promotion("9", "a-0123456789"), Promotion("10", "b-0123456789")
    assert promoted("11", "1", [ten, nine]) == ten
    assert promoted("9", "1", [ten, nine]) == nine


def test_nothing_chosen_is_nothing_in_force() -> None:
    assert promoted("2026-11-14", "2026-11-01", []) is None
