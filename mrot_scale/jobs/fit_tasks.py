"""One short function per kind of fitting task: read, call a pure function, write.

The same pure functions fit rows in memory (`mrot_scale.fitting`), so both give the same model.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.conditions import parse_condition
from mrot_scale.config import MethodConfig
from mrot_scale.encoding import Decoder, category_counts, rare_levels, recounted
from mrot_scale.errors import DataError
from mrot_scale.fitting import (
    Points,
    Setup,
    Standing,
    assemble,
    calibrate_view,
    effort_values,
    fit_targets,
    plan_fit,
    reference_index,
    usable_sample,
    view_anchors,
    view_points,
    zone_radii,
)
from mrot_scale.jobs.imagined import effort_shares, imagined_rows
from mrot_scale.jobs.labelled import EFFORT_BLOCK_BATCHES, ROUTE_BLOCK_ROWS, label_plan
from mrot_scale.jobs.packing import (
    anchors_from,
    calibration_from,
    put_anchors,
    put_calibration,
    put_view,
    view_from,
)
from mrot_scale.jobs.validation import effort_stability, validation_figures
from mrot_scale.method.anchors import route_matrix
from mrot_scale.method.batches import BatchPlan
from mrot_scale.method.efforts import batch_efforts
from mrot_scale.method.neighbours import Radii
from mrot_scale.model.choose import best_by_validation, fit_of
from mrot_scale.model.directory import ModelFiles
from mrot_scale.model.lightgbm_model import train_lightgbm_parts
from mrot_scale.model.persist import model_files, model_of, score_model_files, score_model_from
from mrot_scale.model.regressors import fold_predictions, predict_fold
from mrot_scale.rows import fill_non_finite
from mrot_scale.running.commit import Record
from mrot_scale.running.tasks import Work
from mrot_scale.scoring import FittedView, problem_of
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import MANIFEST, Entry
from mrot_scale.storing.schema import Schema
from mrot_scale.storing.store import FeatureStore

Floats = NDArray[np.float64]
Json = Any

STANDING_ARRAYS = ("mean_logs", "target_rarity", "seen_rarity", "unseen_rarity")
_NO_ID = -1


def open_store(address: str) -> FeatureStore:
    """Return the store at an address, opened once per worker unless it was replaced."""
    return _open_store(address, Entry.of((Location(address) / MANIFEST).read()).sha256)


@lru_cache(2)
def _open_store(address: str, identity: str) -> FeatureStore:
    return FeatureStore.open(Location(address))


@lru_cache(2)
def _method(text: str) -> MethodConfig:
    return MethodConfig.model_validate_json(text)


def draw_rows(
    work: Work, *, store: str, chunk: int, method: str, coverage: Any, exclude: str | None
) -> Record:
    """Take from one chunk the rows of each part, and those held out."""
    opened, config = open_store(store), _method(method)
    plan = label_plan(opened, config, coverage)
    start, stop = opened.chunks.chunk_to_rows(chunk)
    stored = opened.read_chunk(chunk)
    kept = ~excluded_rows(opened, chunk, stored, exclude)
    for part in range(plan.n_parts):
        rows = plan.rows_of_part(part, start, stop) - start
        work.attempt.put_array(f"part{part}", stored[rows[kept[rows]]])
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
    config, stored_as = _method(method), open_store(store).schema
    if first is None:
        counts = np.sum([work.array(p, "counts") for p in pieces], axis=0)
        schema = recounted(stored_as, counts, max(sum(p["facts"]["rows"] for p in pieces), 1))
    else:
        schema = _schema(work, first)
    decoder = Decoder(schema, stored_as)
    rows = np.concatenate([decoder.rows(work.array(p, f"part{part}")) for p in pieces])
    if len(rows) < 2:
        raise DataError(f"Only {len(rows)} row(s) are left to fit; give more.")
    if first is None:
        usable, fill, _ = usable_sample(rows, config.non_finite)
        held = np.concatenate([decoder.rows(work.array(p, "held")) for p in pieces])
        work.attempt.put_array("fill", fill)
        work.attempt.put_array("held", _usable(held, fill, config))
        work.attempt.put("schema", json.dumps(schema.to_json()).encode())
    else:
        fill = work.array(first, "fill")
        usable = _usable(rows, fill, config)
    work.attempt.put_array("rows", usable)
    return work.attempt.record(rows=len(usable))


def _schema(work: Work, part: Json) -> Schema:
    """Return the columns as the model is to know them."""
    return Schema.from_bytes(work.text(part, "schema").encode(), "schema")


def _usable(rows: Floats, fill: Floats, config: MethodConfig) -> Floats:
    if config.non_finite == "score-nan":
        rows = rows[np.isfinite(rows).all(axis=1)]
    return fill_non_finite(rows, fill)


def setup_of(part: Json, method: str) -> Setup:
    """Return what all tasks on a part share; part numbers are the last of its key."""
    config, number = _method(method), int(part["key"].rpartition("/")[2])
    setup = plan_fit(part["facts"]["rows"], config, 1, None)
    plan = setup.plan
    numbered = BatchPlan(plan.n_rows, plan.batch_rows, plan.repeats, plan.seed, number)
    return Setup(config, setup.problem, numbered, 1, setup.report)


def learn_view(work: Work, *, part: Json, method: str, view: int) -> Record:
    """Fit one view to the sample."""
    points = view_points(work.array(part, "rows"), _method(method).views[view])
    put_view(work.attempt, points.view)
    return work.attempt.record(name=points.view.spec.name)


def _points(work: Work, part: Json, method: str, view: int, learnt: Json) -> Points:
    fitted = view_from(work, learnt, _method(method).views[view])
    return Points(fitted, fitted.apply(work.array(part, "rows")))


def measure_zones(
    work: Work, *, part: Json, first: Json, method: str, view: int, learnt: Json
) -> Record:
    """Measure how far the zone of each row of a part reaches, by the sample's reference rows."""
    setup = setup_of(first, method)
    sample = _points(work, first, method, view, learnt)
    points = sample if part == first else _points(work, part, method, view, learnt)
    n_rows = len(points.rows)
    ids = np.arange(n_rows) if part == first else np.full(n_rows, _NO_ID)
    radii = zone_radii(reference_index(sample.rows, setup), points.rows, ids, setup)
    work.attempt.put_array("radii", radii.squared)
    return work.attempt.record(recall=radii.recall)


def solve_efforts(
    work: Work,
    *,
    part: Json,
    method: str,
    view: int,
    learnt: Json,
    zones: Json | None,
    repeat: int,
    block: int,
) -> Record:
    """Solve some batches of one repeat; efforts are kept in the order of the batches."""
    setup = setup_of(part, method)
    points = _points(work, part, method, view, learnt)
    radii = None if zones is None else work.array(zones, "radii")
    first = block * EFFORT_BLOCK_BATCHES
    found = []
    for batch in setup.plan.repeat_batches(repeat):
        if first <= batch.number < first + EFFORT_BLOCK_BATCHES:
            reach = None if radii is None else radii[batch.rows]
            name = f"{points.name}{batch}"
            efforts = batch_efforts(points.rows[batch.rows], setup.problem, name, reach)
            found.append(efforts[batch.own])
    work.attempt.put_array("efforts", np.concatenate(found))
    return work.attempt.record()


def efforts_by_row(work: Work, part: Json, method: str, blocks: list[Json]) -> Floats:
    """Return the efforts of all repeats of one view, put back by row: shape (n, repeats)."""
    plan = setup_of(part, method).plan
    solved = np.concatenate([work.array(block, "efforts") for block in blocks])
    efforts = np.empty((plan.n_rows, plan.repeats))
    start = 0
    for batch in plan:
        own = batch.rows[batch.own]
        efforts[own, batch.repeat] = solved[start : start + len(own)]
        start += len(own)
    return efforts


def solve_anchors(
    work: Work, *, part: Json, method: str, view: int, learnt: Json, zones: Json | None
) -> Record:
    """Solve the anchor sets of one view."""
    points = _points(work, part, method, view, learnt)
    if zones is not None:
        radii = Radii(work.array(zones, "radii"), zones["facts"]["recall"])
        points = Points(points.view, points.rows, radii)
    put_anchors(work.attempt, view_anchors(points, setup_of(part, method)))
    return work.attempt.record()


def route_rows(
    work: Work, *, part: Json, method: str, view: int, learnt: Json, anchors: Json, block: int
) -> Record:
    """Send a block of the sample's rows to the anchors."""
    rows = work.array(part, "rows")[block * ROUTE_BLOCK_ROWS : (block + 1) * ROUTE_BLOCK_ROWS]
    points = view_from(work, learnt, _method(method).views[view]).apply(rows)
    routes = route_matrix(anchors_from(work, anchors), points, setup_of(part, method).problem)
    work.attempt.put_array("routes", routes)
    return work.attempt.record()


def calibrate(
    work: Work,
    *,
    part: Json,
    method: str,
    view: int,
    learnt: Json,
    anchors: Json,
    efforts: list[Json],
    routes: list[Json],
) -> Record:
    """Find how rare each effort of one view is."""
    found = efforts_by_row(work, part, method, efforts)
    standing = calibrate_view(
        view_from(work, learnt, _method(method).views[view]),
        found,
        anchors_from(work, anchors),
        np.concatenate([work.array(r, "routes") for r in routes]),
        setup_of(part, method),
    )
    put_calibration(work.attempt, "anchor", standing.fitted.calibration)
    put_calibration(work.attempt, "effort", standing.of_efforts)
    for name in STANDING_ARRAYS:
        work.attempt.put_array(name, getattr(standing, name))
    return work.attempt.record(floor=standing.fitted.floor, stability=effort_stability(found))


def label_rows(
    work: Work, *, part: Json, method: str, efforts: list[list[Json]], views: list[Json]
) -> Record:
    """Give the rows of a part what the score model is to learn."""
    fitted = fit_targets(np.column_stack([work.array(v, "target_rarity") for v in views]))
    setup = setup_of(part, method)
    rarity = []
    for blocks, view in zip(efforts, views, strict=True):
        found = efforts_by_row(work, part, method, blocks)
        values = effort_values(found, view["facts"]["floor"], setup)
        rarity.append(calibration_from(work, view, "effort").neg_log_survival(values))
    work.attempt.put_array("shares", fitted.shares(np.column_stack(rarity)))
    return work.attempt.record()


def imagine_categories(
    work: Work,
    *,
    part: Json,
    method: str,
    views: list[Json],
    learnt: list[Json],
    anchors: list[Json],
) -> Record:
    """Make rows with rare and unseen categories, and send them to the anchors for a target."""
    config = _method(method)
    levels = rare_levels(_schema(work, part))
    rows = imagined_rows(work.array(part, "rows"), levels, config.seed)
    standings = [_standing(work, config, i, *v) for i, v in _together(views, learnt, anchors)]
    work.attempt.put_array("rows", rows)
    work.attempt.put_array("shares", effort_shares(rows, standings, problem_of(config)))
    return work.attempt.record()


def _together(*by_view: list[Json]) -> Iterator[tuple[int, tuple[Json, ...]]]:
    return enumerate(zip(*by_view, strict=True))


def _standing(
    work: Work, config: MethodConfig, view: int, calibrated: Json, learnt: Json, anchors: Json
) -> Standing:
    """Return what the stages before have found out about one view."""
    fitted = FittedView(
        view_from(work, learnt, config.views[view]),
        anchors_from(work, anchors),
        calibrated["facts"]["floor"],
        calibration_from(work, calibrated, "anchor"),
    )
    kept = {n: work.array(calibrated, n) for n in STANDING_ARRAYS}
    return Standing(fitted, of_efforts=calibration_from(work, calibrated, "effort"), **kept)


def choose_regressor(work: Work, *, part: Json, labels: Json, method: str) -> Record:
    """Find which score model does best on rows it has not seen."""
    rows, shares = work.array(part, "rows"), work.array(labels, "shares")
    return work.attempt.record(kind=best_by_validation(rows, shares, _method(method), 1))


def train_fold(
    work: Work,
    *,
    part: Json,
    labels: Json,
    imagined: Json | None,
    method: str,
    kind: str,
    fold: int,
) -> Record:
    """Train on all folds but one, and predict that one."""
    config = _method(method)
    unseen = predict_fold(
        fit_of(kind, config.seed, None),
        (work.array(part, "rows"), work.array(labels, "shares")),
        None
        if imagined is None
        else (work.array(imagined, "rows"), work.array(imagined, "shares")),
        folds=config.folds,
        seed=config.seed,
        fold=fold,
    )
    work.attempt.put_array("unseen", unseen)
    return work.attempt.record()


def train_model(
    work: Work,
    *,
    parts: list[Json],
    labels: list[Json],
    imagined: Json | None,
    method: str,
    kind: str,
) -> Record:
    """Train the score model on all labelled rows, part by part where there are several."""
    pairs = [(part, "rows", label) for part, label in zip(parts, labels, strict=True)]
    if imagined is not None:
        pairs.append((imagined, "rows", imagined))
    shares = np.concatenate([work.array(label, "shares") for _, _, label in pairs])
    if len(parts) == 1 or kind != "lightgbm":
        rows = np.concatenate([work.array(part, name) for part, name, _ in pairs])
        model = fit_of(kind, _method(method).seed, None)(rows, shares)
    else:
        loaders = [partial(work.array, part, name) for part, name, _ in pairs]
        model = train_lightgbm_parts(loaders, shares, seed=_method(method).seed)
    for name, content in score_model_files(model).content.items():
        work.attempt.put(name, content)
    return work.attempt.record(kind=kind)


def assemble_model(
    work: Work,
    *,
    part: Json,
    views: list[Json],
    learnt: list[Json],
    anchors: list[Json],
    folds: list[Json],
    trained: Json,
    method: str,
    settings: dict[str, Any],
) -> Record:
    """Put the model's parts together as the files of its directory."""
    config, schema = _method(method), _schema(work, part)
    rows = work.array(part, "rows")
    files = ModelFiles.of(dict(_contents(work, trained)))
    score_model = score_model_from(files, trained["facts"]["kind"], config, rows.shape[1])
    model = assemble(
        rows,
        config,
        work.array(part, "fill"),
        [_standing(work, config, i, *v) for i, v in _together(views, learnt, anchors)],
        score_model,
        fold_predictions(
            [work.array(f, "unseen") for f in folds],
            len(rows),
            folds=config.folds,
            seed=config.seed,
        ),
    )
    model = replace(model, feature_names=schema.features, origin=schema.origins, schema=schema)
    for name, content in model_files(model, settings).content.items():
        work.attempt.put(name, content)
    return work.attempt.record()


def _contents(work: Work, record: Json) -> Iterator[tuple[str, bytes]]:
    for name, ref in Record.from_json(record).objects.items():
        yield name, ref.read(work.run)


def validate_model(work: Work, *, part: Json, assembled: Json, facts: dict[str, Any]) -> Record:
    """Measure the model on rows it has not seen."""
    model, _ = model_of(ModelFiles.of(dict(_contents(work, assembled))))
    held = work.array(part, "held")
    return work.attempt.record(**validation_figures(model, held), **facts)
