"""The runner: committed tasks are skipped, the rest is committed as it comes."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from mrot_scale.errors import TemporaryError
from mrot_scale.running.commit import Attempt, Record, RunFolder, task_key
from mrot_scale.running.run_log import Note, unnoted
from mrot_scale.running.runner import Runner
from mrot_scale.running.tasks import Task
from mrot_scale.storing.location import Location
from tests.places import KINDS, fresh_place

TERMS = {"command": "score"}
TASKS = [Task(task_key("score", n), "mrot_scale.jobs.x:y", {"chunk": n}) for n in range(6)]


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    with fresh_place(request.param, tmp_path) as found:
        yield found


class FakeWorkers:
    """Makes a record of each task, in an order of its own, and is lost after so many."""

    count = 1

    def __init__(self, *, backwards: bool = False, lost_after: int | None = None) -> None:
        self.ran: list[str] = []
        self._backwards, self._lost_after = backwards, lost_after

    def run(
        self,
        run: str,
        tasks: Sequence[Task],
        on_record: Callable[[Record], None],
        note: Note = unnoted,
    ) -> None:
        for task in reversed(tasks) if self._backwards else tasks:
            if len(self.ran) == self._lost_after:
                raise TemporaryError("lost")
            self.ran.append(task.key)
            attempt = Attempt(Location(run), task.key)
            attempt.put("part", task.key.encode())
            on_record(attempt.record(**task.arguments))


class Heard:
    """What was reported."""

    def __init__(self) -> None:
        self.said: list[tuple[str, int, int]] = []

    def __call__(self, stage: str, done: int, total: int) -> None:
        self.said.append((stage, done, total))


def opened(place: Location) -> RunFolder:
    return RunFolder.open(place, TERMS)


def keys(records: list[Record]) -> list[str]:
    return [record.key for record in records]


@pytest.mark.parametrize("backwards", [False, True])
def test_records_come_in_the_order_of_the_tasks(place: Location, backwards: bool) -> None:
    run, heard = opened(place), Heard()
    found = Runner(run, FakeWorkers(backwards=backwards), heard).stage("score", TASKS)
    assert keys(found) == [task.key for task in TASKS]
    assert [record.facts["chunk"] for record in found] == list(range(6))
    assert heard.said == [("score", done, 6) for done in range(7)]
    assert set(opened(place).records) == {task.key for task in TASKS}


@pytest.mark.parametrize("lost_after", range(7))
def test_a_run_that_was_lost_anywhere_does_only_the_rest(place: Location, lost_after: int) -> None:
    first, heard = FakeWorkers(lost_after=lost_after), Heard()
    if lost_after < 6:
        with pytest.raises(TemporaryError):
            Runner(opened(place), first, heard).stage("score", TASKS)
    else:
        Runner(opened(place), first, heard).stage("score", TASKS)
    second, again = FakeWorkers(), Heard()
    found = Runner(opened(place), second, again).stage("score", TASKS)
    assert first.ran + second.ran == [task.key for task in TASKS]
    assert keys(found) == [task.key for task in TASKS]
    assert again.said[0] == ("score", lost_after, 6)
    assert again.said[-1] == ("score", 6, 6)


def test_shuffling_changes_the_order_of_work_alone(place: Location) -> None:
    workers = FakeWorkers()
    found = Runner(opened(place), workers, Heard(), shuffle=1).stage("score", TASKS)
    assert keys(found) == [task.key for task in TASKS]
    assert workers.ran != keys(found)
    assert sorted(workers.ran) == keys(found)


def test_a_stage_without_tasks_has_no_records(place: Location) -> None:
    heard = Heard()
    assert Runner(opened(place), FakeWorkers(), heard).stage("score", []) == []
    assert heard.said == [("score", 0, 0)]


def test_a_stage_of_one_task_has_one_record(place: Location) -> None:
    heard = Heard()
    runner = Runner(opened(place), FakeWorkers(), heard)
    assert runner.one(TASKS[2]).key == "score/00002"
    assert heard.said == [("score", 0, 1), ("score", 1, 1)]
