"""Contents become one file that needs nothing else to be looked at.

The only importer of jinja2.
"""

import base64
import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from typing import Any

from mrot_scale.reporting import drawing, small_charts, texts
from mrot_scale.reporting.contents import Contents, Json, plain

MOST_BYTES = 5_000_000
"""A page is never larger: rows and points are left out until it fits."""

DRIFTS_SHOWN = 50
_PSI_LEVELS = ((0.25, "high"), (0.1, "some"))
_VERBS = {"fit": "Fit", "score": "Score", "nightly": "Night"}
_ESCAPES = {c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def report_page(contents: Contents) -> bytes:
    """Return the page of a run, small enough to be sent around."""
    page = _rendered(contents)
    while len(page) > MOST_BYTES and (contents.flagged or contents.map["x"]):
        contents = _smaller(contents)
        page = _rendered(contents)
    return page


def _smaller(contents: Contents) -> Contents:
    rows, points = len(contents.flagged) // 2, len(contents.map["x"]) // 2
    found = {n: v if n == "explained" else v[:points] for n, v in contents.map.items()}
    note = f"The {rows:,} highest flagged rows: more would not fit this page."
    notes = contents.notes | {"flagged": note}
    return replace(contents, flagged=contents.flagged[:rows], map=found, notes=notes)


def _rendered(contents: Contents) -> bytes:
    flagged = {row["row"] for row in contents.flagged}
    scores = drawing.score_chart(contents.scores, contents.threshold)
    efforts = [(e["view"], marked(drawing.effort_chart(e))) for e in contents.efforts]
    slowest = max(contents.stages.values(), default=0.0) or 1.0
    return render(
        "page.html",
        {
            "report": contents,
            "kind": _VERBS[contents.kind],
            "level": contents.notices[0]["level"] if contents.notices else "ok",
            "alarms": [n for n in contents.notices if n["level"] != "ok"],
            "passed": [n for n in contents.notices if n["level"] == "ok"],
            "scores": marked(scores),
            "efforts": [pair for pair in efforts if pair[1]],
            "map": marked(drawing.map_chart(contents.map, contents.threshold, flagged)),
            "drift": [_drift_line(line, contents) for line in contents.drift[:DRIFTS_SHOWN]],
            "has_past": any(line["past"] for line in contents.drift[:DRIFTS_SHOWN]),
            "has_previous": any(
                line["previous_psi"] is not None for line in contents.drift[:DRIFTS_SHOWN]
            ),
            "stages": [
                (name, spent, marked(small_charts.meter(spent / slowest)))
                for name, spent in contents.stages.items()
            ],
            "data": marked(script_json(_script_data(contents))),
        },
        script=_read("page.js"),
    )


def _drift_line(line: Json, contents: Contents) -> Json:
    """Return a line of the drift table with its drawings."""
    psi = line["psi"] or 0.0
    level = next((name for limit, name in _PSI_LEVELS if psi > limit), "")
    told = f"PSI of {line['name']} in the runs before and this one"
    return line | {
        "meter": marked(small_charts.meter(psi / 0.5, level)),
        "level": level,
        "spread": marked(
            small_charts.spread_chart(line["name"], contents.columns.get(line["name"]))
        ),
        "trend": marked(small_charts.trend([*line["past"], psi], told) if line["past"] else ""),
    }


def _script_data(contents: Contents) -> Json:
    """Return what the page's script needs: names once, then places in the list of them."""
    named = {c["name"] for row in contents.flagged for c in row["columns"]}
    names = sorted(named)
    place = {name: n for n, name in enumerate(names)}
    rows = [
        [
            row["row"],
            [
                [place[c["name"]], c["value"], c["contribution"], int(bool(c.get("redacted")))]
                for c in row["columns"]
            ],
        ]
        for row in contents.flagged
    ]
    return {
        "names": names,
        "columns": [contents.columns.get(name) for name in names],
        "rows": rows,
    }


def script_json(value: Any) -> str:
    """Return JSON that no text in it can break out of."""
    found = json.dumps(plain(value), allow_nan=False, separators=(",", ":"))
    return "".join(_ESCAPES.get(c, c) for c in found)


def render(template: str, values: Json, *, script: str = "") -> bytes:
    """Return a page whose policy lets its own style and script through, and nothing else."""
    style = _read("page.css")
    policy = [
        "default-src 'none'",
        f"style-src {_digest(style)}",
        f"script-src {_digest(script)}" if script else "script-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    common = {"style": marked(style), "script": marked(script), "policy": "; ".join(policy)}
    text: str = _environment().get_template(template).render(values | common)
    return text.encode()


def _digest(content: str) -> str:
    found = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    return f"'sha256-{found}'"


@lru_cache(1)
def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    made = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(_read),
    )
    made.filters |= {
        "number": texts.number,
        "share": texts.share,
        "seconds": texts.seconds,
        "moment": texts.moment,
        "tail": lambda path: str(path).rstrip("/").rpartition("/")[2],
        "why": _why,
    }
    return made


def _why(columns: Iterable[Json]) -> str:
    """Return the first columns of a row in a few words."""
    told = []
    for column in list(columns)[:3]:
        value = column["value"]
        shown = "missing" if value is None else texts.number(value)
        told.append(f"{column['name']} {'not shown' if column.get('redacted') else shown}")
    return ", ".join(told)


def marked(drawn: str) -> Any:
    """Declare a drawing of ours to be safe: names in it are escaped where it is drawn."""
    from markupsafe import Markup

    return Markup(drawn)  # noqa: S704


@lru_cache(8)
def _read(name: str) -> str:
    return (files("mrot_scale.reporting") / name).read_text(encoding="utf-8")
