"""What a night would do, without doing any of it."""

from dataclasses import dataclass
from pathlib import Path

from mrot_scale.config.job import Config
from mrot_scale.jobs.opening import AnyConfig, settled
from mrot_scale.reading.sources import open_source
from mrot_scale.scheduled.choosing import fitted_for, training_partitions
from mrot_scale.scheduled.inputs import are_same
from mrot_scale.scheduled.layout import Layout
from mrot_scale.scheduled.partitions import Lake, Partition, parse_partition
from mrot_scale.scheduled.policy import due, first_fit, is_before, promoted
from mrot_scale.scheduled.registry import Registry
from mrot_scale.scheduled.state import read_state, settings_digest
from mrot_scale.storing.location import Location

_NO_ROWS = "fail (no rows)"


@dataclass(frozen=True)
class NightPlan:
    """What is there, and what would be made of it."""

    partition: str
    files: int
    bytes: int
    n_rows: int | None
    action: str
    """score, replace, skip (nothing changed), or fail (no rows)."""

    model: str
    """Id of the model, or what would be fitted."""

    scores: str


def plan_night(
    input: str | Path,
    output: str | Path,
    *,
    date: str | None = None,
    partition: str | None = None,
    config: AnyConfig = None,
    model: str | None = None,
    again: bool = False,
) -> NightPlan:
    """Return what `nightly` would do with the same arguments."""
    settings = settled(config, nightly={"model": model})
    wanted = parse_partition(date, partition, settings.nightly.key)
    settings = settled(settings, nightly={"key": wanted.key})
    layout = Layout(Location(output))
    lake = Lake.open(Location(input), wanted.key)
    files = lake.files(wanted)
    n_rows = None
    if files:
        n_rows = open_source(lake.folder(wanted), id_column=settings.nightly.id).n_rows
    id, told = _model(Registry(layout), lake, wanted, settings)
    return NightPlan(
        partition=str(wanted),
        files=len(files),
        bytes=sum(part.size for part in files),
        n_rows=n_rows,
        action=_NO_ROWS if n_rows == 0 else _action(layout, lake, wanted, settings, id, again),
        model=told,
        scores=str(layout.scores(wanted)),
    )


def _model(
    registry: Registry, lake: Lake, partition: Partition, config: Config
) -> tuple[str | None, str]:
    if config.nightly.model is not None:
        return (found := registry.named(config.nightly.model).id), found
    first = first_fit(partition.value, list(registry.fits()), config.nightly.refit_from)
    by_drift = config.nightly.refit_drift is not None and is_before(first, partition.value)
    regular = due(partition.value, first, config.nightly.refit_every, lake.values)
    by_drift = by_drift and regular != partition.value
    if by_drift and registry.decision(partition) is None:
        return None, "decided by drift when it runs"
    value = fitted_for(registry, lake, partition, config)
    chosen = promoted(partition.value, value, registry.promotions())
    if chosen is not None:
        return chosen.model, f"{chosen.model} (promoted from {chosen.start})"
    known = registry.fits().get(value)
    if known is not None:
        return known, f"{known} (fitted for {value})"
    used = training_partitions(lake, value, config)
    return None, f"to be fitted for {value} on {len(used)} partition(s) from {used[0].value} on"


def _action(
    layout: Layout, lake: Lake, partition: Partition, config: Config, id: str | None, again: bool
) -> str:
    state = read_state(layout, partition)
    if state is None or not state.published:
        return "score"
    known = state.published
    same = known["model"] == id and known["settings"] == settings_digest(config)
    if same and not again and are_same(state.inputs, lake.files(partition)):
        return "skip (nothing changed)"
    return "replace"
