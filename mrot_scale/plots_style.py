"""What all plots have in common: colours that everybody can tell apart, and texts as they are."""

from collections.abc import Sequence
from typing import Any

from mrot_scale.terminal_text import WIDEST_NAME, printable

Axes = Any
"""matplotlib's Axes; only `plots.py` knows the library."""

BLUE, ORANGE, SKY, GREEN, RED, PURPLE = (
    "#0072B2", "#E69F00", "#56B4E9", "#009E73", "#D55E00", "#CC79A7",
)  # fmt: skip
GREY = "#8C8C8C"
SERIES = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY)

LITERAL: dict[str, Any] = {"parse_math": False, "usetex": False}
"""Names may hold dollar signs and backslashes: they are drawn, not read as formulas."""

BARS_SHOWN = 20


def ink(ax: Axes) -> Any:
    """Return the colour of texts, dark or light as the style has it."""
    return ax.xaxis.label.get_color()


def headed(ax: Axes, title: str, x: str, y: str = "") -> Axes:
    """Return axes with their texts."""
    has_legend = ax.get_legend() is not None
    ax.set_title(title, loc="left", pad=22 if has_legend else 6, **LITERAL)
    ax.set_xlabel(x, **LITERAL)
    ax.set_ylabel(y, **LITERAL)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def brief(text: Any, longest: int = 24) -> str:
    """Return a name that leaves room for others: escaped, and cut where it is long."""
    shown = printable(text)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def nothing(ax: Axes, why: str) -> Axes:
    """Return empty axes that say why they are."""
    ax.text(0.5, 0.5, why, ha="center", va="center", transform=ax.transAxes, **LITERAL)
    ax.set_axis_off()
    return ax


def named_bars(
    ax: Axes, names: Sequence[str], values: Sequence[float], colours: Any = BLUE
) -> None:
    """Draw a bar for each name, the first on top."""
    places = range(len(names))
    ax.barh(places, values, color=colours, height=0.7)
    label_places(ax, names)


def label_places(ax: Axes, names: Sequence[str]) -> None:
    """Write names beside places on the y axis, the first on top; long ones are cut."""
    labels = [brief(name, WIDEST_NAME) for name in names]
    ax.set_yticks(range(len(names)), labels=labels, **LITERAL)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def beside_bars(ax: Axes, values: Sequence[float], texts: Sequence[str]) -> None:
    """Write a text at the end of each bar, and make room for it."""
    for place, (value, text) in enumerate(zip(values, texts, strict=True)):
        is_left = value < 0
        ax.annotate(
            text,
            (value, place),
            xytext=(-4 if is_left else 4, 0),
            textcoords="offset points",
            va="center",
            ha="right" if is_left else "left",
            fontsize="small",
            **LITERAL,
        )
    ax.margins(x=0.18)


def legend(ax: Axes, handles: Sequence[Any] | None = None, **options: Any) -> None:
    """Draw a legend above the axes where nothing else is, its texts as they are."""
    given = {} if handles is None else {"handles": handles}
    above = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": 4, "borderaxespad": 0.2}
    look = {"frameon": False, "fontsize": "small", "handlelength": 1.2, "columnspacing": 1.0}
    found = ax.legend(**given, **look, **(options or above))
    for text in found.get_texts():
        text.set(**LITERAL)
