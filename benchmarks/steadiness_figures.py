"""Pictures of steadiness: points against training rows, and what is left to the best setting."""

from pathlib import Path
from typing import Any

from matplotlib.style import context

from benchmarks.figure_style import BLUE, INK, PURPLE, STYLE, VERMILION, new_panels
from benchmarks.steadiness_methods import METHODS

FAINT = "#CCCCCC"
_LOOKS = {"model": (BLUE, "o", "-"), "effort": (VERMILION, "D", "--")}


def draw_growth(found: dict[str, Any], path: Path) -> None:
    """Draw AUC-ROC and AUC-PR of each set against the number of training rows."""
    sets = list(dict.fromkeys(line["dataset"] for line in found["growth"]))
    if not sets:
        return
    with context(["default", STYLE]):
        figure, panels = new_panels(2, len(sets), (3.2 * len(sets) + 1.5, 7.0))
        for column, name in enumerate(sets):
            for row, metric in enumerate(("roc", "pr")):
                _growth_panel(panels[row, column], found["growth"], name, metric)
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2)
        figure.savefig(path, dpi=150)


def _growth_panel(axes: Any, lines: list[dict[str, Any]], name: str, metric: str) -> None:
    for method in METHODS:
        mine = [line for line in lines if (line["dataset"], line["method"]) == (name, method)]
        colour, marker, line = _LOOKS[method]
        x, y = [r["train_rows"] for r in mine], [r[metric] for r in mine]
        axes.plot(x, y, color=colour, marker=marker, linestyle=line, label=method)
    sizes = sorted({line["train_rows"] for line in lines if line["dataset"] == name})
    axes.set(xscale="log", xlabel="training rows", ylabel=f"AUC-{metric.upper()}, points")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes], rotation=30)
    axes.minorticks_off()
    axes.set_title(name)
    axes.grid(color="#EEEEEE")


def draw_headroom(found: dict[str, Any], path: Path) -> None:
    """Draw, for each set, every single setting, the average of scalings and the default."""
    lines = sorted(found["headroom"], key=lambda line: float(line["best"]))
    if not lines:
        return
    with context(["default", STYLE]):
        figure, panels = new_panels(1, 1, (10.0, 2.0 + 0.36 * len(lines)))
        axes = panels[0, 0]
        _headroom_dots(axes, lines)
        axes.set_yticks(range(len(lines)), [line["dataset"] for line in lines])
        axes.set(xlabel="AUC-ROC, points (mean over splits)", ylim=(-0.7, len(lines) - 0.3))
        axes.grid(color="#EEEEEE")
        axes.set_axisbelow(True)
        figure.legend(loc="outside upper center", ncols=2)
        figure.savefig(path, dpi=150)


def _headroom_dots(axes: Any, lines: list[dict[str, Any]]) -> None:
    singles = [(x, y) for y, line in enumerate(lines) for x in line["singles"].values()]
    x, y = zip(*singles, strict=True)
    axes.scatter(x, y, 26, c=FAINT, label="every single setting")
    looks = (("best", INK, "|", 130), ("average", PURPLE, "s", 46), ("default", BLUE, "o", 60))
    names = {"best": "best single setting, by labels", "average": "average of the three scalings"}
    for key, colour, marker, size in looks:
        points = [line[key] for line in lines]
        label = names.get(key, key)
        axes.scatter(points, range(len(lines)), size, c=colour, marker=marker, label=label)
