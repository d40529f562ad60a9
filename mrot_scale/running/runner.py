"""Stages one after another: what is committed already is skipped, the rest goes to the workers."""

import time
from collections.abc import Sequence
from random import Random

from mrot_scale.progress import Report, tell_rows
from mrot_scale.running.commit import Record, RunFolder
from mrot_scale.running.run_log import Note, unnoted
from mrot_scale.running.tasks import Task
from mrot_scale.running.workers import Workers


class Runner:
    """Runs the tasks of a stage and commits what they made."""

    def __init__(
        self,
        run: RunFolder,
        workers: Workers,
        report: Report,
        note: Note = unnoted,
        *,
        shuffle: int | None = None,
    ) -> None:
        self.run, self._workers, self._report = run, workers, report
        self._note = note
        self._order = None if shuffle is None else Random(shuffle)  # noqa: S311 - any order will do

    def stage(self, name: str, tasks: Sequence[Task], *, in_rows: bool = False) -> list[Record]:
        """Return the records of all tasks, in the order of the tasks, whatever came first.

        Where each record tells how many rows its task went through, speed is told in rows.
        """
        todo = [task for task in tasks if task.key not in self.run.records]
        done = len(tasks) - len(todo)
        if self._order:
            self._order.shuffle(todo)
        self._report(name, done, len(tasks))

        rows = 0

        def commit(record: Record) -> None:
            nonlocal done, rows
            self.run.commit(record)
            done += 1
            if in_rows:
                rows += record.facts["rows"]
                tell_rows(self._report, name, rows)
            self._report(name, done, len(tasks))

        start = time.perf_counter()
        self._note("stage", stage=name, tasks=len(tasks), done_before=done)
        self._workers.run(self.run.location.address, todo, commit, self._note)
        seconds = round(time.perf_counter() - start, 3)
        self._note("stage done", stage=name, tasks=len(tasks), seconds=seconds)
        return [self.run.records[task.key] for task in tasks]

    def one(self, task: Task) -> Record:
        """Return the record of a stage that is one task."""
        return self.stage(task.key.split("/")[0], [task])[0]
