"""Rows are given what the score model is to learn; some are made up for it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.encoding import rare_levels
from mrot_scale.fitting import Lesson, lesson_of, mixed_lesson
from mrot_scale.imagined import imagined_rows
from mrot_scale.jobs.effort_tasks import company_of, efforts_by_row, maps_of, standings_of
from mrot_scale.jobs.packing import calibration_from, view_from
from mrot_scale.jobs.sample_tasks import method_of, schema_of, setup_of
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
    views: list[Json],
    learnt: list[Json],
    company: Json | None,
) -> Record:
    """Give the rows of a part what the score model is to learn.

    `measured` holds for each view the routes of the part's rows, or their efforts in batches.
    """
    if company is None:
        of_sample = np.column_stack([work.array(v, "target_rarity") for v in views])
    else:
        of_sample = work.array(company, "unseen")
    if is_sample:
        rarity = of_sample
    else:
        pairs = zip(measured, views, strict=True)
        rarity = np.column_stack([_rarity(work, part, method, *pair) for pair in pairs])
        rarity = _shared(work, part, method, learnt, company, rarity)
    work.attempt.put_array("rarity", rarity)
    targets = fit_targets(of_sample, shared=company is not None)
    work.attempt.put_array("shares", targets.shares(rarity))
    return work.attempt.record()


def _shared(
    work: Work, part: Json, method: str, learnt: list[Json], company: Json | None, rarity: Floats
) -> Floats:
    """Return the rarities of a part's rows averaged with those of their neighbours, if any."""
    config = method_of(method)
    kept = company_of(work, config, company)
    if kept is None:
        return rarity
    view = view_from(work, learnt[kept.view], config.views[kept.view])
    return kept.shared(view.apply(work.array(part, "rows")), rarity)


def _rarity(work: Work, part: Json, method: str, blocks: list[Json], view: Json) -> Floats:
    """Return how rare the efforts of a part's rows are in one view."""
    setup, floor = setup_of(part, method), work.array(view, "floor")
    if setup.config.two_passes:
        maps, routes = maps_of(work, view), (work.array(block, "routes") for block in blocks)
        return np.concatenate([mean_rarity(r, setup.problem, floor, maps) for r in routes])
    found = efforts_by_row(work, part, method, blocks)
    values = effort_values(found, setup.config, setup.problem, float(floor[0]))
    return calibration_from(work, view, "batch").neg_log_survival(values)


def imagine_categories(
    work: Work,
    *,
    part: Json,
    method: str,
    views: list[Json],
    learnt: list[Json],
    anchors: list[Json],
    company: Json | None,
) -> Record:
    """Make rows with rare and unseen categories, and send them to the anchors for a target."""
    config = method_of(method)
    levels = rare_levels(schema_of(work, part))
    rows = imagined_rows(work.array(part, "rows"), levels, config.seed)
    standings = standings_of(work, config, views, learnt, anchors, company)
    _put_lesson(work, lesson_of(rows, config, standings, company_of(work, config, company)))
    return work.attempt.record()


def mix_rows(
    work: Work,
    *,
    part: Json,
    labels: Json,
    method: str,
    views: list[Json],
    learnt: list[Json],
    anchors: list[Json],
    company: Json | None,
) -> Record:
    """Make rows of two others, for trees that are given efforts."""
    config = method_of(method)
    standings = standings_of(work, config, views, learnt, anchors, company)
    rows, shares = work.array(part, "rows"), work.array(labels, "shares")
    taught = Lesson(rows, shares, work.array(labels, "rarity"))
    kept = company_of(work, config, company)
    _put_lesson(work, mixed_lesson(taught, config, standings, kept))
    return work.attempt.record()


def _put_lesson(work: Work, lesson: Lesson) -> None:
    for name in ("rows", "rarity", "shares"):
        work.attempt.put_array(name, getattr(lesson, name))
