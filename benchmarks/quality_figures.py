"""Pictures of a comparison: which methods differ, and how each does on each set."""

from pathlib import Path
from typing import Any

from matplotlib.style import context

from benchmarks.figure_style import BLUE, GREEN, INK, PURPLE, STYLE, VERMILION, new_panels
from benchmarks.quality_ranks import Ranking, alike_groups
from benchmarks.quality_tables import Comparison, SetMeans

FAINT = "#BBBBBB"
_LOOKS = ((GREEN, "^", 60), (BLUE, "o", 56), (VERMILION, "D", 50))
"""Colour, marker and size of the reference and of each method of ours."""


def draw_ranks(comparison: Comparison, ours: tuple[str, ...], path: Path) -> Path | None:
    """Draw the critical-difference diagram, if there are methods and sets to compare."""
    ranking = comparison.ranking()
    if ranking.critical_difference is None:
        return None
    with context(["default", STYLE]):
        _rank_figure(comparison, ranking, ours).savefig(path, dpi=150)
    return path


def _rank_figure(comparison: Comparison, ranking: Ranking, ours: tuple[str, ...]) -> Any:
    n_methods, difference = len(ranking.mean_ranks), ranking.critical_difference or 0.0
    depth = (n_methods + 1) // 2
    groups = alike_groups(ranking.mean_ranks, difference)
    bars = 0.32 * len(groups) + 0.4
    figure, panels = new_panels(1, 1, (11.0, 1.9 + 0.32 * (depth + len(groups))))
    axes = panels[0, 0]
    _rank_axis(axes, n_methods, difference)
    for i, (low, high) in enumerate(groups):
        y = -0.32 * (i + 1)
        axes.plot((low - 0.04, high + 0.04), (y, y), color=INK, linewidth=4, solid_capstyle="round")
    for i, (method, rank) in enumerate(ranking.mean_ranks.items()):
        level = i if i < depth else n_methods - 1 - i
        edge = 0.4 if i < depth else n_methods + 0.6
        colour = BLUE if method in ours else INK
        _rank_label(axes, comparison.label(method), rank, (edge, -bars - 0.42 * level), colour)
    axes.set(xlim=(-2.4, n_methods + 3.4), ylim=(-bars - 0.42 * depth, 1.5))
    axes.set_title(_rank_title(ranking))
    return figure


def _rank_axis(axes: Any, n_methods: int, difference: float) -> None:
    """Draw the ruler of mean ranks, and above it the critical difference."""
    axes.axis("off")
    axes.plot((1, n_methods), (0, 0), color=INK, linewidth=1.2)
    for rank in range(1, n_methods + 1):
        axes.plot((rank, rank), (0, 0.14), color=INK, linewidth=1.2)
        axes.text(rank, 0.22, str(rank), ha="center", va="bottom", fontsize=11)
    axes.plot((1, 1 + difference), (1.0, 1.0), color=VERMILION, linewidth=3)
    text = f"critical difference {difference:.2f}"
    axes.text(1.15 + difference, 1.0, text, color=VERMILION, va="center")


def _rank_label(axes: Any, label: str, rank: float, end: tuple[float, float], colour: str) -> None:
    """Draw the line from a method's place on the ruler to its name at the side."""
    side = "right" if end[0] < rank else "left"
    axes.plot((rank, rank, end[0]), (0, end[1], end[1]), color=colour, linewidth=1.0)
    weight = "bold" if colour == BLUE else "normal"
    gap = -0.1 if side == "right" else 0.1
    style = {"ha": side, "va": "center", "color": colour, "fontsize": 11, "fontweight": weight}
    axes.text(end[0] + gap, end[1], f"{label}  {rank:.2f}", **style)


def _rank_title(ranking: Ranking) -> str:
    title = f"Mean rank by AUC-ROC over {ranking.n_sets} sets; a bar joins what is not told apart"
    if ranking.p_value is None:
        return title
    p_value = "p < .001" if ranking.p_value < 0.001 else f"p = {ranking.p_value:.3f}"
    return f"{title} (Friedman {p_value})"


def draw_sets(
    comparison: Comparison, ours: tuple[str, ...], peers: tuple[str, ...], path: Path
) -> Path:
    """Draw the AUC-ROC of methods on each set: ours, the reference, the best peer, the others."""
    with context(["default", STYLE]):
        _set_figure(comparison, ours, peers).savefig(path, dpi=150)
    return path


def _set_figure(comparison: Comparison, ours: tuple[str, ...], peers: tuple[str, ...]) -> Any:
    means = comparison.means("roc")
    sets = _by_points(comparison, means)
    figure, panels = new_panels(1, 1, (10.0, 2.0 + 0.36 * len(sets)))
    axes = panels[0, 0]
    others = [peer for peer in peers if peer in means and peer != comparison.reference]
    for i, peer in enumerate(others):
        _dots(axes, means[peer], sets, ("all peers" if i == 0 else None, FAINT, "o", 28))
    best = max(others, key=lambda peer: _average(means[peer]), default=None)
    if best is not None:
        name = f"best peer by mean: {comparison.label(best)}"
        _dots(axes, means[best], sets, (name, PURPLE, "s", 44))
    for method, look in zip((comparison.reference, *ours), _LOOKS, strict=False):
        _dots(axes, means.get(method, {}), sets, (comparison.label(method), *look))
    axes.set_yticks(range(len(sets)), sets)
    axes.set(xlabel="AUC-ROC, points (mean over splits)", ylim=(-0.7, len(sets) - 0.3))
    axes.set_axisbelow(True)
    axes.grid(axis="both", color="#EEEEEE")
    axes.axvline(50, color=INK, linestyle=":", linewidth=1)
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside upper center", ncols=3)
    return figure


def _by_points(comparison: Comparison, means: SetMeans) -> list[str]:
    """Return the sets from hardest to easiest for the methods taken together."""

    def points(name: str) -> float:
        return _average({method: sets.get(name) for method, sets in means.items()})

    return sorted(comparison.sets(), key=points)


def _average(values: dict[str, float | None]) -> float:
    known = [value for value in values.values() if value is not None]
    return sum(known) / len(known) if known else 0.0


def _dots(
    axes: Any,
    means: dict[str, float | None],
    sets: list[str],
    style: tuple[str | None, str, str, float],
) -> None:
    label, colour, marker, size = style
    places = [(value, i) for i, name in enumerate(sets) if (value := means.get(name)) is not None]
    if places:
        x, y = zip(*places, strict=True)
        look = {"marker": marker, "edgecolors": "white", "linewidths": 0.6, "zorder": 3}
        axes.scatter(x, y, size, c=colour, label=label, **look)
