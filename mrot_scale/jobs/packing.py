"""Fitted parts to arrays of a record and back."""

from dataclasses import replace
from typing import Any

import numpy as np

from mrot_scale.config.method import MethodConfig
from mrot_scale.config.views import ViewConfig
from mrot_scale.method.anchors import AnchorSet
from mrot_scale.method.calibrate import Calibration
from mrot_scale.method.company import Company
from mrot_scale.method.loneliness import Loneliness
from mrot_scale.method.views import View, ViewSpec
from mrot_scale.running.commit import Attempt
from mrot_scale.running.tasks import Work
from mrot_scale.scoring import FittedView
from mrot_scale.standing import Standing

_VIEW_ARRAYS = ("center", "scale", "squash", "mean", "components")
_COMPANY_ARRAYS = ("rows", "rarity", "reach")
_STANDING_ARRAYS = ("mean_logs", "target_rarity", "seen_rarity", "unseen_rarity")


def put_view(attempt: Attempt, view: View) -> None:
    """Write a fitted view."""
    for name in _VIEW_ARRAYS:
        attempt.put_array(name, getattr(view, name))


def view_from(work: Work, record: object, config: ViewConfig) -> View:
    """Return the view a record holds."""
    spec = ViewSpec(config.scaling, config.columns, config.whiten)
    return View(spec, **{name: work.array(record, name) for name in _VIEW_ARRAYS})


def put_anchors(attempt: Attempt, anchors: tuple[AnchorSet, ...]) -> None:
    """Write the anchor sets of one view."""
    attempt.put_array("anchor-rows", np.stack([a.rows for a in anchors]))
    attempt.put_array("anchor-v", np.stack([a.v for a in anchors]))
    attempt.put_array("anchor-ids", np.stack([a.ids for a in anchors]))
    attempt.put_array("anchor-eps", np.array([a.eps for a in anchors]))
    attempt.put_array("anchor-slack", np.array([a.slack for a in anchors]))
    columns = [a.columns for a in anchors if a.columns is not None]
    seen = np.concatenate(columns) if columns else np.zeros(0, dtype=np.int64)
    attempt.put_array("anchor-columns", seen)
    efforts = [a.efforts for a in anchors if a.efforts is not None]
    attempt.put_array("anchor-efforts", np.stack(efforts) if efforts else np.zeros((0, 0)))


def anchors_from(work: Work, record: object) -> tuple[AnchorSet, ...]:
    """Return the anchor sets a record holds."""
    names = ("anchor-rows", "anchor-v", "anchor-ids", "anchor-eps", "anchor-slack")
    arrays = [work.array(record, name) for name in names]
    columns = work.array(record, "anchor-columns")
    seen = columns[:, None] if len(columns) else [None] * len(arrays[0])
    efforts = work.array(record, "anchor-efforts")
    own = efforts if len(efforts) else [None] * len(arrays[0])
    return tuple(
        AnchorSet(rows, v, ids, float(eps), among, paid, float(slack))
        for rows, v, ids, eps, slack, among, paid in zip(*arrays, seen, own, strict=True)
    )


def put_calibration(attempt: Attempt, name: str, calibration: Calibration) -> None:
    """Write a calibration under a name."""
    attempt.put_array(f"{name}-knots", calibration.knots)
    attempt.put_array(f"{name}-rarity", calibration.rarity)
    attempt.put_array(f"{name}-tail", np.array([calibration.tail_scale]))


def calibration_from(work: Work, record: object, name: str) -> Calibration:
    """Return the calibration a record holds under a name."""
    knots, rarity, tail = (work.array(record, f"{name}-{p}") for p in ("knots", "rarity", "tail"))
    return Calibration(knots, rarity, float(tail[0]))


def put_standing(attempt: Attempt, standing: Standing) -> None:
    """Write how rare the sample's rows are in one view, and what scoring needs for others."""
    for number, of_set in enumerate(standing.fitted.maps):
        put_calibration(attempt, f"anchor{number}", of_set)
    if standing.of_batches is not None:
        put_calibration(attempt, "batch", standing.of_batches)
    attempt.put_array("floor", standing.fitted.floor)
    for name in _STANDING_ARRAYS:
        attempt.put_array(name, getattr(standing, name))


def standing_from(work: Work, record: Any, view: View, anchors: tuple[AnchorSet, ...]) -> Standing:
    """Return what a record holds of a view with these coordinates and anchors."""
    fitted = FittedView(view, anchors, work.array(record, "floor"), maps_from(work, record))
    kept = {name: work.array(record, name) for name in _STANDING_ARRAYS}
    return Standing(fitted, of_batches=None, **kept)  # which only labelling needs


def maps_from(work: Work, record: Any) -> tuple[Calibration, ...]:
    """Return how rare efforts against the anchors of a view are."""
    return tuple(
        calibration_from(work, record, f"anchor{n}") for n in range(record["facts"]["maps"])
    )


def put_company(attempt: Attempt, company: Company) -> None:
    """Write the company of a sample."""
    for name in _COMPANY_ARRAYS:
        attempt.put_array(f"company-{name}", getattr(company, name))
    if company.loneliness is not None:
        put_calibration(attempt, "loneliness", company.loneliness.calibration)


def company_from(work: Work, record: object, view: int, config: MethodConfig) -> Company:
    """Return the company a record holds, in a view, that these settings asked for."""
    rows, rarity, reach = (work.array(record, f"company-{name}") for name in _COMPANY_ARRAYS)
    kept = Company(rows, rarity, reach, view, config.company)
    if config.loneliness == 0:
        return kept
    calibration = calibration_from(work, record, "loneliness")
    return replace(kept, loneliness=Loneliness(calibration, config.loneliness))
