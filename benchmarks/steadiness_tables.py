"""Findings about steadiness become Markdown."""

from collections.abc import Sequence
from typing import Any

from benchmarks.quality_tables import NOTHING, markdown, number

Findings = dict[str, Any]


def growth_text(found: Findings) -> str:
    """Return points by training size and the largest falls."""
    heads = ["set", "method", "training rows", "samples", "ROC", "PR", "fit s"]
    rows = [_growth_cells(r) for r in found["growth"]]
    falls = [
        [r["dataset"], r["method"], f"{r['roc_fall']:.2f}", f"{r['pr_fall']:.2f}"]
        for r in found["falls"]
    ]
    worst = (
        f"Largest fall from one size to the next: ROC {found['worst_roc_fall']:.2f}, "
        f"PR {found['worst_pr_fall']:.2f} points."
    )
    fall_heads = ["set", "method", "largest ROC fall", "largest PR fall"]
    return "\n\n".join([markdown(heads, rows), worst, markdown(fall_heads, falls)])


def _growth_cells(line: dict[str, Any]) -> list[str]:
    counts = [f"{line['train_rows']:,}", str(line["samples"])]
    return [line["dataset"], line["method"], *counts, *_points(line), f"{line['fit_s']:.1f}"]


def repeat_text(found: Findings) -> str:
    """Return mean and deviation over seeds of the method."""
    heads = ["set", "method", "mean ROC", "standard deviation", "seeds"]
    rows = [
        [r["dataset"], r["method"], f"{r['mean']:.2f}", number(r["sd"]), str(r["seeds"])]
        for r in found["repeat"]
    ]
    return f"{markdown(heads, rows)}\n\nLargest deviation: {number(found['largest_sd'])} points."


def wide_text(found: Findings) -> str:
    """Return all methods on each wide set, best first, and our leads."""
    heads = ["set", "method", "ROC", "PR"]
    by_points = sorted(found["wide"], key=lambda r: (r["dataset"].lower(), -r["roc"]))
    rows = [[r["dataset"], r["method"], *_points(r)] for r in by_points]
    lead_heads = ["set", "area", "method", "best peer", "ours less best peer"]
    leads = [
        [r["dataset"], r["metric"].upper(), r["method"], r["best_peer"], f"{r['lead']:+.2f}"]
        for r in found["leads"]
    ]
    return f"{markdown(lead_heads, leads)}\n\n{markdown(heads, rows)}"


def headroom_text(found: Findings) -> str:
    """Return what is left to the best single setting of each set."""
    heads = ["set", "best single setting", "its ROC", "average of scalings", "default"]
    heads += ["average's shortfall", "default's shortfall"]
    keys = ("best", "average", "default", "average_shortfall", "default_shortfall")
    rows = [
        [r["dataset"], r["best_setting"], *(f"{r[key]:.2f}" for key in keys)]
        for r in found["headroom"]
    ]
    if found["mean"]:
        rows.append(["**mean**", NOTHING, *(f"{found['mean'][key]:.2f}" for key in keys)])
    share = found["smaller_by"]
    said = NOTHING if share is None else f"{share:.0%}"
    return f"{markdown(heads, rows)}\n\nThe default's mean shortfall is smaller by {said}."


TEXTS = {
    "growth": growth_text,
    "repeat": repeat_text,
    "wide": wide_text,
    "headroom": headroom_text,
}
READING = {
    "growth": "Points on unseen rows of one split, by how many rows were trained on: means over "
    "samples of that size, smaller ones within larger ones.",
    "repeat": "One split, several seeds of the method; all training rows, default settings.",
    "wide": "Ours and peers on wide tables: means over splits. The generated set is described in "
    "benchmarks/embedding_rows.py.",
    "headroom": "AUC-ROC by effort. The best single setting of a view and a zone mass is chosen by "
    "the labels of the same rows, so it is out of reach; shortfalls are to it.",
}


def failures(cells: Sequence[dict[str, Any]]) -> str:
    """Return what failed and why, one line each."""
    lines = [
        f"- {cell['method']} on {cell['dataset']}, seed {cell['seed']}: {cell['error']}"
        for cell in cells
        if "error" in cell
    ]
    return "\n".join(["Failed:", "", *lines]) if lines else ""


def _points(record: dict[str, Any]) -> list[str]:
    return [f"{record['roc']:.2f}", f"{record['pr']:.2f}"]
