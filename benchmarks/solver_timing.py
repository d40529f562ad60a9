"""Time the exact solvers on the same problems, and two ways to route rows to anchors."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import ot
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from mrot_scale.errors import SolverError
from mrot_scale.method.anchors import (
    AnchorSet,
    fit_anchor_set,
    lifted_search_is_safe,
    route_costs,
)
from mrot_scale.method.efforts import Problem
from mrot_scale.method.transport import best_receivers
from mrot_scale.seeds import generator

Floats = NDArray[np.float64]

SOLVER_COLUMNS = 8
PROBLEM = Problem(alpha=0.04)

SAME_TOTAL = 1e-9
"""Relative difference of total cost from which one of two exact solvers is wrong."""

SAME_EFFORT = 1e-6
"""Relative difference from which a row counts as routed elsewhere."""

SLOW_S = 1.0
"""A solver that once took longer is not run again on rows of that law."""

ANCHOR_ROWS = 256
REFERENCE = "assignment"

LAWS: dict[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = {
    "Gaussian": lambda rng, shape: rng.standard_normal(shape),
    "lognormal": lambda rng, shape: rng.lognormal(size=shape),
    "Cauchy": lambda rng, shape: rng.standard_cauchy(shape),
}


@dataclass(frozen=True)
class SolverLine:
    """One line of the first table."""

    rows: int
    law: str
    ms: dict[str, float | None]
    """Median milliseconds by solver; none when it was too slow on fewer rows."""

    ratio: dict[str, float | None]
    """Median over the repeats of its time by that of the assignment solver."""

    runs: dict[str, int]
    """Runs behind each median."""

    difference: float
    """Largest relative difference of total cost from the assignment solver's."""

    @property
    def is_wrong(self) -> bool:
        return not self.difference < SAME_TOTAL


@dataclass(frozen=True)
class RoutingLine:
    """One line of the second table."""

    columns: int
    law: str
    dense_us: float
    """Median microseconds for each row, every anchor in float64."""

    lifted_us: float
    """The same with FAISS proposing anchors."""

    differing: float
    """Share of rows whose efforts differ."""

    chosen: str
    """What `search="auto"` uses here."""


def assign(cost: Floats) -> tuple[Any, Any]:
    """Return the senders and receivers that SciPy's dense assignment solver pairs."""
    senders, receivers = linear_sum_assignment(cost)
    return senders, receivers


def network_simplex(cost: Floats) -> Floats:
    """Return POT's plan, refused unless the solver says that it is optimal."""
    masses = np.full(len(cost), 1.0 / len(cost))
    plan, log = ot.emd(masses, masses, cost, numItermax=50_000_000, log=True)
    if log["result_code"] != 1:
        raise SolverError(f"ot.emd stopped early on {len(cost)} rows: {log['warning']}.")
    return np.asarray(plan)


def sparse_matching(cost: Floats) -> tuple[Any, Any]:
    """Return what SciPy's sparse matching pairs, given every pair; building the graph included."""
    senders, receivers = min_weight_full_bipartite_matching(csr_array(cost))
    return senders, receivers


def reduced_assignment(cost: Floats) -> tuple[Any, Any]:
    """Return the pairs of the route the package takes: the same solver on reduced costs."""
    return np.arange(len(cost)), best_receivers(cost)


SOLVERS: dict[str, Callable[[Floats], Any]] = {
    REFERENCE: assign,
    "reduced assignment": reduced_assignment,
    "network simplex": network_simplex,
    "sparse matching": sparse_matching,
}


def total_cost(cost: Floats, solution: Any) -> float:
    """Return the cost of a matching, or of a plan scaled to a unit of mass for each row."""
    if isinstance(solution, tuple):
        return float(cost[solution].sum())
    return float((solution * cost).sum() * len(cost))


def compare_solvers(sizes: Sequence[int], *, repeats: int, seed: int = 0) -> list[SolverLine]:
    """Time every solver on problems of every size and law."""
    retired: set[tuple[str, str]] = set()
    lines = []
    for rows in sorted(sizes):
        runs = {law: _Runs() for law in LAWS}
        for repeat in range(repeats):
            for law in LAWS:
                cost = PROBLEM.cost(_draw(law, (rows, SOLVER_COLUMNS), seed, repeat))
                _run_all(cost, law, runs[law], retired)
        lines += [runs[law].line(rows, law) for law in LAWS]
    return lines


class _Runs:
    """The times and totals of one size and law, by solver."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {name: [] for name in SOLVERS}
        self.totals: dict[str, list[float]] = {name: [] for name in SOLVERS}

    def line(self, rows: int, law: str) -> SolverLine:
        reference = self.seconds[REFERENCE]
        # A solver is only ever dropped for good, so its runs are the first ones of the reference.
        ratios = {
            name: [mine / theirs for mine, theirs in zip(times, reference, strict=False)]
            for name, times in self.seconds.items()
        }
        return SolverLine(
            rows,
            law,
            ms={name: _median(times, 1e3) for name, times in self.seconds.items()},
            ratio={name: _median(values) for name, values in ratios.items()},
            runs={name: len(times) for name, times in self.seconds.items()},
            difference=max(self._differences()),
        )

    def _differences(self) -> Iterator[float]:
        for totals in self.totals.values():
            for mine, theirs in zip(totals, self.totals[REFERENCE], strict=False):
                yield abs(mine - theirs) / abs(theirs)


def _run_all(cost: Floats, law: str, runs: _Runs, retired: set[tuple[str, str]]) -> None:
    for name, solve in SOLVERS.items():
        if (law, name) in retired:
            continue
        seconds, solution = _timed(solve, cost)
        runs.seconds[name].append(seconds)
        runs.totals[name].append(total_cost(cost, solution))
        if seconds > SLOW_S and name != REFERENCE:
            retired.add((law, name))


def compare_routing(
    widths: Sequence[int], *, routed_rows: int, repeats: int, seed: int = 0
) -> list[RoutingLine]:
    """Time both searches of `route_costs` for rows of every width and law."""
    return [
        _routing_line(columns, law, routed_rows, repeats, seed)
        for columns in sorted(widths)
        for law in LAWS
    ]


def _routing_line(columns: int, law: str, rows: int, repeats: int, seed: int) -> RoutingLine:
    anchors = _anchors(columns, law, seed)
    routed = _draw(law, (rows, columns), seed, 1)
    dense: list[float] = []
    lifted: list[float] = []
    for _ in range(repeats):
        seconds, exact = _timed(route_costs, anchors, routed, PROBLEM, search="dense")
        dense.append(seconds)
        seconds, proposed = _timed(route_costs, anchors, routed, PROBLEM, search="lifted")
        lifted.append(seconds)
    differing = float((np.abs(proposed - exact) > SAME_EFFORT * exact).mean())
    chosen = "lifted" if lifted_search_is_safe(anchors, PROBLEM) else "dense"
    us = 1e6 / rows
    return RoutingLine(columns, law, median(dense) * us, median(lifted) * us, differing, chosen)


def _anchors(columns: int, law: str, seed: int) -> AnchorSet:
    rows = _draw(law, (ANCHOR_ROWS, columns), seed, 0)
    return fit_anchor_set(rows, np.arange(ANCHOR_ROWS), PROBLEM, f"{law} anchors")


def _draw(law: str, shape: tuple[int, int], seed: int, number: int) -> Floats:
    return LAWS[law](generator(seed, f"benchmark rows, {law}", *shape, number), shape)


def _timed(call: Callable[..., Any], *arguments: Any, **settings: Any) -> tuple[float, Any]:
    """Return the processor time of a call, which other programs do not lengthen, and its answer."""
    start = time.process_time()
    found = call(*arguments, **settings)
    return time.process_time() - start, found


def _median(values: list[float], unit: float = 1.0) -> float | None:
    return median(values) * unit if values else None
