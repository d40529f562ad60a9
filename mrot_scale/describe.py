"""What a store, a model, scores or a run folder is, in a few lines for people or as JSON.

Lists of files, schemas and small files are read, chunks are not: `digest` reads those. Names come
from whoever made the table, so none reaches a terminal unescaped.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mrot_scale.config import Config, ViewConfig
from mrot_scale.digests import (
    AnyPath,
    Kind,
    array_specs,
    committed_run,
    read_listed,
    recognised,
    scores_manifest,
    table_manifest,
    table_partitions,
)
from mrot_scale.errors import DamagedDataError
from mrot_scale.jobs.score_job import model_identity
from mrot_scale.model.directory import ModelFiles
from mrot_scale.model.persist import METHODS, library_versions, load_model, model_schema
from mrot_scale.running.commit import STAGES
from mrot_scale.running.worker_checks import worker_versions
from mrot_scale.scoring import FittedModel, FittedView
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import Entry, Manifest
from mrot_scale.storing.schema import Column, Schema
from mrot_scale.storing.statistics import QUANTILE_LEVELS, ColumnSummary
from mrot_scale.storing.store import FeatureStore

Facts = dict[str, Any]
Cells = Sequence[str]

_MEDIAN = QUANTILE_LEVELS.index(0.5)
_CATEGORIES_SHOWN = 5
_LINES_SHOWN = 50
_WIDEST_NAME = 40
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Description:
    """What was found at a path, as JSON values."""

    kind: Kind
    path: str
    facts: Facts

    def to_json(self) -> Facts:
        return {"kind": self.kind, "path": self.path, **self.facts}


def describe(path: AnyPath) -> Description:
    """Return what is at a path: a store, a model, scores or a run folder."""
    found = recognised(path)
    return Description(found.kind, str(Location(path)), _FACTS_OF[found.kind](found.folder))


def _store_facts(folder: Location) -> Facts:
    store = FeatureStore.open(folder)
    schema = store.schema
    return {
        "rows": store.n_rows,
        "chunks": len(store.chunks),
        "chunk_rows": store.chunks.chunk_rows,
        "bytes": _listed_bytes(store.manifest),
        "feature_bytes": store.stored_bytes,
        "identity": store.identity(),
        "id_column": schema.id_column,
        "carried": list(schema.carried),
        "partition_keys": list(schema.partition_keys),
        "left_out": [{"column": name, "reason": why} for name, why in schema.left_out],
        "overflowed": [c.name for c in schema.columns if c.n_other],
        "features": _feature_facts(schema),
    }


def _listed_bytes(manifest: Manifest) -> int:
    return sum(entry.n_bytes for entry in manifest.files.values())


def _feature_facts(schema: Schema) -> list[Facts]:
    summaries = dict(zip(schema.features, schema.statistics, strict=False))
    found = []
    for column in schema.columns:
        for name in column.features:
            facts = {"name": name, "kind": column.kind, "column": column.name}
            if column.kind == "category":
                facts |= _category_facts(column)
            elif name in summaries:
                facts |= _number_facts(summaries[name])
            found.append(facts)
    return found


def _number_facts(summary: ColumnSummary) -> Facts:
    median = summary.quantiles[_MEDIAN] if summary.quantiles else None
    return {
        "count": summary.count,
        "missing": summary.missing,
        "infinite": summary.infinite,
        "min": summary.min,
        "median": median,
        "max": summary.max,
    }


def _category_facts(column: Column) -> Facts:
    by_count = sorted(zip(column.vocabulary, column.counts, strict=True), key=lambda p: -p[1])
    return {
        "count": sum(column.counts) + column.n_other,
        "missing": column.n_missing,
        "categories": len(column.vocabulary),
        "beyond_vocabulary": column.n_other,
        "most_frequent": [{"value": v, "rows": n} for v, n in by_count[:_CATEGORIES_SHOWN]],
    }


def _model_facts(folder: Location) -> Facts:
    model, saved = load_model(folder)
    files = ModelFiles.read(folder)
    schema = model_schema(model)
    return {
        "identity": model_identity(folder),
        "bytes": sum(len(content) for content in files.content.values()),
        "rows": schema.n_rows or None,  # unknown where rows were in memory
        "columns": [{"name": c.name, "kind": c.kind} for c in schema.columns],
        "features": model.n_features,
        "score_model": model.score_model.kind,
        "views": [_view_facts(v, c, model) for v, c in _views(model)],
        "settings": _changed(model.config.model_dump(mode="json", exclude={"views"})),
        "threshold": _threshold_facts(model, saved),
        "validation": files.json("validation.json") if "validation.json" in files else None,
        "versions": _strings(files.json("model.json").get("versions")),
    }


def _views(model: FittedModel) -> Iterable[tuple[FittedView, ViewConfig]]:
    return zip(model.views, model.config.views, strict=True)


def _view_facts(view: FittedView, config: ViewConfig, model: FittedModel) -> Facts:
    names = model.feature_names or tuple(f"c{i}" for i in range(model.n_features))
    columns = config.columns
    return {
        "scaling": config.model_dump(mode="json")["scaling"],
        "columns": None if columns is None else [names[c] for c in columns],
        "whiten": config.whiten,
        "weight": 1 / len(model.views),
        "anchor_sets": len(view.anchors),
        "anchors": sum(len(a.rows) for a in view.anchors),
    }


def _threshold_facts(model: FittedModel, saved: Facts) -> Facts | None:
    """Return above which score rows are flagged; None where nothing sensible was saved."""
    method, share = saved.get("method"), saved.get("contamination")
    if method not in METHODS or type(share) is not float or not 0 < share <= 0.5:
        return None
    return {"method": method, "contamination": share, "score": model.threshold(method, share)}


def _changed(settings: Facts) -> Facts:
    """Return the settings that are not as they are by default."""
    usual = Config().model_dump(mode="json")
    usual |= usual["store"] | usual["scoring"]  # where runs keep them without their block
    return {
        name: value
        for name, value in settings.items()
        if (not _is_usual(value, usual[name]) if name in usual else value)
    }


def _is_usual(value: Any, usual: Any) -> bool:
    if isinstance(value, dict) and isinstance(usual, dict):
        return all(_is_usual(v, usual.get(n)) for n, v in value.items())
    return bool(value == usual)


def _strings(found: Any) -> dict[str, str]:
    return {str(n): str(v) for n, v in found.items()} if isinstance(found, dict) else {}


def _scores_facts(folder: Location) -> Facts:
    manifest = scores_manifest(folder)
    arrays = [
        {"name": name, "dtype": spec.dtype, "shape": list(spec.shape), "chunk": spec.chunk_shape[0]}
        for name, spec in array_specs(folder, manifest).items()
    ]
    return _output_facts(folder, manifest) | {"arrays": arrays}


def _table_facts(folder: Location) -> Facts:
    manifest = table_manifest(folder)
    partitions = table_partitions(manifest)
    found = _output_facts(folder, manifest)
    found |= {"files": len(manifest.files), "partitions": len([p for p in partitions if p])}
    return found | {"columns": _table_columns(folder, manifest)}


def _table_columns(folder: Location, manifest: Manifest) -> list[Facts]:
    if not manifest.files:
        return []
    name = min(manifest.files)
    try:
        schema = pq.read_schema(pa.BufferReader(read_listed(folder, manifest, name)))
    except pa.ArrowException as error:
        raise DamagedDataError(f"{folder / name} cannot be decoded: {error}.") from None
    return [{"name": field.name, "type": str(field.type)} for field in schema]


def _output_facts(folder: Location, manifest: Manifest) -> Facts:
    names = ("rows", "flagged", "missing", "method", "threshold", "model", "store")
    found = {name: manifest.facts.get(name) for name in names}
    return found | {"generation": folder.real_name(), "bytes": _listed_bytes(manifest)}


def _run_facts(folder: Location) -> Facts:
    run = committed_run(folder)
    terms = run.fingerprint
    return {
        "command": terms.get("command"),
        "fingerprint": _digest_of(terms),
        "inputs": {str(n): _short(v) for n, v in _dict(terms.get("inputs")).items()},
        "settings": _changed(_dict(terms.get("settings"))),
        "versions": _strings(terms.get("versions")),
        "records": dict(Counter(key.split("/")[0] for key in run.records)),
        "keeps_stages": (folder / STAGES).exists(),
        "published": run.published,
    }


def _dict(found: Any) -> Facts:
    return found if isinstance(found, dict) else {}


def _digest_of(value: Any) -> str:
    return Entry.of(json.dumps(value, sort_keys=True).encode()).sha256


def _short(value: Any) -> Any:
    """Return a value that fits a line, or its digest: inputs may be lists of a million files."""
    is_small = not isinstance(value, dict | list) and len(str(value)) <= 2 * _WIDEST_NAME
    return value if is_small else f"sha256 {_digest_of(value)[:16]}"


_FACTS_OF: dict[Kind, Callable[[Location], Facts]] = {
    "store": _store_facts,
    "model": _model_facts,
    "scores": _scores_facts,
    "score table": _table_facts,
    "run": _run_facts,
}


def description_text(description: Description) -> str:
    """Return a description as lines for people."""
    title = f"{description.kind} {printable(description.path)}"
    return "\n".join([title, *_LINES_OF[description.kind](description.facts)])


def printable(text: Any) -> str:
    """Return a text with everything a terminal would not just print written as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def _name(text: Any) -> str:
    shown = printable(text)
    return shown if len(shown) <= _WIDEST_NAME else f"{shown[: _WIDEST_NAME - 1]}…"


def _names(found: Sequence[Any]) -> str:
    shown = [_name(name) for name in found[:_LINES_SHOWN]]
    more = len(found) - len(shown)
    return ", ".join([*shown, *([f"and {more} more"] if more else [])])


def _number(value: Any) -> str:
    """Return a value as people write it, or escaped where it is no number."""
    if value is None:
        return "-"
    if type(value) is int:
        return f"{value:,}"
    return f"{value:.6g}" if type(value) is float else _name(value)


def _size(n_bytes: int) -> str:
    size, unit = float(n_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.1f} {unit}" if unit != "B" else f"{n_bytes} B"


def _pairs(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return names and values in two columns, leaving out what is empty."""
    kept = [(name, value) for name, value in pairs if value]
    width = max((len(name) for name, _ in kept), default=0)
    return [f"  {name:<{width}}  {value}" for name, value in kept]


def _table(title: str, header: Cells, rows: Sequence[Cells]) -> list[str]:
    """Return rows under a header, each column as wide as it needs; long tables are cut."""
    if not rows:
        return []
    columns = [_aligned(cells) for cells in zip(header, *rows[:_LINES_SHOWN], strict=True)]
    lines = ["  " + "  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
    more = len(rows) - _LINES_SHOWN
    return ["", title, *lines, *([f"  and {more:,} more (all in JSON output)"] if more > 0 else [])]


def _aligned(cells: Cells) -> Cells:
    """Return the cells of a column, header first, as wide as the widest; numbers to the right."""
    width = max(map(len, cells))
    are_numbers = all(c == "-" or c.lstrip("-")[:1].isdigit() for c in cells[1:])
    return [c.rjust(width) if are_numbers else c.ljust(width) for c in cells]


def _store_lines(facts: Facts) -> list[str]:
    chunks = f"{facts['chunks']:,} of {facts['chunk_rows']:,} rows"
    lines = _pairs(
        [
            ("rows", _number(facts["rows"])),
            ("features", _number(len(facts["features"]))),
            ("chunks", chunks),
            ("size", f"{_size(facts['bytes'])} (features {_size(facts['feature_bytes'])})"),
            ("identifiers", _name(facts["id_column"])),
            ("carried along", _names(facts["carried"])),
            ("partitioned by", _names(facts["partition_keys"])),
            ("too many categories", _names(facts["overflowed"])),
            ("identity", facts["identity"][:16]),
        ]
    )
    numbers = [f for f in facts["features"] if f["kind"] != "category"]
    columns = ("name", "kind", "count", "missing", "min", "median", "max")
    lines += _table("Features", columns, [_number_cells(f) for f in numbers])
    categories = [f for f in facts["features"] if f["kind"] == "category"]
    header = ("name", "categories", "count", "missing", "beyond", "most frequent")
    lines += _table("Categories", header, [_category_cells(f) for f in categories])
    left_out = [(_name(c["column"]), printable(c["reason"])) for c in facts["left_out"]]
    return lines + _table("Columns that are not features", ("name", "reason"), left_out)


def _number_cells(feature: Facts) -> Cells:
    missing = (feature.get("missing") or 0) + (feature.get("infinite") or 0)
    return [
        _name(feature["name"]),
        feature["kind"],
        _number(feature.get("count")),
        _number(missing),
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
        return _number(days)


def _category_cells(feature: Facts) -> Cells:
    frequent = [f"{_name(f['value'])} ({f['rows']:,})" for f in feature["most_frequent"]]
    counts = [feature[n] for n in ("categories", "count", "missing", "beyond_vocabulary")]
    return [_name(feature["name"]), *map(_number, counts), ", ".join(frequent)]


def _model_lines(facts: Facts) -> list[str]:
    threshold = facts["threshold"] or {}
    flags = f"score > {_number(threshold['score'])}" if threshold else ""
    share = _number(threshold["contamination"]) if threshold else ""
    lines = _pairs(
        [
            ("fitted on", f"{_number(facts['rows'])} rows" if facts["rows"] else ""),
            ("features", _number(facts["features"])),
            ("score model", _name(facts["score_model"])),
            ("method", threshold.get("method", "")),
            ("contamination", share),
            ("flags", flags),
            ("settings", _settings_text(facts["settings"]) or "all at their defaults"),
            ("made with", _versions_text(facts["versions"], library_versions())),
            ("size", _size(facts["bytes"])),
            ("identity", facts["identity"][:16]),
        ]
    )
    columns = [(_name(c["name"]), c["kind"]) for c in facts["columns"]]
    lines += _table("Columns", ("name", "kind"), columns)
    header = ("scaling", "columns", "whiten", "weight", "anchors")
    lines += _table("Views", header, [_view_cells(v) for v in facts["views"]])
    validation = _flat(facts["validation"] or {})
    figures = [(n, _number(v)) for n, v in validation]
    return lines + _table("Validation", ("figure", "value"), figures)


def _view_cells(view: Facts) -> Cells:
    scaling = view["scaling"]
    return [
        scaling if isinstance(scaling, str) else _name(", ".join(scaling)),
        "all" if view["columns"] is None else _name(_names(view["columns"])),
        _number(view["whiten"]),
        _number(view["weight"]),
        f"{view['anchor_sets']} x {view['anchors'] // view['anchor_sets']}",
    ]


def _settings_text(settings: Facts) -> str:
    return ", ".join(f"{_name(n)} {_name(json.dumps(v))}" for n, v in settings.items())


def _flat(found: Any, prefix: str = "") -> list[tuple[str, Any]]:
    if not isinstance(found, dict):
        return [(_name(prefix), found)]
    inner = (_flat(v, f"{prefix}.{n}" if prefix else str(n)) for n, v in found.items())
    return [pair for pairs in inner for pair in pairs]


def _versions_text(then: dict[str, str], now: dict[str, str]) -> str:
    """Return the versions something was made with, and those here where they differ."""
    here = {n: "" if now.get(n, v) == v else f" (here {now[n]})" for n, v in then.items()}
    return ", ".join(f"{_name(n)} {_name(v)}{here[n]}" for n, v in then.items())


def _scores_lines(facts: Facts) -> list[str]:
    header = ("name", "type", "shape", "rows per chunk")
    arrays = [
        (
            _name(a["name"]),
            a["dtype"],
            " x ".join(f"{n:,}" for n in a["shape"]),
            _number(a["chunk"]),
        )
        for a in facts["arrays"]
    ]
    return _output_lines(facts) + _table("Arrays", header, arrays)


def _table_lines(facts: Facts) -> list[str]:
    columns = [(_name(c["name"]), _name(c["type"])) for c in facts["columns"]]
    counts = [(noun, _number(facts[noun])) for noun in ("files", "partitions")]
    return _output_lines(facts, counts) + _table("Columns", ("name", "type"), columns)


def _output_lines(facts: Facts, more: Iterable[tuple[str, str]] = ()) -> list[str]:
    return _pairs(
        [
            ("rows", _number(facts["rows"])),
            ("flagged", _number(facts["flagged"])),
            ("without a score", _number(facts["missing"])),
            ("method", _number(facts["method"])),
            ("threshold", _number(facts["threshold"])),
            ("model", _number(facts["model"])[:16]),
            ("store", _number(facts["store"])[:16]),
            ("generation", _name(facts["generation"])),
            ("size", _size(facts["bytes"])),
            *more,
        ]
    )


def _run_lines(facts: Facts) -> list[str]:
    published = facts["published"]
    lines = _pairs(
        [
            ("command", _number(facts["command"])),
            ("published", f"yes ({_name(published)[:16]})" if published else "not yet"),
            ("stages kept", "yes" if facts["keeps_stages"] else "no"),
            ("fingerprint", facts["fingerprint"][:16]),
            ("settings", _settings_text(facts["settings"]) or "all at their defaults"),
            ("made with", _versions_text(facts["versions"], worker_versions())),
            *((f"input {_name(n)}", _name(v)) for n, v in facts["inputs"].items()),
        ]
    )
    records = [(_name(n), _number(v)) for n, v in facts["records"].items()]
    return lines + _table("Committed", ("stage", "tasks"), records)


_LINES_OF: dict[Kind, Callable[[Facts], list[str]]] = {
    "store": _store_lines,
    "model": _model_lines,
    "scores": _scores_lines,
    "score table": _table_lines,
    "run": _run_lines,
}
