"""Cells become a summary of each method and tables in Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from benchmarks.quality_cells import Cell
from benchmarks.quality_ranks import Ranking, rank_methods

HALVES = ("choose", "confirm")
METRICS = {"roc": "ROC", "pr": "PR"}
NOTHING = "-"

SetMeans = dict[str, dict[str, float | None]]
"""By method, then by set: mean over the seeds that worked, None where none did."""


@dataclass(frozen=True)
class Comparison:
    """All cells of a benchmark, with what is needed to lay them side by side."""

    cells: list[Cell]
    methods: list[str]
    """In the order they are listed."""

    half_of: Mapping[str, str]
    reference: str
    marks: Mapping[str, str]
    """Sign behind the name of each method that does not train on all rows."""

    def means(self, metric: str) -> SetMeans:
        found: SetMeans = {method: {} for method in self.methods}
        grouped: dict[tuple[str, str], list[Cell]] = {}
        for cell in self.cells:
            grouped.setdefault((cell["method"], cell["dataset"]), []).append(cell)
        for (method, dataset), cells in grouped.items():
            found[method][dataset] = mean_of(cell[metric] for cell in cells if metric in cell)
        return found

    def sets(self) -> list[str]:
        return sorted({cell["dataset"] for cell in self.cells}, key=str.lower)

    def ranking(self) -> Ranking:
        means = self.means("roc")
        return rank_methods({method: sets for method, sets in means.items() if sets})

    def label(self, method: str) -> str:
        return method + self.marks.get(method, "")


def compare(
    cells: Sequence[Cell],
    known: Sequence[str],
    *,
    half_of: Mapping[str, str],
    reference: str,
    marks: Mapping[str, str],
) -> Comparison:
    """Return the comparison of all methods that have cells, known ones first and in order."""
    found = dict.fromkeys(cell["method"] for cell in cells)
    methods = [m for m in known if m in found] + [m for m in found if m not in known]
    order = {method: i for i, method in enumerate(methods)}
    ordered = sorted(
        cells, key=lambda c: (c["dataset"].lower(), order[c["method"]], c["seed"], str(c))
    )
    return Comparison(ordered, methods, half_of, reference, marks)


def summary(comparison: Comparison) -> list[dict[str, Any]]:
    """Return one record for each method, by mean ROC, best first."""
    means = {metric: comparison.means(metric) for metric in METRICS}
    ranks = comparison.ranking().mean_ranks
    records = [
        {"method": method, **_averages(comparison, means, method), "rank": ranks.get(method)}
        | _costs(comparison.cells, method)
        for method in comparison.methods
    ]
    return sorted(records, key=lambda r: -1.0 if r["roc"] is None else r["roc"], reverse=True)


def _averages(comparison: Comparison, means: dict[str, SetMeans], method: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for metric, by_method in means.items():
        sets = {name: value for name, value in by_method[method].items() if value is not None}
        found[metric] = mean_of(sets.values())
        for half in HALVES:
            found[f"{metric}_{half}"] = mean_of(
                value for name, value in sets.items() if comparison.half_of.get(name) == half
            )
        base = by_method.get(comparison.reference, {})
        pairs = ((value, base.get(name)) for name, value in sets.items())
        found[f"{metric}_gain"] = mean_of(
            value - other for value, other in pairs if other is not None
        )
        found["n_sets"] = len(sets)
    return found


def _costs(cells: Iterable[Cell], method: str) -> dict[str, Any]:
    mine = [cell for cell in cells if cell["method"] == method]
    failed = [cell for cell in mine if "error" in cell]
    return {
        "fit_s": sum(cell.get("fit_s", 0.0) for cell in mine),
        "score_s": sum(cell.get("score_s", 0.0) for cell in mine),
        "n_cells": len(mine),
        "n_failed": len(failed),
        "n_failed_sets": len({cell["dataset"] for cell in failed}),
    }


def mean_of(values: Iterable[float]) -> float | None:
    """Return the mean, None of nothing."""
    listed = list(values)
    return fmean(listed) if listed else None


_COLUMNS = {
    "ROC": "roc",
    "PR": "pr",
    "ROC, choosing half": "roc_choose",
    "PR, choosing half": "pr_choose",
    "ROC, confirming half": "roc_confirm",
    "PR, confirming half": "pr_confirm",
    "mean rank": "rank",
    "ROC gain": "roc_gain",
    "PR gain": "pr_gain",
}


def summary_table(comparison: Comparison) -> str:
    """Return the summary in Markdown."""
    heads = ["method", *_columns(comparison), "fit s", "score s", "sets", "failed cells (sets)"]
    return markdown(heads, [_summary_row(comparison, r) for r in summary(comparison)])


def _summary_row(comparison: Comparison, record: dict[str, Any]) -> list[str]:
    keys = _columns(comparison).values()
    numbers = [number(record[key], signed=key.endswith("gain")) for key in keys]
    failed = f"{record['n_failed']} ({record['n_failed_sets']})" if record["n_failed"] else "0"
    seconds = [f"{record[key]:,.1f}" for key in ("fit_s", "score_s")]
    return [comparison.label(record["method"]), *numbers, *seconds, str(record["n_sets"]), failed]


def _columns(comparison: Comparison) -> dict[str, str]:
    """Return the columns to show: those of halves only where sets are parted into halves."""
    return {
        head: key
        for head, key in _COLUMNS.items()
        if comparison.half_of or not key.endswith(HALVES)
    }


def set_table(comparison: Comparison, metric: str, first: str = "set") -> str:
    """Return the mean of each method on each set in Markdown, the best in bold."""
    means = comparison.means(metric)
    parted = ["half"] if comparison.half_of else []
    heads = [first, *parted, *(comparison.label(method) for method in comparison.methods)]
    rows = []
    for name in comparison.sets():
        values = [means[method].get(name) for method in comparison.methods]
        tried = [name in means[method] for method in comparison.methods]
        half = [comparison.half_of.get(name, NOTHING)] if comparison.half_of else []
        rows.append([name, *half, *_marked(values, tried)])
    return markdown(heads, rows)


def _marked(values: list[float | None], tried: list[bool]) -> list[str]:
    texts = [
        number(value) if value is not None or not was_tried else "failed"
        for value, was_tried in zip(values, tried, strict=True)
    ]
    best = number(max((value for value in values if value is not None), default=None))
    return [f"**{text}**" if text == best != NOTHING else text for text in texts]


def failures(comparison: Comparison) -> str:
    """Return what failed and why, one line for each method, set and reason."""
    seeds: dict[tuple[str, str, str], list[str]] = {}
    for cell in comparison.cells:
        if "error" in cell:
            key = (cell["method"], cell["dataset"], cell["error"])
            seeds.setdefault(key, []).append(str(cell["seed"]))
    lines = [
        f"- {method} on {dataset}, seed {', '.join(numbers)}: {error}"
        for (method, dataset, error), numbers in seeds.items()
    ]
    return "\n".join(lines) if lines else "None."


def number(value: float | None, *, signed: bool = False) -> str:
    """Return the points as tables show them."""
    if value is None:
        return NOTHING
    return f"{value:+.2f}" if signed else f"{value:.2f}"


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown, all but its first column to the right."""
    rule = ["---", *("---:" for _ in heads[1:])]
    return "\n".join("| " + " | ".join(row) + " |" for row in (heads, rule, *rows))
