"""Pictures of the benchmark of scale: rates, memory, and where the time of scoring goes."""

from pathlib import Path
from typing import Any

from matplotlib.style import context

from benchmarks.figure_style import BLUE, GREEN, INK, PURPLE, STYLE, VERMILION, new_panels
from benchmarks.scale_commands import PHASES
from benchmarks.scale_findings import Results, command_figure, limit_rate
from benchmarks.scale_grid import Size
from benchmarks.scale_peers import PEERS
from benchmarks.scale_tables import OURS, lines_of_rates

ORANGE, SKY, FAINT = "#E69F00", "#56B4E9", "#BBBBBB"
_COLOURS = dict(
    zip(PEERS, (VERMILION, ORANGE, GREEN, PURPLE, SKY, INK), strict=True),
)
_PARTS = {
    "start": ("start-up", FAINT),
    "open workers": ("opening workers", "#888888"),
    "reading": ("reading Zarr (as measured alone)", SKY),
    "walking": ("walking trees (as measured alone)", GREEN),
    "rest": ("rest of the stage: loading, compiling, writing", BLUE),
    "publish": ("closing workers, publishing", ORANGE),
    "end": ("ending", PURPLE),
}


def draw(results: Results, out: Path) -> list[Path]:
    """Draw all pictures there are figures for."""
    made = []
    with context(["default", STYLE]):
        for name, figure in (
            ("rates.png", _rate_figure),
            ("memory.png", _memory_figure),
            ("score-time.png", _time_figure),
        ):
            drawn = figure(results)
            if drawn is not None:
                drawn.savefig(out / name, dpi=150)
                made.append(out / name)
    return made


def _widths(results: Results) -> list[int]:
    return sorted({size.features for size in results.sizes})


def _rate_figure(results: Results) -> Any:
    widths = _widths(results)
    if not widths:
        return None
    figure, panels = new_panels(1, len(widths), (max(9.0, 4.6 * len(widths) + 1.0), 6.6))
    for axes, width in zip(panels[0], widths, strict=True):
        for name, kind, method, pick in lines_of_rates():
            points = _rate_points(results, kind, method, width, pick)
            if points:
                axes.plot(*zip(*points, strict=True), label=name, **_look(name, method))
        axes.set(xscale="log", yscale="log", title=f"{width} features", xlabel="rows")
        axes.grid(color="#EEEEEE")
    panels[0, 0].set_ylabel("rows per second")
    _legend(figure, panels[0])
    return figure


def _rate_points(
    results: Results, kind: str, method: str, width: int, pick: Any
) -> list[tuple[float, float]]:
    found = []
    for size in results.sizes:
        rate = results.middle(pick, kind, method, size)
        if size.features == width and rate is not None:
            cells = results.of(kind, method, size)
            found.append((min(cell.get("measured_rows", size.rows) for cell in cells), rate))
    return sorted(found)


def _look(name: str, method: str) -> dict[str, Any]:
    """Return how a line is drawn: ours in blue, what includes fitting dashed."""
    ours = [line[0] for line in OURS]
    style = "--" if "fit and score" in name and "in one" not in name else "-"
    if name in ours:
        marker = "osD"[ours.index(name)]
        style = (":", "-")[name == ours[0]] if style == "-" else style
        return {"color": BLUE, "marker": marker, "linestyle": style, "linewidth": 2.2, "zorder": 3}
    return {"color": _COLOURS[method], "marker": "^", "linestyle": style, "linewidth": 1.4}


def _legend(figure: Any, panels: Any) -> None:
    """Name each line once, whichever panel it is in."""
    handles: dict[str, Any] = {}
    for axes in panels:
        found, labels = axes.get_legend_handles_labels()
        handles |= dict(zip(labels, found, strict=True))
    if handles:
        labels = list(handles)
        figure.legend(handles.values(), labels, loc="outside lower center", ncols=2, fontsize=10)


def _memory_figure(results: Results) -> Any:
    widths = _widths(results)
    if not widths:
        return None
    figure, panels = new_panels(1, len(widths), (max(9.0, 4.6 * len(widths) + 1.0), 5.6))
    for axes, width in zip(panels[0], widths, strict=True):
        for command, marker in zip(("ingest", "fit", "score"), "osD", strict=True):
            pick = command_figure(command, "tree_mib")
            look = {"color": BLUE, "marker": marker, "linewidth": 2.2}
            _memory_line(axes, results, ("ours", "plain", width), pick, f"our {command}", look)
        for peer, colour in _COLOURS.items():
            look = {"color": colour, "marker": "^", "linewidth": 1.4}
            _memory_line(axes, results, ("peer", peer, width), _tree_mib, peer, look)
        axes.set(xscale="log", yscale="log", title=f"{width} features", xlabel="rows")
        axes.grid(color="#EEEEEE")
    panels[0, 0].set_ylabel("most memory of all processes, MiB")
    _legend(figure, panels[0])
    return figure


def _tree_mib(cell: dict[str, Any]) -> float:
    return float(cell["tree_mib"])


def _memory_line(
    axes: Any, results: Results, what: tuple[str, str, int], pick: Any, label: str, look: Any
) -> None:
    kind, method, width = what
    points = _rate_points(results, kind, method, width, pick)
    if points:
        axes.plot(*zip(*points, strict=True), label=label, **look)


def _time_figure(results: Results) -> Any:
    sizes = [size for size in results.sizes if results.of("ours", "plain", size)]
    if not sizes:
        return None
    figure, panels = new_panels(1, 1, (10.0, 2.2 + 0.5 * len(sizes)))
    axes, left = panels[0, 0], dict.fromkeys(sizes, 0.0)
    shares = {size: time_shares(results, size) for size in sizes}
    for part, (label, colour) in _PARTS.items():
        widths = [shares[size][part] for size in sizes]
        starts = [left[size] for size in sizes]
        axes.barh(range(len(sizes)), widths, left=starts, color=colour, label=label)
        left = {size: left[size] + shares[size][part] for size in sizes}
    for place, size in enumerate(sizes):
        axes.text(1.01, place, f"{sum(_seconds(results, size).values()):.1f} s", va="center")
    axes.set_yticks(range(len(sizes)), list(map(str, sizes)))
    axes.set(xlim=(0, 1), xlabel="share of the score command")
    axes.invert_yaxis()
    figure.legend(loc="outside upper center", ncols=2, fontsize=10)
    return figure


def time_shares(results: Results, size: Size) -> dict[str, float]:
    """Return the share of each part in the time of the score command."""
    seconds = _seconds(results, size)
    total = sum(seconds.values()) or 1.0
    return {part: seconds[part] / total for part in _PARTS}


def _seconds(results: Results, size: Size) -> dict[str, float]:
    """Return the median phases of the score command, its stage divided by what limits took."""
    found = {phase: results.middle(_phase(phase), "ours", "plain", size) or 0.0 for phase in PHASES}
    stage = found.pop("stage")
    reading = _alone(results, "zarr", size)
    walking = _alone(results, "trees", size)
    within = min(1.0, stage / (reading + walking)) if reading + walking else 0.0
    parts = {"reading": within * reading, "walking": within * walking}
    return {**found, **parts, "rest": stage - sum(parts.values())}


def _phase(name: str) -> Any:
    return lambda cell: cell["commands"]["score"]["phases"].get(name, 0.0)


def _alone(results: Results, limit: str, size: Size) -> float:
    rate = results.middle(limit_rate, "limit", limit, size)
    return size.rows / rate if rate else 0.0
