"""A night as a page: what its rows told, with its record, its gates and the nights before."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mrot_scale import __version__
from mrot_scale.config.job import ReportConfig
from mrot_scale.reporting.contents import Contents, notice, rounded, short, worst_first
from mrot_scale.reporting.page import report_page
from mrot_scale.reporting.redacting import Redaction, redaction
from mrot_scale.reporting.writing import DATA, write_report
from mrot_scale.scheduled.layout import Layout
from mrot_scale.scheduled.partitions import Partition
from mrot_scale.scheduled.run_record import read_night
from mrot_scale.scheduled.state import PartitionState

Json = dict[str, Any]

NIGHTS_BEFORE = 13
"""Nights whose drift is shown beside this one's."""


def night_contents(
    facts: Json, looked: Contents | None, past: Sequence[Json], config: ReportConfig
) -> Contents:
    """Return the contents of a night's report; one that ended early has looked at no rows."""
    partition, hidden = facts["partition"], redaction(config.redact, None)
    title = short(f"{partition['key']}={partition['value']}")
    found = looked or Contents("nightly", title, run={})
    gates = [notice(g["level"], short(g["gate"]), g["message"]) for g in facts.get("gates", [])]
    return replace(
        found,
        title=title,
        run=_run(facts, hidden),
        input=_input(facts, found),
        model=_model(facts, found),
        notices=worst_first([*found.notices, *hidden.of_notices(gates)]),
        rows=facts.get("rows") or found.rows,
        drift=[line | {"past": _past(line["name"], past)} for line in found.drift],
        stages=dict(facts.get("stages", {})),
    )


def _run(facts: Json, hidden: Redaction) -> Json:
    stopped = facts["status"] == "gated"
    reason = "A gate failed: nothing is published." if stopped else facts.get("reason", "")
    return {
        "command": "nightly",
        "status": facts["status"],
        "reason": hidden.of_text(reason),
        "started": facts["started"],
        "seconds": facts.get("seconds"),
        "version": __version__,
        "run_id": facts["run_id"],
        "out": None,
    }


def _input(facts: Json, found: Contents) -> Json:
    files = facts.get("inputs") or []
    given = {"files": len(files), "bytes": sum(int(f.get("size") or 0) for f in files)}
    return {**found.input, "path": None, **given}


def _model(facts: Json, found: Contents) -> Json:
    chosen = facts.get("model") or {}
    return {**found.model, **{n: chosen[n] for n in ("id", "why") if n in chosen}}


def _past(name: str, nights: Sequence[Json]) -> list[float | None]:
    """Return how far a column had moved in the nights before; None where that is not known."""
    found = []
    for night in nights:
        by_name = {short(d["name"]): d["psi"] for d in night.get("drift", [])}
        found.append(rounded(by_name[name], 5) if name in by_name else None)
    return found if any(psi is not None for psi in found) else []


def nights_before(
    layout: Layout, values: Sequence[str], states: dict[str, PartitionState]
) -> list[Json]:
    """Return the records of the last published runs of earlier partitions, in order."""
    found = []
    for value in values[-NIGHTS_BEFORE:]:
        id = states[value].published.get("run_id")
        record = read_night(layout.runs / str(id)) if id else None
        if record is not None:
            found.append(record)
    return found


def write_night(layout: Layout, partition: Partition, contents: Contents) -> None:
    """Write the report of a partition, and the data behind it into the folder of its run."""
    data = layout.runs / contents.run["run_id"] / DATA
    write_report(contents, layout.report(partition), data)


def restore_night(layout: Layout, partition: Partition, run_id: str) -> None:
    """Write the page of a published run again, where it is missing and its data are not."""
    page, data = layout.report(partition), layout.runs / run_id / DATA
    if not page.exists() and data.exists():
        page.write(report_page(Contents.from_bytes(data.read(), str(data))))
