"""Draw the pictures of how-it-works.md, with the package itself.

python -m docs.generate.pictures docs/pictures
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from docs.generate import picture_rows as made
from mrot_scale import MROT, Problem, transport_efforts

BLUE, RED, GREY, INK = "#3b6ea5", "#c8452d", "#b9bfc6", "#222222"
_STYLE = {
    "svg.hashsalt": "mrot-scale",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}


def stay_or_move() -> Any:
    """Ordinary transport leaves all mass where it is; a zone makes it move."""
    rows = np.vstack([made.cloud(60, 0), [0.0, -2.7]])
    found = made.moves(rows, 5)
    figure, (left, right) = _panels(2, "Mass may stay: nobody moves", "Mass must leave its zone")
    for ax in (left, right):
        ax.scatter(*rows.T, s=16, color=BLUE, zorder=3)
        _as_map(ax)
    for start, stop in zip(rows, rows[found.receivers], strict=True):
        _arrow(right, start, stop, BLUE, 0.45)
    typical, lonely = int(((rows - [2.0, 0.6]) ** 2).sum(axis=1).argmin()), len(rows) - 1
    for row, color, name in ((typical, INK, "among others"), (lonely, RED, "far from all")):
        right.add_patch(_circle(rows[row], found.reach[row], color))
        _arrow(right, rows[row], rows[found.receivers[row]], color, 1.0, width=1.8)
        right.scatter(*rows[row], s=36, color=color, zorder=5)
        place = (0, -16) if color == RED else (0, 18)
        right.annotate(
            name,
            rows[row],
            place,
            textcoords="offset points",
            ha="center",
            color=color,
            zorder=6,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 1},
        )
    for ax in (left, right):
        ax.set(xlim=(-4.0, 4.6), ylim=(-5.6, 3.2))
    return figure


def effort_and_density() -> Any:
    """Efforts are high where rows are thin."""
    rows = made.cloud(500, 9)
    found = made.moves(rows, 20)
    distance = np.sqrt(found.efforts)
    figure, (left, right) = _panels(2, "Rows, by effort", "Effort against how thin it is there")
    shown = left.scatter(*rows.T, s=12, c=distance, cmap="viridis_r", rasterized=True)
    _as_map(left)
    figure.colorbar(shown, ax=left, label="distance moved", shrink=0.8)
    lonely = np.arange(len(rows)) >= len(rows) - 9
    thin = made.neighbour_distance(rows, 20)
    right.scatter(
        thin[~lonely],
        distance[~lonely],
        s=10,
        color=BLUE,
        rasterized=True,
        label="rows of the two regions",
    )
    right.scatter(thin[lonely], distance[lonely], s=22, color=RED, label="rows far from both")
    right.set(xlabel="distance to the 20th neighbour", ylabel="distance moved")
    right.legend(frameon=False, loc="lower right")
    return figure


def effort_to_score() -> Any:
    """The distribution of efforts turns an effort into a share."""
    rows = made.cloud(500, 9)
    efforts = made.moves(rows, 20).efforts
    calibration = made.calibration(efforts)
    logs = np.log(efforts)
    figure, (left, right) = _panels(2, "How efforts are spread", "Share of rows with less effort")
    left.hist(logs / np.log(10), bins=40, color=BLUE)
    left.set(xlabel="effort, powers of ten", ylabel="rows")
    grid = np.linspace(logs.min(), logs.max() + 0.5, 400)
    right.plot(grid / np.log(10), calibration.score(grid), color=INK)
    right.set(xlabel="effort, powers of ten", ylabel="score", ylim=(0, 1.03))
    for row, color, name in ((10, BLUE, "an ordinary row"), (len(rows) - 1, RED, "a far row")):
        side = (-8, -32) if color == RED else (8, -20)
        x, y = logs[row] / np.log(10), float(calibration.score(logs[[row]])[0])
        right.plot([x, x, grid[0] / np.log(10)], [0, y, y], color=color, linestyle=":")
        right.scatter([x], [y], color=color, zorder=4, s=30)
        right.annotate(
            f"{name}:\nscore {y:.3f}",
            (x, y),
            side,
            textcoords="offset points",
            color=color,
            ha="right" if color == RED else "left",
        )
    return figure


def groups() -> Any:
    """A tight group hides in a narrow zone, and shows in a wide one."""
    narrow, wide = 0.02, 0.16
    found = made.group(narrow, wide)
    figure, axes = _panels(
        2, "Narrow zone: the group serves itself", "Wide zone: the group must leave"
    )
    for ax, mass in zip(axes, (narrow, wide), strict=True):
        rank = found.efforts[mass].argsort().argsort() / len(found.rows)
        shown = ax.scatter(
            *found.rows.T, s=12, c=rank, cmap="viridis_r", vmin=0, vmax=1, rasterized=True
        )
        _as_map(ax)
        top = np.mean(rank[found.is_group] > 0.9)
        ax.annotate(
            f"{top:.0%} of the group\namong the top tenth",
            found.rows[-1],
            (-4, 26),
            textcoords="offset points",
            ha="center",
            color=RED,
        )
    figure.colorbar(shown, ax=axes, label="share of rows with less effort", shrink=0.8)
    return figure


def batches() -> Any:
    """Many small problems give nearly the efforts of one large problem."""
    rows = made.cloud(1_000, 12)
    exact = transport_efforts(rows, Problem(alpha=0.04))
    titles = ("One batch of 100 rows", "1 batch per row", "8 batches per row")
    figure, axes = _panels(3, *titles, widths=(1.25, 1, 1))
    drawn = np.random.default_rng(1).permutation(len(rows))[:100]
    found = made.moves(rows[drawn], 4)
    axes[0].scatter(*rows.T, s=4, color=GREY, rasterized=True)
    axes[0].scatter(*rows[drawn].T, s=12, color=BLUE, zorder=3)
    for start, stop in zip(found.rows, found.rows[found.receivers], strict=True):
        _arrow(axes[0], start, stop, BLUE, 0.5)
    _as_map(axes[0])
    for ax, repeats in zip(axes[1:], (1, 8), strict=True):
        ax.loglog(
            exact,
            made.batch_efforts(rows, 100, repeats),
            ".",
            color=BLUE,
            markersize=3,
            rasterized=True,
        )
        ax.axline((1, 1), (2, 2), color=INK, linewidth=0.8)
        ax.set(xlabel="effort in one problem of all rows", ylabel="mean effort in small batches")
    return figure


def anchors() -> Any:
    """A new row goes to the cheapest anchor outside its zone."""
    rows = made.cloud(1_000, 0)
    problem = Problem(alpha=0.08)
    figure, axes = _panels(2, "A new row among others", "A new row far from them")
    for ax, new in zip(axes, ([2.3, 1.0], [0.2, -2.6]), strict=True):
        found = made.anchored(rows, np.array(new), 100, problem)
        ax.scatter(*rows.T, s=3, color=GREY, rasterized=True)
        ax.scatter(*found.anchors.rows.T, s=14, color=BLUE, label="anchors", zorder=3)
        inside = found.anchors.rows[found.zone]
        ax.scatter(*inside.T, s=40, facecolor="none", edgecolor=INK, label="in its zone", zorder=4)
        _arrow(ax, found.new, found.anchors.rows[found.receiver], RED, 1.0, width=1.8)
        ax.scatter(*found.new, s=36, color=RED, label="new row", zorder=5)
        _as_map(ax)
        ax.set(xlim=(-4.0, 5.0), ylim=(-3.0, 2.9))
    axes[0].legend(frameon=False, loc="lower left")
    return figure


def trees() -> Any:
    """Trees over plain columns approximate efforts in boxes; given efforts, they follow."""
    rows = made.cloud(900, 12)
    grid = np.stack(np.meshgrid(np.linspace(-4.4, 5.0, 94), np.linspace(-3.7, 4.0, 77)), axis=-1)
    points = grid.reshape(-1, 2)
    plain, hybrid = (MROT(hybrid=kind).fit(rows) for kind in ("never", "always"))
    found = {
        "Scores by effort": plain.anomaly_score(points, method="effort"),
        "Trees over the columns": plain.anomaly_score(points),
        "Trees that are given efforts": hybrid.anomaly_score(points),
    }
    figure, axes = _panels(3, *found)
    for ax, scores in zip(axes, found.values(), strict=True):
        score = scores.reshape(grid.shape[:2])
        shown = ax.pcolormesh(
            grid[0, :, 0], grid[:, 0, 1], score, cmap="viridis_r", vmin=0, vmax=1, rasterized=True
        )
        ax.scatter(*rows.T, s=1.5, color=INK, alpha=0.5, linewidth=0, rasterized=True)
        _as_map(ax)
    figure.colorbar(shown, ax=axes, label="score", shrink=0.8)
    return figure


PICTURES: dict[str, Callable[[], Any]] = {
    "stay-or-move": stay_or_move,
    "effort-and-density": effort_and_density,
    "effort-to-score": effort_to_score,
    "groups": groups,
    "batches": batches,
    "anchors": anchors,
    "trees": trees,
}


def _panels(count: int, *titles: str, widths: tuple[float, ...] | None = None) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.6 if count == 2 else 2.9), layout="constrained")
    axes = figure.subplots(1, count, width_ratios=widths)
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title)
    return figure, axes


def _as_map(ax: Any) -> None:
    ax.set_aspect("equal")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def _arrow(ax: Any, start: Any, stop: Any, color: str, alpha: float, width: float = 0.8) -> None:
    style = {"arrowstyle": "-|>", "color": color, "alpha": alpha, "linewidth": width, "shrinkB": 2}
    ax.annotate("", stop, start, arrowprops={**style, "shrinkA": 2, "mutation_scale": 8})


def _circle(center: Any, radius: float, color: str) -> Any:
    from matplotlib.patches import Circle

    return Circle(center, radius, facecolor=color, alpha=0.12, edgecolor=color, linestyle="--")


def draw(folder: Path, kind: str = "svg") -> list[Path]:
    """Draw all pictures into a folder; the same code and libraries give the same bytes."""
    import matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    with matplotlib.rc_context(_STYLE):
        for name, drawn in PICTURES.items():
            path = folder / f"{name}.{kind}"
            drawn().savefig(path, dpi=120, metadata={"Date": None} if kind == "svg" else None)
            paths.append(path)
    return paths


if __name__ == "__main__":
    for path in draw(Path(sys.argv[1]), *sys.argv[2:]):
        print(path)
