"""Everything a report shows, as plots from Python. With `plots_explanation.py` the only importer of
matplotlib.

Each function takes a report (the data of `report.json`, or where it is) and axes to draw on, and
returns the axes. Without axes it makes a figure of its own, apart from pyplot: show it with
``ax.figure`` in a notebook, write it with ``ax.figure.savefig("scores.png")``.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mrot_scale.errors import ConfigError, MissingLibraryError
from mrot_scale.plots_data import as_report, flagged_row, read_report
from mrot_scale.plots_rows import draw_column, draw_contributions, draw_map
from mrot_scale.plots_spreads import (
    counted_scores,
    draw_drift,
    draw_efforts,
    draw_history,
    draw_quality,
    draw_scores,
    draw_stages,
)
from mrot_scale.plots_style import Axes

AnyReport = Mapping[str, Any] | str | Path

__all__ = [
    "column_distribution",
    "contributions",
    "drift",
    "effort_distribution",
    "history",
    "quality",
    "read_report",
    "row_map",
    "score_distribution",
    "stage_times",
]

_SIZE = (7.0, 4.2)


def new_axes() -> Axes:
    """Return axes of a figure that no global list knows, so that nobody has to close it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingLibraryError(
            "Plots need matplotlib. Install it with: pip install 'mrot-scale[plots]'"
        ) from None
    return Figure(figsize=_SIZE, layout="constrained").add_subplot()


def score_distribution(
    report: Any, ax: Axes | None = None, *, threshold: float | None = None
) -> Axes:
    """Draw how many rows have which score, beside what rows like those in training would give.

    Parameters
    ----------
    report
        A report, or plain scores: an array of numbers between 0 and 1.
    threshold
        Score above which rows are flagged; the report's own when omitted.
    """
    if isinstance(report, dict | str | Path):
        found = as_report(report)
        limit = found["threshold"] if threshold is None else threshold
        return draw_scores(_axes(ax), found["scores"], limit)
    return draw_scores(_axes(ax), counted_scores(report), threshold)


def effort_distribution(
    report: AnyReport, ax: Axes | None = None, *, view: str | int | None = None
) -> Axes:
    """Draw how the efforts of the training rows are spread, with the share of rows up to each.

    Parameters
    ----------
    view
        Name or number of one view; all of them when omitted.
    """
    return draw_efforts(_axes(ax), as_report(report)["efforts"], view)


def contributions(report: AnyReport, row: int | str = 0, ax: Axes | None = None) -> Axes:
    """Draw what each column did to the score of one row.

    Parameters
    ----------
    row
        Place among the report's flagged rows, 0 being the highest, or the row's id.
    """
    return draw_contributions(_axes(ax), flagged_row(as_report(report), row))


def column_distribution(
    report: AnyReport, name: str, row: int | str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the values of a column in training and now, and where the value of one row lies.

    Parameters
    ----------
    row
        Place among the report's flagged rows or the row's id; no row when omitted.
    """
    found = as_report(report)
    if name not in found["columns"]:
        known = ", ".join(repr(known) for known in found["columns"])
        raise ConfigError(f"The report has no column {name!r}; it has {known or 'none'}.")
    chosen = None if row is None else flagged_row(found, row)
    return draw_column(_axes(ax), name, found["columns"][name], chosen)


def row_map(report: AnyReport, ax: Axes | None = None) -> Axes:
    """Draw rows on the two directions in which training rows differ most."""
    found = as_report(report)
    return draw_map(_axes(ax), found["map"], found["threshold"])


def drift(report: AnyReport, ax: Axes | None = None) -> Axes:
    """Draw how far columns and scores have moved since training."""
    return draw_drift(_axes(ax), as_report(report)["drift"])


def quality(report: AnyReport, ax: Axes | None = None) -> Axes:
    """Draw which columns miss values, and how many."""
    found = as_report(report)
    return draw_quality(_axes(ax), found["quality"], found["rows"]["rows"])


def stage_times(report: AnyReport, ax: Axes | None = None) -> Axes:
    """Draw how long each stage took."""
    return draw_stages(_axes(ax), as_report(report)["stages"])


def history(nights: Sequence[Mapping[str, Any]], ax: Axes | None = None) -> Axes:
    """Draw night after night: the share of rows flagged, failures, and the largest drift.

    Parameters
    ----------
    nights
        For each its partition, exit_code, rows, flagged and drift (the largest PSI, or None).
    """
    return draw_history(_axes(ax), nights)


def _axes(ax: Axes | None) -> Axes:
    return new_axes() if ax is None else ax
