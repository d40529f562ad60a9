"""The rows behind the pictures, and what the method says of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mrot_scale.method.anchors import AnchorSet, fit_anchor_set, route_costs
from mrot_scale.method.calibrate import Calibration, calibrate_values
from mrot_scale.method.cost import nearest_zone, squared_distances
from mrot_scale.method.efforts import (
    Problem,
    mean_log_efforts,
    minibatch_efforts,
    transport_efforts,
)
from mrot_scale.method.transport import best_receivers

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

SEED = 3


def cloud(n_rows: int, n_lonely: int, *, seed: int = SEED) -> Floats:
    """Two dense regions of unequal spread, and some rows far from both; these come last."""
    rng = np.random.default_rng(seed)
    left = rng.normal([-2.0, 0.0], 0.45, size=(n_rows * 3 // 5, 2))
    right = rng.normal([2.0, 0.6], 0.9, size=(n_rows - len(left), 2))
    angles = np.linspace(0.7, 5.2, n_lonely) if n_lonely > 1 else np.array([1.9])
    far = np.column_stack([3.9 * np.cos(angles) - 0.3, 3.3 * np.sin(angles)])
    return np.vstack([left, right, far[:n_lonely]])


@dataclass(frozen=True)
class Moves:
    """Where each row sends its mass when it may not stay near."""

    rows: Floats
    receivers: Ids
    efforts: Floats
    reach: Floats
    """Distance to the edge of each row's zone."""


def moves(rows: Floats, zone_rows: int) -> Moves:
    """Return the cheapest way to move every row out of its zone."""
    problem = Problem(k=zone_rows)
    receivers = best_receivers(problem.cost(rows))
    distances = squared_distances(rows, rows)
    inside = nearest_zone(distances, zone_rows)
    reach = np.sqrt(np.where(inside, distances, 0.0).max(axis=1))
    return Moves(rows, receivers, transport_efforts(rows, problem), reach)


def neighbour_distance(rows: Floats, count: int) -> Floats:
    """Return the distance from each row to the given neighbour: large where rows are thin."""
    return np.asarray(np.sqrt(np.sort(squared_distances(rows, rows), axis=1)[:, count]))


def calibration(efforts: Floats) -> Calibration:
    """Return the map from log effort to rarity, as the package fits it."""
    return calibrate_values(np.log(efforts), smoothing=1.0)


@dataclass(frozen=True)
class Group:
    """A tight group of anomalies, with efforts by a narrow and by a wide zone."""

    rows: Floats
    is_group: NDArray[np.bool_]
    efforts: dict[float, Floats]
    """By zone mass."""


def group(narrow: float, wide: float, *, n_rows: int = 400, n_group: int = 24) -> Group:
    rng = np.random.default_rng(SEED)
    crowd = rng.normal(0.0, 1.0, size=(n_rows, 2))
    tight = rng.normal([4.2, 2.2], 0.16, size=(n_group, 2))
    rows = np.vstack([crowd, tight])
    efforts = {mass: transport_efforts(rows, Problem(alpha=mass)) for mass in (narrow, wide)}
    return Group(rows, np.arange(len(rows)) >= n_rows, efforts)


def batch_efforts(rows: Floats, batch_rows: int, repeats: int) -> Floats:
    """Return the mean effort of each row over small problems, on the scale of one problem."""
    each = minibatch_efforts(rows, batch_rows=batch_rows, repeats=repeats, seed=SEED)
    return np.asarray(np.exp(mean_log_efforts(each, 1e-12)))


@dataclass(frozen=True)
class Anchored:
    """Solved anchors, and where a new row goes."""

    anchors: AnchorSet
    new: Floats
    zone: NDArray[np.bool_]
    receiver: int


def anchored(rows: Floats, new: Floats, n_anchors: int, problem: Problem) -> Anchored:
    """Draw and solve anchors, and send one new row to the cheapest of them outside its zone."""
    ids = np.sort(np.random.default_rng(SEED).permutation(len(rows))[:n_anchors])
    anchors = fit_anchor_set(rows[ids], ids, problem, "anchors")
    distances = squared_distances(new[None], anchors.rows)[0]
    effort = float(route_costs(anchors, new[None], problem)[0])
    zone = np.argsort(distances) < 0
    zone[np.argsort(distances)[: max(1, round(problem.alpha * n_anchors))]] = True
    receiver = int(np.abs(distances - effort).argmin())
    assert not zone[receiver], "a row never sends its mass into its zone"
    return Anchored(anchors, new, zone, receiver)
