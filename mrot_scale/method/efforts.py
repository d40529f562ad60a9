"""How hard it is for each row to send its mass away, exactly or averaged over mini-batches."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mrot_scale.errors import ConfigError, DataError
from mrot_scale.method.batches import Batch, BatchPlan, fitting_batch_rows, zone_count
from mrot_scale.method.cost import (
    Bools,
    Ceiling,
    ball_zone,
    coulomb_cost,
    engineered_cost,
    mass_zone,
    nearest_zone,
    squared_distances,
)
from mrot_scale.method.transport import efforts_of, normalised_weights

Floats = NDArray[np.float64]

Average = Literal["middle", "mean"]

ZERO_EFFORT_SHARE = 1e-6
"""Efforts below this share of the median positive effort count as that share of it."""


@dataclass(frozen=True)
class Problem:
    """What is forbidden and what it costs: the settings of one transport problem."""

    alpha: float = 0.04
    """Share of the mass in the exclusion zone."""

    k: int | None = None
    """Number of other rows in the zone of every problem; overrides `alpha`."""

    radius: float | None = None
    """Radius of an open ball as the zone; overrides `alpha`."""

    ceiling: Ceiling = "max"
    """Cost inside the zone."""

    kind: Literal["engineered", "coulomb"] = "engineered"
    """The engineered cost, or the repulsive Coulomb baseline, which has no zone."""

    eps: float = 0.0
    """Entropic regularisation relative to the median cost; 0 solves exactly."""

    relative: bool = False
    """Whether efforts against anchors are taken relative to those of the anchors in the zone."""

    average: Average = "middle"
    """Which of several problems with the same settings, sets of anchors, count for a row: the half
    in the middle, or all. In batches all do."""

    def __post_init__(self) -> None:
        wrong = {
            "alpha": not 0 < self.alpha < 1,
            "k": self.k is not None and self.k < 1,
            "radius": self.radius is not None and not 0 < self.radius < np.inf,
            "kind": self.kind not in ("engineered", "coulomb"),
            "average": self.average not in get_args(Average),
            "eps": not 0 <= self.eps < np.inf,
        }
        for name in (name for name, is_wrong in wrong.items() if is_wrong):
            raise ConfigError(f"{name} is out of range, got {getattr(self, name)!r}.")

    @property
    def effort_sign(self) -> float:
        """+1 when a high effort is anomalous, -1 for the Coulomb cost, where a low one is."""
        return -1.0 if self.kind == "coulomb" else 1.0

    def cost(
        self, rows: Floats, *, squared_radii: Floats | None = None, weights: Floats | None = None
    ) -> Floats:
        """Return the cost between all pairs of rows of one problem."""
        D = squared_distances(rows, rows)
        if self.kind == "coulomb":
            return coulomb_cost(D)
        return engineered_cost(D, self._zone(D, squared_radii, weights), self.ceiling)

    def _zone(self, D: Floats, squared_radii: Floats | None, weights: Floats | None) -> Bools:
        if self.radius is not None:
            return ball_zone(D, self.radius**2)
        if squared_radii is not None:
            return ball_zone(D, squared_radii)
        if weights is not None and self.k is None:
            return mass_zone(D, self.alpha, normalised_weights(weights, len(D)))
        return nearest_zone(D, min(zone_count(len(D), self.alpha, self.k), len(D) - 1))


def transport_efforts(
    rows: Floats,
    problem: Problem | None = None,
    *,
    weights: Floats | None = None,
    name: str = "the table",
) -> Floats:
    """Return the exact (or entropic) effort of each row in one problem holding all rows.

    Parameters
    ----------
    rows
        Finite features, shape (n, d), in the coordinates whose distances matter.
    problem
        Zone, cost and regularisation; defaults to zone mass .04, exact.
    weights
        Positive mass of each row; uniform when omitted. With weights the zone is counted in mass.
    name
        How errors call this problem.
    """
    problem = problem or Problem()
    rows = _checked(rows)
    fitting_batch_rows(len(rows), None, problem.alpha, problem.k)
    cost = problem.cost(rows, weights=weights)
    return efforts_of(cost, eps=problem.eps, weights=weights, name=name)


def minibatch_efforts(
    rows: Floats,
    problem: Problem | None = None,
    *,
    batch_rows: int | None = 256,
    repeats: int = 8,
    seed: int = 0,
    squared_radii: Floats | None = None,
    threads: int = 1,
) -> Floats:
    """Return the effort of each row in each of its `repeats` batches, shape (n, repeats).

    Average them with `mean_log_efforts`. `batch_rows=None` solves one batch of all rows, exactly.
    """
    problem = problem or Problem()
    rows = _checked(rows)
    if repeats < 1 or (batch_rows is not None and batch_rows < 1):
        raise ConfigError(f"repeats and batch_rows must be positive, got {repeats}, {batch_rows}.")
    size = fitting_batch_rows(len(rows), batch_rows, problem.alpha, problem.k)
    plan = BatchPlan(len(rows), size, 1 if size == len(rows) else repeats, seed)
    return solve_batches(rows, plan, problem, squared_radii=squared_radii, threads=threads)


def _checked(rows: Floats) -> Floats:
    """Return the rows as a matrix of finite numbers, or say why they are none."""
    points = np.asarray(rows, dtype=np.float64)
    if points.ndim != 2:
        raise DataError(f"rows must have shape (n, d), got {points.shape}.")
    if not np.isfinite(points).all():
        row, column = np.argwhere(~np.isfinite(points))[0]
        raise DataError(
            f"rows must be finite, got {points[row, column]} at row {row}, column {column}."
        )
    return points


def solve_batches(
    rows: Floats,
    plan: BatchPlan,
    problem: Problem,
    *,
    name: str = "",
    squared_radii: Floats | None = None,
    threads: int = 1,
    on_batch: Callable[[], None] | None = None,
) -> Floats:
    """Return the efforts of every batch of the plan, put back by row: shape (n, repeats)."""
    if threads < 1:
        raise ConfigError(f"threads must be at least 1, got {threads}.")

    def solve(batch: Batch) -> tuple[Batch, Floats]:
        radii = None if squared_radii is None else squared_radii[batch.rows]
        return batch, batch_efforts(rows[batch.rows], problem, f"{name}{batch}", radii)

    efforts = np.empty((plan.n_rows, plan.repeats))
    for batch, found in _run(solve, plan, threads):
        efforts[batch.rows[batch.own], batch.repeat] = found[batch.own]
        if on_batch:
            on_batch()
    return efforts


def batch_efforts(
    rows: Floats, problem: Problem, name: str, squared_radii: Floats | None = None
) -> Floats:
    """Return the efforts of the rows of one batch."""
    cost = problem.cost(rows, squared_radii=squared_radii)
    return efforts_of(cost, eps=problem.eps, name=name)


def effort_floor(efforts: Floats) -> float:
    """Return the smallest effort told apart from zero, which equal rows can have."""
    positive = efforts[efforts > 0]
    return ZERO_EFFORT_SHARE * float(np.median(positive)) if positive.size else 1.0


def mean_log_efforts(efforts: Floats, floor: float | Floats) -> Floats:
    """Return the mean log effort of each row over its repeats, ignoring repeats that are NaN."""
    logs = np.log(np.maximum(efforts, floor))
    return np.asarray(np.nanmean(logs, axis=1))


def middle_log_efforts(efforts: Floats, floor: float | Floats) -> Floats:
    """Return the mean of the middle half of each row's log efforts, ignoring those that are NaN.

    A group about as large as a zone is inside it for some sets and outside for others, at efforts
    orders of magnitude apart: in a mean of all one set in sixteen would decide how it ranks.
    """
    logs = np.sort(np.log(np.maximum(efforts, floor)), axis=1)  # NaN last
    n_found = np.count_nonzero(~np.isnan(logs), axis=1)
    low, high = n_found / 4, 3 * n_found / 4
    total = np.zeros(len(logs))
    for place, values in enumerate(logs.T):  # one by one: the same bits for any number of rows
        inside = np.clip(np.minimum(place + 1, high) - np.maximum(place, low), 0, 1)
        total += np.multiply(inside, values, out=np.zeros(len(logs)), where=inside > 0)
    return np.asarray(total / (high - low))


def log_efforts_over_sets(efforts: Floats, floor: float | Floats, average: Average) -> Floats:
    """Return each row's log effort averaged over sets of anchors that see the same columns."""
    of_sets = middle_log_efforts if average == "middle" else mean_log_efforts
    return of_sets(efforts, floor)


def _run(
    solve: Callable[[Batch], tuple[Batch, Floats]], plan: BatchPlan, threads: int
) -> Iterable[tuple[Batch, Floats]]:
    # SciPy's assignment solver lets go of the interpreter lock, so threads are worth having.
    if threads == 1:
        yield from map(solve, plan)
        return
    with ThreadPoolExecutor(threads) as pool:
        for repeat in range(plan.repeats):
            yield from pool.map(solve, plan.repeat_batches(repeat))
