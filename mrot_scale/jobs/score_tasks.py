"""One chunk of a store becomes one chunk of scores, and Parquet where asked for."""

import io
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mrot_scale.compiling import can_compile
from mrot_scale.config.method import NonFinite
from mrot_scale.config.scoring import Method
from mrot_scale.encoding import Decoder, category_counts
from mrot_scale.errors import ModelMismatchError
from mrot_scale.explaining import can_explain, column_contributions, prepare_explaining
from mrot_scale.jobs.report_parts import put_parts
from mrot_scale.method.resemblance import compile_comparison
from mrot_scale.model.lightgbm_model import WALKED_FROM
from mrot_scale.model.persist import load_model, model_schema
from mrot_scale.model.tree_walk import compile_walk
from mrot_scale.profiles import count_scores, count_values, sampled_rows
from mrot_scale.running.commit import Record
from mrot_scale.running.tasks import Work
from mrot_scale.scoring import FittedModel
from mrot_scale.storing.arrays import ArraySpec
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import MANIFEST, Entry
from mrot_scale.storing.store import FeatureStore, open_store

Floats = NDArray[np.float64]

BLOCK_ROWS = 32_768
"""Rows held as float64 at a time."""

_NO_COLUMN = -1


@dataclass(frozen=True)
class ScoreOptions:
    """What is written for each row."""

    method: Method
    non_finite: NonFinite
    threshold: float
    """Scores above this are flagged."""

    flag: bool
    percentile: bool
    top_columns: int
    parquet: bool
    keep: tuple[str, ...]
    by: str | None = None
    """Column whose value chooses the model."""

    profile: bool = False
    """Whether rows are counted as well, for drift."""

    def arrays(self, n_rows: int, chunk_rows: int) -> dict[str, ArraySpec]:
        """Return the arrays of the output, by name."""
        specs = {"score": ArraySpec((n_rows,), (chunk_rows,), "float32")}
        if self.flag:
            specs["flag"] = ArraySpec((n_rows,), (chunk_rows,), "bool")
        if self.percentile:
            specs["percentile"] = ArraySpec((n_rows,), (chunk_rows,), "float32")
        if self.top_columns:
            shape = (n_rows, self.top_columns)
            chunk = (chunk_rows, self.top_columns)
            specs["top_columns"] = ArraySpec(shape, chunk, "int32")
            specs["top_contributions"] = ArraySpec(shape, chunk, "float32")
        return specs


@lru_cache(8)
def open_model(address: str, identity: str) -> FittedModel:
    """Return the model at an address, loaded once per worker, if it is still the same one."""
    place = Location(address)
    if Entry.of((place / MANIFEST).read()).sha256 != identity:
        raise ModelMismatchError(f"{place} was replaced while it was in use. Run again.")
    return load_model(place)[0]


def warm_up(n_rows: int, explains: bool = False) -> None:
    """Get a worker ready for so many rows: libraries are loaded by now, loops are compiled."""
    if n_rows >= WALKED_FROM and can_compile():
        compile_walk()
        if explains:
            compile_comparison()


@dataclass(frozen=True)
class GroupModel:
    """The model of the rows that have one value in the column that chooses."""

    value: Any
    model: str
    identity: str
    threshold: float


def score_chunk(
    work: Work,
    *,
    model: str,
    identity: str,
    store: str,
    chunk: int,
    options: dict[str, Any],
    groups: list[list[Any]],
    report: dict[str, int] | None = None,
) -> Record:
    """Score the rows of one chunk."""
    opened, fitted = open_store(store), open_model(model, identity)
    wanted = ScoreOptions(**{**options, "keep": tuple(options["keep"])})
    fitted.score_model.prepare(opened.n_rows)
    if wanted.top_columns:
        prepare_explaining(fitted, opened.n_rows)
    stored = opened.read_chunk(chunk)
    models = [GroupModel(*group) for group in groups]
    members = _members(opened, chunk, stored, wanted, models)
    found = _score_each(fitted, opened, stored, wanted, models, members)
    for name, spec in wanted.arrays(opened.n_rows, opened.chunks.chunk_rows).items():
        work.attempt.put(name, spec.encode(found[name]))
    files = []
    if wanted.parquet:
        for number, (place, table) in enumerate(_tables(opened, chunk, stored, found, wanted)):
            work.attempt.put(f"parquet{number}", _parquet_bytes(table))
            files.append([place, f"parquet{number}"])
    counted = wanted.profile or report is not None
    counts = _profile_counts(fitted, opened, chunk, stored, found["score"]) if counted else {}
    if wanted.profile:
        for name, values in counts.items():
            work.attempt.put_array(name, values)
    if report is not None:
        put_parts(work, opened, chunk, stored, found, members, counts, report)
    flagged, missing = int(found["flag"].sum()), int(np.isnan(found["score"]).sum())
    by_group = [[len(rows), int(found["flag"][rows].sum())] for rows in members]
    facts = {"rows": len(stored), "flagged": flagged, "missing": missing, "files": files}
    return work.attempt.record(**facts, **({"groups": by_group} if wanted.by else {}))


def _members(
    store: FeatureStore,
    chunk: int,
    stored: NDArray[np.float32],
    options: ScoreOptions,
    models: list[GroupModel],
) -> list[NDArray[np.int64]]:
    """Return the rows of each group that has a model, and last all others."""
    if options.by is None:
        return [np.arange(len(stored))]
    column = store.columns(chunk, stored, [options.by])[options.by].combine_chunks()
    found, others = [], np.ones(len(stored), dtype=bool)
    for group in models:
        mine = pc.fill_null(pc.equal(column, pa.scalar(group.value, column.type)), False)
        found.append(np.flatnonzero(mine.to_numpy(zero_copy_only=False)))
        others[found[-1]] = False
    return [*found, np.flatnonzero(others)]


def _score_each(
    model: FittedModel,
    store: FeatureStore,
    stored: NDArray[np.float32],
    options: ScoreOptions,
    groups: list[GroupModel],
    members: list[NDArray[np.int64]],
) -> dict[str, NDArray[Any]]:
    """Return everything that is written for some rows, each by the model of its group."""
    if not groups:
        return score_stored(model, store, stored, options)
    found = score_stored(model, store, stored[:0], options)
    found = {n: np.empty((len(stored), *a.shape[1:]), a.dtype) for n, a in found.items()}
    choices = [(open_model(g.model, g.identity), g.threshold) for g in groups]
    for rows, (fitted, threshold) in zip(
        members, [*choices, (model, options.threshold)], strict=True
    ):
        own = replace(options, threshold=threshold)
        for name, values in score_stored(fitted, store, stored[rows], own).items():
            found[name][rows] = values
    return found


def _profile_counts(
    model: FittedModel,
    store: FeatureStore,
    chunk: int,
    stored: NDArray[np.float32],
    scores: NDArray[np.float32],
) -> dict[str, NDArray[np.int64]]:
    """Count some of the rows in the model's bins."""
    start, stop = store.chunks.chunk_to_rows(chunk)
    some = sampled_rows(start, stop, store.n_rows)
    rows = Decoder(model_schema(model), store.schema).rows(stored[some])
    found = {} if model.bins is None else {"spread": count_values(model.bins.edges, rows)}
    found["categories"] = category_counts(store.schema, stored[some])
    return {**found, "scores": count_scores(scores[some])}


def score_stored(
    model: FittedModel, store: FeatureStore, stored: NDArray[np.float32], options: ScoreOptions
) -> dict[str, NDArray[Any]]:
    """Return everything that is written for some stored rows."""
    decoder = Decoder(model_schema(model), store.schema)
    scores = np.empty(len(stored), dtype=np.float32)
    tops = _no_tops(len(stored), options)
    for start in range(0, len(stored), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        rows = decoder.rows(stored[block])
        scores[block] = model.score_by_policy(rows, options.method, policy=options.non_finite)
        if options.top_columns:
            for part, found_here in zip(
                tops, _top_columns(model, rows, scores[block], options), strict=True
            ):
                part[block] = found_here
    found: dict[str, NDArray[Any]] = {"score": scores}
    found["flag"] = scores > options.threshold
    if options.percentile:
        found["percentile"] = percentiles(model, options.method, scores)
    found["top_columns"], found["top_contributions"] = tops
    return found


def percentiles(
    model: FittedModel, method: Method, scores: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return how many percent of the training rows score lower."""
    training = model.training_scores[method]
    found = 100.0 * np.searchsorted(training, scores, side="left") / len(training)
    return np.where(np.isnan(scores), np.nan, found).astype(np.float32)


Tops = tuple[NDArray[np.int32], NDArray[np.float32]]
"""Positions of the columns that contribute most, strongest first, and their contributions."""


def _no_tops(n_rows: int, options: ScoreOptions) -> Tops:
    shape = (n_rows, options.top_columns)
    return np.full(shape, _NO_COLUMN, dtype=np.int32), np.full(shape, np.nan, dtype=np.float32)


def _top_columns(
    model: FittedModel, rows: Floats, scores: NDArray[np.float32], options: ScoreOptions
) -> Tops:
    """Return for flagged rows the columns that account for most of their rarity."""
    tops, contributions = _no_tops(len(rows), options)
    flagged = np.flatnonzero(scores > options.threshold)
    if len(flagged) == 0 or not can_explain(model):
        return tops, contributions
    found = column_contributions(model, rows[flagged], options.method)
    order = np.argsort(-found, axis=1, kind="stable")[:, : options.top_columns]
    values = np.take_along_axis(found, order, axis=1)
    tops[flagged, : order.shape[1]] = np.where(values > 0, order, _NO_COLUMN)
    contributions[flagged, : order.shape[1]] = np.where(values > 0, values, np.nan)
    return tops, contributions


def _tables(
    store: FeatureStore,
    chunk: int,
    stored: NDArray[np.float32],
    found: dict[str, NDArray[Any]],
    options: ScoreOptions,
) -> list[tuple[str, Any]]:
    """Return the chunk's rows as tables, one for each partition they belong to."""
    names = list(dict.fromkeys([store.schema.id_column, *options.keep]))
    kept = store.columns(chunk, stored, names)
    columns = {name: kept[name] for name in names}
    columns["score"] = pa.array(found["score"], from_pandas=True)
    if options.flag:
        columns["flag"] = pa.array(found["flag"])
    if options.percentile:
        columns["percentile"] = pa.array(found["percentile"], from_pandas=True)
    for place in range(options.top_columns):
        codes = found["top_columns"][:, place]
        words = pa.array(codes.astype(np.int32), mask=codes < 0)
        named = pa.DictionaryArray.from_arrays(words, list(store.schema.features))
        columns[f"top_{place + 1}"] = named.dictionary_decode()
        parts = found["top_contributions"][:, place]
        columns[f"top_{place + 1}_contribution"] = pa.array(parts, from_pandas=True)
    keys = store.schema.partition_keys
    return _partitioned(pa.table(columns), store.columns(chunk, stored, keys), keys, chunk)


def _partitioned(scored: Any, ids: Any, keys: tuple[str, ...], chunk: int) -> list[tuple[str, Any]]:
    """Return the rows of each partition, with the path that plain readers know it by."""
    name = f"part-{chunk:06d}.parquet"
    if not keys:
        return [(name, scored)]
    scored = scored.drop_columns([k for k in keys if k in scored.column_names])
    found = []
    for values in ids.select(keys).group_by(list(keys)).aggregate([]).to_pylist():
        mask = _all_equal(ids, values)
        folder = "/".join(f"{k}={_folder_text(values[k])}" for k in keys)
        found.append((f"{folder}/{name}", scored.filter(mask)))
    return sorted(found, key=lambda pair: pair[0])


def _all_equal(table: Any, values: dict[str, Any]) -> Any:
    mask = None
    for key, value in values.items():
        column = table[key]
        equal = pc.is_null(column) if value is None else pc.equal(column, value)
        mask = equal if mask is None else pc.and_(mask, equal)
    return mask


def _folder_text(value: Any) -> str:
    from urllib.parse import quote

    return "__HIVE_DEFAULT_PARTITION__" if value is None else quote(str(value), safe=" ")


def _parquet_bytes(table: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()
