"""Fit: a store becomes a model."""

import json
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrot_scale.conditions import parse_condition
from mrot_scale.config.job import Config
from mrot_scale.errors import LeftOutWarning
from mrot_scale.jobs.door import check_condition, check_fit_input
from mrot_scale.jobs.fit_report import write_fit_report
from mrot_scale.jobs.fit_stages import FitStages, threshold_settings
from mrot_scale.jobs.ingest_job import ingest
from mrot_scale.jobs.opening import (
    AnyConfig,
    Input,
    begun,
    fingerprint,
    for_input,
    input_of,
    opened_runner,
    run_location,
    settled,
)
from mrot_scale.jobs.planning import plan_fit_job
from mrot_scale.model.columns import load_schema
from mrot_scale.model.lightgbm_model import check_lightgbm_loads
from mrot_scale.progress import Report
from mrot_scale.reporting.writing import Ran, found_report, is_lost, never_failing
from mrot_scale.running.commit import RunFolder
from mrot_scale.running.lock import locked
from mrot_scale.running.publish import is_finished, publish_once
from mrot_scale.storing.location import Location
from mrot_scale.storing.store import FeatureStore


@dataclass(frozen=True)
class Fitted:
    """What a fit made."""

    model: str
    n_rows: int
    labelled_rows: int
    validation: dict[str, Any]
    seconds: float
    was_done: bool
    """Whether the same fit had already finished before."""

    report: str | None = None
    """The page that shows what was learnt from."""


def fit(
    store: Any,
    model: str | Path,
    config: AnyConfig = None,
    *,
    workers: int | None = None,
    exclude_where: str | None = None,
    id: str | None = None,
    new_run: bool = False,
    progress: Report | None = None,
) -> Fitted:
    """Learn a model from the rows of a store (or of a table source, ingested first).

    Parameters
    ----------
    config
        Settings: a file, a `Config`, or a mapping; defaults where omitted.
    workers
        Processes of a local cluster, or workers to wait for.
    exclude_where
        Condition on columns, such as ``label == 1``; rows that meet it are not learnt from.
    id
        Column of a table source that names each row.
    new_run
        Start over where an earlier run on other terms was not finished.
    """
    target, settings = Location(model), settled(config, cluster={"workers": workers})
    check_condition(exclude_where)
    check_lightgbm_loads()
    with locked(target, run_location(settings, target)):
        return _fit(store, target, settings, exclude_where, id, new_run, progress)


def _fit(
    store: Any,
    target: Location,
    settings: Config,
    exclude_where: str | None,
    id: str | None,
    new_run: bool,
    progress: Report | None,
) -> Fitted:
    start, place = time.perf_counter(), run_location(settings, target)
    source = input_of(store, target, id)
    if source.is_object:
        _ingest_source(source, exclude_where, settings, new_run, progress)
    terms = _fingerprint(source, settings, exclude_where)
    was_done = is_finished(target, place, terms)
    if not was_done:
        if source.is_table and not source.is_object:
            _ingest_source(source, exclude_where, settings, new_run, progress)
        opened = source.opened(lambda found: check_fit_input(found, settings, exclude_where))
        plan = plan_fit_job(opened, settings, calibrated=False)
        plan.check()
        run = RunFolder.open(place, terms, new_run=new_run)
        with begun(run, settings, plan) as log:
            with opened_runner(run, log, settings, progress, opened.location) as runner:
                folder = FitStages(runner, opened, settings, exclude_where).run()
            publish_once(folder, target, run)
            ran = Ran(source.name, log.begun, time.perf_counter() - start, log.seconds)
            write_fit_report(opened, target, run, settings, ran)
    finished = RunFolder.read(place)
    if was_done and is_lost(target, finished, settings):
        with never_failing():  # it was killed after publishing
            opened, ran = FeatureStore.open(source.store), Ran(source.name, "", None)
            write_fit_report(opened, target, finished, settings, ran)
    if not settings.run.keep_stages:
        finished.remove_stages()
    source.discard()
    report = found_report(target, place, settings)
    return _fitted(target, finished, time.perf_counter() - start, was_done, report)


def _ingest_source(
    source: Input,
    exclude_where: str | None,
    config: Config,
    new_run: bool,
    progress: Report | None,
) -> None:
    """Ingest a table source; columns of the condition are carried along, not learnt from."""
    named = sorted(parse_condition(exclude_where).columns) if exclude_where else []
    carried = [name for name in named if name != source.id]
    for name in carried:
        warnings.warn(
            f"Column {name!r} stands in the condition and is not learnt from. To use it, ingest "
            "the table first.",
            LeftOutWarning,
            stacklevel=3,
        )
    ingest(
        source.given,
        source.store.address,
        id=source.id,
        keep=carried,
        exclude=carried,
        config=for_input(config),
        new_run=new_run,
        progress=progress,
    )


def _fingerprint(source: Input, config: Config, exclude: str | None) -> Any:
    settings = config.method.model_dump(mode="json") | {"coverage": config.coverage}
    settings |= {"exclude_where": exclude, "scoring": threshold_settings(config)}
    return fingerprint("fit", source.identity(), settings)


def _fitted(
    target: Location, run: RunFolder, seconds: float, was_done: bool, report: str | None
) -> Fitted:
    validation = json.loads((target / "validation.json").read())
    labelled = sum(r.facts["rows"] for r in run.records.values() if r.key.startswith("gather/"))
    n_rows = load_schema(target).n_rows
    return Fitted(str(target), n_rows, labelled, validation, seconds, was_done, report)
