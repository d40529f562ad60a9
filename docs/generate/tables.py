"""Markdown tables."""

from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; columns that say nothing in any row are left out."""
    rows = [[_cell(text) for text in row] for row in rows]
    kept = [i for i in range(len(heads)) if any(row[i] for row in rows)]
    lines = [_line(heads[i] for i in kept), _line("---" for _ in kept)]
    return "\n".join([*lines, *(_line(row[i] for i in kept) for row in rows)])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
