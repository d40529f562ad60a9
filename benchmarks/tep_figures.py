"""Pictures of the Tennessee Eastman benchmark: how methods bear a growing share of faults."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.style import context

from benchmarks.figure_style import BLUE, GREEN, INK, PURPLE, STYLE, VERMILION, new_panels
from benchmarks.quality_cells import Cell
from benchmarks.quality_figures import FAINT
from benchmarks.quality_tables import Comparison, mean_of
from benchmarks.tep_tables import mean_share

Line = list[tuple[float, float]]
Look = dict[str, Any]

_FAINT: Look = {"color": FAINT, "linewidth": 1.2, "zorder": 1}
_PAPER: Look = {"color": INK, "linewidth": 1.6, "linestyle": "--", "zorder": 3}
_OURS = (BLUE, VERMILION)
_LARGEST_GRID_COLUMNS = 4


def draw_shares(
    comparison: Comparison, ours: tuple[str, ...], peers: tuple[str, ...], path: Path
) -> Path:
    """Draw AUC-ROC against the share of faults: all modes together, then each by itself."""
    with context(["default", STYLE]):
        looks = _looks(comparison, ours, peers)
        _share_figure(comparison, looks).savefig(path, dpi=150)
    return path


def _share_figure(comparison: Comparison, looks: dict[str, Look]) -> Any:
    modes = sorted({cell["mode"] for cell in comparison.cells})
    parts = {"mean over modes": comparison.cells} if len(modes) > 1 else {}
    parts |= {mode: [c for c in comparison.cells if c["mode"] == mode] for mode in modes}
    columns = min(len(parts), _LARGEST_GRID_COLUMNS)
    rows = -(-len(parts) // columns)
    figure, panels = new_panels(rows, columns, (3.2 + 3.4 * columns, 1.8 + 3.6 * rows))
    for axes in panels.flat[len(parts) :]:
        axes.axis("off")
    for axes, (title, cells) in zip(panels.flat, parts.items(), strict=False):
        _panel(axes, cells, looks)
        axes.set(title=title, xlabel="share of faults, %", ylabel="AUC-ROC, points")
    figure.legend(*panels.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def _panel(axes: Any, cells: Sequence[Cell], looks: dict[str, Look]) -> None:
    axes.set_axisbelow(True)
    axes.grid(color="#EEEEEE")
    for method, look in looks.items():
        line = share_line(cells, method)
        if line:
            axes.plot(*zip(*line, strict=True), marker="o", markersize=4, **look)


def share_line(cells: Sequence[Cell], method: str) -> Line:
    """Return the percentage of faults and mean ROC of a method for each number of windows."""
    points: dict[int, list[float]] = {}
    for cell in cells:
        if cell["method"] == method and "roc" in cell:
            points.setdefault(cell["windows"], []).append(cell["roc"])
    return [
        (100 * mean_share(cells, windows), mean_of(values) or 0.0)
        for windows, values in sorted(points.items())
    ]


def _looks(
    comparison: Comparison, ours: tuple[str, ...], peers: tuple[str, ...]
) -> dict[str, Look]:
    """Return how each method is drawn: ours on top, most peers in the background."""
    means = {method: _overall(comparison, method) for method in comparison.methods}
    others = [p for p in peers if p in means and p != comparison.reference]
    best = max(others, key=lambda peer: means[peer], default=None)
    looks = {
        peer: {**_FAINT, "label": "other peers" if i == 0 else None}
        for i, peer in enumerate(peer for peer in others if peer != best)
    }
    if best is not None:
        name = f"best peer by mean: {comparison.label(best)}"
        looks[best] = {"color": PURPLE, "linewidth": 1.8, "zorder": 2, "label": name}
    looks[comparison.reference] = {"color": GREEN, "linewidth": 1.8, "zorder": 2}
    looks["exact MROT"] = dict(_PAPER)
    for method, colour in zip(ours, _OURS, strict=False):
        looks[method] = {"color": colour, "linewidth": 2.6, "zorder": 4}
    return {m: {"label": comparison.label(m), **look} for m, look in looks.items()}


def _overall(comparison: Comparison, method: str) -> float:
    cells = [c for c in comparison.cells if c["method"] == method]
    return mean_of(cell["roc"] for cell in cells if "roc" in cell) or 0.0
