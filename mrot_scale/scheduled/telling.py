"""What a run leaves behind for people and for watchers: report, history, metrics, alerts."""

import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mrot_scale.config.job import ReportConfig
from mrot_scale.config.nightly import NightlyConfig
from mrot_scale.errors import MrotError
from mrot_scale.reporting.contents import Contents
from mrot_scale.reporting.writing import never_failing
from mrot_scale.scheduled.alerts import Alert, event_of, send
from mrot_scale.scheduled.history import write_history
from mrot_scale.scheduled.layout import Layout
from mrot_scale.scheduled.metrics import Figures, write_metrics
from mrot_scale.scheduled.partitions import Partition, values_until
from mrot_scale.scheduled.report import (
    night_contents,
    nights_before,
    restore_night,
    write_night,
)
from mrot_scale.scheduled.state import PartitionState, all_states

_LEVELS = {"ok": 0, "warn": 1, "fail": 2}


class UntoldWarning(UserWarning):
    """A report, metrics or a state could not be written."""


@contextmanager
def unfailing(what: str) -> Iterator[None]:
    """Turn what goes wrong into a warning: the run has ended as it has."""
    try:
        yield
    except (MrotError, OSError) as error:
        warnings.warn(f"Cannot write the {what}: {error}", UntoldWarning, stacklevel=3)


class Ending:
    """The end of one run of a partition."""

    def __init__(
        self,
        layout: Layout,
        partition: Partition,
        settings: NightlyConfig,
        before: PartitionState | None,
        report: ReportConfig | None = None,
    ) -> None:
        self._layout, self._partition, self._settings = layout, partition, settings
        self._before, self._report = before, report or ReportConfig()

    def tell(self, facts: dict[str, Any], looked: Contents | None) -> None:
        """Write report, metrics and history, and send an alert where there is something to tell."""
        states: dict[str, PartitionState] = {}
        with unfailing("metrics"):
            states = all_states(self._layout, self._partition.key)
            found = figures(facts, Counter(state.status for state in states.values()))
            write_metrics(self._layout, found, self._settings.metrics)
        if self._report.enabled:
            with never_failing():
                self._write_report(facts, looked, states)
            with unfailing("history"):
                write_history(self._layout, self._partition.key)
        if not facts.get("skipped"):
            self._alert(facts, states)

    def _write_report(
        self, facts: dict[str, Any], looked: Contents | None, states: dict[str, PartitionState]
    ) -> None:
        if facts.get("skipped"):  # there is a report of what was published
            state = states.get(self._partition.value)
            published = state.published.get("run_id") if state else None
            restore_night(self._layout, self._partition, str(published))
            return
        past = nights_before(self._layout, self._values_before(states), states)
        write_night(
            self._layout, self._partition, night_contents(facts, looked, past, self._report)
        )

    def _values_before(self, states: dict[str, PartitionState]) -> list[str]:
        until = values_until(list(states), self._partition.value)
        return [value for value in until if value != self._partition.value]

    def _alert(self, facts: dict[str, Any], states: dict[str, PartitionState]) -> None:
        level = level_of(facts)
        event = event_of(level, self._was_fine(states))
        if event is None:
            return
        alert = Alert(
            event=event,
            job=str(self._layout.root),
            partition=str(self._partition),
            reason=facts["reason"] or _reason(facts) or "all gates are passed again",
            report=str(self._layout.report(self._partition)),
            run_id=facts["run_id"],
            exit_code=facts["exit_code"],
        )
        send(alert, self._settings)

    def _was_fine(self, states: dict[str, PartitionState]) -> bool:
        """Tell whether neither this partition's last run nor the one before it had a problem."""
        before = self._values_before(states)
        known = [self._before, states[before[-1]] if before else None]
        return all(state is None or state.level == "ok" for state in known)


def level_of(facts: dict[str, Any]) -> str:
    """Return how a run went, at worst."""
    if facts["exit_code"]:
        return "fail"
    levels = [gate["level"] for gate in facts.get("gates", [])]
    return max(levels, key=_LEVELS.__getitem__, default="ok")


def _reason(facts: dict[str, Any]) -> str:
    warned = [g for g in facts.get("gates", []) if g["level"] != "ok"]
    return "; ".join(f"{gate['gate']}: {gate['message']}" for gate in warned)


def figures(facts: dict[str, Any], statuses: Counter[str]) -> Figures:
    """Return what a run is watched by."""
    now, rows = time.time(), facts.get("rows")
    found: Figures = {
        "last_run_timestamp_seconds": now,
        "last_exit_code": facts["exit_code"],
        "run_seconds": facts["seconds"],
        "attempts": facts["attempts"],
        "stage_seconds": facts["stages"],
        "partitions": dict(statuses),
        "gate_level": {gate["gate"]: _LEVELS[gate["level"]] for gate in facts.get("gates", [])},
    }
    if facts["status"] == "published":
        found["last_success_timestamp_seconds"] = now
    if rows and facts["status"] == "published":
        found["rows_scored"] = rows["rows"]
        found["flagged_ratio"] = rows["flagged"] / max(rows["rows"], 1)
        found["missing_ratio"] = rows["missing"] / max(rows["rows"], 1)
    for name in ("psi", "ks"):
        found[f"drift_{name}"] = {drift["name"]: drift[name] for drift in facts.get("drift", [])}
    groups = facts.get("groups", {})
    found["group_flagged_ratio"] = {name: f / max(n, 1) for name, (n, f) in groups.items()}
    return found
