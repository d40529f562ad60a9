"""The nights of a job as a page: four figures over time, and a line for each night."""

from collections.abc import Sequence
from typing import Any

from mrot_scale import __version__
from mrot_scale.reporting import texts
from mrot_scale.reporting.contents import short
from mrot_scale.reporting.page import marked, render
from mrot_scale.reporting.small_charts import night_chart

Json = dict[str, Any]

_LEVELS = {"gated": "fail", "failed": "fail", "running": "warn", "empty": "ok"}


def history_page(job: str, nights: Sequence[Json], n_all: int) -> bytes:
    """Return the page; nights come oldest first and are listed newest first."""
    shown = [_line(night) for night in nights]
    labels = [line["value"] for line in shown]
    levels = [line["level"] for line in shown]
    charts = [
        (name, marked(night_chart(name, [line[key] for line in shown], levels, labels, form)))
        for name, key, form in (
            ("Share flagged", "share", texts.share),
            ("Largest drift (PSI)", "drift", texts.brief),
            ("Rows", "rows", texts.brief),
            ("Seconds", "seconds", texts.brief),
        )
    ]
    return render(
        "history.html",
        {
            "job": short(job),
            "name": short(job.rstrip("/").rpartition("/")[2] or job),
            "version": __version__,
            "nights": shown[::-1],
            "n_all": n_all,
            "counts": _counts(shown),
            "charts": [pair for pair in charts if pair[1]],
        },
    )


def _line(night: Json) -> Json:
    rows, flagged = night["rows"], night["flagged"]
    level = _LEVELS.get(night["status"], night["level"])
    return {
        **night,
        "partition": short(night["partition"]),
        "value": short(night["partition"].partition("=")[2]),
        "level": level,
        "share": None if not rows or flagged is None else flagged / rows,
        "drifted": short(night["drifted"] or ""),
    }


def _counts(shown: Sequence[Json]) -> list[tuple[str, int]]:
    names = ("published", "gated", "failed", "empty", "running")
    found = [(name, sum(line["status"] == name for line in shown)) for name in names]
    return [(name, n) for name, n in found if n]
