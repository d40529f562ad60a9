"""A model for the registry: fitted on some partitions, and on single groups of their rows."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.types as types

from mrot_scale.conditions import parse_condition
from mrot_scale.config.job import Config
from mrot_scale.jobs.fit_job import fit
from mrot_scale.jobs.ingest_job import ingest
from mrot_scale.jobs.sample_tasks import excluded_rows
from mrot_scale.progress import Report
from mrot_scale.reading.parts import Partitions, identity_of
from mrot_scale.reading.sources import open_source
from mrot_scale.running.lock import locked
from mrot_scale.scheduled.partitions import Lake, Partition
from mrot_scale.scheduled.registry import MODEL, ModelEntry, Registry, model_id
from mrot_scale.storing.location import Location
from mrot_scale.storing.store import FeatureStore
from mrot_scale.versions import version_of

_STORE = "training.store"
_LEARNT_BY = ("id", "exclude", "times", "exclude_where", "by", "group_rows", "most_groups")


def fit_entry(
    registry: Registry,
    lake: Lake,
    partition: Partition,
    used: Sequence[Partition],
    config: Config,
    progress: Report | None,
) -> ModelEntry:
    """Fit a model for a partition on some partitions, unless there is the same already."""
    source = lake.source(used)
    id = model_id(partition.value, _terms(source, config))
    with locked(registry.folder(id)):
        if not registry.has(id):
            _fit_all(registry, id, partition, source, config, progress)
    return registry.entry(registry.record_fit(partition, id))


def _terms(source: Partitions, config: Config) -> dict[str, Any]:
    """Return all that decides what is learnt."""
    nightly = config.nightly.model_dump(mode="json")
    return {
        "inputs": identity_of(source.parts(), "partitions"),
        "method": config.method.model_dump(mode="json") | {"coverage": config.coverage},
        "store": config.store.model_dump(mode="json"),
        "scoring": [config.scoring.method, config.scoring.contamination],
        "nightly": {name: nightly[name] for name in _LEARNT_BY},
        "version": version_of("mrot-scale"),
    }


def _fit_all(
    registry: Registry,
    id: str,
    partition: Partition,
    source: Partitions,
    config: Config,
    progress: Report | None,
) -> None:
    folder, settings = registry.folder(id), config.nightly
    left_out = not_learnt(source, config)
    store = ingest(
        source,
        (folder / _STORE).address,
        id=settings.id,
        exclude=left_out,
        keep=carried_columns(config),
        config=config,
        progress=progress,
    )
    arguments: dict[str, Any] = {"exclude_where": settings.exclude_where, "progress": progress}
    fitted = fit(store.store, (folder / MODEL).address, config, **arguments)
    groups = _fit_groups(folder, Location(store.store), config, progress)
    facts = {
        "id": id,
        "partition": partition.value,
        "key": partition.key,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "partitions": list(source.folders),
        "rows": fitted.n_rows,
        "labelled_rows": fitted.labelled_rows,
        "validation": fitted.validation,
        "by": settings.by,
        "groups": groups,
        "columns": open_source(source, id_column=settings.id).schema.names,
    }
    registry.add(id, facts)
    (folder / _STORE).remove()
    (folder / f"{_STORE}.run").remove()


def not_learnt(source: Any, config: Config) -> list[str]:
    """Return the columns of a source that a night's model is not to see."""
    settings, schema = config.nightly, open_source(source, id_column=config.nightly.id).schema
    times = [] if settings.times else moments(schema)
    named = [*settings.exclude, *times, *carried_columns(config, with_kept=False)]
    return [n for n in dict.fromkeys(named) if n != settings.id and n in schema.names]


def carried_columns(config: Config, *, with_kept: bool = True) -> list[str]:
    """Return the columns a store has to carry along: that of groups, those of the condition."""
    settings = config.nightly
    condition = settings.exclude_where
    named = sorted(parse_condition(condition).columns) if condition else []
    kept = settings.keep if with_kept else ()
    found = dict.fromkeys([*kept, *([settings.by] if settings.by else []), *named])
    return [name for name in found if name != settings.id]


def moments(schema: Any) -> list[str]:
    """Return the columns of dates and of times on a day."""
    return [f.name for f in schema if types.is_timestamp(f.type) or types.is_date(f.type)]


def _fit_groups(
    folder: Location, store: Location, config: Config, progress: Report | None
) -> list[dict[str, Any]]:
    """Fit a model for each value that has rows enough."""
    if config.nightly.by is None:
        return []
    found = []
    for number, (value, n_rows) in enumerate(_large_groups(FeatureStore.open(store), config)):
        name = f"{number:04d}"
        condition = other_groups(config.nightly.by, value, config.nightly.exclude_where)
        fit(
            store.address,
            (folder / "groups" / name).address,
            config,
            exclude_where=condition,
            progress=progress,
        )
        found.append({"value": value, "rows": n_rows, "folder": name})
    return found


def _large_groups(store: FeatureStore, config: Config) -> list[tuple[Any, int]]:
    """Return the values with rows enough for a model, those with most rows first."""
    by, counts = str(config.nightly.by), Counter[Any]()
    for chunk in store.chunks:
        stored = store.read_chunk(chunk)
        learnt = ~excluded_rows(store, chunk, stored, config.nightly.exclude_where)
        counts.update(store.read_ids(chunk, [by])[by].filter(pa.array(learnt)).to_pylist())
    counts.pop(None, None)
    large = [(v, n) for v, n in counts.items() if n >= config.nightly.group_rows]
    return sorted(large, key=lambda pair: (-pair[1], str(pair[0])))[: config.nightly.most_groups]


def other_groups(by: str, value: Any, exclude_where: str | None) -> str:
    """Return the condition that leaves one group alone."""
    column = "`" + by.replace("`", "``") + "`"
    others = f"{column} != {value!r} or {column} is None"
    return others if exclude_where is None else f"({exclude_where}) or {others}"


def group_sizes(entry: ModelEntry, records: Sequence[Any]) -> dict[str, list[int]]:
    """Return rows and flagged rows of each group, and of those that share a model."""
    names = [*(str(value) for value, _ in entry.groups()), "(shared)"]
    each = [record.facts["groups"] for record in records]
    return {
        name: [sum(found[place][k] for found in each) for k in (0, 1)]
        for place, name in enumerate(names)
    }
