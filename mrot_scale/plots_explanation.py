"""An explanation as a picture. Matplotlib is loaded only here, and only when one is drawn."""

from pathlib import Path
from typing import Any

from mrot_scale.errors import ConfigError, MissingLibraryError, OutputError
from mrot_scale.explanation import Explanation
from mrot_scale.terminal_text import name_text, number_text

COLUMNS_DRAWN = 10
FORMATS = (".svg", ".png")
_ODD, _EVEN = "#b2432f", "#3f6f8f"


def check_picture(path: str | Path) -> None:
    """Refuse a picture that could not be drawn, before anything is computed for it."""
    place = Path(path)
    if place.suffix.lower() not in FORMATS:
        raise ConfigError(f"A picture is {' or '.join(FORMATS)}, got {place.name!r}.")
    _matplotlib()


def save_picture(found: Explanation, path: str | Path) -> None:
    """Write the picture of an explanation, as SVG or PNG by the name's ending."""
    check_picture(path)
    place = Path(path)
    figure_class, settings = _matplotlib()
    with settings({"svg.hashsalt": "mrot-scale", "svg.fonttype": "none"}):
        figure = figure_class(figsize=(9, 5.5), layout="constrained")
        draw_explanation(figure, found)
        # Without a date or a program's name, the same explanation gives the same bytes.
        is_svg = place.suffix.lower() == ".svg"
        facts = {"Date": None, "Creator": None} if is_svg else {"Software": None}
        try:
            figure.savefig(place, metadata=facts, dpi=120)
        except OSError as error:
            raise OutputError(f"Cannot write {place}: {error.strerror or error}.") from None


def _matplotlib() -> tuple[Any, Any]:
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingLibraryError(
            "Pictures need matplotlib: pip install 'mrot-scale[plots]'."
        ) from None
    return Figure, rc_context


def draw_explanation(figure: Any, found: Explanation) -> None:
    """Draw what each column accounts for, and how rare the row's efforts are, into a figure."""
    columns, views = figure.subplots(1, 2, width_ratios=(3, 2))
    draw_columns(columns, found)
    draw_views(views, found)
    state = "flagged" if found.is_flagged else "not flagged"
    figure.suptitle(f"row {_plain(found.id)}: score {found.score:.6f}, {state}")


def draw_columns(axes: Any, found: Explanation) -> None:
    """Draw the contribution of the strongest columns, with value and usual value."""
    shown = [c for c in found.columns[:COLUMNS_DRAWN] if c.contribution > 0][::-1]
    places = range(len(shown))
    axes.barh(places, [c.contribution for c in shown], color=_ODD)
    axes.set_yticks(places, [_plain(c.name) for c in shown])
    for place, column in zip(places, shown, strict=True):
        usual = "" if column.usual is None else f", usually {_short(column.usual)}"
        text = f" {_short(column.value)}{usual}"
        axes.text(column.contribution, place, text, va="center", fontsize=8)
    axes.set_xlim(0, 1.8 * max([c.contribution for c in shown], default=1.0))  # room for the text
    axes.set_xlabel(f"part of the rarity ({found.rarity:.2f})")
    axes.set_title("what each column accounts for", fontsize=10)


def draw_views(axes: Any, found: Explanation) -> None:
    """Draw how rare the row's effort is in each view."""
    shown = found.views[::-1]
    axes.barh(range(len(shown)), [view.rarity for view in shown], color=_EVEN)
    axes.set_yticks(range(len(shown)), [view.name.replace(", ", "\n") for view in shown])
    axes.set_xlabel("rarity (4.6 is one in 100)")
    axes.set_title("how hard its mass is to move", fontsize=10)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else _plain(number_text(value))


def _plain(text: str) -> str:
    """Return a name as it is: matplotlib would read dollar signs as mathematics."""
    return name_text(text).replace("$", r"\$")
