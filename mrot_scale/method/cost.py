"""What it costs to send mass from one row to another, and which rows a row may not send to.

`D` holds squared Euclidean distances, `zone[i, j]` says that row `j` lies in the exclusion zone of
row `i`. A row is always in its own zone, by position. Ties are broken by (distance, position), so
callers keep the rows of one problem sorted by row id.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from mrot_scale.errors import ConfigError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ceiling = Literal["max", "zone"] | float


_PAIRS_COMPARED = 16


def squared_distances(rows: Floats, others: Floats) -> Floats:
    """Return the (n, m) squared Euclidean distances, equal rows at exactly 0.

    The one function every distance comes from: a pair has the same bits whatever the shapes, so a
    radius measured elsewhere can be compared with `<`.
    """
    return np.asarray(cdist(rows, others, "sqeuclidean"))


def paired_squared_distances(rows: Floats, others: Floats) -> Floats:
    """Return the squared distance of each row to the other of the same position, shape (n,).

    To the last bit what `squared_distances` gives: it adds column after column, and so does this.
    """
    total = np.zeros(len(rows))
    for column, other in zip(rows.T, others.T, strict=True):
        total += np.square(column - other)
    some = slice(0, _PAIRS_COMPARED)
    if not np.array_equal(total[some], _one_by_one(rows[some], others[some])):
        return _one_by_one(rows, others)  # SciPy was built to add in another order
    return total


def _one_by_one(rows: Floats, others: Floats) -> Floats:
    pairs = zip(rows[:, None, :], others[:, None, :], strict=True)
    return np.array([squared_distances(a, b)[0, 0] for a, b in pairs], dtype=np.float64)


def smallest_in_each_row(values: Floats, count: int) -> Bools:
    """Mark the `count` smallest entries of each row, ties going to the lower position."""
    if count <= 0:
        return np.zeros(values.shape, dtype=bool)
    if count >= values.shape[1]:
        return np.ones(values.shape, dtype=bool)
    kth = np.partition(values, count - 1, axis=1)[:, count - 1, None]
    up_to: Bools = values <= kth
    if np.count_nonzero(up_to) == count * len(values):  # no tie at the edge of any row
        return up_to
    below = values < kth
    tied = values == kth
    room = count - below.sum(axis=1, keepdims=True)
    return np.asarray(below | (tied & (np.cumsum(tied, axis=1) <= room)))


def nearest_zone(D: Floats, k: int) -> Bools:
    """Return the zone of each row: itself and its `k` nearest other rows."""
    return smallest_in_each_row(_with_self_first(D), k + 1)


def mass_zone(D: Floats, alpha: float, weights: Floats) -> Bools:
    """Return the zone of each row: itself and its nearest others until they hold mass `alpha`."""
    order = np.argsort(_with_self_first(D), axis=1, kind="stable")
    mass = weights[order]
    mass[:, 0] = 0.0
    reached_before = np.cumsum(mass, axis=1) - mass >= alpha * (1 - 1e-12)
    reached_before[:, 0] = False
    zone = np.empty(D.shape, dtype=bool)
    np.put_along_axis(zone, order, ~reached_before, axis=1)
    return zone


def ball_zone(D: Floats, squared_radii: Floats | float) -> Bools:
    """Return the zone of each row: itself and the rows strictly inside its ball.

    The ball is open: a closed one would swallow whole groups of equal rows.
    """
    radii = np.broadcast_to(np.asarray(squared_radii, dtype=np.float64), D.shape[:1])
    zone: Bools = radii[:, None] > D
    np.fill_diagonal(zone, True)
    return zone


def engineered_cost(D: Floats, zone: Bools, ceiling: Ceiling = "max") -> Floats:
    """Return `D` with every entry inside the zone replaced by the ceiling `L`.

    `L` is the largest distance in the row ("max"), the largest inside the zone ("zone", which makes
    staying put optimal and the effort a neighbour distance), or a given number.
    """
    if ceiling == "max":
        level = D.max(axis=1, keepdims=True)
    elif ceiling == "zone":
        level = np.where(zone, D, 0.0).max(axis=1, keepdims=True)
    elif isinstance(ceiling, int | float):
        level = np.full((len(D), 1), float(ceiling))
    else:
        raise ConfigError(f"ceiling must be 'max', 'zone' or a number, got {ceiling!r}.")
    return np.where(zone, level, D)


def coulomb_cost(D: Floats) -> Floats:
    """Return the regularised Coulomb cost 1 / (1 + distance), the paper's repulsive baseline."""
    return 1.0 / (1.0 + np.sqrt(D))


def _with_self_first(D: Floats) -> Floats:
    """Copy `D` with the diagonal below every distance, so that a row is its own nearest."""
    ordered = D.copy()
    np.fill_diagonal(ordered, -1.0)
    return ordered
