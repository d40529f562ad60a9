"""The figures of the toy example."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm, Normalize, PowerNorm
from matplotlib.lines import Line2D
from matplotlib.style import context

from benchmarks.figure_style import BLUE, GREEN, INK, PURPLE, STYLE, VERMILION, new_panels
from benchmarks.toy_problem import (
    N_ANOMALIES,
    N_NORMAL,
    PAPER_ZONE_ROWS,
    REGRESSORS,
    ZONE_ROWS,
    Floats,
    Ints,
    Outcome,
    Toy,
    auc,
    grid_axis,
    kernel_density,
    smoothed_cdf,
)
from benchmarks.toy_style import KINDS, MAP, name_plane, sample_dots

ROUTES = (
    ("normal sends to normal", 0, 0, BLUE, 0.3),
    ("anomaly sends to normal", 1, 0, VERMILION, 0.9),
    ("normal sends to anomaly", 0, 1, PURPLE, 0.9),
    ("anomaly sends to anomaly", 1, 1, GREEN, 0.9),
)
"""Kinds of routes: name, label of the sender, of the receiver, colour, opacity."""

TITLES = {"mrot": "MROT", "coulomb": "Coulomb"}


def draw_all(toy: Toy, folder: Path) -> list[Path]:
    """Draw every figure into the folder and return the files."""
    return [_draw(toy, figure, folder / f"{name}.png") for name, figure in FIGURES.items()]


def _draw(toy: Toy, figure: Callable[[Toy], Any], path: Path) -> Path:
    with context(["default", STYLE]):
        figure(toy).savefig(path)
    return path


def samples(toy: Toy) -> Any:
    """Draw the two clouds."""
    figure, panels = new_panels(1, 1, (9.0, 8.0))
    axes = panels[0, 0]
    sample_dots(axes, toy, size=30)
    name_plane(axes, f"The sample: {N_NORMAL} normal rows and {N_ANOMALIES} anomalies")
    axes.legend(loc="upper left")
    return figure


def costs(toy: Toy) -> Any:
    """Draw the three cost matrices, the first two on one scale."""
    figure, panels = new_panels(1, 3, (13.0, 5.5))
    squared = PowerNorm(0.5, 0.0, toy.euclidean.cost.max()), "squared distance (square-root scale)"
    shown = (
        ("Squared distance", toy.euclidean, *squared),
        (f"Engineered, zone of {ZONE_ROWS} others", toy.costs["mrot"], *squared),
        ("Regularised Coulomb", toy.costs["coulomb"], Normalize(0.0, 1.0), "1 / (1 + distance)"),
    )
    for axes, (title, outcome, norm, unit) in zip(panels[0], shown, strict=True):
        image = axes.imshow(outcome.cost, cmap=MAP, norm=norm, interpolation="nearest")
        axes.set(title=title, xlabel="receiving row", ylabel="sending row")
        _rule_off_anomalies(axes)
        figure.colorbar(image, ax=axes, location="bottom", shrink=0.9, label=unit)
    figure.suptitle("What it costs to send mass; the anomalies are the last rows", fontsize=14)
    return figure


def _rule_off_anomalies(axes: Any) -> None:
    for rule in (axes.axhline, axes.axvline):
        rule(N_NORMAL - 0.5, color=VERMILION, linewidth=1.2)


def plans(toy: Toy) -> Any:
    """Draw each plan as a matrix, as a matching and as arrows over the plane."""
    figure, panels = new_panels(2, 3, (13.0, 8.8))
    for (name, outcome), row in zip(toy.costs.items(), panels, strict=True):
        _plan_matrix(figure, row[0], outcome, f"{TITLES[name]}: plan")
        _matching(row[1], toy, outcome, f"{TITLES[name]}: matching")
        _arrows(row[2], toy, outcome, f"{TITLES[name]}: routes")
    drawn = {kind for outcome in toy.costs.values() for kind, _ in _routes(toy, outcome.receivers)}
    handles = [_handle(kind) for kind in ROUTES if kind in drawn]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _plan_matrix(figure: Any, axes: Any, outcome: Outcome, title: str) -> None:
    n_rows, n_blocks = len(outcome.plan), len(outcome.plan) // N_ANOMALIES
    shape = (n_blocks, N_ANOMALIES, n_blocks, N_ANOMALIES)
    blocks = 100 * outcome.plan.reshape(shape).sum(axis=(1, 3))
    norm = PowerNorm(0.5, 0.0, 100 * N_ANOMALIES / n_rows)
    extent = (-0.5, n_rows - 0.5, n_rows - 0.5, -0.5)
    image = axes.imshow(blocks, cmap=MAP, norm=norm, extent=extent, interpolation="nearest")
    axes.set(title=title, xlabel="receiving row", ylabel="sending row")
    _rule_off_anomalies(axes)
    unit = f"% of the mass, per {N_ANOMALIES} x {N_ANOMALIES} rows"
    figure.colorbar(image, ax=axes, shrink=0.9, label=unit)


def _matching(axes: Any, toy: Toy, outcome: Outcome, title: str) -> None:
    n_rows = len(outcome.receivers)
    for (_, _, _, colour, opacity), senders in _routes(toy, outcome.receivers):
        lines = [[(0, row), (1, outcome.receivers[row])] for row in senders]
        axes.add_collection(LineCollection(lines, colors=colour, alpha=opacity, linewidths=0.7))
    axes.set(title=title, xlim=(0, 1), ylim=(n_rows, -1), ylabel="row", box_aspect=1)
    axes.set_xticks([0, 1], ["sends", "receives"])


def _arrows(axes: Any, toy: Toy, outcome: Outcome, title: str) -> None:
    starts = toy.sample.rows
    steps = starts[outcome.receivers] - starts
    style = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.003}
    for (_, _, _, colour, opacity), senders in _routes(toy, outcome.receivers):
        axes.quiver(*starts[senders].T, *steps[senders].T, color=colour, alpha=opacity, **style)
    name_plane(axes, title)


def _routes(toy: Toy, receivers: Ints) -> list[tuple[tuple[str, int, int, str, float], Ints]]:
    """Return the kinds of routes that occur, each with its senders."""
    labels = toy.sample.labels
    kinds = [
        (kind, np.flatnonzero((labels == kind[1]) & (labels[receivers] == kind[2])))
        for kind in ROUTES
    ]
    return [(kind, senders) for kind, senders in kinds if len(senders)]


def _handle(kind: tuple[str, int, int, str, float]) -> Any:
    return Line2D([], [], color=kind[3], label=kind[0], linewidth=2.5)


def scores(toy: Toy) -> Any:
    """Draw effort and score of each row over the plane."""
    figure, panels = new_panels(2, 2, (11.0, 9.4))
    for (name, outcome), row in zip(toy.costs.items(), panels, strict=True):
        anomalous = "high" if outcome.effort_sign > 0 else "low"
        efforts = outcome.efforts
        scale = LogNorm if efforts.max() > 100 * efforts.min() else Normalize
        norm, shares = scale(efforts.min(), efforts.max()), Normalize(0.0, 1.0)
        _valued_dots(figure, row[0], toy, efforts, norm)
        _valued_dots(figure, row[1], toy, outcome.scores, shares)
        name_plane(row[0], f"{TITLES[name]}: effort ({anomalous} is anomalous)")
        name_plane(row[1], f"{TITLES[name]}: score = CDF of the effort")
    return figure


def _valued_dots(figure: Any, axes: Any, toy: Toy, values: Floats, norm: Any) -> None:
    for _, label, _, marker in KINDS:
        chosen = toy.sample.labels == label
        x, y = toy.sample.rows[chosen].T
        style = {"marker": marker, "cmap": MAP, "norm": norm, "edgecolors": INK, "linewidths": 0.3}
        dots = axes.scatter(x, y, 30, values[chosen], **style)
    figure.colorbar(dots, ax=axes, shrink=0.9)


def distributions(toy: Toy) -> Any:
    """Draw how the efforts are distributed, and the score that follows from it."""
    figure, panels = new_panels(2, 2, (12.0, 8.5))
    for (name, outcome), row in zip(toy.costs.items(), panels, strict=True):
        reach = 3 * outcome.bandwidth
        at = np.linspace(outcome.efforts.min() - reach, outcome.efforts.max() + reach, 601)
        _histogram(row[0], toy, outcome, at)
        _score_curve(row[1], toy, outcome, at)
        row[0].set(title=f"{TITLES[name]}: efforts and their kernel density")
        row[1].set(title=f"{TITLES[name]}: CDF of that density, the score")
    return figure


def _histogram(axes: Any, toy: Toy, outcome: Outcome, at: Floats) -> None:
    efforts = outcome.efforts
    edges = np.linspace(efforts.min(), efforts.max(), 41)
    groups = [efforts[toy.sample.labels == label] for _, label, _, _ in KINDS]
    names, colours = [kind[0] for kind in KINDS], [kind[2] for kind in KINDS]
    axes.hist(groups, edges, stacked=True, color=colours, label=names)
    expected = kernel_density(at, efforts, outcome.bandwidth) * len(efforts) * (edges[1] - edges[0])
    axes.plot(at, expected, color=INK, label="kernel density")
    axes.set(xlabel="effort", ylabel="rows per bin (log scale)", yscale="log", ylim=(0.5, 900))
    axes.legend(loc="upper center")


def _score_curve(axes: Any, toy: Toy, outcome: Outcome, at: Floats) -> None:
    axes.plot(at, smoothed_cdf(at, outcome.efforts, outcome.bandwidth), color=INK, zorder=1)
    for name, label, colour, marker in KINDS:
        chosen = toy.sample.labels == label
        style = {"c": colour, "marker": marker, "alpha": 0.6, "linewidths": 0}
        axes.scatter(outcome.efforts[chosen], outcome.scores[chosen], 40, label=name, **style)
    axes.set(xlabel="effort", ylabel="score", ylim=(-0.03, 1.03))
    axes.legend(loc="lower right" if outcome.effort_sign > 0 else "upper left")


def regressed(toy: Toy) -> Any:
    """Draw the score that two regressions extend to the plane."""
    figure, panels = new_panels(2, 2, (10.6, 9.4))
    names = {"boosting": "gradient boosting", "svr": "support vector regression"}
    for (cost, surfaces), row in zip(toy.surfaces.items(), panels, strict=True):
        for axes, kind in zip(row, REGRESSORS, strict=True):
            image = _contours(axes, surfaces[kind])
            sample_dots(axes, toy, size=20)
            name_plane(axes, f"{TITLES[cost]}: {names[kind]}")
    ticks = np.linspace(0.0, 1.0, 6)
    figure.colorbar(image, ax=panels, shrink=0.6, label="regressed score", ticks=ticks)
    return figure


def _contours(axes: Any, surface: Floats) -> Any:
    levels = np.linspace(0.0, 1.0, 21)
    return axes.contourf(grid_axis(), grid_axis(), surface, levels, cmap=MAP, extend="both")


def zones(toy: Toy) -> Any:
    """Draw what the size of the zone does to the ranking."""
    figure, panels = new_panels(1, 1, (9.0, 5.6))
    axes = panels[0, 0]
    sizes, aucs = zip(*toy.sweep, strict=True)
    axes.plot(sizes, aucs, color=BLUE, marker="o", label="MROT, high effort is anomalous")
    coulomb = auc(toy.sample, -toy.costs["coulomb"].efforts)
    axes.axhline(coulomb, color=VERMILION, linestyle="--", label="Coulomb, low effort is anomalous")
    axes.axhline(0.5, color=INK, linestyle=":", label="chance")
    for size, name in _zone_names().items():
        axes.axvline(size, color=INK, linewidth=0.8, alpha=0.5)
        axes.annotate(name, (size, 0.02), xytext=(4, 0), textcoords="offset points", fontsize=10)
    axes.set(xlabel="other rows in the exclusion zone (log scale)", ylabel="AUC-ROC", xscale="log")
    axes.set(ylim=(0.0, 1.04), title="Which zone makes the anomalies stand out")
    ticks = (2, 4, 8, 16, 24, 50, 100)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    box = {"frameon": True, "framealpha": 1.0, "edgecolor": "white"}
    axes.legend(loc="center left", bbox_to_anchor=(0.02, 0.66), **box)
    return figure


def _zone_names() -> dict[int, str]:
    return {
        PAPER_ZONE_ROWS: "the paper's k = 5\n(counts the row itself)",
        N_ANOMALIES - 1: "the whole\ncluster",
        ZONE_ROWS: "the figures",
    }


FIGURES: dict[str, Callable[[Toy], Any]] = {
    "1-samples": samples,
    "2-costs": costs,
    "3-plans": plans,
    "4-scores": scores,
    "5-distributions": distributions,
    "6-regressed": regressed,
    "7-zones": zones,
}
"""What draws each figure, by the name of its file."""
