"""Commits: what is in the journal counts, whatever the moment of the crash."""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from mrot_scale.errors import (
    ConfigError,
    DamagedDataError,
    LockedError,
    MissingInputError,
    MrotError,
)
from mrot_scale.running.commit import (
    STAGES,
    Attempt,
    Journal,
    ObjectRef,
    Record,
    RunFolder,
    task_key,
    whole_array,
)
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import Entry
from tests.places import KINDS, fresh_place
from tests.strategies import examples

TERMS = {"command": "fit", "settings": {"seed": 0, "views": {"k": 3}}}

small_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
entries = st.builds(Entry, st.integers(0, 2**50), st.text("0123456789abcdef", max_size=64))
specs = st.builds(
    whole_array,
    st.sampled_from(["float32", "int64"]),
    st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple),
)
names = st.from_regex(r"[a-z]{1,5}(/[a-z0-9.]{1,3}x){0,2}", fullmatch=True)
refs = st.builds(ObjectRef, names, entries, st.none() | specs)
records = st.builds(
    Record,
    st.text(),
    st.dictionaries(st.text(), refs, max_size=3),
    st.dictionaries(st.text(), small_json, max_size=3),
)


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    with fresh_place(request.param, tmp_path) as found:
        yield found


def a_record(run: RunFolder, number: int, content: bytes = b"content") -> Record:
    attempt = Attempt(run.location, task_key("stage", number))
    attempt.put("part", content)
    return attempt.record(rows=number)


def journal_file(place: Location) -> Path:
    return place.path / "journal.jsonl"


# --- records


@examples(60)
@given(record=records)
def test_a_record_is_read_back_from_json(record: Record) -> None:
    found = Record.from_json(json.loads(json.dumps(record.to_json())))
    assert found == record
    assert found.same_content(record)


def test_tasks_are_named_by_stage_and_numbers_and_sort_alike() -> None:
    assert task_key("views") == "views"
    assert task_key("efforts", 0, 12, 345) == "efforts/00000/00012/00345"
    keys = [task_key("score", n) for n in (0, 9, 10, 99_999)]
    assert keys == sorted(keys)


def test_an_attempt_writes_under_a_name_of_its_own(place: Location) -> None:
    first, second = (Attempt(place, "score/00007") for _ in range(2))
    first.put("flags", b"one")
    second.put("flags", b"two")
    one, two = first.record(rows=3), second.record(rows=3)
    assert one.key == "score/00007"
    assert one.facts == {"rows": 3}
    assert one.objects["flags"].name.startswith(f"{STAGES}/score/00007.flags.")
    assert one.objects["flags"].name != two.objects["flags"].name
    assert one.objects["flags"].read(place) == b"one"
    assert two.objects["flags"].read(place) == b"two"
    assert not one.same_content(two)


@pytest.mark.parametrize("other", [b"contens", b"conten", b""])
def test_an_object_that_changed_is_not_read(place: Location, other: bytes) -> None:
    attempt = Attempt(place, "score/00007")
    attempt.put("flags", b"content")
    ref = attempt.record().objects["flags"]
    (place / ref.name).write(other)
    with pytest.raises(DamagedDataError, match=r"score/00007\.flags\..* is not what was written"):
        ref.read(place)
    (place / ref.name).remove()
    with pytest.raises(MissingInputError, match=r"score/00007\.flags"):
        ref.read(place)


@examples(20)
@given(
    values=hnp.arrays(
        st.sampled_from(["float32", "float64", "int64", "int32", "bool"]),
        hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5),
    )
)
def test_arrays_come_back_bit_for_bit_even_empty_ones(values: NDArray[Any]) -> None:
    with fresh_place("memory", Path()) as place:
        attempt = Attempt(place, "views/00000")
        attempt.put_array("points", values)
        ref = ObjectRef.from_json(
            json.loads(json.dumps(attempt.record().objects["points"].to_json()))
        )
        found = ref.read_array(place)
    assert (found.dtype, found.shape) == (values.dtype, values.shape)
    assert found.tobytes() == values.tobytes()


def test_an_object_that_is_no_array_is_not_read_as_one(place: Location) -> None:
    attempt = Attempt(place, "views/00000")
    attempt.put("text", b"{}")
    with pytest.raises(DamagedDataError, match="is not an array"):
        attempt.record().objects["text"].read_array(place)


# --- journal


def test_what_was_appended_is_read_in_order(place: Location) -> None:
    values = [{"n": n, "text": "ä\n\r\u2028"} for n in range(12)]
    journal = Journal(place)
    assert list(journal.values()) == []
    for value in values:
        journal.append(value)
    assert list(journal.values()) == values
    assert list(Journal(place).values()) == values


@examples(40)
@given(
    values=st.lists(st.dictionaries(st.text(max_size=3), small_json, max_size=2), max_size=4),
    cut=st.integers(0, 10**6),
)
def test_a_journal_cut_anywhere_keeps_its_whole_lines_and_goes_on(
    values: list[dict[str, Any]], cut: int
) -> None:
    with TemporaryDirectory() as folder:
        place = Location(folder)
        for value in values:
            Journal(place).append(value)
        content = journal_file(place).read_bytes() if values else b""
        left = content[: cut % (len(content) + 1)]
        journal_file(place).write_bytes(left)
        expected = values[: left.count(b"\n")]
        assert list(Journal(place).values()) == expected
        Journal(place).cut_torn_line()
        Journal(place).append({"after": 1})
        assert list(Journal(place).values()) == [*expected, {"after": 1}]


@pytest.mark.parametrize("torn", [b"0", b"00000000 {", b'12345678 {"n": 1}', b"\0" * 40, b"\xff"])
def test_a_torn_last_line_is_dropped(tmp_path: Path, torn: bytes) -> None:
    place = Location(tmp_path)
    Journal(place).append({"n": 0})
    with journal_file(place).open("ab") as file:
        file.write(torn)
    torn_content = journal_file(place).read_bytes()
    assert list(Journal(place).values()) == [{"n": 0}]
    assert journal_file(place).read_bytes() == torn_content  # looking changes nothing
    Journal(place).cut_torn_line()
    Journal(place).append({"n": 1})
    assert list(Journal(place).values()) == [{"n": 0}, {"n": 1}]


def test_damage_before_the_last_line_is_refused_wherever_it_is(tmp_path: Path) -> None:
    place = Location(tmp_path)
    for n in range(3):
        Journal(place).append({"n": n})
    content = journal_file(place).read_bytes()
    lines = content.splitlines(keepends=True)
    second = len(lines[0])
    for position in range(second, second + len(lines[1]) - 1):
        damaged = bytearray(content)
        damaged[position] ^= 0x10
        journal_file(place).write_bytes(bytes(damaged))
        with pytest.raises(DamagedDataError, match=r"Line 2 of the journal.*--new-run"):
            list(Journal(place).values())


def test_a_line_lost_from_an_object_store_is_noticed() -> None:
    with fresh_place("memory", Path()) as place:
        for n in range(3):
            journal = Journal(place)
            list(journal.values())
            journal.append({"n": n})
        (place / "journal/00000001.json").write(b"garbage")
        with pytest.raises(DamagedDataError, match="Line 2 of the journal"):
            list(Journal(place).values())


def test_two_drivers_of_one_run_on_an_object_store_are_noticed() -> None:
    with fresh_place("memory", Path()) as place:
        RunFolder.open(place, TERMS)
        one, other = (RunFolder.open(place, TERMS) for _ in range(2))
        one.commit(a_record(one, 0))
        with pytest.raises(LockedError, match="another run on this folder"):
            other.commit(a_record(other, 1))
        assert sorted(RunFolder.open(place, TERMS).records) == ["stage/00000"]


# --- run folders


def test_a_run_is_gone_on_with_after_every_commit(place: Location) -> None:
    made: dict[str, Record] = {}
    for n in range(4):
        run = RunFolder.open(place, TERMS)
        assert run.records == made
        assert run.published is None
        record = a_record(run, n)
        run.commit(record)
        made[record.key] = record
    RunFolder.open(place, TERMS).commit_published("abc")
    again = RunFolder.open(place, TERMS)
    assert (again.records, again.published) == (made, "abc")


def test_a_run_cut_off_at_any_byte_has_the_commits_before_it(tmp_path: Path) -> None:
    place = Location(tmp_path / "run")
    run = RunFolder.open(place, TERMS)
    for n in range(3):
        run.commit(a_record(run, n))
    content = journal_file(place).read_bytes()
    for length in range(0, len(content) + 1, 7):
        journal_file(place).write_bytes(content[:length])
        again = RunFolder.open(place, TERMS)
        assert list(again.records) == list(run.records)[: content[:length].count(b"\n")]
        again.commit(a_record(again, 2))
        assert task_key("stage", 2) in RunFolder.open(place, TERMS).records


def test_a_run_may_be_looked_at_while_it_goes_on(place: Location) -> None:
    run = RunFolder.open(place, TERMS)
    for n in range(3):
        run.commit(a_record(run, n))
        before = {name: (place / name).read() for name in place.files_below()}
        seen = RunFolder.read(place)
        assert (seen.records, seen.fingerprint) == (run.records, TERMS)
        assert {name: (place / name).read() for name in place.files_below()} == before
    if place.is_local:
        with journal_file(place).open("ab") as file:
            file.write(b"12345678 {")  # the driver is about to finish this line
        assert RunFolder.read(place).records == run.records
        assert journal_file(place).read_bytes().endswith(b"12345678 {")


def test_where_no_run_is_there_is_nothing_to_look_at(place: Location) -> None:
    with pytest.raises(MissingInputError, match=r"run\.json"):
        RunFolder.read(place)


def test_what_no_record_names_does_not_count(place: Location) -> None:
    run = RunFolder.open(place, TERMS)
    a_record(run, 0)
    assert RunFolder.open(place, TERMS).records == {}


def test_the_same_bytes_may_be_committed_twice(place: Location) -> None:
    run = RunFolder.open(place, TERMS)
    first, second = a_record(run, 0), a_record(run, 0)
    assert first.objects["part"].name != second.objects["part"].name
    run.commit(first)
    run.commit(second)
    assert run.records == {first.key: first}
    assert RunFolder.open(place, TERMS).records == {first.key: first}


def test_other_bytes_of_the_same_task_are_a_bug(place: Location) -> None:
    run = RunFolder.open(place, TERMS)
    run.commit(a_record(run, 0))
    for other in (a_record(run, 0, b"different"), Attempt(place, "stage/00000").record(rows=0)):
        with pytest.raises(MrotError, match="stage/00000 gave other bytes"):
            run.commit(other)
    facts = a_record(run, 0)
    facts.facts["rows"] = 1
    with pytest.raises(MrotError, match="other bytes"):
        run.commit(facts)


def test_the_same_task_may_be_committed_again_after_a_restart(place: Location) -> None:
    run = RunFolder.open(place, TERMS)
    run.commit(a_record(run, 0))
    again = RunFolder.open(place, TERMS)
    again.commit(a_record(again, 0))
    with pytest.raises(MrotError, match="other bytes"):
        again.commit(a_record(again, 0, b"different"))


def test_records_whose_objects_are_damaged_or_lost_are_done_again(place: Location) -> None:
    run = RunFolder.open(place, TERMS)
    for n in range(3):
        run.commit(a_record(run, n))
    names = [run.records[task_key("stage", n)].objects["part"].name for n in range(3)]
    (place / names[0]).write(b"damaged")
    (place / names[2]).remove()
    again = RunFolder.open(place, TERMS)
    assert again.drop_damaged() == ["stage/00000", "stage/00002"]
    assert list(again.records) == ["stage/00001"]
    again.commit(a_record(again, 0))
    again.commit(a_record(again, 2, b"other bytes this time"))
    found = RunFolder.open(place, TERMS)
    assert found.drop_damaged() == []
    assert sorted(found.records) == [task_key("stage", n) for n in range(3)]


def test_a_run_on_other_terms_is_refused_with_what_differs(place: Location) -> None:
    RunFolder.open(place, TERMS)
    other = {"command": "fit", "settings": {"seed": 1, "views": {"k": 4, "kind": "raw"}}}
    with pytest.raises(ConfigError, match="belongs to a run with other settings") as caught:
        RunFolder.open(place, other)
    message = str(caught.value)
    assert "settings.seed: 0 -> 1" in message
    assert "settings.views.k: 3 -> 4" in message
    assert "settings.views.kind: None -> 'raw'" in message
    assert "command" not in message
    assert "--new-run" in message
    assert caught.value.exit_code == 78
    assert RunFolder.open(place, TERMS).records == {}


def test_of_many_differences_five_are_named_and_the_rest_counted(place: Location) -> None:
    RunFolder.open(place, {f"s{n}": 0 for n in range(8)})
    with pytest.raises(ConfigError, match=r"s0: 0 -> 1; .*s4: 0 -> 1 and 3 more"):
        RunFolder.open(place, {f"s{n}": 1 for n in range(8)})


def test_terms_are_compared_as_json_tells_them(place: Location) -> None:
    RunFolder.open(place, {"keep": ("a", "b"), "by": {1: "x"}})
    RunFolder.open(place, {"by": {1: "x"}, "keep": ["a", "b"]})
    with pytest.raises(ConfigError, match="keep"):
        RunFolder.open(place, {"keep": ("a",), "by": {1: "x"}})


def test_a_new_run_starts_over(place: Location) -> None:
    run = RunFolder.open(place, TERMS)
    run.commit(a_record(run, 0))
    other = {"command": "fit", "settings": {"seed": 1}}
    new = RunFolder.open(place, other, new_run=True)
    assert new.records == {}
    new.commit(a_record(new, 5))
    assert list(RunFolder.open(place, other).records) == ["stage/00005"]


def test_a_new_run_may_be_the_first(place: Location) -> None:
    assert RunFolder.open(place, TERMS, new_run=True).records == {}


@pytest.mark.parametrize("new_run", [False, True])
def test_a_folder_that_is_no_run_is_refused_and_left_alone(place: Location, new_run: bool) -> None:
    (place / "thesis/chapter.tex").write(b"precious")
    with pytest.raises(ConfigError, match="is not a run folder"):
        RunFolder.open(place, TERMS, new_run=new_run)
    assert place.files_below() == {"thesis/chapter.tex": 8}


def test_a_run_killed_while_it_wrote_its_first_file_is_begun_again(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/.run.json.0123456789abcdef0123456789abcdef.tmp").write_bytes(b"{")
    assert RunFolder.open(Location(tmp_path / "run"), TERMS).records == {}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"fingerprint": 3}', b"\xff"])
def test_a_damaged_run_file_is_refused(place: Location, content: bytes) -> None:
    RunFolder.open(place, TERMS)
    (place / "run.json").write(content)
    with pytest.raises(DamagedDataError, match=r"run\.json is damaged.*--new-run"):
        RunFolder.open(place, TERMS)
    assert RunFolder.open(place, TERMS, new_run=True).records == {}


@pytest.mark.parametrize("value", [{}, {"key": "a"}, {"key": "a", "objects": 1, "facts": {}}])
def test_a_line_that_is_no_record_is_refused(place: Location, value: dict[str, Any]) -> None:
    RunFolder.open(place, TERMS)
    Journal(place).append(value)
    with pytest.raises(DamagedDataError, match="no record"):
        RunFolder.open(place, TERMS)


def test_stages_are_removed_and_the_journal_stays(place: Location) -> None:
    run = RunFolder.open(place, TERMS)
    run.commit(a_record(run, 0))
    run.remove_stages()
    assert not (place / STAGES).exists()
    run.remove_stages()
    assert list(RunFolder.open(place, TERMS).records) == ["stage/00000"]


def test_a_record_cannot_name_files_outside_the_run() -> None:
    found = {"key": "a", "facts": {}, "objects": {"x": ["../../etc/passwd", 1, "0"]}}
    with pytest.raises(DamagedDataError, match="not the name of a file"):
        Record.from_json(found)
