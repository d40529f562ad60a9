"""Plots of single rows: what raised a score, where a value lies, which rows are far from others."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from mrot_scale.plots_data import even_density, shares
from mrot_scale.plots_style import (
    BLUE,
    GREY,
    LITERAL,
    RED,
    Axes,
    beside_bars,
    brief,
    headed,
    ink,
    label_places,
    legend,
    named_bars,
    nothing,
)
from mrot_scale.terminal_text import number_text

_DAY_S = 86_400
_CATEGORIES_SHOWN = 12
_ROWS_NAMED, _ROWS_LOOKED_AT = 5, 100
_HIGH = 0.99
"""The score above which a row is drawn as anomalous where no threshold is known."""


def draw_contributions(ax: Axes, row: Mapping[str, Any]) -> Axes:
    """Draw what each column did to the score of a row, the strongest on top."""
    columns = row["columns"]
    title = f"Row {brief(row['id'])}, score {row['score']:.5f}"
    if not columns:
        return nothing(ax, f"{title}: no column is known to have raised it")
    names = [f"{brief(c['name'], 22)} = {_value_text(c)}" for c in columns]
    known = [c["contribution"] for c in columns]
    values = [value or 0.0 for value in known]
    ax.barh(range(len(values)), values, color=[RED if v > 0 else BLUE for v in values], height=0.7)
    label_places(ax, names)
    beside_bars(ax, values, ["not known" if v is None else f"{v:+.3g}" for v in known])
    ax.axvline(0, color=ink(ax), lw=0.8)
    return headed(ax, title, "what the column added to the trees' raw score")


def _value_text(column: Mapping[str, Any]) -> str:
    value = column["value"]
    if column.get("redacted"):
        return "(not shown)"
    return "missing" if value is None else brief(number_text(value), 20)


def draw_column(ax: Axes, name: str, column: Mapping[str, Any], row: Any) -> Axes:
    """Draw the values of a column in training and now, and where a row's value lies."""
    value = None if row is None else _value_of(row, name)
    shown = brief(name) + ("" if row is None else f" of row {brief(row['id'])}")
    if column["kind"] == "category":
        return _draw_categories(ax, shown, column, value)
    return _draw_numbers(ax, shown, column, _as_number(value))


def _value_of(row: Mapping[str, Any], name: str) -> Any:
    return next((c["value"] for c in row["columns"] if c["name"] == name), None)


def _as_number(value: Any) -> float | None:
    """Return a value as its column's edges are: moments as days since 1970."""
    if value in ("true", "false"):
        return float(value == "true")
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None
        return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() / _DAY_S
    return None if value is None else float(value)


def _draw_numbers(ax: Axes, name: str, column: Mapping[str, Any], value: float | None) -> Axes:
    if len(column["edges"]) == 0 or not sum(column["training"]):
        return nothing(ax, f"{name}: no value is known")
    bounds, training, beyond = even_density(column["edges"], column["training"])
    ax.stairs(training, bounds, fill=True, color=GREY, alpha=0.5, label="training rows")
    if column["now"] is not None and sum(column["now"]):
        _, now, _ = even_density(column["edges"], column["now"])
        ax.stairs(now, bounds, color=BLUE, lw=2, label="rows now")
    if value is not None and np.isfinite(value):
        _mark_value(ax, bounds, value)
    if column["kind"] == "time":
        ax.xaxis_date()
        ax.tick_params(axis="x", rotation=30)
    ax.set_ylim(bottom=0)
    legend(ax)
    ends = f"{beyond:.1%} of the training rows lie beyond these ends" if beyond else ""
    return headed(ax, name, ends, "share of the rows")


def _mark_value(ax: Axes, bounds: Any, value: float) -> None:
    """Draw a line at a value, or an arrow where it is so far out that all else would be thin."""
    low, high = float(bounds[0]), float(bounds[-1])
    span = high - low
    if low - 1.5 * span <= value <= high + 1.5 * span:
        ax.axvline(value, color=RED, lw=2, label="this row")
        return
    is_left = value < low
    ax.annotate(
        f"this row: {value:.4g}",
        (0.0 if is_left else 1.0, 0.5),
        xytext=(0.12 if is_left else 0.88, 0.5),
        xycoords="axes fraction",
        textcoords="axes fraction",
        arrowprops={"arrowstyle": "->", "color": RED, "lw": 2},
        color=RED,
        ha="left" if is_left else "right",
        va="center",
        **LITERAL,
    )


def _draw_categories(ax: Axes, name: str, column: Mapping[str, Any], value: Any) -> Axes:
    names, training = list(column["edges"]), shares(column["training"])
    now = None if column["now"] is None else shares(column["now"])
    if not names or not training.sum():
        return nothing(ax, f"{name}: no value is known")
    order = _categories_shown(names, training, now, value)
    colours = [RED if names[place] == value else GREY for place in order]
    named_bars(ax, [names[place] for place in order], training[order].tolist(), colours)
    if now is not None:
        ax.scatter(
            now[order], range(len(order)), color=BLUE, marker="D", s=25, zorder=3, label="rows now"
        )
        legend(ax)
    more = len(names) - len(order)
    told = "share of the training rows" + (f" ({more} more)" if more else "")
    if value is not None and value in names:
        told += "; red: this row"
    ax.set_xlim(left=0)
    return headed(ax, name, told)


def _categories_shown(names: Sequence[str], training: Any, now: Any, value: Any) -> list[int]:
    """Return the most frequent categories that occur, and that of the row whatever it is."""
    seen = training if now is None else np.maximum(training, now)
    order = [int(p) for p in np.argsort(-seen, kind="stable") if seen[p] > 0][:_CATEGORIES_SHOWN]
    own = [place for place, name in enumerate(names) if name == value and place not in order]
    return [*order, *own]


def draw_map(ax: Axes, points: Mapping[str, Any], threshold: float | None) -> Axes:
    """Draw rows on the two directions in which training rows differ most, anomalous ones last."""
    if not points["x"]:
        return nothing(ax, "the report has no map")
    x, y = np.asarray(points["x"], dtype=float), np.asarray(points["y"], dtype=float)
    score = np.array([np.nan if s is None else s for s in points["score"]], dtype=float)
    limit = _HIGH if threshold is None else threshold
    high = score > limit
    ax.scatter(x[~high], y[~high], s=6, color=GREY, alpha=0.5, lw=0, label="other rows")
    ax.scatter(
        *(x[high], y[high]), s=26, color=RED, lw=0.5, edgecolor=ink(ax), label=f"above {limit:.5g}"
    )
    _name_highest(ax, points, np.where(high, score, -1.0))
    legend(ax)
    shown = [f" ({share:.0%} of the variance)" for share in points["explained"]] or ["", ""]
    labels = [
        f"{which} direction{part}" for which, part in zip(("first", "second"), shown, strict=False)
    ]
    return headed(ax, f"Map of {len(x):,} rows", *labels)


def _name_highest(ax: Axes, points: Mapping[str, Any], score: Any) -> None:
    """Name the highest rows, but of those that lie together one."""
    ax.margins(0.1)
    places = np.column_stack([points["x"], points["y"]]).astype(float)
    span = np.maximum(np.ptp(places, axis=0), 1e-300)
    middle = places[:, 0].min() + span[0] / 2
    named: list[Any] = []
    for row in [n for n in np.argsort(-score, kind="stable") if score[n] > 0][:_ROWS_LOOKED_AT]:
        here = places[row] / span
        if len(named) == _ROWS_NAMED or any(np.abs(here - there).max() < 0.06 for there in named):
            continue
        named.append(here)
        label = ax.annotate(
            brief(points["id"][row], 16),
            tuple(places[row]),
            **_outward(places[row][0] > middle),
            **LITERAL,
        )
        label.set_in_layout(False)  # or a long name would make the map small


def _outward(is_right: bool) -> dict[str, Any]:
    """Return where a name stands beside its point: towards the middle, where there is room."""
    found = {"textcoords": "offset points", "fontsize": "small"}
    return found | ({"xytext": (-5, 3), "ha": "right"} if is_right else {"xytext": (5, 3)})
