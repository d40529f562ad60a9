"""What a run leaves becomes the contents of its report."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mrot_scale import __version__
from mrot_scale.config.job import Config, ReportConfig
from mrot_scale.drift import Drift
from mrot_scale.jobs.report_parts import ShownRows
from mrot_scale.model.persist import model_schema
from mrot_scale.profiles import Profile
from mrot_scale.reporting.contents import (
    COLUMNS_KEPT,
    Contents,
    Json,
    Kind,
    empty_map,
    rounded,
    short,
)
from mrot_scale.reporting.flagged_rows import decoded, flagged_rows
from mrot_scale.reporting.populations import (
    column_spreads,
    drift_lines,
    effort_spreads,
    quality_lines,
)
from mrot_scale.reporting.projecting import projection_of
from mrot_scale.reporting.redacting import Redaction, redaction
from mrot_scale.reporting.writing import Ran
from mrot_scale.scheduled.gates import Finding, judge
from mrot_scale.scheduled.gates import Night as Figures
from mrot_scale.scoring import FittedModel
from mrot_scale.storing.schema import Schema
from mrot_scale.storing.store import FeatureStore

_DRIFTS_DRAWN = 50


@dataclass(frozen=True)
class Looked:
    """The rows a report looks at, and what is known of all of them."""

    store: FeatureStore
    models: Sequence[FittedModel]
    """By the groups of rows, the one for all others last."""

    top: ShownRows
    """Rows above the threshold, highest first."""

    points: ShownRows
    scores: Json
    """Counts of all scores."""

    totals: Json
    threshold: float | None
    profile: Profile | None = None
    training: Sequence[Drift] | None = None
    previous: Sequence[Drift] | None = None
    n_counted: int | None = None
    """Rows that were counted, where not all need have been."""


def contents_of(kind: Kind, title: str, looked: Looked, config: ReportConfig) -> Contents:
    """Return what the rows tell; run, model, notices and stages are the job's to add."""
    schema, model = looked.store.schema, looked.models[-1]
    hidden = redaction(config.redact, schema)
    flagged = flagged_rows(looked.store, looked.models, looked.top, set(hidden.columns))
    drift = drift_lines(looked.training, looked.previous)
    named = [column["name"] for row in flagged for column in row["columns"]]
    named += [line["name"] for line in drift[:_DRIFTS_DRAWN]]
    seen = {short(name) for name in hidden.features}
    spreads = column_spreads(
        model, model_schema(model), [name for name in named if name not in seen], looked.profile
    )
    quality = hidden.of_quality(quality_lines(schema))
    return Contents(
        kind,
        title,
        run={},
        rows=looked.totals,
        threshold=looked.threshold,
        scores=looked.scores,
        efforts=effort_spreads(model),
        flagged=flagged,
        columns=spreads,
        map=map_of(looked, flagged, hidden),
        drift=drift[:COLUMNS_KEPT],
        quality=_worst_quality(quality)[:COLUMNS_KEPT],
        notices=hidden.notices(),
        left_out=_left_out(schema, hidden),
        notes=_notes(looked, flagged, drift, quality, hidden),
    )


def _worst_quality(lines: list[Json]) -> list[Json]:
    """Return columns with something missing first, the others in their order."""
    return sorted(lines, key=lambda line: -(line["missing"] + line["infinite"]))


def _left_out(schema: Schema, hidden: Redaction) -> list[Json]:
    found = [(name, why) for name, why in schema.left_out]
    return [{"name": short(n), "reason": short(w)} for n, w in found[:COLUMNS_KEPT]]


def map_of(looked: Looked, flagged: Sequence[Json], hidden: Redaction) -> Json:
    """Return where rows lie: those at even distances, and over them the highest."""
    drawn, model = empty_map(), looked.models[-1]
    found = projection_of(model, set(hidden.positions))
    if found is None or len(looked.points.rows) + len(looked.top.rows) == 0:
        return drawn
    names = {row["row"]: row["id"] for row in flagged}
    others = ~np.isin(looked.points.rows, looked.top.rows)
    sample = looked.points.take(np.flatnonzero(others))
    for shown in (sample, looked.top):
        if len(shown.rows) == 0:
            continue
        # One model's eyes for all: groups would each have a map of their own.
        alike = ShownRows(shown.rows, shown.scores, np.zeros_like(shown.groups), shown.stored)
        places = found.apply(decoded(looked.store, [model], alike), model.fill)
        drawn["x"] += [rounded(x, 4) for x in places[:, 0]]
        drawn["y"] += [rounded(y, 4) for y in places[:, 1]]
        drawn["score"] += [rounded(s, 4) for s in shown.scores]
        drawn["id"] += [names.get(int(row), str(row)) for row in shown.rows]
        drawn["row"] += shown.rows.tolist()
    return drawn | {"explained": [round(share, 4) for share in found.explained]}


def _notes(
    looked: Looked,
    flagged: Sequence[Json],
    drift: Sequence[Json],
    quality: Sequence[Json],
    hidden: Redaction,
) -> dict[str, str]:
    """Return what is left out of each part."""
    notes = {}
    total = looked.totals["flagged"]
    if total is not None and total > len(flagged):
        notes["flagged"] = f"The {len(flagged):,} highest of {total:,} flagged rows."
    if looked.n_counted is not None and looked.n_counted < looked.totals["rows"]:
        told = f"{looked.n_counted:,} of {looked.totals['rows']:,} rows were counted"
        notes["scores"] = f"{told}: reports were off when the others were scored."
    for name, lines in (("drift", drift), ("quality", quality)):
        if len(lines) > COLUMNS_KEPT:
            notes[name] = f"{COLUMNS_KEPT} of {len(lines):,} columns."
    if hidden.positions or looked.store.schema.id_column in hidden.columns:
        names = ", ".join(sorted(short(name) for name in hidden.columns))
        notes["redacted"] = f"Values of these columns are in no part of this page: {names}."
    return notes


def run_facts(command: str, ran: Ran, out: str) -> Json:
    """Return what ran."""
    return {
        "command": command,
        "status": "done",
        "reason": "",
        "started": ran.started,
        "seconds": None if ran.seconds is None else round(ran.seconds, 3),
        "version": __version__,
        "out": out,
    }


def model_facts(model: FittedModel, path: str, id: str, method: str) -> Json:
    """Return which model it was."""
    return {
        "path": path,
        "id": id,
        "kind": model.score_model.kind,
        "method": method,
        "label_rows": None if model.bins is None else int(model.bins.counts[0].sum()),
        "columns": model.n_features,
        "views": len(model.views),
    }


def finding_notices(findings: Iterable[Finding], *, is_judged: bool) -> list[Json]:
    """Return what gates found; where no gate stops anything, a failure is a warning."""
    found = []
    for finding in findings:
        level = finding.level if is_judged or finding.level != "fail" else "warn"
        found.append({"level": level, "name": finding.gate, "message": finding.message})
    return found


def look_at(looked: Looked, config: Config) -> list[Finding]:
    """Return what the gates would say of rows that no gate judges."""
    figures = Figures(
        n_input=None,
        n_rows=looked.totals["rows"],
        n_missing=looked.totals["missing"],
        n_flagged=looked.totals["flagged"],
        n_previous=None,
        training=looked.training,
        previous=None,
        schema=looked.store.schema,
    )
    return judge(figures, config.gates)
