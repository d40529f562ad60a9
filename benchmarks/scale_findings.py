"""What the cells of the benchmark of scale say together: rates, exponents, ratios and targets."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import log
from statistics import median
from typing import Any

from benchmarks.memory import COMMANDS
from benchmarks.scale_grid import Cell, Grid, Size

Pick = Callable[[Cell], float | None]

SHORTEST_S = 0.05
"""Stages tell tenths of a second: what takes less is taken for this."""

MEMORY = ("driver_mib", "worker_mib", "tree_mib")


@dataclass(frozen=True)
class Spread:
    """The median of some repeats, and how far they lie apart."""

    median: float
    low: float
    high: float
    repeats: int

    @classmethod
    def of(cls, values: list[float]) -> "Spread | None":
        return cls(median(values), min(values), max(values), len(values)) if values else None


class Results:
    """All finished cells of a grid."""

    def __init__(self, grid: Grid, cells: list[Cell]) -> None:
        self.grid = grid
        self.cells = [cell for cell in cells if "error" not in cell]
        self.failures = [cell for cell in cells if "error" in cell]

    @property
    def sizes(self) -> list[Size]:
        """Sizes with a cell."""
        found = {Size(cell["n_rows"], cell["n_features"]) for cell in self.cells}
        return [size for size in self.grid.sizes if size in found]

    def of(self, kind: str, method: str, size: Size, workers: int | None = None) -> list[Cell]:
        """Return the repeats of one thing; by most workers unless told."""
        wanted = workers or (None if kind == "peer" else self.grid.most_workers)
        return [
            cell
            for cell in self.cells
            if (cell["kind"], cell["method"]) == (kind, method)
            and (cell["n_rows"], cell["n_features"]) == (size.rows, size.features)
            and wanted in (None, cell["workers"])
        ]

    def spread(
        self, pick: Pick, kind: str, method: str, size: Size, workers: int | None = None
    ) -> Spread | None:
        """Return the spread of one figure over the repeats."""
        picked = [pick(cell) for cell in self.of(kind, method, size, workers)]
        return Spread.of([value for value in picked if value is not None])

    def middle(
        self, pick: Pick, kind: str, method: str, size: Size, workers: int | None = None
    ) -> float | None:
        found = self.spread(pick, kind, method, size, workers)
        return None if found is None else found.median

    def at(self, wanted: Size, *needs: tuple[str, str]) -> Size:
        """Return a size, or the largest one measured of as many features where all needed is."""

        def is_there(size: Size) -> bool:
            return all(self.of(kind, method, size) for kind, method in needs)

        alike = [s for s in self.sizes if s.features == wanted.features and s.rows <= wanted.rows]
        return max((size for size in alike if is_there(size)), default=wanted)


def command_figure(command: str, name: str) -> Pick:
    """Pick a figure of one of our commands."""
    return lambda cell: float(cell["commands"][command][name])


def stage_rate(command: str) -> Pick:
    """Pick the rows per second of the stages of a command."""
    return lambda cell: cell["n_rows"] / max(cell["commands"][command]["stage_s"], SHORTEST_S)


def command_rate(command: str) -> Pick:
    """Pick the rows per second of a whole command, start-up and all."""
    return lambda cell: float(cell["n_rows"] / cell["commands"][command]["seconds"])


def whole_rate(cell: Cell) -> float:
    """Return the rows per second from the table to its scores."""
    return float(cell["n_rows"] / cell["seconds"])


def score_rate(cell: Cell) -> float:
    """Return the rows per second that a peer scores."""
    return float(cell["measured_rows"] / max(cell["score_s"], 1e-9))


def peer_rate(cell: Cell) -> float:
    """Return the rows per second that a peer fits and scores."""
    return float(cell["measured_rows"] / max(cell["fit_s"] + cell["score_s"], 1e-9))


def limit_rate(cell: Cell) -> float:
    return float(cell["rows_per_s"])


def exponent(small: tuple[int, float | None], large: tuple[int, float | None]) -> float | None:
    """Return the power of rows that a figure grew with between two sizes."""
    (n_small, before), (n_large, after) = small, large
    if not before or not after or n_small == n_large:
        return None
    return log(after / before) / log(n_large / n_small)


def growth(results: Results) -> list[dict[str, Any]]:
    """Return the exponents of each command's time and memory between neighbouring sizes."""
    found = []
    for features in results.grid.features:
        sizes = [size for size in results.sizes if size.features == features]
        sizes = [size for size in sizes if results.of("ours", "plain", size)]
        for small, large in pairwise(sizes):
            found += [_grown(results, command, small, large) for command in COMMANDS]
    return found


def _grown(results: Results, command: str, small: Size, large: Size) -> dict[str, Any]:
    exponents = {}
    for name in ("stage_s", *MEMORY):
        pick = command_figure(command, name)
        before, after = (results.middle(pick, "ours", "plain", size) for size in (small, large))
        if name == "stage_s" and before and after:
            before, after = max(before, SHORTEST_S), max(after, SHORTEST_S)
        exponents[name] = exponent((small.rows, before), (large.rows, after))
    sizes = {"features": small.features, "from_rows": small.rows, "to_rows": large.rows}
    return {"command": command, **sizes, **exponents}


def efficiencies(results: Results) -> list[dict[str, Any]]:
    """Return how well each command uses more workers than the fewest measured."""
    size, most, least = results.grid.reference, results.grid.most_workers, min(results.grid.workers)
    found = []
    for command in ("fit", "score") if most > least else ():
        pick = command_figure(command, "stage_s")
        slow = results.middle(pick, "ours", "plain", size, least)
        fast = results.middle(pick, "ours", "plain", size, most)
        if slow and fast:
            share = slow * least / (fast * most)
            facts = {"command": command, "at": str(size), "from": least, "to": most}
            found.append({**facts, "seconds": [slow, fast], "efficiency": share})
    return found
