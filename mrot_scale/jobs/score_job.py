"""Score: a model and a store become a score for every row."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from mrot_scale.config.job import Config
from mrot_scale.config.scoring import Method
from mrot_scale.encoding import check_fits
from mrot_scale.errors import ConfigError, OutputError
from mrot_scale.explaining import can_explain
from mrot_scale.jobs.door import check_missing
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
from mrot_scale.jobs.score_report import write_score_report
from mrot_scale.jobs.score_tasks import GroupModel, ScoreOptions, warm_up
from mrot_scale.jobs.staged import Staged
from mrot_scale.model.persist import load_model, model_schema
from mrot_scale.progress import Report
from mrot_scale.reporting.writing import Ran, found_report, is_lost, never_failing
from mrot_scale.running.commit import Record, RunFolder, task_key
from mrot_scale.running.lock import locked
from mrot_scale.running.publish import (
    Folder,
    check_replaceable,
    is_current,
    publish_generation,
    resolve,
)
from mrot_scale.running.runner import Runner
from mrot_scale.running.tasks import Task
from mrot_scale.scoring import FittedModel
from mrot_scale.storing.arrays import METADATA, group_metadata
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import MANIFEST, Entry, read_manifest
from mrot_scale.storing.store import FeatureStore
from mrot_scale.thresholds import Choice, stored_choice, threshold_in_force

SCORES_FORMAT = "mrot-scale-scores"
TABLE_FORMAT = "mrot-scale-scores-parquet"
SCORES_VERSION = 1


@dataclass(frozen=True)
class Scored:
    """What a scoring run made."""

    out: str
    parquet: str | None
    n_rows: int
    n_flagged: int
    n_missing: int
    """Rows without a score, because a value was missing."""

    threshold: float
    seconds: float
    was_done: bool
    """Whether the same scoring had already finished before."""

    report: str | None = None
    """The page that shows what was found."""


@dataclass(frozen=True)
class Models:
    """The model rows are scored by, or the one for each value of a column and one for the rest."""

    main: Location
    by: str | None = None
    groups: Mapping[Any, Location] = field(default_factory=dict)

    @property
    def places(self) -> list[Location]:
        return [self.main, *self.groups.values()]

    def identity(self) -> dict[str, Any]:
        """Return what tells these models from others."""
        found: dict[str, Any] = {"model": model_identity(self.main)}
        if self.by is not None:
            each = [[value, model_identity(place)] for value, place in self.groups.items()]
            found["groups"] = {"by": self.by, "models": each}
        return found

    def group_models(self, options: ScoreOptions, config: Config) -> list[GroupModel]:
        """Return what tasks need to know of the groups' models."""
        found, chosen = [], stored_choice(self.main)
        for value, place in self.groups.items():
            model, saved = load_model(place)
            stored = stored_choice(place) or chosen
            own = score_options(model, saved, config, options.parquet, options.keep, stored)
            found.append(GroupModel(value, place.address, model_identity(place), own.threshold))
        return found


Audit = Callable[[Staged], None]


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
        return _score(models, store, outputs, settings, kept, id, new_run, audit, progress)


@dataclass(frozen=True)
class Outputs:
    """Where scores are to be."""

    scores: Location
    table: Location | None

    @property
    def places(self) -> list[Location]:
        return [self.scores] if self.table is None else [self.scores, self.table]


def _score(
    models: Models,
    store: Any,
    outputs: Outputs,
    settings: Config,
    keep: Sequence[str],
    id: str | None,
    new_run: bool,
    audit: Audit | None,
    progress: Report | None,
) -> Scored:
    start, folder = time.perf_counter(), run_location(settings, outputs.scores)
    place = models.main
    fitted, saved = load_model(place)
    stored = stored_choice(place)
    options = score_options(fitted, saved, settings, outputs.table is not None, keep, stored)
    options = replace(options, by=models.by, profile=audit is not None)
    source = input_of(store, outputs.scores, id)
    if source.is_object:
        _ingest_source(source, place, keep, settings, new_run, progress)
    terms = _fingerprint(models, source, options, outputs.table)
    was_done = _is_done(outputs, folder, terms, new_run)
    if not was_done:
        if source.is_table and not source.is_object:
            _ingest_source(source, place, keep, settings, new_run, progress)
        opened = source.opened(lambda found: check_score_input(fitted, found, options))
        plan = plan_score(fitted, opened, options, settings, calibrated=False)
        plan.check()
        run = RunFolder.open(folder, terms, new_run=new_run)
        with begun(run, settings, plan) as log:
            inputs = [opened.location, *models.places]
            prepare = partial(warm_up, opened.n_rows, options.top_columns > 0)
            with opened_runner(run, log, settings, progress, *inputs, prepare=prepare) as runner:
                groups = models.group_models(options, settings)
                records = _score_chunks(runner, place, opened, options, groups, settings)
            staged = Staged(opened, records, run, fitted, options, groups)
            if audit is not None:
                audit(staged)
            _publish(records, opened, options, outputs, run, generation_name(terms))
            if audit is None:
                ran = Ran(source.name, log.begun, time.perf_counter() - start, log.seconds)
                write_score_report(staged, outputs.scores, place, settings, ran)
    finished = RunFolder.read(folder)
    if was_done and audit is None and is_lost(outputs.scores, finished, settings):
        with never_failing():  # it was killed after publishing
            opened, records = FeatureStore.open(source.store), list(finished.records.values())
            groups = models.group_models(options, settings)
            staged = Staged(opened, records, finished, fitted, options, groups)
            ran = Ran(source.name, "", None)
            write_score_report(staged, outputs.scores, place, settings, ran)
    if not settings.run.keep_stages:
        finished.remove_stages()
    source.discard()
    report = None if audit else found_report(outputs.scores, folder, settings)
    return _scored(outputs, options, time.perf_counter() - start, was_done, report)


def _is_done(outputs: Outputs, folder: Location, terms: Any, new_run: bool) -> bool:
    """Tell whether these scores are there already; refuse to replace what is not to be."""
    was_done = is_current(outputs.scores, folder, terms, new_run=new_run)
    if outputs.table is None:
        return was_done
    if was_done and not outputs.table.exists():
        raise OutputError(
            f"{outputs.table} was removed, {outputs.scores} was not. Remove {outputs.scores} as "
            "well to score again."
        )
    check_replaceable(outputs.table)
    return was_done


def check_outputs(target: Location, table: Location | None) -> None:
    """Refuse two outputs at one place, or one inside the other."""
    if table is not None and (table.is_within(target) or target.is_within(table)):
        raise ConfigError(
            f"Zarr scores at {target} and Parquet scores at {table} need places of their own, "
            "neither inside the other."
        )


def _ingest_source(
    source: Input,
    model: Location,
    keep: Sequence[str],
    config: Config,
    new_run: bool,
    progress: Report | None,
) -> None:
    """Ingest a table source as the model expects it."""
    ingest(
        source.given,
        source.store.address,
        id=source.id,
        keep=keep,
        like=model.address,
        config=for_input(config),
        new_run=new_run,
        progress=progress,
    )


def score_options(
    model: FittedModel,
    saved: Mapping[str, Any],
    config: Config,
    parquet: bool,
    keep: Sequence[str],
    stored: Choice | None = None,
) -> ScoreOptions:
    """Return what to write: settings given now win over those the model was fitted with.

    `stored` is the choice of a threshold that is kept beside the model.
    """
    given = config.scoring.model_fields_set
    method: Method = config.scoring.method
    if "method" not in given and saved.get("method") in ("model", "effort"):
        method = saved["method"]
    policy = config.non_finite if "non_finite" in config.model_fields_set else None
    return ScoreOptions(
        method=method,
        non_finite=policy or model.config.non_finite,
        threshold=threshold_in_force(model, method, config.scoring, saved, stored),
        flag=config.scoring.flag,
        percentile=config.scoring.percentile,
        top_columns=min(config.scoring.top_columns, model.n_features),
        parquet=parquet,
        keep=tuple(keep),
    )


def check_score_input(model: FittedModel, store: FeatureStore, options: ScoreOptions) -> None:
    """Refuse a store the model cannot score as asked."""
    check_fits(model_schema(model), store.schema)
    check_missing(store, options.non_finite)
    store.check_columns_kept(options.keep)
    _check_names(store, options)
    if options.top_columns and not can_explain(model):
        raise ConfigError(
            "scoring.top_columns needs a view with all columns that is not whitened, or a "
            f"lightgbm model; this model is {model.score_model.kind!r} and has neither."
        )


def _check_names(store: FeatureStore, options: ScoreOptions) -> None:
    """Refuse kept columns and identifiers whose names the scores need for themselves."""
    tops = [f"top_{place + 1}" for place in range(options.top_columns)]
    own = {*options.arrays(1, 1), *tops, *(f"{name}_contribution" for name in tops)}
    taken = own & {store.schema.id_column, *options.keep} if options.parquet else set()
    if taken:
        raise ConfigError(
            f"Column {sorted(taken)[0]!r} has the name of a column of the scores. Rename it, or "
            "leave it out of --keep."
        )


def _fingerprint(
    models: Models, source: Input, options: ScoreOptions, table: Location | None
) -> Any:
    inputs = source.identity() | models.identity()
    settings = {**asdict(options), "keep": list(options.keep)}
    settings["parquet"] = None if table is None else table.address
    return fingerprint("score", inputs, settings)


def model_identity(model: Location) -> str:
    """Return the digest of a model's list of files."""
    return Entry.of((model / MANIFEST).read()).sha256


def generation_name(terms: Any) -> str:
    """Return the name of what a run publishes: the same for the same terms."""
    return Entry.of(json.dumps(terms, sort_keys=True).encode()).sha256[:16]


def _score_chunks(
    runner: Runner,
    model: Location,
    store: FeatureStore,
    options: ScoreOptions,
    groups: list[GroupModel],
    config: Config,
) -> list[Record]:
    arguments = {
        "model": model.address,
        "identity": model_identity(model),
        "store": store.location.address,
        "options": {**asdict(options), "keep": list(options.keep)},
        "groups": [list(astuple(group)) for group in groups],
        "report": wanted_parts(config.report),
    }
    function = "mrot_scale.jobs.score_tasks:score_chunk"
    tasks = [
        Task(task_key("score", chunk), function, {**arguments, "chunk": chunk})
        for chunk in store.chunks
    ]
    return runner.stage("score", tasks, in_rows=True)


def _publish(
    records: list[Record],
    store: FeatureStore,
    options: ScoreOptions,
    outputs: Outputs,
    run: RunFolder,
    generation: str,
) -> None:
    """Publish the Parquet folder first: scores that are there are there in all forms."""
    facts = {
        "rows": store.n_rows,
        "flagged": sum(r.facts["flagged"] for r in records),
        "missing": sum(r.facts["missing"] for r in records),
        "method": options.method,
        "threshold": options.threshold,
        "store": store.identity(),
        "model": run.fingerprint["inputs"]["model"],
    }
    if outputs.table is not None:
        folder = _table_folder(records, facts, generation)
        publish_generation(folder, outputs.table, run, generation)
    folder = _array_folder(records, store, options, facts)
    run.commit_published(Entry.of(folder.manifest()).sha256)  # first: see publish_once
    publish_generation(folder, outputs.scores, run, generation)
    run.commit_finished()


def _array_folder(
    records: list[Record], store: FeatureStore, options: ScoreOptions, facts: dict[str, Any]
) -> Folder:
    folder = Folder(SCORES_FORMAT, SCORES_VERSION, facts=facts)
    attributes = {"made_by": "mrot-scale", "columns": list(store.schema.features)}
    folder.small[METADATA] = group_metadata(attributes)
    for name, spec in options.arrays(store.n_rows, store.chunks.chunk_rows).items():
        folder.small[f"{name}/{METADATA}"] = spec.metadata()
        below = (0,) * (len(spec.shape) - 1)
        for chunk, record in enumerate(records):
            folder.objects[f"{name}/{spec.chunk_name(chunk, *below)}"] = record.objects[name]
    return folder


def _table_folder(records: list[Record], facts: dict[str, Any], generation: str) -> Folder:
    """Return the Parquet files, under names that no other generation has.

    A reader that lists the names as they change may miss a file, but never reads a mixture.
    """
    folder = Folder(TABLE_FORMAT, SCORES_VERSION, facts=facts, list_name=f"_{MANIFEST}")
    for record in records:
        for place, part in record.facts["files"]:
            name = place.removesuffix(".parquet") + f"-{generation[:8]}.parquet"
            folder.objects[name] = record.objects[part]
    return folder


def _scored(
    outputs: Outputs, options: ScoreOptions, seconds: float, was_done: bool, report: str | None
) -> Scored:
    found = resolve(outputs.scores)
    facts = read_manifest(found, SCORES_FORMAT, SCORES_VERSION, "scores").facts
    return Scored(
        str(outputs.scores),
        None if outputs.table is None else str(outputs.table),
        facts["rows"],
        facts["flagged"],
        facts["missing"],
        options.threshold,
        seconds,
        was_done,
        report,
    )
