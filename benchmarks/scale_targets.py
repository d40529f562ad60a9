"""What the benchmark of scale was to show, and whether it did."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.scale_findings import (
    MEMORY,
    Pick,
    Results,
    command_rate,
    growth,
    limit_rate,
    score_rate,
    stage_rate,
)
from benchmarks.scale_grid import Size

_PLAIN = ("ours", "plain")
_FOREST = ("peer", "IsolationForest")

EXACT_ROWS = 20_000
"""Where the method as published stops. Its matrices grow with the square of the rows, and so do its
memory and, at the very least, its time: what was measured at fewer rows is multiplied by that."""


@dataclass(frozen=True)
class Target:
    """A figure and the bound it is to keep."""

    name: str
    figure: float | None
    bound: float
    at: str
    is_least: bool = True
    """Whether the figure is to be at least the bound, not at most."""

    @property
    def verdict(self) -> str:
        if self.figure is None:
            return "not measured"
        is_met = self.figure >= self.bound if self.is_least else self.figure <= self.bound
        return "met" if is_met else "not met"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict}


def targets(results: Results) -> list[Target]:
    """Return every target with what was measured."""
    return [
        *_tree_targets(results),
        *_forest_targets(results),
        _rate_target(results, "score stage / HBOS score", stage_rate("score"), 1.0, "HBOS"),
        _limit_share(results),
        _fit_target(results),
        _whole_target(results),
        *_exact_targets(results),
        _dask_target(results),
        *_growth_targets(results),
    ]


def _forest_targets(results: Results) -> list[Target]:
    """Compare with IsolationForest as n_jobs=2 gives it, and as two threads of joblib would."""
    found = []
    for told, peer in (("n_jobs=2", "IsolationForest as it comes"), ("two threads", _FOREST[1])):
        for what, pick, bound in (("stage", stage_rate, 3.0), ("command", command_rate, 2.0)):
            name = f"score {what} / IsolationForest score, {told}"
            found.append(_rate_target(results, name, pick("score"), bound, peer))
    return found


def _tree_targets(results: Results) -> list[Target]:
    found = []
    for processes in sorted({1, results.grid.most_workers}):
        size = results.at(results.grid.target, ("limit", "trees"))
        ratio = results.middle(_ratio, "limit", "trees", size, processes)
        name = f"tree walk / LightGBM, {processes} process{'es' if processes > 1 else ''}"
        found.append(Target(name, ratio, 2.5, str(size)))
    cells = [cell for cell in results.cells if cell["method"] == "trees"]
    share = sum(cell["equal"] for cell in cells) / len(cells) if cells else None
    return [*found, Target("runs whose tree walk equals LightGBM in all bits", share, 1.0, "all")]


def _ratio(cell: dict[str, Any]) -> float:
    return float(cell["ratio"])


def _rate_target(
    results: Results, name: str, pick: Pick, bound: float, peer: str = "IsolationForest"
) -> Target:
    size = results.at(results.grid.target, _PLAIN, ("peer", peer))
    ours = results.middle(pick, *_PLAIN, size)
    theirs = results.middle(score_rate, "peer", peer, size)
    return Target(name, _quotient(ours, theirs), bound, str(size))


def _limit_share(results: Results) -> Target:
    size = results.at(results.grid.target, _PLAIN, ("limit", "zarr"))
    ours = results.middle(stage_rate("score"), *_PLAIN, size)
    limit = results.middle(limit_rate, "limit", "zarr", size)
    return Target("score stage / reading Zarr", _quotient(ours, limit), 0.15, str(size))


def _fit_target(results: Results) -> Target:
    size = results.at(results.grid.target, _PLAIN, _FOREST)
    ours = results.middle(lambda cell: float(cell["commands"]["fit"]["seconds"]), *_PLAIN, size)
    theirs = results.middle(lambda cell: float(cell["fit_s"] + cell["score_s"]), *_FOREST, size)
    name = "seconds of fit / IsolationForest fit and score"
    return Target(name, _quotient(ours, theirs), 2.0, str(size), is_least=False)


def _whole_target(results: Results) -> Target:
    size = results.at(results.grid.target, _PLAIN)
    seconds = results.middle(lambda cell: float(cell["seconds"]), *_PLAIN, size)
    return Target("seconds of ingest, fit and score", seconds, 600.0, str(size), is_least=False)


def _exact_targets(results: Results) -> list[Target]:
    """Compare 500 times the rows with the exact method at 20,000, and the memory of a process."""
    size = results.at(results.grid.target, _PLAIN)
    ours = results.middle(lambda cell: float(cell["seconds"]), *_PLAIN, size)
    peaks = [results.middle(_largest_process, *_PLAIN, each) for each in results.sizes]
    name = f"seconds, ingest to scores / exact method at {EXACT_ROWS:,} rows"
    ratio, bound = _quotient(ours, exact_seconds(results)), size.rows / 500 / EXACT_ROWS
    return [
        Target(name, ratio, bound, str(size), is_least=False),
        Target(
            "largest process, MiB", max(filter(None, peaks), default=None), 1536.0, "all", False
        ),
    ]


def exact_seconds(results: Results) -> float | None:
    """Return the least the exact method takes at 20,000 rows, from the most rows it was given."""
    found = [cell for cell in results.cells if cell["method"] == "exact MROT"]
    if not found:
        return None
    largest = max(found, key=lambda cell: int(cell["measured_rows"]))
    times = EXACT_ROWS / largest["measured_rows"]
    return float(times**2 * (largest["fit_s"] + largest["score_s"]))


def _largest_process(cell: dict[str, Any]) -> float:
    each = cell["commands"].values()
    return max(float(max(found["driver_mib"], found["worker_mib"])) for found in each)


def _dask_target(results: Results) -> Target:
    size = results.at(results.grid.target, _PLAIN, ("limit", "tasks"))
    ours = results.middle(stage_rate("score"), *_PLAIN, size)
    without = results.middle(limit_rate, "limit", "tasks", size)
    return Target("score stage / its tasks without Dask", _quotient(ours, without), 0.9, str(size))


def _growth_targets(results: Results) -> list[Target]:
    """Return the largest exponents into the largest table that was measured."""
    size = results.at(results.grid.target, _PLAIN)
    last = [g for g in growth(results) if _is_into(size, g)]
    where = f"{Size(last[0]['from_rows'], size.features)} to {size}" if last else str(size)
    times = _largest(last, lambda g: [g["stage_s"]])
    memory = _largest(last, lambda g: [g[name] for name in MEMORY])
    return [
        Target("largest exponent of time in rows", times, 1.02, where, is_least=False),
        Target("largest exponent of memory in rows", memory, 0.05, where, is_least=False),
    ]


def _is_into(size: Size, grown: dict[str, Any]) -> bool:
    return (grown["to_rows"], grown["features"]) == (size.rows, size.features)


def _largest(
    found: list[dict[str, Any]], pick: Callable[[dict[str, Any]], list[float | None]]
) -> float | None:
    values = [value for grown in found for value in pick(grown) if value is not None]
    return max(values, default=None)


def _quotient(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None
