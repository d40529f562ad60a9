"""What a job would do: the same doors, then a plan in place of the run."""

from collections.abc import Sequence
from typing import Any

from mrot_scale.config.job import Config
from mrot_scale.jobs.door import check_absent, check_fit_input
from mrot_scale.jobs.ingest_job import schema_like
from mrot_scale.jobs.opening import AnyConfig, settled
from mrot_scale.jobs.plan_ingest import plan_ingest
from mrot_scale.jobs.plan_score import plan_score
from mrot_scale.jobs.plan_text import Plan
from mrot_scale.jobs.planning import plan_fit_job
from mrot_scale.jobs.score_choices import check_score_input, score_options
from mrot_scale.model.persist import load_model
from mrot_scale.reading.sources import open_source
from mrot_scale.storing.ingestion import choose_columns, n_features
from mrot_scale.storing.location import Location
from mrot_scale.storing.store import FeatureStore
from mrot_scale.thresholds import stored_choice


def ingest_plan(
    source: Any,
    store: str,
    *,
    id: str | None = None,
    include: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    keep: Sequence[str] | None = None,
    like: str | None = None,
    config: AnyConfig = None,
) -> Plan:
    """Return what an ingest would do."""
    check_absent(Location(store))
    stream = open_source(source, id_column=id)
    choice = choose_columns(
        stream.schema,
        partition_keys=stream.partition_keys,
        id_column=id,
        include=include,
        exclude=exclude,
        keep=keep,
        like=None if like is None else schema_like(Location(like)),
    )
    return plan_ingest(stream, n_features(stream.schema, choice), settled(config))


def fit_plan(store: str, model: str, config: Config, *, exclude_where: str | None = None) -> Plan:
    """Return what a fit would do; a table must be ingested before it can be planned for."""
    check_absent(Location(model))
    opened = FeatureStore.open(Location(store))
    check_fit_input(opened, config, exclude_where)
    return plan_fit_job(opened, config)


def score_plan(
    model: str,
    store: str,
    out: str,
    config: Config,
    *,
    parquet: str | None = None,
    keep: Sequence[str] = (),
) -> Plan:
    """Return what scoring would do; a table must be ingested before it can be planned for."""
    check_absent(Location(out))
    fitted, saved = load_model(Location(model))
    opened = FeatureStore.open(Location(store))
    stored = stored_choice(Location(model))
    options = score_options(fitted, saved, config, parquet is not None, keep, stored)
    check_score_input(fitted, opened, options)
    return plan_score(fitted, opened, options, config)
