"""Plots of all rows: how scores and efforts are spread, what has moved, what is missing."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.errors import ConfigError
from mrot_scale.pace import seconds_text
from mrot_scale.plots_data import shares
from mrot_scale.plots_style import (
    BARS_SHOWN,
    BLUE,
    GREY,
    LITERAL,
    ORANGE,
    RED,
    SERIES,
    Axes,
    beside_bars,
    headed,
    ink,
    legend,
    named_bars,
    nothing,
)
from mrot_scale.profiles import SCORE_EDGES, count_scores
from mrot_scale.terminal_text import name_text

_SMALLEST_SHARE = 1e-9
_TOWERING = 20
_SOME_DRIFT, _MUCH_DRIFT = 0.1, 0.25
"""Where people who use the population stability index begin to look, and to worry."""


def counted_scores(scores: NDArray[Any]) -> dict[str, list[float]]:
    """Return plain scores as a report holds them."""
    values = np.asarray(scores, dtype=np.float32).ravel()
    if np.any((values < 0) | (values > 1)):
        raise ConfigError("Scores are between 0 and 1, higher being more anomalous.")
    edges = [0.0, *SCORE_EDGES.tolist(), 1.0]
    counts = count_scores(values)[:-1].tolist()
    return {"edges": edges, "counts": counts, "expected": np.diff(edges).tolist()}


def draw_scores(ax: Axes, scores: Mapping[str, Any], threshold: float | None) -> Axes:
    """Draw how many rows are in each range of the score, as a multiple of what is to be expected.

    Scores are shares of the training rows, so that rows like those make all bars equally high.
    """
    edges, counts = np.asarray(scores["edges"], dtype=float), scores["counts"]
    if not sum(counts):
        return nothing(ax, "no row has a score")
    widths = np.diff(edges)
    expected = scores["expected"] if sum(scores["expected"]) else widths.tolist()
    times = shares(counts) / np.maximum(shares(expected), _SMALLEST_SHARE)
    ends = np.concatenate([[0.0], np.cumsum(np.where(widths < 0.9 * widths.max(), 2.0, 1.0))])
    ax.bar((ends[:-1] + ends[1:]) / 2, times, width=0.92 * np.diff(ends), color=BLUE, label="rows")
    ax.axhline(1, color=ORANGE, lw=2, label="as in training")
    if threshold is not None:
        at = np.interp(threshold, edges, ends)
        ax.axvline(at, color=ink(ax), ls="--", lw=1, label=f"flagged above {threshold:.5g}")
    _count_highest(ax, ends, times, counts)
    _label_edges(ax, ends, edges)
    legend(ax)
    title = f"Scores of {sum(counts):,} rows"
    return headed(ax, title, "score (wider where it is highest)", "times as many as in training")


def _count_highest(ax: Axes, ends: Any, times: Any, counts: Sequence[int]) -> None:
    """Write how many rows the highest ranges have; where they tower, the axis is logarithmic."""
    for place in range(max(len(counts) - 2, 0), len(counts)):
        middle = (ends[place] + ends[place + 1]) / 2
        ax.annotate(
            f"{counts[place]:,}",
            (middle, times[place]),
            **{"xytext": (0, 2), "textcoords": "offset points", "ha": "center"},
            fontsize="x-small",
        )
    if times.max() > _TOWERING:
        ax.set_yscale("log")
        ax.set_ylim(bottom=min(0.5, times[times > 0].min() / 2))


def _label_edges(ax: Axes, ends: Any, edges: Any) -> None:
    """Label every fourth edge, and all where ranges are wide enough on the page."""
    is_wide = np.append(np.diff(ends) > 1, True)
    shown = [n for n in range(len(edges)) if is_wide[n] or (n % 4 == 0 and not is_wide[n + 1])]
    labels = [f"{edges[n]:.3g}".removeprefix("0") or "0" for n in shown]
    ax.set_xticks(ends[shown], labels=labels, fontsize="small")


def draw_efforts(ax: Axes, efforts: Sequence[Mapping[str, Any]], view: str | int | None) -> Axes:
    """Draw how the efforts of training rows are spread in each view, and the share up to each."""
    chosen = _chosen_views(efforts, view)
    if not chosen:
        return nothing(ax, "the report has no efforts")
    below = ax.twinx()
    for place, found in enumerate(chosen):
        edges, colour = np.asarray(found["edges"]), SERIES[place % len(SERIES)]
        part = shares(found["counts"])
        ax.stairs(part, edges, color=colour, lw=1.5, label=name_text(found["view"]))
        ax.stairs(part, edges, color=colour, fill=True, alpha=0.15)
        below.plot(edges[1:], found["cdf"], color=colour, ls="--", lw=1)
    below.set_ylim(0, 1.02)
    below.set_ylabel("share of the rows up to here (dashed)")
    below.spines["top"].set_visible(False)
    ax.set_ylim(bottom=0)
    legend(ax, loc="center right")
    headed(ax, "Efforts of the training rows", "log10 of the effort", "share of the rows")
    ax.spines["right"].set_visible(True)
    return ax


def _chosen_views(
    efforts: Sequence[Mapping[str, Any]], view: str | int | None
) -> Sequence[Mapping[str, Any]]:
    if view is None:
        return efforts
    found = [e for n, e in enumerate(efforts) if view in (n, e["view"])]
    if not found:
        names = ", ".join(repr(e["view"]) for e in efforts)
        raise ConfigError(f"The report has no view {view!r}; it has {names or 'none'}.")
    return found


def draw_drift(ax: Axes, drift: Sequence[Mapping[str, Any]]) -> Axes:
    """Draw how far columns have moved from training, the farthest on top."""
    lines = sorted(drift, key=lambda line: -(line["psi"] or 0.0))[:BARS_SHOWN]
    if not lines:
        return nothing(ax, "the report compares with nothing")
    values = [line["psi"] or 0.0 for line in lines]
    colours = [RED if v >= _MUCH_DRIFT else ORANGE if v >= _SOME_DRIFT else BLUE for v in values]
    named_bars(ax, [line["name"] for line in lines], values, colours)
    before = [(n, line.get("previous_psi")) for n, line in enumerate(lines)]
    known = [(n, value) for n, value in before if value is not None]
    if known:
        places, old = zip(*known, strict=True)
        ax.scatter(old, places, marker="|", s=90, color=ink(ax), zorder=3, label="the run before")
        legend(ax)
    for limit in (_SOME_DRIFT, _MUCH_DRIFT):
        ax.axvline(limit, color=GREY, ls=":", lw=1)
    beside_bars(ax, values, [f"{value:.3f}" for value in values])
    title = _of_many("Drift since training", len(lines), len(drift))
    return headed(ax, title, f"PSI (dotted: {_SOME_DRIFT}, {_MUCH_DRIFT})")


def draw_quality(ax: Axes, quality: Sequence[Mapping[str, Any]], n_rows: int | None) -> Axes:
    """Draw the share of rows in which each column has no value."""
    lines = sorted(quality, key=lambda line: -(line["missing"] or 0))
    lines = [line for line in lines if line["missing"]][:BARS_SHOWN]
    if not quality:
        return nothing(ax, "the report does not look at columns")
    if not lines or not n_rows:
        return nothing(ax, f"no value is missing in {len(quality):,} columns")
    values = [100 * line["missing"] / n_rows for line in lines]
    named_bars(ax, [line["name"] for line in lines], values, ORANGE)
    beside_bars(ax, values, [f"{value:.3g} %" for value in values])
    n_missing = sum(bool(line["missing"]) for line in quality)
    title = _of_many("Missing values", len(lines), n_missing)
    return headed(ax, title, f"% of {n_rows:,} rows")


def draw_stages(ax: Axes, stages: Mapping[str, float]) -> Axes:
    """Draw how long each stage took, in order."""
    if not stages:
        return nothing(ax, "the report has no stages")
    values = list(stages.values())
    named_bars(ax, list(stages), values)
    beside_bars(ax, values, [seconds_text(value) for value in values])
    return headed(ax, f"Time: {seconds_text(sum(values))} in all", "seconds")


def draw_history(ax: Axes, nights: Sequence[Mapping[str, Any]]) -> Axes:
    """Draw the share of rows flagged night by night, and the largest drift of each."""
    if not nights:
        return nothing(ax, "no night has run")
    places = np.arange(len(nights))
    flagged = np.array(
        [100 * (n["flagged"] or 0) / n["rows"] if n["rows"] else 0.0 for n in nights]
    )
    has_failed = np.array([bool(night["exit_code"]) for night in nights])
    ax.bar(places[~has_failed], flagged[~has_failed], color=BLUE, width=0.8, label="flagged")
    if has_failed.any():
        ax.bar(
            *(places[has_failed], flagged[has_failed]),
            **{"color": "none", "edgecolor": RED, "hatch": "///", "label": "failed"},
        )
        ax.scatter(places[has_failed], np.zeros(has_failed.sum()), marker="X", color=RED, zorder=3)
    _draw_largest_drift(ax, places, nights)
    step = max(-(-len(nights) // 10), 1)
    names = [name_text(str(n["partition"]).partition("=")[2] or n["partition"]) for n in nights]
    ax.set_xticks(places[::step], labels=names[::step], rotation=30, ha="right", **LITERAL)
    ax.set_ylim(bottom=min(0.0, -0.05 * flagged.max()))
    return headed(ax, f"{len(nights):,} nights", "", "% of the rows flagged")


def _draw_largest_drift(ax: Axes, places: Any, nights: Sequence[Mapping[str, Any]]) -> None:
    drift = np.array([np.nan if n["drift"] is None else n["drift"] for n in nights], dtype=float)
    handles = ax.get_legend_handles_labels()[0]
    if not np.isnan(drift).all():
        other = ax.twinx()
        handles += other.plot(places, drift, color=ORANGE, marker="o", ms=4, label="largest drift")
        other.set_ylim(bottom=0)
        other.set_ylabel("largest PSI of a column")
        other.spines["top"].set_visible(False)
    legend(ax, handles)


def _of_many(title: str, shown: int, total: int) -> str:
    return title if shown == total else f"{title}: {shown} of {total:,} columns"
