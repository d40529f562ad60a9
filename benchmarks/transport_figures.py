"""A picture of each scenario: AUC against difficulty, with bands over seeds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.style import context

from benchmarks.figure_style import BLUE, GREEN, INK, PURPLE, STYLE, VERMILION, new_panels
from benchmarks.transport_runs import ALL, Record, sides_of
from benchmarks.transport_scenarios import Scenario

GREY = "#999999"
_USUAL_LOOKS = (
    (BLUE, "-", "o"),
    (GREEN, "--", "v"),
    (PURPLE, "--", "^"),
    (GREY, "--", "s"),
    (VERMILION, "-", "D"),
    (INK, ":", "x"),
)
_WEIGHTED_LOOKS = tuple(
    (colour, line, marker)
    for line, marker in (("-", "o"), ("--", "s"), (":", "x"))
    for colour in (BLUE, VERMILION)
)


def draw_scenarios(summary: Sequence[Record], folder: Path) -> list[Path]:
    """Draw one figure for each scenario that has results."""
    paths = []
    for scenario in ALL:
        mine = [record for record in summary if record["scenario"] == scenario.name]
        if mine:
            words = "".join(c if c.isalnum() else " " for c in scenario.name).split()
            paths.append(folder / f"{'-'.join(words)}.png")
            with context(["default", STYLE]):
                _figure(scenario, mine).savefig(paths[-1], dpi=150)
    return paths


def _figure(scenario: Scenario, summary: Sequence[Record]) -> Any:
    figure, panels = new_panels(1, 1, (9.0, 5.5))
    axes = panels[0, 0]
    x = [record["value"] for record in summary]
    looks = _WEIGHTED_LOOKS if "agreement" in summary[0] else _USUAL_LOOKS
    for side, look in zip(sides_of(scenario.name), looks, strict=True):
        _line(axes, x, np.array([record["roc"][side] for record in summary]), side, look)
    axes.set(xlabel=scenario.parameter, ylabel="AUC-ROC, points (mean, band: one deviation)")
    title = f"{scenario.name}: {scenario.about}"
    axes.set_title(title, fontsize=11)
    axes.grid(color="#EEEEEE")
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def _line(axes: Any, x: list[float], areas: Any, label: str, look: tuple[str, str, str]) -> None:
    colour, line, marker = look
    mean, deviation = areas.T
    style = {"color": colour, "linestyle": line, "marker": marker, "markersize": 5}
    axes.plot(x, mean, label=label, **style)
    axes.fill_between(x, mean - deviation, mean + deviation, color=colour, alpha=0.12, linewidth=0)
