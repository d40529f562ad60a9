"""Something that runs tasks, and the simplest that does: this process."""

from collections.abc import Callable, Sequence
from typing import Protocol

from mrot_scale.running.commit import Record
from mrot_scale.running.run_log import Note, unnoted
from mrot_scale.running.tasks import Task, run_task

OnRecord = Callable[[Record], None]


class Workers(Protocol):
    """Something that runs tasks."""

    count: int

    def run(
        self, run: str, tasks: Sequence[Task], on_record: OnRecord, note: Note = unnoted
    ) -> None:
        """Run all tasks, handing over each record as it comes."""


class OpenedWorkers(Workers, Protocol):
    """Workers that this project started or found."""

    dashboard: str | None
    """Where they can be watched, if anywhere."""


class InlineWorkers:
    """No scheduler: tasks run one after another in this process."""

    count = 1
    dashboard: str | None = None

    def run(
        self, run: str, tasks: Sequence[Task], on_record: OnRecord, note: Note = unnoted
    ) -> None:
        for task in tasks:
            on_record(Record.from_json(run_task(run, task)))
