"""Where one row's mass goes: the anchor it is sent to, at what cost, and which it may not use."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mrot_scale.method.anchors import AnchorSet, best_targets, zone_among_anchors
from mrot_scale.method.cost import coulomb_cost, engineered_cost, squared_distances
from mrot_scale.method.efforts import Problem

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Route:
    """The way of one row's mass against one set of anchors."""

    target: int
    """Position of the anchor it is sent to; with entropy, of the one that gets most of it."""

    cost: float
    """What sending it there costs."""

    price: float
    """What that anchor asks or grants: rows go where cost less price is smallest."""

    n_zone: int
    """Anchors that are too near to be sent to."""

    reach: float
    """Squared distance of the farthest of those."""


def route_of(anchors: AnchorSet, point: Floats, problem: Problem) -> Route:
    """Return the way of one point of the view."""
    D = squared_distances(anchors.among(point[None]), anchors.rows)
    if problem.kind == "coulomb":
        zone = np.zeros(D.shape, dtype=bool)
        cost = coulomb_cost(D)
    else:
        zone = zone_among_anchors(D, problem)
        cost = engineered_cost(D, zone, problem.ceiling)
    priced = cost - anchors.v
    if problem.kind == "engineered" and problem.ceiling == "max" and not zone.all():
        priced = np.where(zone, np.inf, priced)  # a row that is no anchor cannot stay put
    target = int(best_targets(cost, priced, anchors.slack)[0])
    reach = float(np.where(zone, D, 0.0).max())
    if problem.kind == "engineered" and problem.ceiling == "zone":  # staying put is optimal
        nearest = int(D[0].argmin())
        return Route(nearest, reach, float(anchors.v[nearest]), int(zone.sum()), reach)
    return Route(target, float(cost[0, target]), float(anchors.v[target]), int(zone.sum()), reach)
