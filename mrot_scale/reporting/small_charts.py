"""Charts in tables and over time: pure functions from values to inline SVG."""

from collections.abc import Sequence
from math import floor, log10
from typing import Any

from mrot_scale.reporting.shapes import bar, line, path, svg, text
from mrot_scale.reporting.spreads import even_cells

Json = dict[str, Any]


def spread_chart(name: str, spread: Json | None) -> str:
    """Return a column's values in training (filled) and now (line), small."""
    if spread is None or not sum(spread["training"]):
        return ""
    width, height, told = 150.0, 34.0, f"Distribution of {name}: training and now"
    if spread["kind"] == "category":
        before, after = spread["training"], spread["now"] or []
    else:
        before = even_cells(spread["edges"], spread["training"])
        after = even_cells(spread["edges"], spread["now"]) if spread["now"] else []
    shapes = [[n / max(sum(part), 1e-12) for n in part] for part in (before, after)]
    most = max([*shapes[0], *shapes[1]], default=0) or 1.0
    cell = width / max(len(shapes[0]), 1)
    body = []
    for shape, css in zip(shapes, ("area", "now"), strict=True):
        steps: list[tuple[float, float]] = []
        for n, part in enumerate(shape):
            y = height - 1 - part / most * (height - 4)
            steps += [(n * cell, y), ((n + 1) * cell, y)]
        if steps and css == "area":
            steps = [(0, height - 1), *steps, (width, height - 1)]
        body.append(path(steps, css, close=css == "area"))
    return svg(width, height, told, body, "spark")


def meter(part: float, css: str = "") -> str:
    """Return a bar as long as a share, beside a figure that says the same."""
    filled = min(max(part, 0.0), 1.0) * 100
    return (
        '<svg class="meter" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="rail" width="100" height="8"/>'
        f'<rect class="bar {css}" width="{filled:.1f}" height="8"/></svg>'
    )


def trend(values: Sequence[float | None], label: str) -> str:
    """Return a line of figures over time, the last one marked."""
    known = [(n, v) for n, v in enumerate(values) if v is not None]
    if len(known) < 2:
        return ""
    width, height = 90.0, 24.0
    most = max(v for _, v in known) or 1.0
    points = [
        (3 + n / (len(values) - 1) * (width - 6), height - 3 - v / most * (height - 6))
        for n, v in known
    ]
    x, y = points[-1]
    mark = f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="2.2"/>'
    return svg(width, height, label, [path(points, "curve"), mark], "spark")


def _round_up(value: float) -> float:
    """Return the next round number, for the end of an axis."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** floor(log10(value))
    return next(unit * step for step in (1, 2, 3, 4, 5, 6, 8, 10) if unit * step >= value * 0.9999)


def night_chart(
    name: str,
    values: Sequence[float | None],
    levels: Sequence[str],
    labels: Sequence[str],
    form: Any,
) -> str:
    """Return one figure over the nights, as bars in the colour of how each night went."""
    known = [v for v in values if v is not None]
    if not known:
        return ""
    width, height = 360.0, 132.0
    left, floor_y, top = 44.0, height - 20, 10.0
    most = _round_up(max(known))
    step = (width - left - 6) / max(len(values), 12)
    body = []
    for part in (0.0, 0.5, 1.0):
        y = floor_y - part * (floor_y - top)
        body += [
            line(left, y, width - 6, y, "grid"),
            text(left - 4, y + 3.5, form(most * part), "end"),
        ]
    for n, (value, level) in enumerate(zip(values, levels, strict=True)):
        if value is not None:
            tall = (floor_y - top) * value / most
            told = f"{labels[n]}: {form(value)}"
            x = left + n * step
            body.append(bar(x + step * 0.1, floor_y - tall, step * 0.8, tall, f"bar {level}", told))
    last = left + (len(values) - 0.5) * step
    body.append(text(left, height - 5, labels[0], "start"))
    if len(values) > 6:
        body.append(text(min(last + step, width - 6), height - 5, labels[-1], "end"))
    label = f"{name} over {len(values)} nights, from {form(min(known))} to {form(max(known))}"
    return svg(width, height, label, body)
