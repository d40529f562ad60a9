"""Partitions: found by their folders' names, in one order, and named by date or by key."""

import time
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrot_scale.errors import ConfigError, DataError, MissingInputError
from mrot_scale.reading.sources import open_source
from mrot_scale.scheduled.partitions import (
    Lake,
    Partition,
    as_day,
    in_order,
    parse_partition,
    values_between,
    values_until,
)
from mrot_scale.scheduled.policy import is_before
from mrot_scale.storing.location import Location
from tests.jobs.made import write_parts
from tests.strategies import examples

DAYS = st.dates(date(2024, 1, 1), date(2026, 12, 31)).map(str)
NUMBERS = st.integers(-(10**9), 10**9).map(str)
WORDS = st.text("abc", min_size=1, max_size=3)


def some(elements: Any) -> Any:
    return st.lists(elements, max_size=12, unique=True)


# --- order


@examples(60)
@given(some(NUMBERS))
def test_numbers_are_in_the_order_of_numbers(values: list[str]) -> None:
    assert [int(v) for v in in_order(values)] == sorted(int(v) for v in values)


@examples(60)
@given(some(DAYS))
def test_days_are_in_the_order_of_days(values: list[str]) -> None:
    days = sorted(date.fromisoformat(value) for value in values)
    assert in_order(values) == [str(day) for day in days]


@examples(60)
@given(some(DAYS) | some(NUMBERS) | some(WORDS), st.randoms(use_true_random=False))
def test_the_order_is_the_same_however_values_come(values: list[str], shuffled: Any) -> None:
    found = in_order(values)
    assert sorted(found) == sorted(values)
    shuffled.shuffle(values)
    assert in_order(values) == found


def test_numbers_with_leading_zeros_keep_a_fixed_order() -> None:
    assert in_order(["10", "9", "09", "-1"]) == ["-1", "09", "9", "10"]
    assert in_order(["9", "09"]) == in_order(["09", "9"])


@examples(100)
@given(st.lists(NUMBERS | WORDS | DAYS, min_size=2, max_size=6, unique=True))
def test_two_values_are_in_the_order_they_have_among_all(values: list[str]) -> None:
    ordered = in_order(values)
    for place, earlier in enumerate(ordered):
        for later in ordered[place + 1 :]:
            assert is_before(earlier, later)
            assert not is_before(later, earlier)


@pytest.mark.parametrize("stray", ["__HIVE_DEFAULT_PARTITION__", "backup"])
def test_one_folder_that_is_no_number_does_not_reorder_the_others(
    stray: str, tmp_path: Path
) -> None:
    for value in ("9", "10", "11", stray):
        (tmp_path / f"week={value}").mkdir()
    lake = Lake.open(Location(tmp_path), "week")
    assert lake.previous(Partition("week", "10")) == Partition("week", "9")


# --- ranges


@st.composite
def ranges(draw: Any) -> tuple[list[str], str | None, str | None]:
    """Values of one kind with a start and an end, which need not be among them."""
    kind = draw(st.sampled_from([DAYS, NUMBERS, WORDS]))
    values = draw(some(kind))
    ends = st.none() | kind | (st.sampled_from(values) if values else kind)
    return values, draw(ends), draw(ends)


def rank(value: str) -> Any:
    """The place of a value, worked out without the package."""
    if value.lstrip("-").isdigit():
        return int(value)
    return date.fromisoformat(value) if value[:4].isdigit() else value


@examples(200)
@given(ranges())
def test_a_range_is_what_is_neither_before_its_start_nor_after_its_end(
    drawn: tuple[list[str], str | None, str | None],
) -> None:
    values, start, end = drawn
    expected = [
        value
        for value in sorted(values, key=rank)
        if (start is None or rank(value) >= rank(start))
        and (end is None or rank(value) <= rank(end))
    ]
    assert values_between(values, start, end) == expected


@examples(100)
@given(ranges())
def test_values_until_one_are_those_not_after_it(
    drawn: tuple[list[str], str | None, str | None],
) -> None:
    values, _, last = drawn
    if last is not None:
        expected = [v for v in sorted(values, key=rank) if rank(v) <= rank(last)]
        assert values_until(values, last) == expected


def test_a_range_of_thousands_of_partitions_is_quick() -> None:
    """Eight months of hours; a job asks for such ranges often, some jobs once per partition."""
    values = [str(hour) for hour in range(6_000)]
    begun = time.process_time()
    assert values_until(values, "5999") == values
    assert time.process_time() - begun < 0.4


# --- names


@pytest.mark.parametrize(
    ("value", "day"),
    [
        ("2026-11-14", date(2026, 11, 14)),
        ("2024-02-29", date(2024, 2, 29)),
        ("2026-02-29", None),
        ("2026-13-01", None),
        ("20261114", None),
        ("2026-W46-6", None),
        ("2026-11-14\n", None),
        ("\uff12\uff10\uff12\uff16-11-14", None),
        (" 2026-11-14", None),
        ("2026-11-14T00:00", None),
        ("", None),
    ],
)
def test_days_are_told_from_other_values(value: str, day: date | None) -> None:
    assert as_day(value) == day
    assert Partition("date", value).day == day


@pytest.mark.parametrize("day", ["2026-11-14", "2024-02-28", "2024-12-31", "0001-01-01"])
def test_the_interval_of_a_day_is_that_day_in_utc(day: str) -> None:
    interval = Partition("date", day).interval
    assert interval is not None
    start, end = (datetime.fromisoformat(moment) for moment in interval)
    assert start.isoformat() == f"{day}T00:00:00+00:00"
    assert end - start == timedelta(days=1)


def test_the_last_day_there_is_breaks_nothing() -> None:
    interval = Partition("date", "9999-12-31").interval
    assert interval is None or interval[0] == "9999-12-31T00:00:00+00:00"


def test_what_is_no_day_has_no_interval() -> None:
    assert Partition("week", "46").interval is None


@examples(100)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_a_folders_name_holds_the_value_and_no_more_than_one_folder(value: str) -> None:
    partition = Partition("date", value)
    assert "/" not in partition.name
    assert "\0" not in partition.name
    key, _, rest = partition.name.partition("=")
    assert (key, unquote(rest)) == ("date", value)
    assert str(partition) == f"date={value}"


@pytest.mark.parametrize(
    ("day", "text", "expected"),
    [
        ("2026-11-14", None, Partition("date", "2026-11-14")),
        (None, "2026-11-14", Partition("date", "2026-11-14")),
        (None, "date=2026-11-14", Partition("date", "2026-11-14")),
        (None, "week=46", Partition("week", "46")),
        (None, "site=a=b", Partition("site", "a=b")),
        (None, "site=north/west", Partition("site", "north/west")),
    ],
)
def test_a_partition_is_named_by_date_or_by_key(
    day: str | None, text: str | None, expected: Partition
) -> None:
    assert parse_partition(day, text, "date") == expected


@pytest.mark.parametrize(
    ("day", "text", "message"),
    [
        (None, None, "--date, or by --partition"),
        ("2026-11-14", "week=46", "--date, or by --partition"),
        ("yesterday", None, "a day such as 2026-11-14, got 'yesterday'"),
        ("2026-02-30", None, "got '2026-02-30'"),
        (None, "=46", "KEY=VALUE, got '=46'"),
        (None, "week=", "KEY=VALUE"),
        (None, "", "KEY=VALUE"),
        (None, "../../etc=1", "KEY=VALUE"),
    ],
)
def test_what_names_no_partition_is_refused(
    day: str | None, text: str | None, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        parse_partition(day, text, "date")
    assert caught.value.exit_code == 78


# --- the lake


def lake_of(folder: Path, names: list[str], key: str = "date") -> Lake:
    for name in names:
        write_parts(pa.table({"x": [1.0, 2.0]}), folder / name)
    return Lake.open(Location(folder), key)


def test_a_lake_lists_its_partitions_in_order(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, ["week=10", "week=9", "other=1", "_week=8", "logs"], key="week")
    assert lake.values == ["9", "10"]
    assert lake.folder(Partition("week", "10")) == Location(tmp_path / "week=10")


def test_a_file_among_the_folders_is_no_partition(tmp_path: Path) -> None:
    (tmp_path / "date=2026-11-15.parquet").write_bytes(b"")
    (tmp_path / "date=list.txt").write_bytes(b"")
    assert lake_of(tmp_path, ["date=2026-11-14"]).values == ["2026-11-14"]


def test_folders_of_coded_values_are_found_by_the_values(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, ["site=north%2Fwest", "site=a b"], key="site")
    assert lake.values == ["a b", "north/west"]
    assert lake.folder(Partition("site", "north/west")).name == "site=north%2Fwest"
    assert lake.folder(Partition("site", "a b")).name == "site=a b"


def test_a_partition_that_is_not_there_is_told_with_what_is(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, ["date=2026-11-14", "date=2026-11-16"])
    expected = r"No date=2026-11-15 in .*: it has 2, 2026-11-14 to 2026-11-16\."
    with pytest.raises(MissingInputError, match=expected) as caught:
        lake.folder(Partition("date", "2026-11-15"))
    assert caught.value.exit_code == 66
    with pytest.raises(MissingInputError, match="No week=2026-11-14"):
        lake.files(Partition("week", "2026-11-14"))


def test_a_lake_without_partitions_says_so(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match=r"it has no folders date=\.\.\."):
        Lake.open(Location(tmp_path), "date").folder(Partition("date", "2026-11-14"))


def test_a_lake_must_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match=r"is a file, not a folder of date=\.\.\. folders"):
        Lake.open(Location(tmp_path / "file"), "date")
    with pytest.raises(MissingInputError, match="Nothing at"):
        Lake.open(Location(tmp_path / "absent"), "date")


def test_only_tables_are_files_of_a_partition(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, ["date=2026-11-14"])
    folder = tmp_path / "date=2026-11-14"
    write_parts(pa.table({"x": [1.0]}), folder / "hour=0")
    for name in ("_SUCCESS", ".part.parquet.crc", "notes.txt", "_temporary/part.parquet"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"")
    found = [part.name for part in lake.files(Partition("date", "2026-11-14"))]
    assert found == ["hour=0/part-000.parquet", "part-000.parquet"]


def test_the_partition_before_is_the_one_before_by_value(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, [f"date=2026-11-{day}" for day in (10, 14, 16)])
    before = {
        day: lake.previous(Partition("date", f"2026-11-{day}")) for day in (9, 10, 15, 16, 17)
    }
    assert {day: p.value[-2:] if p else None for day, p in before.items()} == {
        9: "16",  # 2026-11-9 is no date and text: after 2026-11-16
        10: None,
        15: "14",
        16: "14",
        17: "16",
    }


def test_the_last_partitions_up_to_one_are_taken_as_one_table(tmp_path: Path) -> None:
    days = ["2026-11-10", "2026-11-11", "2026-11-13", "2026-11-14"]
    lake = lake_of(tmp_path, [f"date={day}" for day in days])
    assert [p.value for p in lake.until("2026-11-13", 2)] == days[1:3]
    assert [p.value for p in lake.until("2026-11-12", 9)] == days[:2]
    assert lake.until("2026-11-09", 9) == []
    stream = open_source(lake.source(lake.until("2026-11-13", 2)))
    assert stream.n_rows == 4
    found = [v for batch in stream.read(["date"]) for v in batch["date"].to_pylist()]
    assert found == ["2026-11-11"] * 2 + ["2026-11-13"] * 2
