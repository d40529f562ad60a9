"""Ours from end to end: ingest, fit and score as commands, each in a process of its own."""

import json
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.memory import COMMANDS, stage_seconds
from benchmarks.scale_grid import Unit
from benchmarks.scale_place import Place
from benchmarks.scale_watch import Watched, watched

HYBRID_OF = {"plain": "never", "auto": "auto", "always": "always"}
"""What each of our ways says to the setting `hybrid`."""

PHASES = ("start", "open workers", "stage", "publish", "end")
"""What a command does one after another, by its own log."""

_OUTPUT_OF = {"ingest": "store", "fit": "model", "score": "scores"}


def run_commands(place: Place, unit: Unit) -> dict[str, Any]:
    """Return what each command took, and what kind of model came of it."""
    table, folder = place.table, place.fresh(_folder_name(unit))
    commands = {name: _run(name, table, folder, unit) for name in COMMANDS}
    validation = json.loads((folder / "model" / "validation.json").read_text())
    total = sum(found["seconds"] for found in commands.values())
    return {"seconds": total, "model_kind": validation["model_kind"], "commands": commands}


def made_model(place: Place, unit: Unit) -> Path:
    """Return a folder with store and model, made now if no turn has left one; nothing is timed."""
    table, folder = place.table, place.kept(_folder_name(unit))
    for name in ("ingest", "fit"):  # commands that find themselves done return at once
        watched(_words(name, table, unit.workers), folder=folder, environment=_settings(unit))
    return folder


def _folder_name(unit: Unit) -> str:
    return f"{unit.method}-{unit.workers}"


def _settings(unit: Unit) -> dict[str, str]:
    return {"MROT_HYBRID": HYBRID_OF[unit.method]}


def _words(name: str, table: Path, workers: int) -> list[str]:
    words = {
        "ingest": [str(table), "store"],
        "fit": ["store", "model", "--workers", str(workers)],
        "score": ["model", "store", "scores", "--workers", str(workers)],
    }
    return ["-m", "mrot_scale", name, *words[name]]


def _run(name: str, table: Path, folder: Path, unit: Unit) -> dict[str, Any]:
    words = _words(name, table, unit.workers)
    found = watched(words, folder=folder, environment=_settings(unit))
    log = (folder / f"{_OUTPUT_OF[name]}.run" / "log.jsonl").read_text()
    has_stages = name != "ingest"  # which is one process without tasks
    done = stages_done(log) if has_stages else {}
    stages = {s: event["seconds"] for s, event in done.items()} or stage_seconds(found.log)
    return {
        **found.figures(),
        "stages": stages,
        "stage_s": sum(stages.values()),
        "tasks": sum(event["tasks"] for event in done.values()),
        "beside_s": found.seconds - sum(stages.values()),
        "phases": phases(log, found) if has_stages else {},
    }


def stages_done(log: str) -> dict[str, dict[str, Any]]:
    """Return what a run log says of each stage, which is finer than what a terminal is told."""
    events = [json.loads(line) for line in log.splitlines()]
    return {event["stage"]: event for event in events if event["event"] == "stage done"}


def phases(log: str, found: Watched) -> dict[str, float]:
    """Return the seconds of each phase of a command, from the times in its run log."""
    events = [json.loads(line) for line in log.splitlines()]

    def at(name: str, which: int) -> float:
        times = [event["at"] for event in events if event["event"] == name]
        return datetime.fromisoformat(times[which]).timestamp()

    ends = [at("begun", 0), at("workers", 0), at("stage done", -1), at("done", -1)]
    times = [found.began, *ends, found.began + found.seconds]
    return {
        name: round(end - start, 3)
        for name, (start, end) in zip(PHASES, pairwise(times), strict=True)
    }
