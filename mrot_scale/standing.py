"""How rare the sample's rows are in each view, and what of it the score model learns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mrot_scale.config.method import MethodConfig
from mrot_scale.method.anchors import AnchorSet
from mrot_scale.method.calibrate import (
    LOG_EFFORT_STEP,
    Calibration,
    calibrate_values,
    count_on_grid,
    fit_calibration,
)
from mrot_scale.method.combine import combine_views
from mrot_scale.method.company import Shared, most_company_rows, share_in_sample
from mrot_scale.method.efforts import (
    Problem,
    effort_floor,
    log_efforts_over_sets,
    mean_log_efforts,
)
from mrot_scale.method.trust import easiest_first
from mrot_scale.method.views import View
from mrot_scale.scoring import FittedView
from mrot_scale.seeds import generator

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Standing:
    """How rare the sample's rows are in one view, by each way of measuring them."""

    fitted: FittedView
    mean_logs: Floats
    """Log effort averaged over batches, or over sets of anchors where there are two passes."""

    of_batches: Calibration | None
    """Rarity of efforts in batches; None where there are two passes."""

    target_rarity: Floats
    """From those efforts: what the score model learns."""

    seen_rarity: Floats
    """From anchors, as scoring the training rows again gives it."""

    unseen_rarity: Floats
    """From anchors, as rows never seen would get it."""


def stand_by_batches(
    view: View,
    efforts: Floats,
    anchors: tuple[AnchorSet, ...],
    routes: Floats,
    config: MethodConfig,
    problem: Problem,
) -> Standing:
    """Return the view ready for scoring, and the rarity of the sample's rows in its batches."""
    floor = effort_floor(efforts)
    mean_logs = mean_log_efforts(efforts, floor)
    own = np.repeat(np.exp(mean_logs)[:, None], routes.shape[1], axis=1)
    unseen = unseen_routes(routes, anchors, own)
    unseen = problem.effort_sign * log_efforts_over_sets(unseen, floor, problem.average)
    fitted = FittedView(view, anchors, np.array([floor]), (_log_calibration(unseen),))
    values = effort_values(efforts, config, problem, floor)
    of_batches = effort_calibration(values, config)
    return Standing(
        fitted,
        mean_logs,
        of_batches,
        of_batches.neg_log_survival(values),
        seen_rarity=fitted.rarity(routes, problem),
        unseen_rarity=fitted.maps[0].neg_log_survival(unseen),
    )


def stand_by_routes(
    view: View, anchors: tuple[AnchorSet, ...], routes: Floats, problem: Problem
) -> Standing:
    """Return the view ready for scoring, and the rarity of the sample's rows against anchors."""
    # Sets that see one column each are too few to leave any out, and their zones hold so many rows
    # that a row's own place among them hardly matters.
    separate = anchors[0].columns is not None
    unseen = routes if separate else unseen_routes(routes, anchors, routes)
    floor, maps = _floor_and_maps(unseen, anchors, problem)
    fitted = FittedView(view, anchors, floor, maps)
    rarity, seen = fitted.rarity(unseen, problem), fitted.rarity(routes, problem)
    return Standing(fitted, fitted.log_efforts(unseen, problem), None, rarity, seen, rarity)


def share_rarity(
    points: Floats, view: int, standings: Sequence[Standing], config: MethodConfig, threads: int = 1
) -> Shared:
    """Return the company the sample keeps, in a view of these points, and what its rows share."""
    order = generator(config.seed, "company").permutation(len(points))
    seen = np.column_stack([s.seen_rarity for s in standings])
    unseen = np.column_stack([s.unseen_rarity for s in standings])
    drawn = np.sort(order[: most_company_rows(points.shape[1], config.label_rows)])
    return share_in_sample(
        points,
        drawn,
        (seen, unseen),
        view=view,
        wanted=config.company,
        loneliness=config.loneliness,
        threads=threads,
    )


def with_shared(standings: Sequence[Standing], seen: Floats, unseen: Floats) -> list[Standing]:
    """Return the standings after a second pass with rarities as they are shared in company."""
    return [
        replace(s, target_rarity=u, seen_rarity=r, unseen_rarity=u)
        for s, r, u in zip(standings, seen.T, unseen.T, strict=True)
    ]


def unseen_routes(routes: Floats, anchors: tuple[AnchorSet, ...], own: Floats) -> Floats:
    """Return the efforts as a row never seen would get them: without the sets it belongs to.

    A row that is an anchor in every set has the efforts in `own` instead.
    """
    unseen = routes.copy()
    for column, anchor_set in enumerate(anchors):
        unseen[anchor_set.ids, column] = np.nan
    everywhere = np.isnan(unseen).all(axis=1)
    unseen[everywhere] = own[everywhere]
    return unseen


def _floor_and_maps(
    unseen: Floats, anchors: tuple[AnchorSet, ...], problem: Problem
) -> tuple[Floats, tuple[Calibration, ...]]:
    """Return what efforts count at least, and how rare they are, in all sets or in each.

    Sets that see different columns have efforts of different size and spread.
    """
    if anchors[0].columns is None:
        least = effort_floor(unseen)
        values = problem.effort_sign * log_efforts_over_sets(unseen, least, problem.average)
        return np.array([least]), (_log_calibration(values),)
    floor = np.array([effort_floor(set_efforts) for set_efforts in unseen.T])
    logs = problem.effort_sign * np.log(np.maximum(unseen, floor)).T
    return floor, tuple(_log_calibration(x) for x in logs)


def effort_values(
    efforts: Floats, config: MethodConfig, problem: Problem, floor: float | None = None
) -> Floats:
    """Return what is calibrated of the rows' batch efforts, higher = more anomalous."""
    if config.calibration == "raw-effort":
        return np.asarray(problem.effort_sign * efforts.mean(axis=1))
    floor = effort_floor(efforts) if floor is None else floor
    return np.asarray(problem.effort_sign * mean_log_efforts(efforts, floor))


def effort_calibration(values: Floats, config: MethodConfig) -> Calibration:
    """Return the rarity of batch efforts, fitted to the sample's values."""
    if config.calibration == "raw-effort":
        return calibrate_values(values, smoothing=1.0)
    return _log_calibration(values)


def order_of_trust(efforts: list[Floats], config: MethodConfig, problem: Problem) -> Ids:
    """Return the rows from the easiest to the hardest to move, by batch efforts in each view."""
    values = [effort_values(e, config, problem) for e in efforts]
    rarity = [effort_calibration(v, config).neg_log_survival(v) for v in values]
    return easiest_first(combine_views(np.column_stack(rarity)))


@dataclass(frozen=True)
class Targets:
    """The map from a row's rarities to what the score model learns."""

    calibration: Calibration | None
    """Of the combined rarity; None for one view of rows that share nothing: it is a share."""

    def shares(self, rarity: Floats) -> Floats:
        """Return the share of rows less anomalous, in (0, 1), for rarities (n, views)."""
        if self.calibration is None:
            return np.asarray(-np.expm1(-rarity[:, 0]))
        combined = self.calibration.neg_log_survival(combine_views(rarity))
        return np.asarray(-np.expm1(-combined))


def fit_targets(rarity: Floats, *, shared: bool = False) -> Targets:
    """Return the targets fitted to the sample's rarities in each view, shared or not."""
    if rarity.shape[1] == 1 and not shared:
        return Targets(None)
    return Targets(calibrate_values(combine_views(rarity), smoothing=1.0))


def _log_calibration(logs: Floats) -> Calibration:
    return fit_calibration(count_on_grid(logs, LOG_EFFORT_STEP))
