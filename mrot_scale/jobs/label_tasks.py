"""Rows are given what the score model is to learn; some are made up for it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.encoding import rare_levels
from mrot_scale.fitting.taught import Lesson, lesson_of, mixed_lesson
from mrot_scale.imagined import imagined_rows
from mrot_scale.jobs.effort_tasks import efforts_by_row
from mrot_scale.jobs.packing import calibration_from, maps_from
from mrot_scale.jobs.sample_tasks import method_of, schema_of, setup_of
from mrot_scale.jobs.view_records import ViewRecords
from mrot_scale.running.commit import Record
from mrot_scale.running.tasks import Work
from mrot_scale.scoring import mean_rarity
from mrot_scale.standing import effort_values, fit_targets

Floats = NDArray[np.float64]
Json = Any


def label_rows(
    work: Work,
    *,
    part: Json,
    method: str,
    is_sample: bool,
    measured: list[list[Json]],
    fitted: Json,
) -> Record:
    """Give the rows of a part what the score model is to learn.

    `measured` holds for each view the routes of the part's rows, or their efforts in batches.
    """
    records = ViewRecords(**fitted)
    of_sample = records.target_rarity(work)
    if is_sample:
        rarity = of_sample
    else:
        pairs = zip(measured, records.calibrated, strict=True)
        rarity = np.column_stack([_rarity(work, part, method, *pair) for pair in pairs])
        rarity = _shared(work, part, method, records, rarity)
    work.attempt.put_array("rarity", rarity)
    targets = fit_targets(of_sample, shared=records.company is not None)
    work.attempt.put_array("shares", targets.shares(rarity))
    return work.attempt.record()


def _shared(work: Work, part: Json, method: str, records: ViewRecords, rarity: Floats) -> Floats:
    """Return the rarities of a part's rows averaged with those of their neighbours, if any."""
    config = method_of(method)
    kept = records.company_kept(work, config)
    if kept is None:
        return rarity
    points = records.view(work, config, kept.view).apply(work.array(part, "rows"))
    return kept.shared(points, rarity)


def _rarity(work: Work, part: Json, method: str, blocks: list[Json], calibrated: Json) -> Floats:
    """Return how rare the efforts of a part's rows are in one view."""
    setup, floor = setup_of(part, method), work.array(calibrated, "floor")
    if setup.config.two_passes:
        maps, routes = maps_from(work, calibrated), (work.array(b, "routes") for b in blocks)
        return np.concatenate([mean_rarity(r, setup.problem, floor, maps) for r in routes])
    found = efforts_by_row(work, part, method, blocks)
    values = effort_values(found, setup.config, setup.problem, float(floor[0]))
    return calibration_from(work, calibrated, "batch").neg_log_survival(values)


def imagine_categories(work: Work, *, part: Json, method: str, fitted: Json) -> Record:
    """Make rows with rare and unseen categories, and send them to the anchors for a target."""
    config, records = method_of(method), ViewRecords(**fitted)
    levels = rare_levels(schema_of(work, part))
    rows = imagined_rows(work.array(part, "rows"), levels, config.seed)
    standings, kept = records.standings(work, config), records.company_kept(work, config)
    _put_lesson(work, lesson_of(rows, config, standings, kept))
    return work.attempt.record()


def mix_rows(work: Work, *, part: Json, labels: Json, method: str, fitted: Json) -> Record:
    """Make rows of two others, for trees that are given efforts."""
    config, records = method_of(method), ViewRecords(**fitted)
    standings, kept = records.standings(work, config), records.company_kept(work, config)
    rows, shares = work.array(part, "rows"), work.array(labels, "shares")
    taught = Lesson(rows, shares, work.array(labels, "rarity"))
    _put_lesson(work, mixed_lesson(taught, config, standings, kept))
    return work.attempt.record()


def _put_lesson(work: Work, lesson: Lesson) -> None:
    for name in ("rows", "rarity", "shares"):
        work.attempt.put_array(name, getattr(lesson, name))
