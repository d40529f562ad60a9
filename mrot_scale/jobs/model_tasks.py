"""The fitted parts become the files of a model, which is measured on rows it has not seen."""

from dataclasses import replace
from typing import Any

from mrot_scale.fitting.assembled import assemble
from mrot_scale.fitting.taught import Lesson
from mrot_scale.jobs.learning_tasks import contents, unseen_outputs
from mrot_scale.jobs.sample_tasks import method_of, schema_of
from mrot_scale.jobs.validation import validation_figures
from mrot_scale.jobs.view_records import ViewRecords
from mrot_scale.model.directory import ModelFiles
from mrot_scale.model.persist import model_files, model_of, score_model_from
from mrot_scale.profiles import Bins
from mrot_scale.running.commit import Record
from mrot_scale.running.tasks import Work

Json = Any


def assemble_model(
    work: Work,
    *,
    part: Json,
    labels: Json,
    fitted: Json,
    folds: list[Json],
    trained: Json,
    method: str,
    settings: dict[str, Any],
) -> Record:
    """Put the model's parts together as the files of its directory."""
    config, schema = method_of(method), schema_of(work, part)
    rows, records = work.array(part, "rows"), ViewRecords(**fitted)
    files = ModelFiles.of(dict(contents(work, trained)))
    score_model = score_model_from(files, trained["facts"]["kind"], config, rows.shape[1])
    model = assemble(
        Lesson(rows, work.array(labels, "shares"), work.array(labels, "rarity")),
        config,
        work.array(part, "fill"),
        records.standings(work, config),
        records.company_kept(work, config),
        score_model,
        unseen_outputs(work, folds, len(rows), config),
    )
    model = replace(
        model,
        feature_names=schema.features,
        origin=schema.origins,
        schema=schema,
        bins=Bins(work.array(part, "edges"), work.array(part, "spread")),
    )
    for name, content in model_files(model, settings).content.items():
        work.attempt.put(name, content)
    return work.attempt.record()


def validate_model(work: Work, *, part: Json, assembled: Json, facts: dict[str, Any]) -> Record:
    """Measure the model on rows it has not seen."""
    model, _ = model_of(ModelFiles.of(dict(contents(work, assembled))))
    held = work.array(part, "held")
    return work.attempt.record(**validation_figures(model, held), **facts)
