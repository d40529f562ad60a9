"""What the figures of the toy example share: Okabe and Ito's palette, one map, the plane."""

from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from benchmarks.toy_problem import GRID_HIGH, GRID_LOW, Toy

BLUE, VERMILION, PURPLE, GREEN, INK = "#0072B2", "#D55E00", "#CC79A7", "#009E73", "#333333"
MAP = "cividis"
KINDS = (("normal", 0, BLUE, "o"), ("anomaly", 1, VERMILION, "^"))
"""Kinds of rows: name, label, colour, marker."""

STYLE = {
    "font.size": 12,
    "axes.titlesize": 13,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "figure.dpi": 100,
}


def new_panels(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """Return a figure of the size in inches and its (rows, columns) array of panels."""
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1, wspace=0.03, hspace=0.03)
    figure = Figure(figsize=size, layout=layout)
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def name_plane(axes: Any, title: str) -> None:
    """Name the panel and its axes, and show the part of the plane the regressed scores cover."""
    axes.set(title=title, xlabel="first feature", ylabel="second feature", aspect="equal")
    axes.set(xlim=(GRID_LOW, GRID_HIGH), ylim=(GRID_LOW, GRID_HIGH))


def sample_dots(axes: Any, toy: Toy, *, size: float) -> None:
    """Draw the rows by kind."""
    for name, label, colour, marker in KINDS:
        x, y = toy.sample.rows[toy.sample.labels == label].T
        style = {"c": colour, "marker": marker, "edgecolors": "white", "linewidths": 0.4}
        axes.scatter(x, y, size, label=name, alpha=0.85, **style)
