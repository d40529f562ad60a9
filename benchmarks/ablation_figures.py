"""Boxes over data sets: how a factor's values do, and what each gains over the default."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.style import context

from benchmarks.ablation_factors import FACTORS
from benchmarks.ablation_tables import differences, points, shown_factors
from benchmarks.figure_style import BLUE, INK, STYLE, VERMILION, new_panels
from benchmarks.quality_cells import Cell
from benchmarks.quality_figures import FAINT

_MEAN = {
    "marker": "D",
    "markersize": 7,
    "markerfacecolor": VERMILION,
    "markeredgecolor": "white",
    "zorder": 5,
}


def draw_factors(rows: Sequence[Cell], bases: dict[str, str], out: Path) -> list[Path]:
    """Draw one figure for each factor: AUC-ROC of each value, and its gain set by set."""
    paths = []
    for factor, values in shown_factors(rows).items():
        path = out / f"ablation-{factor}.png"
        with context(["default", STYLE]):
            _figure(rows, factor, values, bases[factor]).savefig(path, dpi=150)
        paths.append(path)
    return paths


def _figure(rows: Sequence[Cell], factor: str, values: list[str], base: str) -> Any:
    figure, panels = new_panels(1, 2, (5.0 + 1.4 * len(values), 4.6))
    level, gain = panels[0]
    by_value = {value: points(rows, factor, value, "roc") for value in values}
    _boxes(level, {value: list(sets.values()) for value, sets in by_value.items()}, base)
    gains = {value: differences(sets, by_value.get(base, {})) for value, sets in by_value.items()}
    _boxes(gain, gains, base)
    gain.axhline(0, color=INK, linestyle=":", linewidth=1)
    # One set on which a value fails altogether would squeeze all others into a line.
    gain.set_yscale("symlog", linthresh=2, linscale=1)
    gain.set_yticks(_ticks(gains), [f"{tick:+d}" if tick else "0" for tick in _ticks(gains)])
    gain.minorticks_off()
    level.set(title="over data sets", ylabel="AUC-ROC, points")
    gain.set(title=f"gain over {base}, set by set", ylabel="AUC-ROC gain, points")
    figure.suptitle(FACTORS[factor].title)
    return figure


def _ticks(gains: dict[str, list[float]]) -> list[int]:
    """Return marks that reach around all gains."""
    reach = max((abs(gain) for values in gains.values() for gain in values), default=0.0)
    marks = [tick for tick in (2, 5, 10, 20, 50, 100) if tick <= reach * 2] or [2]
    return [-tick for tick in reversed(marks)] + [0, *marks]


def _boxes(axes: Any, samples: dict[str, list[float]], base: str) -> None:
    """Draw a box for each value, the base in blue, with a dot for each data set."""
    places = [i for i, values in enumerate(samples.values()) if values]
    filled = [values for values in samples.values() if values]
    line = {"color": INK, "linewidth": 1.2}
    drawn = axes.boxplot(
        filled,
        positions=places,
        widths=0.55,
        patch_artist=True,
        showfliers=False,
        showmeans=True,
        medianprops=line,
        meanprops=_MEAN,
    )
    names = list(samples)
    for place, values, box in zip(places, filled, drawn["boxes"], strict=True):
        box.set(facecolor=BLUE if names[place] == base else FAINT, alpha=0.5)
        spread = np.linspace(-0.15, 0.15, len(values)) if len(values) > 1 else 0.0
        axes.scatter(place + spread, values, 10, c=INK, alpha=0.6, linewidths=0, zorder=3)
    slant = {"rotation": 25, "ha": "right", "rotation_mode": "anchor"} if len(names) > 3 else {}
    axes.set_xticks(range(len(names)), names, **slant)
    axes.set(xlim=(-0.6, len(names) - 0.4))
    axes.set_axisbelow(True)
    axes.grid(axis="y", color="#EEEEEE")
