"""Tasks: what travels to a worker, what it may call, and how its failures are told."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from mrot_scale.errors import DamagedDataError, DataError, MrotError
from mrot_scale.running import tasks
from mrot_scale.running.commit import Record
from mrot_scale.running.tasks import Task, Work, records_json, run_task
from mrot_scale.storing.location import Location
from tests.places import KINDS, fresh_place

MODULE = "mrot_scale.jobs.made_up_for_tests"


def write_both(work: Work, value: float, size: int) -> Record:
    work.attempt.put_array("values", np.full(size, value))
    work.attempt.put("text", b"words")
    return work.attempt.record(size=size)


def add_up(work: Work, parts: list[Any]) -> Record:
    total = sum(float(work.array(part, "values").sum()) for part in parts)
    return work.attempt.record(total=total, text=work.text(parts[0], "text"))


def refuse(work: Work, message: str) -> Record:
    raise DataError(message)


def stumble(work: Work) -> Record:
    raise ZeroDivisionError("float division by zero")


def count_threads(work: Work) -> Record:
    return work.attempt.record(threads=[pool["num_threads"] for pool in threadpool_info()])


@pytest.fixture(autouse=True)
def job(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of jobs with the functions above."""
    module = ModuleType(MODULE)
    for function in (write_both, add_up, refuse, stumble, count_threads):
        setattr(module, function.__name__, function)
    monkeypatch.setitem(sys.modules, MODULE, module)
    monkeypatch.setattr(tasks, "_HELD", tasks._HeldArrays())


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    with fresh_place(request.param, tmp_path) as found:
        yield found


def run(place: Location, name: str, key: str = "stage/00003", **arguments: Any) -> Record:
    return Record.from_json(run_task(place.address, Task(key, f"{MODULE}:{name}", arguments)))


def test_a_task_writes_what_its_record_names(place: Location) -> None:
    record = run(place, "write_both", value=0.5, size=4)
    assert record.key == "stage/00003"
    assert record.facts == {"size": 4}
    assert record.objects["values"].read_array(place).tolist() == [0.5] * 4
    assert record.objects["text"].read(place) == b"words"


def test_a_task_reads_what_earlier_records_name(place: Location) -> None:
    made = [run(place, "write_both", f"first/{n:05d}", value=float(n), size=3) for n in range(4)]
    parts = json.loads(json.dumps(records_json(made)))
    assert run(place, "add_up", parts=parts).facts == {"total": 18.0, "text": "words"}


def test_arrays_of_earlier_stages_are_read_once_and_cannot_be_written_to(place: Location) -> None:
    record = run(place, "write_both", value=1.0, size=3).to_json()
    found = Work(place, "later").array(record, "values")
    assert Work(place, "later").array(record, "values") is found
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 2.0


def test_arrays_are_held_as_far_as_they_fit(
    place: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_HELD_BYTES", 5 * 3 * 8)
    for n in range(20):
        record = run(place, "write_both", f"first/{n:05d}", value=float(n), size=3)
        Work(place, "later").array(record.to_json(), "values")
    assert len(tasks._HELD._arrays) == 5
    monkeypatch.setattr(tasks, "_HELD_BYTES", 1)
    assert Work(place, "later").array(record.to_json(), "values").tolist() == [19.0] * 3
    assert len(tasks._HELD._arrays) == 1


def test_a_damaged_array_of_an_earlier_stage_is_noticed(place: Location) -> None:
    record = run(place, "write_both", value=1.0, size=3)
    (place / record.objects["values"].name).write(b"garbage")
    with pytest.raises(DamagedDataError, match=r"values\..* is not what was written"):
        run(place, "add_up", parts=[record.to_json()])


def test_an_error_says_which_task_it_came_from(place: Location) -> None:
    with pytest.raises(DataError, match="bad rows") as caught:
        run(place, "refuse", message="bad rows")
    assert caught.value.__notes__ == ["in task stage/00003"]


def test_an_error_that_names_the_task_is_left_alone(place: Location) -> None:
    with pytest.raises(DataError) as caught:
        run(place, "refuse", message="stage/00003: bad rows")
    assert not hasattr(caught.value, "__notes__")


def test_an_error_nobody_expected_says_which_task_it_came_from_too(place: Location) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run(place, "stumble")
    assert "in task stage/00003" in getattr(caught.value, "__notes__", [])


@pytest.mark.parametrize(
    "function",
    ["os:system", "mrot_scale.cli:main", "mrot_scale.jobs:x", "mrot_scale.jobsx.y:z", "", ":"],
)
def test_nothing_but_jobs_of_ours_is_called(tmp_path: Path, function: str) -> None:
    with pytest.raises(MrotError, match="is not a task of mrot-scale"):
        run_task(str(tmp_path), Task("stage", function))


def test_a_task_runs_on_one_native_thread(place: Location) -> None:
    threads = run(place, "count_threads").facts["threads"]
    assert set(threads) <= {1}
