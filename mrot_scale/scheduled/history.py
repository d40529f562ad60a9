"""All nights of a job on one page, each a line that leads to its report.

Nights may end at the same moment. Whoever writes looks again afterwards: a page that was written
from older states is written again, so the last one shows them all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mrot_scale.errors import MissingInputError, MrotError
from mrot_scale.reporting.history_page import history_page
from mrot_scale.scheduled.layout import Layout, json_bytes, read_json
from mrot_scale.scheduled.partitions import Partition, in_order
from mrot_scale.scheduled.run_record import read_night
from mrot_scale.scheduled.state import PartitionState, all_states
from mrot_scale.storing.location import Location

NIGHTS_SHOWN = 400
"""Nights on the page, at most: the last ones."""

KNOWN_NIGHTS = "history.json"
_ROUNDS = 20
_FIGURES = ("seconds", "drift", "drifted")

Json = dict[str, Any]


@dataclass(frozen=True)
class History:
    """What the page shows."""

    page: str
    nights: list[Json] = field(default_factory=list)
    is_dry: bool = False


def history(output: str | Path, *, key: str = "date", dry_run: bool = False) -> History:
    """Write the page over all nights of a job, and return what it shows."""
    layout = Layout(Location(output))
    if not (layout.runs / "partitions").exists():
        raise MissingInputError(f"{layout.root} holds no runs of mrot-scale nightly.")
    states = all_states(layout, key)
    if not states:
        raise MissingInputError(f"{layout.root} has no partitions by {key!r}. Give their --key.")
    if dry_run:
        return History(str(layout.history), _nights(layout, key, states), is_dry=True)
    return History(str(layout.history), write_history(layout, key))


def write_history(layout: Layout, key: str) -> list[Json]:
    """Write the page, again as long as nights have ended meanwhile; return what it shows."""
    nights: list[Json] = []
    for _ in range(_ROUNDS):
        states = all_states(layout, key)
        nights = _nights(layout, key, states)
        layout.history.write(history_page(str(layout.root), nights, len(states)))
        (layout.runs / KNOWN_NIGHTS).write(json_bytes({"nights": nights}))
        if all_states(layout, key) == states:
            break
    return nights


def _nights(layout: Layout, key: str, states: dict[str, PartitionState]) -> list[Json]:
    known = _known(layout)
    values = in_order(list(states))[-NIGHTS_SHOWN:]
    return [_night(layout, Partition(key, value), states[value], known) for value in values]


def _known(layout: Layout) -> dict[str, Json]:
    """Return the figures of runs that were looked at before: their records need no second look."""
    try:
        found = read_json(layout.runs / KNOWN_NIGHTS) or {}
    except MrotError:
        return {}
    nights = found.get("nights")
    if not isinstance(nights, list):
        return {}
    return {str(n.get("run_id")): n for n in nights if isinstance(n, dict)}


def _night(
    layout: Layout, partition: Partition, state: PartitionState, known: dict[str, Json]
) -> Json:
    published = state.published if state.status == "published" else {}
    run_id = str(published.get("run_id") or state.run_id)
    figures = known.get(run_id)
    is_known = figures is not None and all(name in figures for name in _FIGURES)
    if figures is None or not is_known or state.status == "running":
        figures = _figures(read_night(layout.runs / run_id) or {})
    name = quote(layout.report(partition).name)
    return {
        "partition": str(partition),
        "status": state.status,
        "level": state.level,
        "exit_code": state.exit_code,
        "rows": published.get("rows", figures.get("rows")),
        "flagged": published.get("flagged", figures.get("flagged")),
        "model": published.get("model", figures.get("model")),
        "run_id": run_id,
        "attempts": state.attempts,
        "report": f"reports/{name}" if state.status != "running" else None,
        **{name: figures.get(name) for name in _FIGURES},
    }


def _figures(record: Json) -> Json:
    """Return what the record of a run says beyond its state."""
    rows: Json = record.get("rows") or {}
    drifts: Sequence[Json] = [d for d in record.get("drift") or [] if not d.get("is_score")]
    largest = max(drifts, key=lambda d: float(d["psi"]), default=None)
    return {
        "seconds": record.get("seconds"),
        "rows": rows.get("rows"),
        "flagged": rows.get("flagged"),
        "model": (record.get("model") or {}).get("id"),
        "drift": None if largest is None else float(largest["psi"]),
        "drifted": None if largest is None else str(largest["name"]),
    }
