"""The tasks on their way to a scheduler and back, each sent again if its worker seems to hang."""

import time
from collections.abc import Iterator
from itertools import islice
from typing import Any
from uuid import uuid4

from mrot_scale.errors import TemporaryError
from mrot_scale.running.run_log import Note
from mrot_scale.running.tasks import Task, run_task

_ANSWER_S = 20.0
"""Seconds that a scheduler is given to answer a question."""

_SLOW_S, _SLOW_TIMES = 30.0, 3.0
"""Seconds, and times the longest of its stage, after which a task is sent a second time."""


class Underway:
    """The tasks on their way, and how long such tasks take."""

    def __init__(self, client: Any, run: str, note: Note) -> None:
        self._client, self._run, self._note = client, run, note
        self._tasks: dict[Any, Task] = {}
        self._sent: dict[str, float] = {}
        self._doubled: set[str] = set()
        self._longest_s = 0.0

    @property
    def futures(self) -> list[Any]:
        return list(self._tasks)

    def fill(self, waiting: Iterator[Task], size: int) -> bool:
        """Send tasks while there is room; tell whether any is on its way."""
        for task in islice(waiting, max(size - len(self._sent), 0)):
            self._sent[task.key] = time.monotonic()
            self._send(task)
        return bool(self._tasks)

    def _send(self, task: Task, **where: Any) -> None:
        key = _future_key(task)
        future = self._client.submit(run_task, self._run, task, pure=False, key=key, **where)
        self._tasks[future] = task

    def double_slow_ones(self) -> None:
        """Send tasks again that take far longer than others did: their worker may hang.

        Whichever comes first counts; tasks give the same bytes wherever they run. Where none has
        finished yet, nobody knows what is slow.
        """
        slow = [future for future in self._tasks if self._is_slow(self._tasks[future])]
        having = self._having() if slow else {}
        for future in slow:
            task = self._tasks[future]
            others = [worker for worker, keys in having.items() if future.key not in keys]
            if others:
                self._doubled.add(task.key)
                self._note("slow", task=task.key, seconds=round(self._took(task), 1))
                self._send(task, workers=others, allow_other_workers=True)

    def _is_slow(self, task: Task) -> bool:
        limit = max(_SLOW_S, _SLOW_TIMES * self._longest_s)
        return bool(self._longest_s) and self._took(task) > limit and task.key not in self._doubled

    def _took(self, task: Task) -> float:
        return time.monotonic() - self._sent[task.key]

    def _having(self) -> dict[str, list[str]]:
        """Return what each worker has to do, as far as the scheduler tells."""
        try:
            return dict(asked(self._client, "processing", workers=None))
        except OSError:
            return {}

    def in_order(self, done: Any) -> list[Any]:
        """Return finished futures by task: of each task one, that which went well if any did."""
        first: dict[str, Any] = {}
        for future in sorted(done, key=lambda f: (self._tasks[f].key, f.status != "finished")):
            first.setdefault(self._tasks[future].key, future)
        return list(first.values())

    def task(self, future: Any) -> Task:
        return self._tasks[future]

    def take(self, future: Any) -> None:
        """Count a future's task as done; whatever else was sent for it is given up."""
        task = self._tasks[future]
        self._longest_s = max(self._longest_s, self._took(task))
        del self._sent[task.key]
        for other in [f for f, t in self._tasks.items() if t.key == task.key]:
            del self._tasks[other]
            if other is not future:
                self._client.cancel([other])

    def stuck(self, silence_s: float) -> TemporaryError:
        keys = sorted({task.key for task in self._tasks.values()})
        return TemporaryError(
            f"No task has finished for {silence_s:g} s; {keys[0]} and {len(keys) - 1} more are on "
            "their way. What is done is kept: run the same command again, with a larger "
            "cluster.silence_s if tasks may take so long."
        )

    def cancel(self) -> None:
        if self._tasks and self._client.status == "running":
            self._client.cancel(self.futures)


def asked(client: Any, question: str, **arguments: Any) -> Any:
    """Return what the scheduler says; one that hangs would let Dask's own methods wait for ever."""
    return client.sync(getattr(client.scheduler, question), callback_timeout=_ANSWER_S, **arguments)


def _future_key(task: Task) -> str:
    return f"{task.key}-{uuid4().hex[:8]}"
