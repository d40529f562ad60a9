"""Score: a model and a store become a score for every row."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from mrot_scale.config.job import Config
from mrot_scale.config.scoring import Method
from mrot_scale.errors import ConfigError
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
from mrot_scale.jobs.plan_score import plan_score
from mrot_scale.jobs.report_parts import wanted_parts
from mrot_scale.jobs.score_choices import check_score_input, score_options
from mrot_scale.jobs.score_models import Models, model_identity
from mrot_scale.jobs.score_outputs import (
    Outputs,
    Scored,
    check_outputs,
    generation_name,
    is_done,
    publish_scores,
    scored,
)
from mrot_scale.jobs.score_report import write_score_report
from mrot_scale.jobs.score_tasks import ScoreOptions, warm_up
from mrot_scale.jobs.staged import Staged
from mrot_scale.model.persist import load_model
from mrot_scale.progress import Report
from mrot_scale.reporting.writing import Ran, found_report, is_lost, never_failing
from mrot_scale.running.commit import Record, RunFolder, task_key
from mrot_scale.running.lock import locked
from mrot_scale.running.runner import Runner
from mrot_scale.running.tasks import Task
from mrot_scale.scoring import FittedModel
from mrot_scale.storing.location import Location
from mrot_scale.storing.store import FeatureStore
from mrot_scale.thresholds import stored_choice

Audit = Callable[[Staged], None]


@dataclass(frozen=True)
class Job:
    """One scoring as it was asked for, with what it needs opened."""

    models: Models
    source: Input
    outputs: Outputs
    fitted: FittedModel
    options: ScoreOptions
    settings: Config
    audit: Audit | None
    progress: Report | None

    @property
    def folder(self) -> Location:
        return run_location(self.settings, self.outputs.scores)

    def terms(self) -> Any:
        """Return what has to be the same for two runs to give the same scores.

        Read off the model's files, and off a store that is there by now.
        """
        table = self.outputs.table
        written = {**asdict(self.options), "keep": list(self.options.keep)}
        written["parquet"] = None if table is None else table.address
        inputs = self.source.identity() | self.models.identity()
        return fingerprint("score", inputs, written)

    def staged(self, store: FeatureStore, records: list[Record], run: RunFolder) -> Staged:
        groups = self.models.group_models(self.options, self.settings)
        return Staged(store, records, run, self.fitted, self.options, groups)


def score(
    model: str | Path,
    store: Any,
    out: str | Path,
    config: AnyConfig = None,
    *,
    method: Method | None = None,
    parquet: str | Path | None = None,
    keep: Sequence[str] = (),
    id: str | None = None,
    by: str | None = None,
    groups: Mapping[Any, str | Path] | None = None,
    workers: int | None = None,
    new_run: bool = False,
    audit: Audit | None = None,
    progress: Report | None = None,
) -> Scored:
    """Give every row of a store (or of a table source, ingested first) its score.

    Parameters
    ----------
    method
        `model` (trees, the default) or `effort` (against anchors, slower).
    parquet
        Folder for the scores as Parquet as well, with identifiers and the columns of `keep`.
    id
        Column of a table source that names each row.
    by, groups
        Column whose value chooses the model, and the model of each value; rows with another value
        are scored by `model`.
    audit
        Called with what was made before any of it is published; what it raises publishes nothing.
    """
    settings = settled(config, cluster={"workers": workers}, scoring={"method": method})
    outputs = Outputs(Location(out), None if parquet is None else Location(parquet))
    check_outputs(outputs.scores, outputs.table)
    if (by is None) != (groups is None):
        raise ConfigError("by names the column that chooses among groups: give both or neither.")
    places = {value: Location(place) for value, place in (groups or {}).items()}
    models = Models(Location(model), by, places)
    kept = tuple(dict.fromkeys([*keep, *([by] if by else [])]))
    with locked(*outputs.places, run_location(settings, outputs.scores)):
        start = time.perf_counter()
        job = _job(models, store, id, outputs, settings, kept, audit, progress)
        return _score(job, new_run, start)


def _job(
    models: Models,
    store: Any,
    id: str | None,
    outputs: Outputs,
    settings: Config,
    keep: Sequence[str],
    audit: Audit | None,
    progress: Report | None,
) -> Job:
    fitted, saved = load_model(models.main)
    stored = stored_choice(models.main)
    options = score_options(fitted, saved, settings, outputs.table is not None, keep, stored)
    options = replace(options, by=models.by, profile=audit is not None)
    source = input_of(store, outputs.scores, id)
    return Job(models, source, outputs, fitted, options, settings, audit, progress)


def _score(job: Job, new_run: bool, start: float) -> Scored:
    source = job.source
    if source.is_object:  # what it holds is known only then
        _ingest_source(job, new_run)
    terms = job.terms()
    was_done = is_done(job.outputs, job.folder, terms, new_run)
    if was_done:
        _report_if_lost(job)
    else:
        if source.is_table and not source.is_object:
            _ingest_source(job, new_run)
        _run(job, terms, new_run, start)
    if not job.settings.run.keep_stages:
        RunFolder.read(job.folder).remove_stages()
    source.discard()
    report = None if job.audit else found_report(job.outputs.scores, job.folder, job.settings)
    return scored(job.outputs, job.options, time.perf_counter() - start, was_done, report)


def _ingest_source(job: Job, new_run: bool) -> None:
    """Ingest a table source as the model expects it."""
    ingest(
        job.source.given,
        job.source.store.address,
        id=job.source.id,
        keep=job.options.keep,
        like=job.models.main.address,
        config=for_input(job.settings),
        new_run=new_run,
        progress=job.progress,
    )


def _run(job: Job, terms: Any, new_run: bool, start: float) -> None:
    """Score every chunk, let the audit see all of it, publish it, and report on it."""
    options, settings, audit = job.options, job.settings, job.audit
    opened = job.source.opened(lambda found: check_score_input(job.fitted, found, options))
    plan = plan_score(job.fitted, opened, options, settings, calibrated=False)
    plan.check()
    run = RunFolder.open(job.folder, terms, new_run=new_run)
    with begun(run, settings, plan) as log:
        inputs = [opened.location, *job.models.places]
        prepare = partial(warm_up, opened.n_rows, options.top_columns > 0)
        with opened_runner(run, log, settings, job.progress, *inputs, prepare=prepare) as runner:
            staged = job.staged(opened, [], run)
            staged = replace(staged, records=_score_chunks(runner, job, staged))
        if audit is not None:
            audit(staged)
        publish_scores(staged, job.outputs, generation_name(terms))
        if audit is None:
            ran = Ran(job.source.name, log.begun, time.perf_counter() - start, log.seconds)
            _write_report(job, staged, ran)


def _score_chunks(runner: Runner, job: Job, staged: Staged) -> list[Record]:
    model = job.models.main
    arguments = {
        "model": model.address,
        "identity": model_identity(model),
        "store": staged.store.location.address,
        "options": {**asdict(job.options), "keep": list(job.options.keep)},
        "groups": [list(astuple(group)) for group in staged.groups],
        "report": wanted_parts(job.settings.report),
    }
    function = "mrot_scale.jobs.score_tasks:score_chunk"
    tasks = [
        Task(task_key("score", chunk), function, {**arguments, "chunk": chunk})
        for chunk in staged.store.chunks
    ]
    return runner.stage("score", tasks, in_rows=True)


def _report_if_lost(job: Job) -> None:
    """Write the report of scores that are there, where the run was killed after publishing."""
    finished = RunFolder.read(job.folder)
    if job.audit is not None or not is_lost(job.outputs.scores, finished, job.settings):
        return
    with never_failing():
        store, records = FeatureStore.open(job.source.store), list(finished.records.values())
        staged = job.staged(store, records, finished)
        _write_report(job, staged, Ran(job.source.name, "", None))


def _write_report(job: Job, staged: Staged, ran: Ran) -> None:
    write_score_report(staged, job.outputs.scores, job.models.main, job.settings, ran)
