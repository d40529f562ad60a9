"""The report of scored rows: what chunks left is read, and put together with what is known."""

from dataclasses import replace
from typing import Any

import numpy as np

from mrot_scale.config.job import Config
from mrot_scale.drift import Drift, profile_drift, training_profile
from mrot_scale.jobs.report_parts import SCORE_CELLS, read_parts
from mrot_scale.jobs.staged import Staged
from mrot_scale.model.persist import model_schema
from mrot_scale.reporting.contents import Contents, worst_first
from mrot_scale.reporting.gathering import (
    Looked,
    contents_of,
    finding_notices,
    look_at,
    model_facts,
    run_facts,
)
from mrot_scale.reporting.populations import score_ranges
from mrot_scale.reporting.redacting import redaction
from mrot_scale.reporting.writing import DATA, Ran, never_failing, report_place, write_report
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import MANIFEST, Entry


def write_score_report(
    staged: Staged, out: Location, model: Location, config: Config, ran: Ran
) -> None:
    """Write the report of a scoring run, where reports are wanted."""
    if not config.report.enabled:
        return
    with never_failing():
        looked = looked_at(staged, config)
        found = score_contents(staged, looked, config, "score", out.name)
        found = replace(
            found,
            run=run_facts("score", ran, str(out)),
            input=found.input | {"path": ran.source},
            model=model_facts(staged.model, str(model), _identity(model), staged.options.method),
            notices=worst_first([*found.notices, *_notices(staged, looked, config)]),
            stages=dict(ran.stages),
        )
        write_report(found, report_place(out), staged.run.location / DATA)


def _identity(model: Location) -> str:
    return Entry.of((model / MANIFEST).read()).sha256[:12]


def _notices(staged: Staged, looked: Looked, config: Config) -> list[dict[str, Any]]:
    hidden = redaction(config.report.redact, staged.store.schema)
    return hidden.of_notices(finding_notices(look_at(looked, config), is_judged=False))


def looked_at(staged: Staged, config: Config, previous: list[Drift] | None = None) -> Looked:
    """Return what a report shows of scored rows."""
    schema = model_schema(staged.model)
    n_features = len(staged.store.schema.features)
    parts = read_parts(staged.records, staged.run.location, n_features, config.report.rows)
    profile = staged.profile_of(parts.counts) if parts.is_whole and parts.counts else None
    cells = parts.counts.get("cells", np.zeros(SCORE_CELLS, np.int64))
    training = training_profile(staged.model, schema, staged.options.method)
    return Looked(
        store=staged.store,
        models=staged.models,
        top=parts.top,
        points=parts.points,
        scores=score_ranges(cells),
        totals=staged.totals(),
        threshold=staged.options.threshold,
        profile=profile,
        training=profile_drift(schema, training, profile) if training and profile else None,
        previous=previous,
        n_counted=int(cells.sum()) if not parts.is_whole else None,
    )


def score_contents(
    staged: Staged, looked: Looked, config: Config, kind: Any, title: str
) -> Contents:
    """Return the contents of the report of scored rows."""
    store = staged.store
    found = contents_of(kind, title, looked, config.report)
    given = {
        "path": str(store.location),
        "rows": store.n_rows,
        "columns": len(store.schema.columns),
    }
    return replace(found, input=given)
