"""An explanation as lines for people."""

from math import exp

from mrot_scale.explanation import ColumnPart, Explanation, ViewPart
from mrot_scale.terminal_text import name_text, number_text, table_lines

COLUMNS_SHOWN = 10
VALUES_SHOWN = 5
"""Columns, the strongest, that normal rows and anchors are shown in."""


def explanation_text(found: Explanation) -> str:
    """Return why a row is scored as it is, as a terminal shows it."""
    lines = [_head(found), "", f"What each column accounts for, of {found.rarity:.2f}:"]
    lines += table_lines(
        ["column", "part", "share", "value", "usual here", "median", "percentile"],
        [_column_cells(column) for column in found.columns[:COLUMNS_SHOWN]],
    )
    more = len(found.columns) - COLUMNS_SHOWN
    lines += [f"  and {more} columns with less"] if more > 0 else []
    shown = found.columns[:VALUES_SHOWN]
    if found.normal_rows:
        lines += ["", "Normal rows that it resembles in most columns:"]
        lines += _value_lines(found, shown)
    lines += ["", "Where its mass was sent:"]
    for view in found.views:
        lines += _view_lines(view, shown)
    return "\n".join(lines)


def _head(found: Explanation) -> str:
    state = "flagged" if found.is_flagged else "not flagged"
    one_in = number_text(round(exp(min(found.rarity, 30.0))))
    return (
        f"row {name_text(found.id)}: score {found.score:.7f}, {state} (threshold "
        f"{found.threshold:.7f}); by the {found.method} one row in {one_in} is as rare"
    )


def _column_cells(column: ColumnPart) -> list[str]:
    percentile = "-" if column.percentile is None else f"{column.percentile:.1f}"
    return [
        name_text(column.name),
        f"{column.contribution:.2f}",
        f"{column.share:.0%}",
        number_text(column.value),
        number_text(column.usual),
        number_text(column.median),
        percentile,
    ]


def _value_lines(found: Explanation, shown: tuple[ColumnPart, ...]) -> list[str]:
    names = [column.name for column in shown]
    rows = [["this row", *(number_text(column.value) for column in shown)]]
    for place, row in enumerate(found.normal_rows):
        rows.append([f"normal {place + 1}", *(number_text(row[name]) for name in names)])
    return table_lines(["", *(name_text(name) for name in names)], rows)


def _view_lines(view: ViewPart, shown: tuple[ColumnPart, ...]) -> list[str]:
    lines = [
        f"  {view.name}: effort {view.effort:.4g}, harder to move than "
        f"{1 - exp(-view.rarity):.2%} of the training rows",
        f"    {view.n_zone} of {view.n_anchors} anchors are too near to be used, up to a distance "
        f"of {view.reach:.4g}",
    ]
    strongest = sorted(view.by_column.items(), key=lambda pair: -pair[1])[:3]
    if "column by column" in view.name:
        parts = ", ".join(f"{name_text(n)} {value:.2f}" for n, value in strongest)
        return [*lines, f"    rarest in: {parts}"] if parts else lines
    if view.anchor:
        known = [c.name for c in shown if c.name in view.anchor]
        values = ", ".join(f"{name_text(name)} {view.anchor[name]:.6g}" for name in known)
        lines.append(f"    sent at a cost of {view.cost:.4g} to an anchor with {values}")
        parts = ", ".join(f"{name_text(n)} {share:.0%}" for n, share in strongest)
        lines.append(f"    most of the way is along: {parts}")
    return lines
