"""A description as lines for people."""

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from mrot_scale.describe import Description, Facts
from mrot_scale.digests import Kind
from mrot_scale.model.persist import library_versions
from mrot_scale.running.worker_checks import worker_versions
from mrot_scale.terminal_text import (
    Cells,
    name_text,
    names_text,
    number_text,
    pair_lines,
    printable,
    size_text,
    titled_table,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def description_text(description: Description) -> str:
    """Return a description as lines for people."""
    title = f"{description.kind} {printable(description.path)}"
    return "\n".join([title, *_LINES_OF[description.kind](description.facts)])


def _store_lines(facts: Facts) -> list[str]:
    chunks = f"{facts['chunks']:,} of {facts['chunk_rows']:,} rows"
    lines = pair_lines(
        [
            ("rows", number_text(facts["rows"])),
            ("features", number_text(len(facts["features"]))),
            ("chunks", chunks),
            ("size", f"{size_text(facts['bytes'])} (features {size_text(facts['feature_bytes'])})"),
            ("identifiers", name_text(facts["id_column"])),
            ("carried along", names_text(facts["carried"])),
            ("partitioned by", names_text(facts["partition_keys"])),
            ("too many categories", names_text(facts["overflowed"])),
            ("identity", facts["identity"][:16]),
        ]
    )
    numbers = [f for f in facts["features"] if f["kind"] != "category"]
    columns = ("name", "kind", "count", "missing", "min", "median", "max")
    lines += titled_table("Features", columns, [_number_cells(f) for f in numbers])
    categories = [f for f in facts["features"] if f["kind"] == "category"]
    header = ("name", "categories", "count", "missing", "beyond", "most frequent")
    lines += titled_table("Categories", header, [_category_cells(f) for f in categories])
    left_out = [(name_text(c["column"]), printable(c["reason"])) for c in facts["left_out"]]
    return lines + titled_table("Columns that are not features", ("name", "reason"), left_out)


def _number_cells(feature: Facts) -> Cells:
    missing = (feature.get("missing") or 0) + (feature.get("infinite") or 0)
    return [
        name_text(feature["name"]),
        feature["kind"],
        number_text(feature.get("count")),
        number_text(missing),
        *_spread_cells(feature),
    ]


def _spread_cells(feature: Facts) -> Cells:
    """Return minimum, median and maximum with as many digits as tell them apart."""
    values = [feature.get(n) for n in ("min", "median", "max")]
    if feature["kind"] in ("datetime", "date") and feature["name"] == feature["column"]:
        return [_moment(v) for v in values]
    for digits in (6, 9, 12, 17):
        shown = ["-" if v is None else f"{v:.{digits}g}" for v in values]
        if len(set(shown)) == len(set(values)):
            break
    return shown


def _moment(days: float | None) -> str:
    """Return days since 1970 as a date; far beyond the calendar they stay a number."""
    if days is None:
        return "-"
    try:
        return (_EPOCH + timedelta(days=days)).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError):
        return number_text(days)


def _category_cells(feature: Facts) -> Cells:
    frequent = [f"{name_text(f['value'])} ({f['rows']:,})" for f in feature["most_frequent"]]
    counts = [feature[n] for n in ("categories", "count", "missing", "beyond_vocabulary")]
    return [name_text(feature["name"]), *map(number_text, counts), ", ".join(frequent)]


def _model_lines(facts: Facts) -> list[str]:
    threshold = facts["threshold"] or {}
    flags = f"score > {number_text(threshold['score'])}" if threshold else ""
    share = number_text(threshold["contamination"]) if threshold else ""
    lines = pair_lines(
        [
            ("fitted on", f"{number_text(facts['rows'])} rows" if facts["rows"] else ""),
            ("features", number_text(facts["features"])),
            ("score model", name_text(facts["score_model"])),
            ("method", threshold.get("method", "")),
            ("contamination", share),
            ("threshold chosen by", threshold.get("choice", "")),
            ("flags", flags),
            ("settings", _settings_text(facts["settings"]) or "all at their defaults"),
            ("made with", _versions_text(facts["versions"], library_versions())),
            ("size", size_text(facts["bytes"])),
            ("identity", facts["identity"][:16]),
        ]
    )
    columns = [(name_text(c["name"]), c["kind"]) for c in facts["columns"]]
    lines += titled_table("Columns", ("name", "kind"), columns)
    header = ("scaling", "columns", "whiten", "weight", "anchors")
    lines += titled_table("Views", header, [_view_cells(v) for v in facts["views"]])
    validation = _flat(facts["validation"] or {})
    figures = [(n, number_text(v)) for n, v in validation]
    return lines + titled_table("Validation", ("figure", "value"), figures)


def _view_cells(view: Facts) -> Cells:
    return [
        _scaling_text(view),
        _columns_text(view),
        number_text(view["whiten"]),
        number_text(view["weight"]),
        f"{view['anchor_sets']} x {view['anchors'] // view['anchor_sets']}",
    ]


def _scaling_text(view: Facts) -> str:
    was_left = view["decided"] is not None
    scaling = view["decided"] if was_left else view["scaling"]
    text = scaling if isinstance(scaling, str) else name_text(", ".join(scaling))
    return f"{text} (auto)" if was_left else text


def _columns_text(view: Facts) -> str:
    named = "all" if view["columns"] is None else name_text(names_text(view["columns"]))
    if view["relative"]:
        return f"{named}, next to those around"
    return f"{named}, each by itself" if view["separate"] else named


def _settings_text(settings: Facts) -> str:
    return ", ".join(f"{name_text(n)} {name_text(json.dumps(v))}" for n, v in settings.items())


def _flat(found: Any, prefix: str = "") -> list[tuple[str, Any]]:
    if not isinstance(found, dict):
        return [(name_text(prefix), found)]
    inner = (_flat(v, f"{prefix}.{n}" if prefix else str(n)) for n, v in found.items())
    return [pair for pairs in inner for pair in pairs]


def _versions_text(then: dict[str, str], now: dict[str, str]) -> str:
    """Return the versions something was made with, and those here where they differ."""
    here = {n: "" if now.get(n, v) == v else f" (here {now[n]})" for n, v in then.items()}
    return ", ".join(f"{name_text(n)} {name_text(v)}{here[n]}" for n, v in then.items())


def _scores_lines(facts: Facts) -> list[str]:
    header = ("name", "type", "shape", "rows per chunk")
    arrays = [
        (
            name_text(a["name"]),
            a["dtype"],
            " x ".join(f"{n:,}" for n in a["shape"]),
            number_text(a["chunk"]),
        )
        for a in facts["arrays"]
    ]
    return _output_lines(facts) + titled_table("Arrays", header, arrays)


def _table_lines(facts: Facts) -> list[str]:
    columns = [(name_text(c["name"]), name_text(c["type"])) for c in facts["columns"]]
    counts = [(noun, number_text(facts[noun])) for noun in ("files", "partitions")]
    return _output_lines(facts, counts) + titled_table("Columns", ("name", "type"), columns)


def _output_lines(facts: Facts, more: Iterable[tuple[str, str]] = ()) -> list[str]:
    return pair_lines(
        [
            ("rows", number_text(facts["rows"])),
            ("flagged", number_text(facts["flagged"])),
            ("without a score", number_text(facts["missing"])),
            ("method", number_text(facts["method"])),
            ("threshold", number_text(facts["threshold"])),
            ("model", number_text(facts["model"])[:16]),
            ("store", number_text(facts["store"])[:16]),
            ("generation", name_text(facts["generation"])),
            ("size", size_text(facts["bytes"])),
            *more,
        ]
    )


def _run_lines(facts: Facts) -> list[str]:
    published = facts["published"]
    lines = pair_lines(
        [
            ("command", number_text(facts["command"])),
            ("published", f"yes ({name_text(published)[:16]})" if published else "not yet"),
            ("stages kept", "yes" if facts["keeps_stages"] else "no"),
            ("fingerprint", facts["fingerprint"][:16]),
            ("settings", _settings_text(facts["settings"]) or "all at their defaults"),
            ("made with", _versions_text(facts["versions"], worker_versions())),
            *((f"input {name_text(n)}", name_text(v)) for n, v in facts["inputs"].items()),
        ]
    )
    records = [(name_text(n), number_text(v)) for n, v in facts["records"].items()]
    return lines + titled_table("Committed", ("stage", "tasks"), records)


_LINES_OF: dict[Kind, Callable[[Facts], list[str]]] = {
    "store": _store_lines,
    "model": _model_lines,
    "scores": _scores_lines,
    "score table": _table_lines,
    "run": _run_lines,
}
