"""Cells of each part become the numbers that answer its question."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

from benchmarks.quality_cells import Cell
from benchmarks.steadiness_methods import AVERAGE, DEFAULT, METHODS

Record = dict[str, Any]
METRICS = ("roc", "pr")


def growth_findings(cells: Sequence[Cell]) -> dict[str, Any]:
    """Return points by training size and, for each set and method, the largest fall."""
    lines, falls = [], []
    for (name, method), mine in _grouped(cells, "dataset", "method"):
        by_size = [_mean_of_samples(same) for _, same in _grouped(mine, "train_rows")]
        by_size.sort(key=lambda line: int(line["train_rows"]))
        lines += by_size
        found: Record = {"dataset": name, "method": method, "sizes": len(by_size)}
        for metric in METRICS:
            found[f"{metric}_fall"] = largest_fall([line[metric] for line in by_size])
        falls.append(found)
    worst = {f"worst_{m}_fall": max((f[f"{m}_fall"] for f in falls), default=0.0) for m in METRICS}
    return {"growth": lines, "falls": falls, **worst}


def _mean_of_samples(cells: Sequence[Cell]) -> Record:
    """Return the means over samples of one size."""
    same = {key: cells[0][key] for key in ("dataset", "method", "train_rows", "n_test")}
    means = {key: fmean(cell[key] for cell in cells) for key in (*METRICS, "fit_s")}
    return {**same, **means, "samples": len(cells)}


def largest_fall(points: Sequence[float]) -> float:
    """Return the most points lost from one size to the next; 0 when none are."""
    return max([0.0, *(before - after for before, after in pairwise(points))])


def repeat_findings(cells: Sequence[Cell]) -> dict[str, Any]:
    """Return mean and standard deviation of AUC-ROC over seeds of the method."""
    lines = []
    for (name, method), mine in _grouped(cells, "dataset", "method"):
        points = [cell["roc"] for cell in mine]
        spread = stdev(points) if len(points) > 1 else None
        lines.append({"dataset": name, "method": method, "mean": fmean(points), "sd": spread})
        lines[-1]["seeds"] = len(points)
    known = [line["sd"] for line in lines if line["sd"] is not None]
    return {"repeat": lines, "largest_sd": max(known, default=None)}


def wide_findings(cells: Sequence[Cell]) -> dict[str, Any]:
    """Return the means of all methods on each wide set, and ours less the best peer."""
    lines = [
        {"dataset": name, "method": method, **{m: fmean(c[m] for c in mine) for m in METRICS}}
        for (name, method), mine in _grouped(cells, "dataset", "method")
    ]
    return {"wide": lines, "leads": [lead for metric in METRICS for lead in _leads(lines, metric)]}


def _leads(lines: Sequence[Record], metric: str) -> list[Record]:
    found = []
    for (name,), mine in _grouped(lines, "dataset"):
        peers = {line["method"]: line[metric] for line in mine if line["method"] not in METHODS}
        best = max(peers, key=lambda peer: peers[peer], default=None)
        for line in mine:
            if best is not None and line["method"] in METHODS:
                more = {"best_peer": best, "lead": line[metric] - peers[best]}
                found.append({"dataset": name, "metric": metric, "method": line["method"], **more})
    return found


def headroom_findings(cells: Sequence[Cell]) -> dict[str, Any]:
    """Return how far the default and a simple average stay behind the best single setting."""
    lines = []
    for (name,), mine in _grouped(cells, "dataset"):
        means = {m: fmean(c["roc"] for c in some) for (m,), some in _grouped(mine, "method")}
        singles = {m: points for m, points in means.items() if m not in (DEFAULT, AVERAGE)}
        if singles and DEFAULT in means and AVERAGE in means:
            lines.append({"dataset": name, **_shortfalls(means, singles)})
    names = ("best", "average", "default", "average_shortfall", "default_shortfall")
    mean = {key: fmean(line[key] for line in lines) for key in names} if lines else {}
    return {"headroom": lines, "mean": mean, "smaller_by": _smaller_by(mean)}


def _shortfalls(means: dict[str, float], singles: dict[str, float]) -> Record:
    best = max(singles, key=lambda name: singles[name])
    return {
        "best_setting": best,
        "best": singles[best],
        "average": means[AVERAGE],
        "default": means[DEFAULT],
        "average_shortfall": singles[best] - means[AVERAGE],
        "default_shortfall": singles[best] - means[DEFAULT],
        "singles": singles,
    }


def _smaller_by(mean: Record) -> float | None:
    """Return the share by which the default's mean shortfall is smaller than the average's."""
    if not mean or mean["average_shortfall"] <= 0:
        return None
    return float(1 - mean["default_shortfall"] / mean["average_shortfall"])


def _grouped(records: Sequence[Record], *keys: str) -> list[tuple[tuple[Any, ...], list[Record]]]:
    """Return the records that worked by the values of the keys, in order of appearance."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        if "error" not in record:
            groups.setdefault(tuple(record[key] for key in keys), []).append(record)
    return sorted(groups.items(), key=lambda item: str(item[0][0]).lower())


FINDINGS = {
    "growth": growth_findings,
    "repeat": repeat_findings,
    "wide": wide_findings,
    "headroom": headroom_findings,
}
