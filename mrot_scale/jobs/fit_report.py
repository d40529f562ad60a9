"""The report of a fit: the rows learnt from, as the new model sees them."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.config.job import Config
from mrot_scale.encoding import Decoder
from mrot_scale.jobs.report_parts import ShownRows, count_cells
from mrot_scale.model.persist import load_model, model_schema
from mrot_scale.reporting.contents import notice, worst_first
from mrot_scale.reporting.gathering import Looked, contents_of, model_facts, run_facts
from mrot_scale.reporting.populations import score_ranges
from mrot_scale.reporting.writing import DATA, Ran, never_failing, report_place, write_report
from mrot_scale.running.commit import RunFolder, task_key
from mrot_scale.scoring import FittedModel
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import MANIFEST, Entry
from mrot_scale.storing.store import FeatureStore

Ids = NDArray[np.int64]

_RANK_LIMIT, _STABILITY_LIMIT = 0.9, 0.8
"""Agreement of trees with efforts, and of efforts with themselves, below which people are told."""


def write_fit_report(
    store: FeatureStore,
    target: Location,
    run: RunFolder,
    config: Config,
    ran: Ran,
) -> None:
    """Write the report of a fit, where reports are wanted."""
    if not config.report.enabled:
        return
    with never_failing():
        model, _ = load_model(target)
        method = config.scoring.method
        limit = model.threshold(method, config.scoring.contamination)
        looked = _looked_at(store, run, model, config, limit)
        found = contents_of("fit", target.name, looked, config.report)
        validation = json.loads((target / "validation.json").read())
        identity = Entry.of((target / MANIFEST).read()).sha256[:12]
        given = {"path": ran.source, "rows": store.n_rows}
        found = replace(
            found,
            run=run_facts("fit", ran, str(target)),
            input=given | {"columns": len(store.schema.columns)},
            model=model_facts(model, str(target), identity, method),
            notices=worst_first([*found.notices, *validation_notices(validation)]),
            stages=dict(ran.stages),
        )
        write_report(found, report_place(target), run.location / DATA)


def _looked_at(
    store: FeatureStore, run: RunFolder, model: FittedModel, config: Config, limit: float
) -> Looked:
    """Look at the sample: its rows of highest target, and some at even distances."""
    shares = run.records[task_key("label", 0)].objects["shares"].read_array(run.location)
    highest = np.argsort(-shares, kind="stable")[: config.report.rows]
    step = max(len(shares) // max(config.report.points, 1), 1)
    even = np.arange(0, len(shares) if config.report.points else 0, step)
    wanted = np.union1d(highest, even)
    shown = _scored_sample(store, run, model, config, wanted)
    top = shown.take(np.flatnonzero(np.isin(wanted, highest) & (shown.scores > limit)))
    cells = count_cells(model.training_scores[config.scoring.method])
    return Looked(
        store=store,
        models=[model],
        top=top.highest(config.report.rows),
        points=shown.take(np.flatnonzero(np.isin(wanted, even))),
        scores=score_ranges(cells),
        totals={"rows": store.n_rows, "flagged": None, "missing": None},
        threshold=limit,
    )


def _scored_sample(
    store: FeatureStore, run: RunFolder, model: FittedModel, config: Config, wanted: Ids
) -> ShownRows:
    """Return some rows of the sample, by their places in it, with the scores the model gives."""
    decoder, start, kept = Decoder(model_schema(model), store.schema), 0, []
    for chunk in store.chunks:
        piece = run.records[task_key("sample", chunk)].objects
        stored, numbers = (piece[n].read_array(run.location) for n in ("part0", "numbers"))
        if config.non_finite == "score-nan":  # rows that miss a value were not learnt from
            usable = np.isfinite(decoder.rows(stored)).all(axis=1)
            stored, numbers = stored[usable], numbers[usable]
        mine = wanted[(wanted >= start) & (wanted < start + len(stored))] - start
        kept.append((numbers[mine], stored[mine]))
        start += len(stored)
    numbers, stored = (np.concatenate(part) for part in zip(*kept, strict=True))
    scores = model.score_by_policy(decoder.rows(stored), config.scoring.method)
    return ShownRows(numbers, scores, np.zeros(len(numbers), np.int64), stored)


def validation_notices(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what validation says of the model."""
    if not found.get("held_out_rows"):
        return [notice("warn", "validation", "no rows were left to validate the model on")]
    rank = found.get("distillation_rank_correlation") or 0.0
    told = f"trees and efforts rank {found['held_out_rows']:,} unseen rows alike by {rank:.3f}"
    notices = [notice("ok" if rank >= _RANK_LIMIT else "warn", "agreement", told)]
    share = found["share_above_99_model"]
    told = f"{share:.2%} of them score above .99, where 1% would be usual"
    notices.append(notice("ok" if share <= 0.05 else "warn", "calibration", told))
    for view, stable in found.get("effort_stability", {}).items():
        if stable is not None:
            level = "ok" if stable >= _STABILITY_LIMIT else "warn"
            told = f"two halves of the efforts rank rows alike by {stable:.3f}"
            notices.append(notice(level, f"stability.{view}", told))
    return notices
