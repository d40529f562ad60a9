"""The rows to learn from are drawn from a store and put together, as the method sees them."""

import json
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.conditions import parse_condition
from mrot_scale.config.method import MethodConfig
from mrot_scale.encoding import Decoder, category_counts, recounted
from mrot_scale.errors import DataError
from mrot_scale.fitting.sampled import usable_sample
from mrot_scale.fitting.setup import Setup, plan_fit
from mrot_scale.jobs.labelled import label_plan
from mrot_scale.method.batches import BatchPlan
from mrot_scale.profiles import Bins
from mrot_scale.rows import fill_non_finite
from mrot_scale.running.commit import Record
from mrot_scale.running.tasks import Work
from mrot_scale.storing.schema import Schema
from mrot_scale.storing.store import FeatureStore, open_store

Floats = NDArray[np.float64]
Json = Any


@lru_cache(2)
def method_of(text: str) -> MethodConfig:
    """Return the settings of the method, which tasks are given as text."""
    return MethodConfig.model_validate_json(text)


def draw_rows(
    work: Work, *, store: str, chunk: int, method: str, coverage: Any, exclude: str | None
) -> Record:
    """Take from one chunk the rows of each part, and those held out."""
    opened, config = open_store(store), method_of(method)
    plan = label_plan(opened, config, coverage)
    start, stop = opened.chunks.chunk_to_rows(chunk)
    stored = opened.read_chunk(chunk)
    kept = ~excluded_rows(opened, chunk, stored, exclude)
    for part in range(plan.n_parts):
        rows = plan.rows_of_part(part, start, stop) - start
        work.attempt.put_array(f"part{part}", stored[rows[kept[rows]]])
        if part == 0:
            work.attempt.put_array("numbers", rows[kept[rows]] + start)
    held = plan.held_out(start, stop) - start
    work.attempt.put_array("held", stored[held[kept[held]]])
    work.attempt.put_array("counts", category_counts(opened.schema, stored[kept]))
    return work.attempt.record(rows=int(kept.sum()))


def excluded_rows(
    store: FeatureStore, chunk: int, stored: NDArray[np.float32], condition: str | None
) -> NDArray[np.bool_]:
    """Return which rows of a chunk the condition leaves out of fitting."""
    if condition is None:
        return np.zeros(len(stored), dtype=bool)
    parsed = parse_condition(condition)
    return parsed.mask(store.columns(chunk, stored, sorted(parsed.columns)))


def gather_rows(
    work: Work, *, pieces: list[Json], part: int, store: str, method: str, first: Json | None
) -> Record:
    """Put the rows of one part together, in order, as the method sees them."""
    config, stored_as = method_of(method), open_store(store).schema
    if first is None:
        counts = np.sum([work.array(p, "counts") for p in pieces], axis=0)
        schema = recounted(stored_as, counts, max(sum(p["facts"]["rows"] for p in pieces), 1))
    else:
        schema = schema_of(work, first)
    decoder = Decoder(schema, stored_as)
    rows = np.concatenate([decoder.rows(work.array(p, f"part{part}")) for p in pieces])
    if len(rows) < 2:
        raise DataError(f"Only {len(rows)} row(s) are left to fit; give more.")
    if first is None:
        usable, fill, _ = usable_sample(rows, config.non_finite)
        held = np.concatenate([decoder.rows(work.array(p, "held")) for p in pieces])
        bins = Bins.of(rows)
        work.attempt.put_array("fill", fill)
        work.attempt.put_array("edges", bins.edges)
        work.attempt.put_array("spread", bins.counts)
        work.attempt.put_array("held", _usable(held, fill, config))
        work.attempt.put("schema", json.dumps(schema.to_json()).encode())
    else:
        fill = work.array(first, "fill")
        usable = _usable(rows, fill, config)
    work.attempt.put_array("rows", usable)
    return work.attempt.record(rows=len(usable))


def schema_of(work: Work, part: Json) -> Schema:
    """Return the columns as the model is to know them."""
    return Schema.from_bytes(work.text(part, "schema").encode(), "schema")


def _usable(rows: Floats, fill: Floats, config: MethodConfig) -> Floats:
    if config.non_finite == "score-nan":
        rows = rows[np.isfinite(rows).all(axis=1)]
    return fill_non_finite(rows, fill)


def setup_of(part: Json, method: str) -> Setup:
    """Return what all tasks on a part share; part numbers are the last of its key."""
    config, number = method_of(method), int(part["key"].rpartition("/")[2])
    setup = plan_fit(part["facts"]["rows"], config, 1, None)
    plan = setup.plan
    numbered = BatchPlan(plan.n_rows, plan.batch_rows, plan.repeats, plan.seed, number)
    return Setup(config, setup.problem, numbered, 1, setup.report)
