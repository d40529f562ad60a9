"""One partition: found, checked, scored by its model, audited, published, and told of."""

import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mrot_scale.config.job import Config
from mrot_scale.digests import table_manifest
from mrot_scale.drift import Drift, profile_drift, training_profile
from mrot_scale.errors import GateError, LeftOutWarning, MissingInputError
from mrot_scale.jobs.opening import AnyConfig, for_input, settled
from mrot_scale.jobs.score_job import Audit, score
from mrot_scale.jobs.score_outputs import Scored
from mrot_scale.jobs.score_report import looked_at, score_contents
from mrot_scale.jobs.staged import Staged
from mrot_scale.profiles import Profile
from mrot_scale.progress import Report, in_run
from mrot_scale.reading.parts import Part
from mrot_scale.reading.sources import TableStream, open_source
from mrot_scale.reporting.contents import Contents
from mrot_scale.reporting.gathering import model_facts
from mrot_scale.reporting.writing import never_failing
from mrot_scale.running.lock import locked
from mrot_scale.running.publish import resolve
from mrot_scale.scheduled import gates
from mrot_scale.scheduled.choosing import Choice, choose_model
from mrot_scale.scheduled.inputs import InputFile, are_same, digested, listed
from mrot_scale.scheduled.layout import TERMS, Layout, json_bytes, read_json
from mrot_scale.scheduled.partitions import Lake, Partition, parse_partition
from mrot_scale.scheduled.profiling import OpenedModel, night_profile, opened_model
from mrot_scale.scheduled.registry import Registry, check_same_key
from mrot_scale.scheduled.run_record import RUN_FILE, RunRecord, reason_of
from mrot_scale.scheduled.state import (
    PartitionState,
    Status,
    read_profile,
    read_state,
    settings_digest,
    write_profile,
    write_state,
)
from mrot_scale.scheduled.telling import Ending, unfailing
from mrot_scale.scheduled.training import group_sizes, moments
from mrot_scale.storing.location import Location

_GENERATIONS_KNOWN = 3
_TOTALS = ("rows", "flagged", "missing")

AnyPath = str | Path


@dataclass(frozen=True)
class Night:
    """What a night's run made."""

    partition: str
    status: str
    """`done`; `skipped`, where nothing had changed since it was; or `empty`."""

    n_rows: int
    n_flagged: int
    flagged_share: float
    model: str | None
    scores: str | None
    report: str | None
    manifest: str
    run_id: str
    warnings: list[str]
    seconds: float


def nightly(
    input: AnyPath,
    output: AnyPath,
    *,
    date: str | None = None,
    partition: str | None = None,
    config: AnyConfig = None,
    model: str | None = None,
    again: bool = False,
    progress: Report | None = None,
) -> Night:
    """Score one partition of a lake, and publish it if every gate lets it pass.

    Parameters
    ----------
    input
        Folder of `date=2026-11-14/` folders (or of another key: `nightly.key`).
    output
        Folder for `scores`, `models`, `runs` and `reports`.
    date, partition
        Which partition: a day, or KEY=VALUE.
    model
        Model to score with: an id of the registry, `latest`, or a path.
    again
        Score it even where neither inputs nor model nor settings have changed.
    """
    settings = for_input(settled(config, nightly={"model": model}))
    wanted = parse_partition(date, partition, settings.nightly.key)
    if partition is not None and "key" not in settings.nightly.model_fields_set:
        settings = settled(settings, nightly={"key": wanted.key})
    check_same_key(wanted, settings.nightly.key)
    job = _Job(Location(input), Layout(Location(output)), wanted, settings, progress, again)
    return job.run()


class _Job:
    """One run, and what it has found so far."""

    def __init__(
        self,
        source: Location,
        layout: Layout,
        partition: Partition,
        config: Config,
        progress: Report | None,
        again: bool,
    ) -> None:
        self._source, self._layout, self._partition = source, layout, partition
        self._config, self._again = config, again
        self._record = RunRecord(layout, partition, config)
        self._report = self._record.timed(progress)
        self._findings: list[gates.Finding] = []
        self._profile: Profile | None = None
        self._looked: Contents | None = None
        self._before: PartitionState | None = None

    def run(self) -> Night:
        with locked(self._layout.work(self._partition)), in_run(self._record.id):
            self._before = read_state(self._layout, self._partition)
            self._record.facts["attempts"] = self._attempts
            self._record.write()
            self._write_state("running", 0, "", self._published_before)
            try:
                return self._night()
            except BaseException as error:
                code, reason = reason_of(error)
                status: Status = "gated" if isinstance(error, GateError) else "failed"
                self._end(status, code, reason, self._published_before)
                raise

    def _night(self) -> Night:
        lake = Lake.open(self._source, self._config.nightly.key)
        parts = lake.files(self._partition)
        if not parts:
            raise MissingInputError(f"No table files in {lake.folder(self._partition)}.")
        self._record.facts["inputs"] = [f.to_json() for f in listed(parts)]
        stream = open_source(lake.folder(self._partition), id_column=self._config.nightly.id)
        if not stream.has_rows():
            return self._empty()
        choice = self._choose(lake)
        if not self._again and self._is_done(parts, choice):
            return self._skipped(choice, parts)
        self._clear_other_work(parts, choice)
        with ThreadPoolExecutor(1) as pool:  # read once more while the rows are scored
            digests = pool.submit(digested, parts)
            scored = self._score(lake, choice, stream)
            inputs = digests.result()
        return self._done(choice, scored, inputs)

    def _choose(self, lake: Lake) -> Choice:
        registry = Registry(self._layout)
        with self._record.stage("model"):
            choice = choose_model(registry, lake, self._partition, self._config, self._report)
        self._record.facts["model"] = {
            "id": choice.entry.id,
            "why": choice.why,
            "fitted_now": choice.is_new,
            "partitions": choice.entry.facts.get("partitions"),
        }
        return choice

    def _is_done(self, parts: Sequence[Part], choice: Choice) -> bool:
        """Tell whether the same inputs, model and settings have been published already."""
        known = self._published_before
        if self._before is None or not known or self._before.status == "gated":
            return False
        same = known["model"] == choice.entry.id
        same = same and known["settings"] == settings_digest(self._config)
        is_there = self._layout.scores(self._partition).exists()
        return same and is_there and are_same(self._before.inputs, parts)

    def _clear_other_work(self, parts: Sequence[Part], choice: Choice) -> None:
        """Remove what an earlier run began on other inputs, or with another model."""
        work = self._layout.work(self._partition)
        terms = {
            "inputs": [[f.name, f.size, f.stamp] for f in listed(parts)],
            "model": choice.entry.id,
            "settings": settings_digest(self._config),
        }
        if read_json(work / TERMS) != terms:
            work.remove()
            (work / TERMS).write(json_bytes(terms))

    def _score(self, lake: Lake, choice: Choice, stream: TableStream) -> Scored:
        model = opened_model(choice.entry)
        self._check_columns(model, stream)

        def audit(staged: Staged) -> None:
            with self._record.stage("audit"):
                self._audit(lake, model, staged, stream.n_rows)

        with warnings.catch_warnings():
            # Which columns are new is a matter for a gate.
            warnings.simplefilter("ignore", LeftOutWarning)
            return self._score_partition(lake, choice, audit)

    def _score_partition(self, lake: Lake, choice: Choice, audit: Audit) -> Scored:
        settings = self._config.nightly
        groups = {value: place.address for value, place in choice.entry.groups()}
        return score(
            choice.entry.location.address,
            lake.folder(self._partition).address,
            (self._layout.work(self._partition) / "scores").address,
            self._config,
            parquet=self._layout.scores(self._partition).address,
            keep=settings.keep,
            id=settings.id,
            by=choice.entry.by,
            groups=groups if choice.entry.by else None,
            new_run=True,
            audit=audit,
            progress=self._report,
        )

    def _check_columns(self, model: OpenedModel, stream: TableStream) -> None:
        settings = self._config.nightly
        named = [settings.id, settings.by, settings.key, *settings.keep, *settings.exclude]
        seen = [*named, *model.entry.facts.get("columns", []), *stream.partition_keys]
        if not settings.times:
            seen += moments(stream.schema)
        known = [column.name for column in model.schema.columns]
        found = gates.check_columns(known, stream.schema.names, seen, self._config.gates)
        self._judge(found)

    def _audit(self, lake: Lake, model: OpenedModel, staged: Staged, n_input: int | None) -> None:
        """Judge what was made; whatever fails here is not published."""
        self._profile = staged.profile()
        facts, rows = self._record.facts, {name: staged.total(name) for name in _TOTALS}
        facts["rows"] = rows
        if model.entry.by:
            facts["groups"] = group_sizes(model.entry, staged.records)
        training = self._training_drift(model, self._profile)
        earlier = self._previous_profile(lake, model)
        previous = None
        if earlier is not None:
            previous = profile_drift(model.schema, earlier, self._profile)
        facts["drift"] = [drift.to_json() for drift in training or []]
        facts["drift_previous"] = [drift.to_json() for drift in previous or []]
        self._look(model, staged, previous)
        night = gates.Night(
            n_input=n_input,
            n_rows=rows["rows"],
            n_missing=rows["missing"],
            n_flagged=rows["flagged"],
            n_previous=earlier.n_rows if earlier else None,
            training=training,
            previous=previous,
            schema=staged.store.schema,
        )
        self._judge(gates.judge(night, self._config.gates))

    def _look(self, model: OpenedModel, staged: Staged, previous: list[Drift] | None) -> None:
        """Gather what the report shows of the rows, of a night that is refused as well."""
        if not self._config.report.enabled:
            return
        with never_failing(), self._record.stage("report"):
            looked = looked_at(staged, self._config, previous)
            found = score_contents(staged, looked, self._config, "nightly", str(self._partition))
            entry, method = model.entry, staged.options.method
            known = model_facts(staged.model, str(entry.location), entry.id, method)
            self._looked = replace(found, model=known)

    def _training_drift(self, model: OpenedModel, profile: Profile) -> list[Drift] | None:
        method = model.options(self._config).method
        before = training_profile(model.fitted, model.schema, method)
        return None if before is None else profile_drift(model.schema, before, profile)

    def _previous_profile(self, lake: Lake, model: OpenedModel) -> Profile | None:
        """Return how the rows of the partition before are spread: as kept, or looked at now."""
        previous = lake.previous(self._partition)
        if previous is None or model.fitted.bins is None:
            return None
        files = listed(lake.files(previous))
        kept = read_profile(self._layout, previous, model.entry.id, files)
        return kept or night_profile(model, lake, previous, self._config)

    def _judge(self, findings: list[gates.Finding]) -> None:
        self._findings += findings
        self._record.facts["gates"] = [finding.to_json() for finding in self._findings]
        gates.refuse_failed(findings, str(self._partition))

    def _empty(self) -> Night:
        if self._config.nightly.empty == "fail":
            self._judge([gates.below("rows_below", 0, self._config.gates.rows_below, "0 rows")])
        self._end("empty", 0, "0 rows", self._published_before)
        return self._result("empty", None, 0, 0)

    def _skipped(self, choice: Choice, parts: Sequence[Part]) -> Night:
        """Tell what is visible, which after a rollback is not what was published last."""
        known = [file.digest for file in self._before.inputs] if self._before else []
        inputs = [replace(f, digest=d) for f, d in zip(listed(parts), known, strict=True)]
        self._record.facts |= {"skipped": True, "inputs": [f.to_json() for f in inputs]}
        published = self._published_before | {"inputs": self._record.facts["inputs"]}
        self._end("published", 0, "", published)
        visible = table_manifest(resolve(self._layout.scores(self._partition))).facts
        return self._result("skipped", choice, visible["rows"], visible["flagged"])

    def _done(self, choice: Choice, scored: Scored, inputs: list[InputFile]) -> Night:
        self._record.facts["inputs"] = [f.to_json() for f in inputs]
        published = {
            "run_id": self._record.id,
            "inputs": self._record.facts["inputs"],
            "model": choice.entry.id,
            "settings": settings_digest(self._config),
            "rows": scored.n_rows,
            "flagged": scored.n_flagged,
            "level": gates.worst(self._findings),
            "models_before": self._models_before(choice.entry.id),
            "outputs": published_files(self._layout.scores(self._partition)),
        }
        if self._profile is not None:
            write_profile(self._layout, self._partition, choice.entry.id, inputs, self._profile)
        self._end("published", 0, "", published)
        self._layout.work(self._partition).remove()
        return self._result("done", choice, scored.n_rows, scored.n_flagged)

    def _models_before(self, id: str) -> list[str]:
        """Return the models of the generations that rollback may go to."""
        known = self._published_before
        before = [*known.get("models_before", []), *([known["model"]] if known else [])]
        return [model for model in dict.fromkeys(before) if model != id][-_GENERATIONS_KNOWN:]

    @property
    def _report_path(self) -> str | None:
        return str(self._layout.report(self._partition)) if self._config.report.enabled else None

    @property
    def _attempts(self) -> int:
        return 1 + (self._before.attempts if self._before else 0)

    @property
    def _published_before(self) -> dict[str, Any]:
        return self._before.published if self._before else {}

    def _write_state(
        self, status: Status, code: int, reason: str, published: dict[str, Any]
    ) -> PartitionState:
        level = "fail" if code else gates.worst(self._findings)
        if self._record.facts.get("skipped"):
            level = published.get("level", "ok")
        found = (self._record.id, self._attempts, level, code, reason, published)
        tried = self._record.facts.get("inputs", [])
        state = PartitionState(self._partition.value, status, *found, tried)
        write_state(self._layout, self._partition, state)
        return state

    def _end(self, status: Status, code: int, reason: str, published: dict[str, Any]) -> None:
        """Write down how it ended and tell whoever is to be told; none of it hides an error."""
        self._record.facts |= {"reason": reason, "outputs": published.get("outputs", {})}
        self._record.finish(status, code)
        with unfailing("state"):
            self._write_state(status, code, reason, published)
        settings = self._config
        after = Ending(
            self._layout, self._partition, settings.nightly, self._before, settings.report
        )
        after.tell(self._record.facts, self._looked)

    def _result(self, status: str, choice: Choice | None, n_rows: int, n_flagged: int) -> Night:
        has_scores = status != "empty"
        return Night(
            partition=str(self._partition),
            status=status,
            n_rows=n_rows,
            n_flagged=n_flagged,
            flagged_share=n_flagged / max(n_rows, 1),
            model=choice.entry.id if choice else None,
            scores=str(self._layout.scores(self._partition)) if has_scores else None,
            report=self._report_path,
            manifest=str(self._record.location / RUN_FILE),
            run_id=self._record.id,
            warnings=[f"{f.gate}: {f.message}" for f in self._findings if f.level == "warn"],
            seconds=self._record.facts["seconds"],
        )


def published_files(scores: Location) -> dict[str, dict[str, Any]]:
    """Return the files of published scores with their sizes and digests."""
    found = table_manifest(resolve(scores)).files
    return {n: {"bytes": e.n_bytes, "sha256": e.sha256} for n, e in found.items()}
