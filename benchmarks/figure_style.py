"""What all figures share: Okabe and Ito's palette, one style, panels."""

from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

BLUE, VERMILION, PURPLE, GREEN, INK = "#0072B2", "#D55E00", "#CC79A7", "#009E73", "#333333"

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
