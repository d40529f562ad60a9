"""A task on its way to a worker, and what a worker does with it.

What travels is names and small values. A task function reads what records of earlier stages name,
calls a pure function, writes through its attempt, and returns a record.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from numpy.typing import NDArray

from mrot_scale.allocation import keep_freed_memory
from mrot_scale.errors import MrotError
from mrot_scale.faults import reach
from mrot_scale.running.commit import Attempt, ObjectRef, Record
from mrot_scale.storing.location import Location
from mrot_scale.threads import one_native_thread

_HELD_BYTES = 2**28
"""Arrays of earlier stages a worker keeps at hand; tasks of one stage read the same few."""


@dataclass(frozen=True)
class Task:
    """A function of ours and its arguments, as JSON values."""

    key: str
    function: str
    """As `module:function`, below `mrot_scale.jobs`."""

    arguments: dict[str, Any] = field(default_factory=dict)


class Work:
    """What a task function is given: its attempt, and what earlier stages made."""

    def __init__(self, run: Location, key: str) -> None:
        self.run = run
        self.attempt = Attempt(run, key)

    def array(self, record: Any, part: str) -> NDArray[Any]:
        """Return an array of an earlier stage; it is shared, so never written to."""
        ref = Record.from_json(record).objects[part]
        return _HELD.array(self.run, ref)

    def text(self, record: Any, part: str) -> str:
        return Record.from_json(record).objects[part].read(self.run).decode()


class _HeldArrays:
    """The arrays read last, as many as fit; the one just asked for is always among them."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[str, ObjectRef], NDArray[Any]] = {}

    def array(self, run: Location, ref: ObjectRef) -> NDArray[Any]:
        key = (run.address, ref)
        values = self._arrays.pop(key, None)
        if values is None:
            values = ref.read_array(run)
            values.setflags(write=False)
        self._arrays[key] = values  # asked for last, so last to go
        while len(self._arrays) > 1 and self._n_bytes > _HELD_BYTES:
            del self._arrays[next(iter(self._arrays))]
        return values

    @property
    def _n_bytes(self) -> int:
        return sum(values.nbytes for values in self._arrays.values())


_HELD = _HeldArrays()


def run_task(run: str, task: Task) -> dict[str, Any]:
    """Run a task in this process and return its record."""
    keep_freed_memory()
    function = _function(task.function)
    work = Work(Location(run), task.key)
    reach(f"begin {task.key}")
    try:
        with one_native_thread():
            record: Record = function(work, **task.arguments)
    except Exception as error:
        if task.key not in str(error):
            error.add_note(f"in task {task.key}")
        raise
    reach(f"end {task.key}")
    return record.to_json()


def _function(name: str) -> Callable[..., Record]:
    module, _, function = name.partition(":")
    if not module.startswith("mrot_scale.jobs."):
        raise MrotError(f"{name} is not a task of mrot-scale.")
    found: Callable[..., Record] = getattr(import_module(module), function)
    return found


def records_json(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return records as task arguments."""
    return [record.to_json() for record in records]
