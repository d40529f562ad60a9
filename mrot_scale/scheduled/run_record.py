"""What a run was asked, did and found: `run.json`, written as it begins and however it ends."""

import json
import os
import re
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from mrot_scale.config.job import Config
from mrot_scale.config.text import SECRETS, shown_settings
from mrot_scale.errors import MissingInputError, MrotError
from mrot_scale.progress import Report, TimedStages
from mrot_scale.running.run_log import told
from mrot_scale.running.worker_checks import worker_versions
from mrot_scale.scheduled.layout import Layout, json_bytes
from mrot_scale.scheduled.partitions import Partition
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import Entry

FORMAT = "mrot-scale-nightly-run"
RUN_FILE = "run.json"


class RunRecord:
    """One run on its way into its folder."""

    def __init__(self, layout: Layout, partition: Partition, config: Config) -> None:
        now = datetime.now(UTC)
        safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in partition.value)[:60]
        self.id = f"{now:%Y%m%dT%H%M%SZ}-{safe}-{uuid4().hex[:6]}"
        self.location = layout.runs / self.id
        self._begun = time.perf_counter()
        settings = shown_settings(config)
        self.facts: dict[str, Any] = {
            "format": FORMAT,
            "run_id": self.id,
            "argv": shown_words(sys.argv),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "partition": {"key": partition.key, "value": partition.value},
            "interval": partition.interval,
            "started": now.isoformat(timespec="milliseconds"),
            "config": settings,
            "config_sha256": Entry.of(json_bytes(settings)).sha256,
            "seed": config.seed,
            "versions": worker_versions(),
            "status": "running",
            "stages": {},
        }

    def write(self) -> None:
        (self.location / RUN_FILE).write(json_bytes(self.facts))

    def finish(self, status: str, exit_code: int, **facts: Any) -> None:
        """Write how it ended; storage that is away does not hide why."""
        self.facts |= {
            "status": status,
            "exit_code": exit_code,
            "ended": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "seconds": round(time.perf_counter() - self._begun, 3),
            **facts,
        }
        with suppress(MrotError):
            self.write()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the seconds of a part of the work."""
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            stages = self.facts["stages"]
            stages[name] = round(stages.get(name, 0.0) + spent, 3)

    def timed(self, report: Report | None) -> Report:
        """Return a report that also keeps the seconds of each stage."""
        return TimedStages(report, self.facts["stages"])


def shown_words(words: Sequence[str]) -> list[str]:
    """Return a command line without the values of settings that may be secrets."""
    pattern = rf"((?:--set=)?\w+\.(?:{'|'.join(SECRETS)})[^=]*=).*"
    return [re.sub(pattern, r"\1(not shown)", word, flags=re.DOTALL) for word in words]


def read_night(place: Location) -> dict[str, Any] | None:
    """Return the record of a night's run, None if the folder is of another kind of run."""
    try:
        found = json.loads((place / RUN_FILE).read())
    except (ValueError, RecursionError, MissingInputError):
        return None
    return found if isinstance(found, dict) and found.get("format") == FORMAT else None


def reason_of(error: BaseException) -> tuple[int, str]:
    """Return the exit code an error has, and one line about it."""
    found = told(error)
    where = " ".join(f"({note})" for note in found["where"])
    message = found["message"] or found["error"]
    return int(found["code"]), " ".join(f"{message} {where}".split())
