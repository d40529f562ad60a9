"""Names, numbers, sizes and tables as lines that a terminal just prints.

Names come from whoever made a table, so none reaches a terminal unescaped.
"""

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TextIO

Cells = Sequence[str]

_LINES_SHOWN = 50

WIDEST_NAME = 40
"""Characters of a name that are shown."""

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


_COLOURS = {"red": "1;31", "yellow": "33"}


def coloured(text: str, colour: Literal["red", "yellow"], stream: TextIO) -> str:
    """Return a text with its colour, where it goes to a terminal that shows colours."""
    wants_none = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") in ("dumb", "unknown")
    if wants_none or not stream.isatty():
        return text
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"


def printable(text: Any) -> str:
    """Return a text with everything a terminal would not just print written as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def name_text(text: Any) -> str:
    """Return a name escaped, and cut where it is long."""
    shown = printable(text)
    return shown if len(shown) <= WIDEST_NAME else f"{shown[: WIDEST_NAME - 1]}…"


def names_text(found: Sequence[Any]) -> str:
    """Return names one after the other; of many, how many more there are."""
    shown = [name_text(name) for name in found[:_LINES_SHOWN]]
    more = len(found) - len(shown)
    return ", ".join([*shown, *([f"and {more} more"] if more else [])])


def number_text(value: Any) -> str:
    """Return a value as people write it, or escaped where it is no number."""
    if value is None:
        return "-"
    if type(value) is int:
        return f"{value:,}"
    return f"{value:.6g}" if type(value) is float else name_text(value)


def size_text(n_bytes: int) -> str:
    """Return a size with the unit people would use, such as 1.6 GiB."""
    size, unit = float(n_bytes), 0
    while size >= 1_024 and unit < len(_UNITS) - 1:
        size, unit = size / 1_024, unit + 1
    return f"{size:.0f} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def pair_lines(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return names and values in two columns, leaving out what is empty."""
    kept = [(name, value) for name, value in pairs if value]
    width = max((len(name) for name, _ in kept), default=0)
    return [f"  {name:<{width}}  {value}" for name, value in kept]


def titled_table(title: str, header: Cells, rows: Sequence[Cells]) -> list[str]:
    """Return a title and a table below it; nothing where there are no rows."""
    return ["", title, *table_lines(header, rows)] if rows else []


def table_lines(header: Cells, rows: Sequence[Cells]) -> list[str]:
    """Return rows under a header, each column as wide as it needs; long tables are cut."""
    columns = [_aligned(cells) for cells in zip(header, *rows[:_LINES_SHOWN], strict=True)]
    lines = ["  " + "  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
    more = len(rows) - _LINES_SHOWN
    return [*lines, *([f"  and {more:,} more (all in JSON output)"] if more > 0 else [])]


def _aligned(cells: Cells) -> Cells:
    """Return the cells of a column, header first, as wide as the widest; numbers to the right."""
    width = max(map(len, cells))
    are_numbers = all(c == "-" or c.lstrip("-")[:1].isdigit() for c in cells[1:])
    return [c.rjust(width) if are_numbers else c.ljust(width) for c in cells]
