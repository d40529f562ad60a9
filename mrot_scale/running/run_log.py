"""What happened in a run, for people: a log of lines of JSON, and the error it ended with."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from threading import Thread
from typing import Any
from uuid import uuid4

from mrot_scale.errors import MrotError
from mrot_scale.storing.location import Location

Note = Callable[..., None]
"""Called with an event and facts about it."""

LOG = "log.jsonl"
LOGS = "logs"
LAST_ERROR = "last_error.json"

_SOON_S = 5.0
"""How long a run that is over waits for an object store to take note of that."""


def unnoted(event: str, **facts: Any) -> None:
    """Note nothing."""


class RunLog:
    """Lines of one log file; on object stores, where none can grow, one object per attempt."""

    def __init__(self, run: Location) -> None:
        self._run = run
        self._place = run / (LOG if run.is_local else f"{LOGS}/{uuid4().hex[:12]}.jsonl")
        self._lines: list[bytes] = []
        self.begun = _now()
        self.seconds: dict[str, float] = {}
        """What each stage has taken in this attempt."""

    def write(self, event: str, **facts: Any) -> None:
        """Add a line. A log that cannot be written stops no run."""
        if event == "stage done":
            stage = str(facts["stage"])
            self.seconds[stage] = round(self.seconds.get(stage, 0.0) + facts["seconds"], 3)
        found = {"at": _now(), "event": event, **facts}
        line = json.dumps(found, default=str, allow_nan=False).encode() + b"\n"
        if not self._run.is_local:
            self._lines.append(line)
            return
        with suppress(OSError), self._place.path.open("ab") as file:
            file.write(line)

    def close(self) -> None:
        if self._lines:
            _write_soon(self._place, b"".join(self._lines))


@contextmanager
def recorded(run: Location, **facts: Any) -> Iterator[RunLog]:
    """Yield the log of one attempt at a run; how it ends stays in the run folder."""
    log = RunLog(run)
    log.write("begun", **facts)
    try:
        yield log
    except BaseException as error:
        log.write("ended", **told(error))
        _write_soon(run / LAST_ERROR, _pretty({"at": _now(), **told(error)}))
        raise
    else:
        log.write("done")
        with suppress(MrotError):
            (run / LAST_ERROR).remove()
    finally:
        log.close()


def _write_soon(place: Location, content: bytes) -> None:
    """Write what is good to know but stops no run; storage that hangs is not waited for."""

    def write() -> None:
        with suppress(MrotError):
            place.write(content)

    if place.is_local:
        write()
        return
    writing = Thread(target=write, daemon=True)
    writing.start()
    writing.join(_SOON_S)


def read_last_error(run: Location) -> dict[str, Any] | None:
    """Return how a run last ended, if it was with an error."""
    place = run / LAST_ERROR
    try:
        found = json.loads(place.read()) if place.exists() else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def told(error: BaseException) -> dict[str, Any]:
    """Return what an error is: its exit code, its kind, its message, where it happened."""
    code = error.exit_code if isinstance(error, MrotError) else _exit_code(error)
    notes = [str(note) for note in getattr(error, "__notes__", [])]
    return {
        "code": code,
        "error": type(error).__name__,
        "message": str(error),
        "where": notes,
    }


def _exit_code(error: BaseException) -> int:
    """Return the exit code of what is no error of ours: a bug, or a signal."""
    number = getattr(error, "number", None)
    if isinstance(error, KeyboardInterrupt):
        return 130
    return 128 + number if isinstance(number, int) else 1


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _pretty(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()
