"""Cells of the Tennessee Eastman process side by side: by mode, by share of faults, or both."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.quality_cells import Cell
from benchmarks.quality_methods import FAMILIES, OURS, REFERENCE
from benchmarks.quality_tables import METRICS, Comparison, compare, markdown, mean_of, number


def compare_windows(cells: Sequence[Cell]) -> Comparison:
    """Return the comparison over modes and shares, each pair of them taken as a set."""
    known = [method for family in FAMILIES.values() for method in family.methods]
    named = regrouped(cells, lambda cell: f"{cell['mode']}, {_share_label(cells, cell)}")
    # No mode has as many windows as the limits that other benchmarks mark.
    return compare(named, known, half_of={}, reference=REFERENCE, marks={})


def by_mode(comparison: Comparison) -> Comparison:
    """Return the same cells with modes as sets."""
    cells = regrouped(comparison.cells, lambda cell: str(cell["mode"]))
    return replace(comparison, cells=cells)


def by_share(comparison: Comparison) -> Comparison:
    """Return the same cells with shares of faults as sets."""
    old = comparison.cells
    return replace(comparison, cells=regrouped(old, lambda cell: _share_label(old, cell)))


def regrouped(cells: Sequence[Cell], name: Callable[[Cell], str]) -> list[Cell]:
    """Return the cells with the name as their data set."""
    return [{**cell, "dataset": name(cell)} for cell in cells]


def mean_share(cells: Sequence[Cell], windows: int) -> float:
    """Return the share of faults with so many windows of each; modes may lack some."""
    shares = [cell["share"] for cell in cells if cell["windows"] == windows]
    return float(mean_of(shares) or 0.0)


def _share_label(cells: Sequence[Cell], cell: Cell) -> str:
    """Return a name that sorts as the share does."""
    windows = cell["windows"]
    return f"{windows:3d} per fault ({mean_share(cells, windows):.1%})"


def ours_of(comparison: Comparison) -> tuple[str, ...]:
    """Return our methods: through stores, or in memory where that is all there is."""
    for family in ("pipeline", "memory"):
        found = tuple(m for m in OURS[family].methods if m in comparison.methods)
        if found:
            return found
    return ()


def gains(comparison: Comparison) -> list[dict[str, Any]]:
    """Return what each of our methods gains over each other method, over modes and shares."""
    ours = ours_of(comparison)
    twins = {m for family in ("pipeline", "memory") for m in OURS[family].methods}
    others = [method for method in comparison.methods if method not in twins]
    means = {metric: comparison.means(metric) for metric in METRICS}
    return [
        {"method": method, "over": other, **_gain(means, method, other)}
        for other in others
        for method in ours
    ]


def _gain(means: dict[str, Any], method: str, other: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for metric, points in means.items():
        pairs = [(mine, points[other].get(name)) for name, mine in points[method].items()]
        known = [m - o for m, o in pairs if m is not None and o is not None]
        found[metric] = mean_of(known)
        found[f"{metric}_better"] = sum(difference > 0 for difference in known)
        found["n_pairs"] = len(known)
    return found


def gain_table(comparison: Comparison) -> str:
    """Return the gains in Markdown."""
    heads = ["method", "over", "ROC gain", "PR gain", "better by ROC", "better by PR"]
    rows = []
    for gain in gains(comparison):
        names = [comparison.label(gain[key]) for key in ("method", "over")]
        points = [number(gain[metric], signed=True) for metric in METRICS]
        better = [f"{gain[f'{metric}_better']} of {gain['n_pairs']}" for metric in METRICS]
        rows.append([*names, *points, *better])
    return markdown(heads, rows)
