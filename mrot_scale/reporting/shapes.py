"""Pieces of SVG: lines, bars, paths and words, every name in them escaped.

Colours are classes of the page's style sheet, so that one drawing serves light, dark and paper.
"""

from collections.abc import Iterable
from html import escape


def svg(width: float, height: float, label: str, body: Iterable[str], css: str = "chart") -> str:
    """Return a picture with what it shows said in words."""
    return (
        f'<svg class="{css}" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(label, quote=True)}">{"".join(body)}</svg>'
    )


def text(x: float, y: float, content: str, anchor: str = "middle", css: str = "tick") -> str:
    return (
        f'<text class="{css}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
        f"{escape(content)}</text>"
    )


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    return f'<line class="{css}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def bar(x: float, y: float, width: float, height: float, css: str, told: str = "") -> str:
    title = f"<title>{escape(told)}</title>" if told else ""
    return (
        f'<rect class="{css}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" '
        f'height="{max(height, 0):.1f}">{title}</rect>'
    )


def path(points: Iterable[tuple[float, float]], css: str, *, close: bool = False) -> str:
    drawn = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path class="{css}" d="M{drawn}{"Z" if close else ""}"/>' if drawn else ""
