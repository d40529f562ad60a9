"""A night as a page: one file that needs nothing else to be looked at.

The only importer of jinja2.
"""

from importlib.resources import files
from typing import Any

from mrot_scale.profiles import SCORE_EDGES, Profile
from mrot_scale.scheduled.layout import Layout
from mrot_scale.scheduled.partitions import Partition

_DRIFTS_SHOWN = 50
_ORDER = ("fail", "warn", "ok")


def report_page(facts: dict[str, Any], profile: Profile | None) -> bytes:
    """Return the page of a run, from what its record holds."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    text = (files("mrot_scale.scheduled") / "report.html").read_text(encoding="utf-8")
    drifts = sorted(facts.get("drift", []), key=lambda d: -d["psi"])
    page = environment.from_string(text).render(
        run=facts,
        gates=sorted(facts.get("gates", []), key=lambda gate: _ORDER.index(gate["level"])),
        drifts=drifts[:_DRIFTS_SHOWN],
        n_drifts=len(drifts),
        bars=_bars(profile),
        stages=facts.get("stages", {}),
    )
    return page.encode()


def _bars(profile: Profile | None) -> list[dict[str, Any]]:
    """Return the histogram of scores: from, to, share of the rows, share expected."""
    if profile is None or not profile.scores[:-1].sum():
        return []
    ends = [0.0, *SCORE_EDGES.tolist(), 1.0]
    total = profile.scores[:-1].sum()
    return [
        {
            "low": low,
            "high": high,
            "share": float(count / total),
            "expected": high - low,
            "ratio": float(count / total) / (high - low),
        }
        for low, high, count in zip(ends, ends[1:], profile.scores[:-1], strict=False)
    ]


def write_report(
    layout: Layout, partition: Partition, facts: dict[str, Any], profile: Profile | None
) -> None:
    layout.report(partition).write(report_page(facts, profile))
