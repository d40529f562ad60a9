"""Which model scores a partition: one that is named, chosen, or fitted when policy says so."""

from dataclasses import dataclass
from typing import Any

from mrot_scale.config.job import Config
from mrot_scale.drift import largest, profile_drift, training_profile
from mrot_scale.errors import ConfigError, MrotError
from mrot_scale.model.columns import load_schema
from mrot_scale.progress import Report
from mrot_scale.reading.sources import open_source
from mrot_scale.scheduled.partitions import Lake, Partition
from mrot_scale.scheduled.policy import due, first_fit, is_before, promoted
from mrot_scale.scheduled.profiling import night_profile, opened_model
from mrot_scale.scheduled.registry import ModelEntry, Registry
from mrot_scale.scheduled.training import fit_entry
from mrot_scale.storing.ingestion import choose_columns
from mrot_scale.storing.schema import Schema


@dataclass(frozen=True)
class Choice:
    """A model, and why it was chosen."""

    entry: ModelEntry
    why: str
    is_new: bool
    """Whether it was fitted for this very partition."""


def choose_model(
    registry: Registry,
    lake: Lake,
    partition: Partition,
    config: Config,
    progress: Report | None = None,
) -> Choice:
    """Return the model of a partition, fitting what is due."""
    if config.nightly.model is not None:
        entry = _with_groups(registry.named(config.nightly.model), config)
        return Choice(entry, f"named {config.nightly.model}", False)
    value = fitted_for(registry, lake, partition, config, progress)
    chosen = promoted(partition.value, value, registry.promotions())
    if chosen is not None:
        entry = _with_groups(registry.entry(chosen.model), config)
        return Choice(entry, f"promoted from {chosen.start}", False)
    entry = fitted_model(registry, lake, lake.partition(value), config, progress)
    return Choice(_with_groups(entry, config), f"fitted for {value}", value == partition.value)


def _with_groups(entry: ModelEntry, config: Config) -> ModelEntry:
    """Refuse a model without the groups that are asked for."""
    by = config.nightly.by
    if by is not None and entry.by != by:
        raise ConfigError(
            f"Model {entry.id} was fitted without groups by {by!r}. Leave --by out, or write to "
            "another output, where models are fitted with them."
        )
    return entry


def fitted_for(
    registry: Registry,
    lake: Lake,
    partition: Partition,
    config: Config,
    progress: Report | None = None,
) -> str:
    """Return the partition whose model a partition gets by policy."""
    settings = config.nightly
    first = first_fit(partition.value, list(registry.fits()), settings.refit_from)
    regular = due(partition.value, first, settings.refit_every, lake.values)
    if settings.refit_drift is None or not is_before(first, partition.value):
        return regular
    last = first
    for before in lake.until(partition.value, len(lake.values)):
        if not is_before(first, before.value):
            continue
        regularly = due(before.value, first, settings.refit_every, lake.values)
        last = regularly if is_before(last, regularly) else last
        if last != before.value and _has_drifted(registry, lake, before, last, config, progress):
            last = before.value
    return regular if is_before(last, regular) else last


def _has_drifted(
    registry: Registry,
    lake: Lake,
    partition: Partition,
    fitted_for: str,
    config: Config,
    progress: Report | None,
) -> bool:
    """Tell whether a partition is unlike the training rows of the model it would get.

    What was found once holds: rows that come late do not change which model was used.
    """
    known = registry.decision(partition)
    if known is None:
        entry = fitted_model(registry, lake, lake.partition(fitted_for), config, progress)
        registry.record_decision(partition, _compared(entry, lake, partition, config))
        known = registry.decision(partition) or {}
    limit = config.nightly.refit_drift
    return limit is not None and float(known.get("psi", 0.0)) > limit


def fitted_model(
    registry: Registry, lake: Lake, partition: Partition, config: Config, progress: Report | None
) -> ModelEntry:
    """Return the model of a partition, fitted now where none was before."""
    known = registry.fits().get(partition.value)
    if known is not None and registry.has(known):
        return registry.entry(known)
    used = training_partitions(lake, partition.value, config)
    if not used:
        lake.folder(partition)  # says that there is none
    used = _fit_to_learn_from(registry, lake, partition, used, config, progress)
    return fit_entry(registry, lake, partition, used, config, progress)


def _fit_to_learn_from(
    registry: Registry,
    lake: Lake,
    partition: Partition,
    used: list[Partition],
    config: Config,
    progress: Report | None,
) -> list[Partition]:
    """Leave out what cannot be read, and what gates would refuse by the model before.

    This looks at inputs alone, so that it does not matter which partitions have run. A policy that
    refits when there is drift wants to learn from it.
    """
    found = [p for p in used if _is_readable(lake, p, config)]
    before = lake.previous(partition)
    first = first_fit(partition.value, list(registry.fits()), config.nightly.refit_from)
    if before is None or not is_before(first, partition.value):  # there is no model before
        return found or used
    value = fitted_for(registry, lake, before, config, progress)
    if not is_before(value, partition.value):
        return found or used
    entry = fitted_model(registry, lake, lake.partition(value), config, progress)
    schema = load_schema(entry.location)
    found = [p for p in found if _has_columns_of(schema, lake, p, config)]
    limit = config.gates.psi.fail
    if limit is not None and config.nightly.refit_drift is None:
        found = [p for p in found if _compared(entry, lake, p, config)["psi"] <= limit]
    return found or used


def training_partitions(lake: Lake, value: str, config: Config) -> list[Partition]:
    """Return what a model for a partition may learn from: at least the first there is."""
    return lake.until(value, config.nightly.training_partitions) or [
        lake.partition(v) for v in lake.values[:1]
    ]


def _is_readable(lake: Lake, partition: Partition, config: Config) -> bool:
    try:
        open_source(lake.folder(partition), id_column=config.nightly.id)
    except MrotError:
        return False
    return True


def _has_columns_of(schema: Schema, lake: Lake, partition: Partition, config: Config) -> bool:
    """Tell whether a partition has the columns that the model before knows."""
    stream = open_source(lake.folder(partition), id_column=config.nightly.id)
    try:
        choose_columns(stream.schema, partition_keys=stream.partition_keys, like=schema)
    except MrotError:
        return False
    return True


def _compared(
    entry: ModelEntry, lake: Lake, partition: Partition, config: Config
) -> dict[str, Any]:
    """Return the largest drift of a partition's columns against a model's training rows."""
    model = opened_model(entry)
    before = training_profile(model.fitted, model.schema, model.method(config))
    now = night_profile(model, lake, partition, config, with_scores=False)
    if before is None or now is None:
        return {"psi": 0.0, "column": None, "model": entry.id}
    worst = largest(profile_drift(model.schema, before, now)[:-1])
    return {
        "psi": 0.0 if worst is None else max(worst.psi - 2 * worst.chance, 0.0),
        "column": None if worst is None else worst.name,
        "model": entry.id,
    }
