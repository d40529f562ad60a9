"""What may be removed: records of old runs, replaced scores, and models nothing leads to."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from mrot_scale.errors import MissingInputError
from mrot_scale.running.lock import holder
from mrot_scale.running.publish import GENERATIONS, current, history
from mrot_scale.scheduled.layout import TERMS, Layout, names_below, read_json
from mrot_scale.scheduled.partitions import Partition, in_order
from mrot_scale.scheduled.registry import Registry
from mrot_scale.scheduled.run_record import FORMAT, RUN_FILE
from mrot_scale.scheduled.state import PartitionState, all_states
from mrot_scale.storing.location import Location


@dataclass(frozen=True)
class Removal:
    """Something nobody needs any more."""

    kind: str
    place: str
    why: str


@dataclass(frozen=True)
class Collected:
    """What was removed, or would be."""

    removals: list[Removal]
    is_dry: bool


def gc(
    output: str | Path,
    *,
    keep_runs: int = 14,
    keep_days: int = 30,
    dry_run: bool = False,
) -> Collected:
    """Remove what is neither published, nor referenced, nor recent.

    A run is recent if it is among the last `keep_runs` or not older than `keep_days`; everything
    else is recent if it is not older than that.
    """
    layout = Layout(Location(output))
    if not layout.runs.exists():
        raise MissingInputError(f"{layout.root} holds no runs of mrot-scale nightly.")
    found = list(_removals(layout, keep_runs, keep_days))
    if not dry_run:
        for removal in found:
            Location(removal.place).remove()
    return Collected(found, dry_run)


def _removals(layout: Layout, keep_runs: int, keep_days: int) -> Iterator[Removal]:
    oldest = datetime.now(UTC) - timedelta(days=keep_days)
    states = {p: s for key in _keys(layout) for p, s in _states(layout, key).items()}
    runs = _runs(layout)
    last = list(runs)[-keep_runs:] if keep_runs else []
    kept = {*last, *_needed_runs(states)}
    kept |= {id for id, run in runs.items() if _moment(run.get("started")) >= oldest}
    for id in runs:
        if id not in kept:
            yield Removal("run", str(layout.runs / id), "old")
    yield from _old_work(layout, states, oldest)
    yield from _old_generations(layout, oldest)
    needed = {runs[id].get("model", {}).get("id") for id in kept if id in runs}
    needed |= _models_at_work(layout)
    yield from _old_models(layout, states, needed, oldest)


def _keys(layout: Layout) -> list[str]:
    names = names_below(layout.runs / "partitions")
    return sorted({name.partition("=")[0] for name in names if "=" in name})


def _states(layout: Layout, key: str) -> dict[Partition, PartitionState]:
    return {Partition(key, value): s for value, s in all_states(layout, key).items()}


def _runs(layout: Layout) -> dict[str, dict[str, Any]]:
    """Return the records of all runs, the oldest first."""
    found = {name: read_json(layout.runs / name / RUN_FILE) for name in names_below(layout.runs)}
    ours = {n: run for n, run in found.items() if run is not None and run.get("format") == FORMAT}
    return dict(sorted(ours.items(), key=lambda pair: (str(pair[1].get("started")), pair[0])))


def _needed_runs(states: dict[Partition, PartitionState]) -> set[str]:
    last = {state.run_id for state in states.values()}
    return last | {str(state.published.get("run_id")) for state in states.values()}


def _moment(text: Any) -> datetime:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return datetime.now(UTC)  # of unknown age: kept
    return found if found.tzinfo else datetime.now(UTC)


def _written(place: Location) -> datetime:
    """Return when a folder was written, now where storage does not tell."""
    try:
        if place.is_local:
            return datetime.fromtimestamp(place.path.stat().st_mtime, UTC)
        files = place.filesystem.find(place.address)
        found: datetime = place.filesystem.modified(files[0])
    except (OSError, NotImplementedError, LookupError):
        return datetime.now(UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _models_at_work(layout: Layout) -> set[Any]:
    """Return the models of runs that have not ended."""
    folder = layout.runs / "work"
    found = [read_json(folder / name / TERMS) for name in names_below(folder) if name[0] != "."]
    return {terms.get("model") for terms in found if terms is not None}


def _old_work(
    layout: Layout, states: dict[Partition, PartitionState], oldest: datetime
) -> Iterator[Removal]:
    """Find what runs left that were stopped long ago."""
    for name in names_below(layout.runs / "work"):
        partition = Partition(name.partition("=")[0], unquote(name.partition("=")[2]))
        state = states.get(partition)
        if name[0] == "." or state is None or holder(layout.work(partition)) is not None:
            continue
        run = read_json(layout.runs / state.run_id / RUN_FILE)
        if run is None or _moment(run.get("started")) < oldest:
            yield Removal("work", str(layout.work(partition)), "its run was stopped long ago")


def _old_generations(layout: Layout, oldest: datetime) -> Iterator[Removal]:
    """Find scores that others took the place of, but for those that rollback would go to."""
    folder = layout.all_scores
    for name in names_below(folder / GENERATIONS if folder.is_local else folder):
        visible = folder / name
        now = current(visible) if visible.exists() and "=" in name else None
        if now is None:
            continue
        names = history(visible)
        before = names[: names.index(now)] if now in names else []
        place = folder / GENERATIONS / name if folder.is_local else visible / GENERATIONS
        for generation in before[:-1]:  # the last of them is where rollback would go
            found = place / generation
            if found.exists() and _written(found) < oldest:
                yield Removal("scores", str(found), "replaced")


def _old_models(
    layout: Layout,
    states: dict[Partition, PartitionState],
    needed: set[Any],
    oldest: datetime,
) -> Iterator[Removal]:
    registry = Registry(layout)
    fits = registry.fits()
    used = {state.published.get("model") for state in states.values()} | needed
    used |= {id for state in states.values() for id in state.published.get("models_before", [])}
    used |= {promotion.model for promotion in registry.promotions()}
    used |= {fits[value] for value in in_order(list(fits))[-1:]}
    for id in registry.ids():
        if id not in used and _moment(registry.entry(id).facts.get("at")) < oldest:
            yield Removal("model", str(registry.folder(id)), "nothing leads to it")
