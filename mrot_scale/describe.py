"""What a store, a model, scores or a run folder is, as JSON values.

Lists of files, schemas and small files are read, chunks are not: `digest` reads those.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mrot_scale.config.job import Config
from mrot_scale.config.views import ViewConfig
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
from mrot_scale.jobs.score_models import model_identity
from mrot_scale.model.directory import ModelFiles
from mrot_scale.model.persist import METHODS, load_model, model_schema
from mrot_scale.running.commit import STAGES
from mrot_scale.scoring import FittedModel, FittedView
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import Entry, Manifest
from mrot_scale.storing.schema import Column, Schema
from mrot_scale.storing.store import FeatureStore
from mrot_scale.storing.summaries import QUANTILE_LEVELS, ColumnSummary
from mrot_scale.terminal_text import WIDEST_NAME
from mrot_scale.thresholds import Choice, stored_choice

Facts = dict[str, Any]

_MEDIAN = QUANTILE_LEVELS.index(0.5)
_CATEGORIES_SHOWN = 5


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
        "threshold": _threshold_facts(model, saved, stored_choice(folder)),
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
        "decided": view.view.scaling if "auto" in config.scaling else None,
        "columns": None if columns is None else [names[c] for c in columns],
        "separate": config.separate,
        "relative": config.relative,
        "whiten": config.whiten,
        "weight": 1 / len(model.views),
        "anchor_sets": len(view.anchors),
        "anchors": sum(len(a.rows) for a in view.anchors),
    }


def _threshold_facts(model: FittedModel, saved: Facts, stored: Choice | None) -> Facts | None:
    """Return above which score rows are flagged; None where nothing sensible was saved."""
    method, share = saved.get("method"), saved.get("contamination")
    if method not in METHODS or type(share) is not float or not 0 < share <= 0.5:
        return None
    found = {"method": method, "contamination": share}
    if stored is None:
        return found | {"score": model.threshold(method, share)}
    return found | {"choice": stored.text, "score": stored.score(model.training_scores[method])}


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
    content = read_listed(folder, manifest, name)
    try:
        schema = pq.read_schema(pa.BufferReader(content))
    except (pa.ArrowException, OSError) as error:  # what ends too early is an OSError
        reason = " ".join(str(error).split())
        raise DamagedDataError(f"{folder / name} cannot be decoded: {reason}.") from None
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
    is_small = not isinstance(value, dict | list) and len(str(value)) <= 2 * WIDEST_NAME
    return value if is_small else f"sha256 {_digest_of(value)[:16]}"


_FACTS_OF: dict[Kind, Callable[[Location], Facts]] = {
    "store": _store_facts,
    "model": _model_facts,
    "scores": _scores_facts,
    "score table": _table_facts,
    "run": _run_facts,
}
