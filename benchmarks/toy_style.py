"""What the figures of the toy example share: kinds of rows, one map, the plane."""

from typing import Any

from benchmarks.figure_style import BLUE, VERMILION
from benchmarks.toy_problem import GRID_HIGH, GRID_LOW, Toy

MAP = "cividis"
KINDS = (("normal", 0, BLUE, "o"), ("anomaly", 1, VERMILION, "^"))
"""Kinds of rows: name, label, colour, marker."""


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
