"""The large charts: pure functions from values to inline SVG."""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from math import ceil, floor, log10
from typing import Any

from mrot_scale.reporting.shapes import bar, line, path, svg, text
from mrot_scale.reporting.texts import brief, number, share

Json = dict[str, Any]

_LEFT, _RIGHT, _TOP, _BOTTOM = 38.0, 10.0, 16.0, 30.0
_TAIL_BINS, _TAIL_WIDTH = 3, 3.0
"""The last ranges of the score are thin and matter most: they are drawn wider."""

_SMALLEST_SHARE = 1e-6


def score_chart(scores: Json, threshold: float | None) -> str:
    """Return how many rows have a score in each range, against what training gives."""
    counts, edges = scores["counts"], scores["edges"]
    total = sum(counts)
    if not total:
        return ""
    width, height = 360.0, 220.0
    shares = [count / total for count in counts]
    base, top = _decades([*shares, *scores["expected"]])
    places = _score_places(len(counts), _LEFT, width - _RIGHT)
    floor_y = height - _BOTTOM

    def y_of(value: float) -> float:
        at = (log10(max(value, 10.0**base)) - base) / (top - base)
        return floor_y - at * (floor_y - _TOP)

    body = [_share_axis(base, top, y_of, width)]
    for low, high, left, right, part, usual in zip(
        edges, edges[1:], places, places[1:], shares, scores["expected"], strict=False
    ):
        hot = threshold is not None and low >= threshold - 1e-9
        told = f"{number(low)} to {number(high)}: {share(part)} of the rows, {share(usual)} usual"
        if part:
            css = "bar hot" if hot else "bar"
            body.append(
                bar(left + 0.7, y_of(part), right - left - 1.4, floor_y - y_of(part), css, told)
            )
        body.append(line(left + 0.7, y_of(usual), right - 0.7, y_of(usual), "usual"))
    body += _score_ticks(edges, places, floor_y)
    body.append(text((_LEFT + width - _RIGHT) / 2, height - 3, "score", css="name"))
    if threshold is not None:
        x = _inside(threshold, edges, places)
        body.append(line(x, _TOP - 6, x, floor_y, "limit"))
        body.append(text(x - 3, _TOP - 6, f"threshold {number(threshold)}", "end", "note"))
    label = _score_label(shares, scores["expected"], edges, threshold)
    return svg(width, height, label, body)


def _score_label(
    shares: Sequence[float], usual: Sequence[float], edges: Sequence[float], limit: float | None
) -> str:
    last, expected = sum(shares[-2:]), sum(usual[-2:])
    told = f"Histogram of scores. {share(last)} of the rows score above {number(edges[-3])}, "
    told += f"{share(expected)} would be usual."
    return told if limit is None else f"{told} The threshold is {number(limit)}."


def _decades(values: Iterable[float]) -> tuple[int, int]:
    known = [max(v, _SMALLEST_SHARE) for v in values if v > 0]
    low, high = floor(log10(min(known))), ceil(log10(max(known)) - 1e-9)
    return low, max(high, low + 1)


def _share_axis(base: int, top: int, y_of: Any, width: float) -> str:
    found = []
    for power in range(base, top + 1):
        y = y_of(10.0**power)
        found.append(line(_LEFT, y, width - _RIGHT, y, "grid"))
        found.append(text(_LEFT - 4, y + 3.5, f"{100 * 10.0**power:g}%", "end"))
    return "".join(found)


def _score_places(n_bins: int, left: float, right: float) -> list[float]:
    weights = [1.0] * max(n_bins - _TAIL_BINS, 0) + [_TAIL_WIDTH] * min(_TAIL_BINS, n_bins)
    unit, places = (right - left) / sum(weights), [left]
    for weight in weights:
        places.append(places[-1] + weight * unit)
    return places


def _score_ticks(edges: Sequence[float], places: Sequence[float], y: float) -> list[str]:
    wanted = {0, 5, 10, 15, *range(len(edges) - 1 - _TAIL_BINS, len(edges))}
    return [text(places[n], y + 13, f"{edges[n]:g}".replace("0.", ".")) for n in sorted(wanted)]


def _inside(value: float, edges: Sequence[float], places: Sequence[float]) -> float:
    for (low, high), (left, right) in zip(pairwise(edges), pairwise(places), strict=True):
        if value <= high:
            return left + (right - left) * max(value - low, 0.0) / (high - low)
    return places[-1]


def effort_chart(effort: Json) -> str:
    """Return the efforts of the training rows in one view: how many, and how many up to there."""
    edges, counts, below = effort["edges"], effort["counts"], effort["cdf"]
    most = max(counts, default=0)
    if not most:
        return ""
    width, height = 320.0, 176.0
    right, floor_y, top = width - 34, height - _BOTTOM, 12.0
    x_of, body = _axis([edges[0], edges[-1]], _LEFT, right), []
    for part in (0.0, 0.5, 1.0):
        y = floor_y - part * (floor_y - top)
        body += [line(_LEFT, y, right, y, "grid"), text(right + 4, y + 3.5, share(part), "start")]
        body.append(text(_LEFT - 4, y + 3.5, brief(most * part), "end"))
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        tall = (floor_y - top) * count / most
        body.append(bar(x_of(low), floor_y - tall, x_of(high) - x_of(low) - 0.4, tall, "bar soft"))
    curve = [
        (x_of(x), floor_y - y * (floor_y - top)) for x, y in zip(edges[1:], below, strict=True)
    ]
    body.append(path([(x_of(edges[0]), floor_y), *curve], "curve"))
    for value, shown in _powers(edges[0], edges[-1]):
        body.append(text(x_of(value), floor_y + 13, shown))
    body.append(text((_LEFT + right) / 2, height - 3, "effort", css="name"))
    half = next((x for x, y in zip(edges[1:], below, strict=True) if y >= 0.5), edges[-1])
    tail = next((x for x, y in zip(edges[1:], below, strict=True) if y >= 0.99), edges[-1])
    label = (
        f"Efforts of the training rows in view {effort['view']}: half are below "
        f"{brief(10**half)}, 99% below {brief(10**tail)}."
    )
    return svg(width, height, label, body)


def _powers(low: float, high: float) -> list[tuple[float, str]]:
    """Return round numbers between two powers of ten, with their logarithms."""
    for digits in ((1, 2, 5), (1, 3), (1,)):
        found = [
            (log10(digit) + power, brief(digit * 10.0**power))
            for power in range(floor(low), ceil(high) + 1)
            for digit in digits
            if low <= log10(digit) + power <= high
        ]
        if len(found) <= 6:
            return found
    return found[:: ceil(len(found) / 6)]


def map_chart(found: Json, threshold: float | None, flagged: set[int]) -> str:
    """Return rows as points, coloured by score; those in the table can be pointed at."""
    if not found["x"]:
        return ""
    width, height = 360.0, 300.0
    x_of, y_of = _axis(found["x"], 8, width - 8), _axis(found["y"], height - 8, 8)
    shades: dict[int, list[str]] = {n: [] for n in range(5)}
    marks = []
    order = sorted(range(len(found["x"])), key=lambda n: found["score"][n] or 0.0)
    for n in order:
        x, y, score = x_of(found["x"][n]), y_of(found["y"][n]), found["score"][n]
        if found["row"][n] in flagged:
            told = f"{found['id'][n]}: {number(score)}"
            marks.append(
                f'<circle class="point hot" data-row="{int(found["row"][n])}" cx="{x:.1f}" '
                f'cy="{y:.1f}" r="3"><title>{escape(told)}</title></circle>'
            )
        else:
            shades[shade_of(score, threshold)].append(f"M{x:.1f} {y:.1f}h0")
    body = [f'<rect class="frame" x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}"/>']
    body += [f'<path class="dots s{n}" d="{"".join(d)}"/>' for n, d in shades.items() if d]
    label = (
        f"Map of {len(found['x']):,} rows by their two main directions, coloured by score. "
        f"{len(marks):,} of them are flagged."
    )
    return svg(width, height, label, [*body, *marks])


def shade_of(score: float | None, threshold: float | None) -> int:
    """Return the shade of a score: 0 for usual, 4 for flagged."""
    if score is None:
        return 0
    if threshold is not None and score > threshold:
        return 4
    return sum(score > limit for limit in (0.5, 0.8, 0.95))


def _axis(values: Sequence[float], start: float, stop: float) -> Any:
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    return lambda value: start + (value - low) / span * (stop - start)
