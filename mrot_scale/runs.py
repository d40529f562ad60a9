"""Runs at rest or at work, from what they left in their folders."""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from mrot_scale.digests import AnyPath
from mrot_scale.errors import MissingInputError
from mrot_scale.running.commit import RunFolder, is_run_folder
from mrot_scale.running.lock import holder
from mrot_scale.running.run_log import LOG, LOGS, read_last_error
from mrot_scale.scheduled.run_record import read_night
from mrot_scale.storing.location import Location

State = Literal["running", "finished", "failed", "unfinished"]
_LINES_SHOWN = 20


@dataclass(frozen=True)
class RunSummary:
    """What a run is doing, or how it ended."""

    folder: str
    command: str
    state: State
    """`failed` ended with an error, `unfinished` without a word; both can be gone on with."""

    committed: dict[str, int]
    """Tasks done, by stage."""

    last_error: dict[str, Any] | None
    held_by: dict[str, Any] | None

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class RunDetails:
    """A run with what it was asked and what happened in it."""

    summary: RunSummary
    fingerprint: dict[str, Any]
    log: list[dict[str, Any]]
    """The last lines of its log."""

    def to_json(self) -> dict[str, Any]:
        return self.summary.to_json() | {"fingerprint": self.fingerprint, "log": self.log}


def list_runs(folder: AnyPath) -> list[RunSummary]:
    """Return the runs whose folders lie directly in a folder, by name."""
    place = Location(folder)
    if not place.is_folder():
        raise MissingInputError(f"Nothing at {place}.")
    found = [place / name for name in place.names() if not name.startswith(".")]
    return [_summary_at(below) for below in found if is_run_folder(below)]


def _summary_at(place: Location) -> RunSummary:
    night = read_night(place)
    return _summary(RunFolder.read(place)) if night is None else _night_summary(place, night)


def show_run(folder: AnyPath) -> RunDetails:
    """Return one run, found by its folder or by its output."""
    place = _run_place(Location(folder))
    night = read_night(place)
    if night is not None:
        return RunDetails(_night_summary(place, night), night, [])
    run = RunFolder.read(place)
    return RunDetails(_summary(run), run.fingerprint, _log_lines(run.location)[-_LINES_SHOWN:])


def _run_place(place: Location) -> Location:
    for candidate in (place, place.sibling(f"{place.name}.run")):
        if is_run_folder(candidate):
            return candidate
    raise MissingInputError(f"{place} is no run folder, and none is beside it.")


def _summary(run: RunFolder) -> RunSummary:
    held, error = holder(run.location), read_last_error(run.location)
    return RunSummary(
        str(run.location),
        str(run.fingerprint.get("command")),
        _state(run, held, error),
        dict(Counter(key.split("/")[0] for key in run.records)),
        None if run.finished else error,
        held,
    )


def _night_summary(place: Location, night: dict[str, Any]) -> RunSummary:
    """Return how a night's run stands; one that never said how it ended may have been killed."""
    partition = night.get("partition", {})
    name = f"{partition.get('key')}={quote(str(partition.get('value')), safe=' ')}"
    held = holder(place.sibling("work") / name) if night.get("status") == "running" else None
    code = night.get("exit_code")
    error = {"code": code, "message": night.get("reason")} if code else None
    ended: State = "unfinished" if code is None else "failed" if code else "finished"
    return RunSummary(str(place), f"nightly {name}", "running" if held else ended, {}, error, held)


def _state(run: RunFolder, held: Any, error: Any) -> State:
    if held is not None:
        return "running"
    if run.finished:
        return "finished"
    return "unfinished" if error is None else "failed"


def _log_lines(run: Location) -> list[dict[str, Any]]:
    if (run / LOG).exists():
        texts = [(run / LOG).read()]
    elif (run / LOGS).exists():
        texts = [(run / LOGS / name).read() for name in (run / LOGS).names()]
    else:
        return []
    found = [_value(line) for text in texts for line in text.splitlines()]
    return sorted((v for v in found if v is not None), key=lambda value: str(value.get("at")))


def _value(line: bytes) -> dict[str, Any] | None:
    """Return a line of the log; one that was cut short tells nothing."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def runs_text(runs: list[RunSummary]) -> str:
    """Return runs for people, a line each."""
    lines = [
        f"{run.state:<11} {run.command:<7} {_tasks(run)}  {run.folder}" + _why(run) for run in runs
    ]
    return "\n".join(lines) or "no runs"


def _tasks(run: RunSummary) -> str:
    return f"{sum(run.committed.values()):>6} tasks" if run.committed else f"{'':>12}"


def details_text(run: RunDetails) -> str:
    """Return one run for people: state, terms, what happened last."""
    lines = [runs_text([run.summary]), ""]
    lines += [f"  {stage}: {count} done" for stage, count in run.summary.committed.items()]
    lines += [""] if run.summary.committed else []
    for event in run.log:
        facts = {k: v for k, v in event.items() if k not in ("at", "event")}
        shown = ", ".join(f"{name} {value}" for name, value in facts.items())
        lines.append(f"  {event.get('at')}  {event.get('event')}  {shown}".rstrip())
    return "\n".join(lines)


def _why(run: RunSummary) -> str:
    if run.held_by:
        return f"  (process {run.held_by.get('pid')} on {run.held_by.get('host')})"
    if run.last_error:
        return f"\n            error[{run.last_error.get('code')}]: {run.last_error.get('message')}"
    return ""
