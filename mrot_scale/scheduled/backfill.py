"""Many partitions: which of them have to run, in which order, several at a time.

Models are fitted before the partitions that need them, one after the other; everything else may
run in any order, because what a partition gives does not depend on it.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Literal

import yaml

from mrot_scale.config.job import Config
from mrot_scale.errors import ConfigError, MrotError, TemporaryError
from mrot_scale.jobs.opening import AnyConfig, for_input, settled
from mrot_scale.progress import Report, in_run
from mrot_scale.reading.sources import open_source
from mrot_scale.scheduled.choosing import choose_model
from mrot_scale.scheduled.inputs import are_same
from mrot_scale.scheduled.layout import Layout
from mrot_scale.scheduled.night import Night, nightly
from mrot_scale.scheduled.partitions import (
    Lake,
    Partition,
    as_day,
    in_order,
    values_between,
    values_until,
)
from mrot_scale.scheduled.registry import Registry
from mrot_scale.scheduled.run_record import reason_of
from mrot_scale.scheduled.state import PartitionState, all_states, settings_digest
from mrot_scale.storing.location import Location

Reprocess = Literal["none", "failed", "all"]
Why = Literal["new", "inputs changed", "settings changed", "failed before", "asked for"]


@dataclass(frozen=True)
class Outcome:
    """What became of one partition."""

    partition: str
    status: str
    """done, skipped, empty, failed, missing (no input), or planned."""

    why: str
    exit_code: int = 0
    reason: str = ""
    n_rows: int = 0
    n_flagged: int = 0
    model: str | None = None


@dataclass(frozen=True)
class Backfilled:
    """What a backfill did, partition by partition."""

    outcomes: list[Outcome]
    exit_code: int
    """0, or that of the first partition that failed."""


def backfill(
    input: str | Path,
    output: str | Path,
    *,
    start: str | None = None,
    end: str | None = None,
    reprocess: Reprocess = "none",
    missing: bool = False,
    lookback: int = 0,
    max_active: int = 1,
    dry_run: bool = False,
    config: AnyConfig = None,
    progress: Report | None = None,
    told: Callable[[Outcome], None] | None = None,
) -> Backfilled:
    """Run the partitions of a range that have to run.

    Parameters
    ----------
    start, end
        First and last partition; all there are, when omitted.
    reprocess
        `none` runs what never ran, and what has other inputs or settings since; `failed` also what
        failed; `all` everything.
    missing
        Only partitions without published scores, and days of the range without input are named.
    lookback
        Look at so many partitions before `start` as well, for rows that came late.
    max_active
        Partitions run at the same time, each in a process of its own.
    """
    settings, layout = for_input(settled(config)), Layout(Location(output))
    lake = Lake.open(Location(input), settings.nightly.key)
    for bound in (start, end):
        _check_bound(lake, bound)
    wanted = _range(lake, start, end, lookback)
    states = all_states(layout, lake.key)
    reasons = {
        v: reason_to_run(lake, v, states.get(v), settings, reprocess, missing) for v in wanted
    }
    chosen = {value: why for value, why in reasons.items() if why is not None}
    found = [Outcome(f"{lake.key}={v}", "skipped", "unchanged") for v in wanted if v not in chosen]
    gaps = _gaps(lake, start, end) if missing else []
    found += [Outcome(f"{lake.key}={v}", "missing", "no input") for v in gaps]
    if dry_run:
        found += [Outcome(f"{lake.key}={v}", "planned", why) for v, why in chosen.items()]
        return _backfilled(found)
    run = _Run(Location(input), layout, lake, settings, max_active, progress, told)
    return _backfilled([*found, *run.all(chosen)])


def _backfilled(outcomes: list[Outcome]) -> Backfilled:
    place = in_order([o.partition.partition("=")[2] for o in outcomes])
    ordered = sorted(outcomes, key=lambda o: place.index(o.partition.partition("=")[2]))
    return Backfilled(ordered, next((o.exit_code for o in ordered if o.exit_code), 0))


def _check_bound(lake: Lake, bound: str | None) -> None:
    """Refuse what cannot be a first or last partition of days."""
    are_days = bool(lake.values) and all(as_day(value) for value in lake.values)
    if bound is not None and are_days and as_day(bound) is None:
        raise ConfigError(f"--start and --end take days such as 2026-11-14, got {bound!r}.")


def _range(lake: Lake, start: str | None, end: str | None, lookback: int) -> list[str]:
    wanted = values_between(lake.values, start, end)
    if start is not None and lookback:
        earlier = [v for v in values_until(lake.values, start) if v != start]
        wanted = [*earlier[-lookback:], *wanted]
    return wanted


def _gaps(lake: Lake, start: str | None, end: str | None) -> list[str]:
    """Return the days of the range that have no input at all."""
    days = [day for value in lake.values if (day := as_day(value)) is not None]
    first, last = (as_day(v) if v else None for v in (start, end))
    first, last = first or min(days, default=None), last or max(days, default=None)
    if first is None or last is None:
        return []
    return [d.isoformat() for d in _days(first, last) if d.isoformat() not in lake.folders]


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]


def reason_to_run(
    lake: Lake,
    value: str,
    state: PartitionState | None,
    config: Config,
    reprocess: Reprocess,
    missing: bool,
) -> Why | None:
    """Return why a partition has to run, None if it need not."""
    if reprocess == "all" and not missing:
        return "asked for"
    if state is None:
        return "new"
    if missing and state.published:
        return None
    changed = not are_same(state.inputs_tried, lake.files(lake.partition(value)))
    if state.status in ("failed", "gated", "running"):
        if reprocess == "failed" or missing or state.was_stopped:
            return "failed before"
        return "inputs changed" if changed else None
    if changed:
        return "inputs changed"
    if state.published and state.published["settings"] != settings_digest(config):
        return "settings changed"
    return None


class _Run:
    """The partitions of one backfill on their way."""

    def __init__(
        self,
        source: Location,
        layout: Layout,
        lake: Lake,
        config: Config,
        max_active: int,
        progress: Report | None,
        told: Callable[[Outcome], None] | None,
    ) -> None:
        if max_active < 1:
            raise ConfigError(f"max_active must be at least 1, got {max_active}.")
        self._source, self._layout, self._lake, self._config = source, layout, lake, config
        self._max_active, self._progress = max_active, progress
        self._told = told or (lambda outcome: None)
        self._telling = Lock()

    def all(self, chosen: dict[str, Why]) -> list[Outcome]:
        """Fit every model that is due, in order, then run the partitions in any order."""
        with in_run(f"backfill-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"):
            for value in chosen:
                self._prepare(value)
        if self._max_active == 1:
            return [self._one(value, why, self._here) for value, why in chosen.items()]
        with tempfile.TemporaryDirectory() as folder:
            processes = _Processes(self._source, self._layout, self._config, Path(folder))
            with ThreadPoolExecutor(self._max_active) as pool:
                running = [
                    pool.submit(self._one, value, why, processes.run)
                    for value, why in chosen.items()
                ]
                try:
                    return [future.result() for future in running]
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    processes.terminate()
                    raise

    def _prepare(self, value: str) -> None:
        """See to the model of a partition; what goes wrong is told when the partition runs."""
        partition = self._lake.partition(value)
        with suppress(Exception):
            if _has_rows(self._lake, partition, self._config):
                registry = Registry(self._layout)
                choose_model(registry, self._lake, partition, self._config, self._progress)

    def _one(self, value: str, why: Why, run: "Callable[[Partition, bool], Night]") -> Outcome:
        partition = self._lake.partition(value)
        try:
            night = run(partition, why == "asked for")
        except Exception as error:
            return self._ended(_failed(partition, why, *reason_of(error)))
        found = (0, "", night.n_rows, night.n_flagged, night.model)
        return self._ended(Outcome(str(partition), night.status, why, *found))

    def _here(self, partition: Partition, again: bool) -> Night:
        return nightly(
            self._source.address,
            self._layout.root.address,
            partition=str(partition),
            config=self._config,
            again=again,
            progress=self._progress,
        )

    def _ended(self, outcome: Outcome) -> Outcome:
        with self._telling:
            self._told(outcome)
        return outcome


def _has_rows(lake: Lake, partition: Partition, config: Config) -> bool:
    if not lake.files(partition):
        return False
    return open_source(lake.folder(partition), id_column=config.nightly.id).has_rows()


def _failed(partition: Partition, why: Why, code: int, reason: str) -> Outcome:
    return Outcome(str(partition), "failed", why, code, reason)


class _ProcessError(MrotError):
    """A process ended with an error of its own."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.exit_code = code


class _Processes:
    """Nights in processes of their own, with the settings of this one."""

    def __init__(self, source: Location, layout: Layout, config: Config, folder: Path) -> None:
        self._source, self._layout = source, layout
        self._config = folder / "config.yaml"
        given = config.model_dump(mode="json", exclude_unset=True)
        self._config.write_text(yaml.safe_dump(given, sort_keys=False))
        self._running: set[subprocess.Popen[bytes]] = set()

    def run(self, partition: Partition, again: bool) -> Night:
        words = ["nightly", self._source.address, self._layout.root.address]
        words += ["--partition", str(partition), "-c", str(self._config), "--output", "json"]
        words += ["--again"] if again else []
        process = subprocess.Popen(  # noqa: S603 - this very program
            [sys.executable, "-m", "mrot_scale", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._running.add(process)
        try:
            out, log = process.communicate()
        finally:
            self._running.discard(process)
        sys.stderr.write(log.decode(errors="replace"))
        if process.returncode < 0:
            told = f"its process was killed by signal {-process.returncode}; run it again"
            raise _ProcessError(TemporaryError.exit_code, told)
        if process.returncode:
            raise _ProcessError(process.returncode, _last_line(log))
        return Night(**json.loads(out))

    def terminate(self) -> None:
        for process in list(self._running):
            process.terminate()


def _last_line(log: bytes) -> str:
    lines = log.decode(errors="replace").strip().splitlines()
    return lines[-1].partition("]: ")[2] or lines[-1] if lines else "it ended without a word"
