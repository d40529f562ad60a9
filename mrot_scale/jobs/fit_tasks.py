"""One short function per kind of fitting task: read, call a pure function, write.

The same pure functions fit rows in memory (`mrot_scale.fitting`), so both give the same model.
"""

import json
from collections.abc import Callable, Iterator
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
    Lesson,
    Points,
    Setup,
    assemble,
    lesson_of,
    mixed_lesson,
    plan_fit,
    reference_index,
    usable_sample,
    view_anchors,
    view_points,
    zone_radii,
)
from mrot_scale.imagined import imagined_rows
from mrot_scale.jobs.labelled import EFFORT_BLOCK_BATCHES, ROUTE_BLOCK_ROWS, label_plan
from mrot_scale.jobs.packing import (
    anchors_from,
    calibration_from,
    company_from,
    put_anchors,
    put_calibration,
    put_company,
    put_view,
    view_from,
)
from mrot_scale.jobs.validation import effort_stability, validation_figures
from mrot_scale.method.anchors import route_matrix
from mrot_scale.method.batches import BatchPlan
from mrot_scale.method.calibrate import Calibration
from mrot_scale.method.company import Company
from mrot_scale.method.efforts import batch_efforts
from mrot_scale.method.neighbours import Radii
from mrot_scale.model.choose import best_by_validation, fit_of
from mrot_scale.model.directory import ModelFiles
from mrot_scale.model.hybrid import HybridModel, distillation_loss, mean_of_copies, wants_hybrid
from mrot_scale.model.lightgbm_model import train_lightgbm_parts
from mrot_scale.model.persist import model_files, model_of, score_model_files, score_model_from
from mrot_scale.model.regressors import fold_predictions, predict_fold
from mrot_scale.profiles import Bins
from mrot_scale.rows import fill_non_finite
from mrot_scale.running.commit import Record
from mrot_scale.running.tasks import Work
from mrot_scale.scoring import FittedView, mean_rarity, problem_of
from mrot_scale.standing import (
    Standing,
    effort_values,
    fit_targets,
    order_of_trust,
    share_rarity,
    stand_by_batches,
    stand_by_routes,
    with_shared,
)
from mrot_scale.storing.schema import Schema
from mrot_scale.storing.store import FeatureStore, open_store

Floats = NDArray[np.float64]
Json = Any

STANDING_ARRAYS = ("mean_logs", "target_rarity", "seen_rarity", "unseen_rarity")
_NO_ID = -1


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
    config = _method(method).views[view]
    fitted = view_from(work, learnt, config)
    return Points(fitted, config, fitted.apply(work.array(part, "rows")))


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


def trust_rows(work: Work, *, part: Json, method: str, efforts: list[list[Json]]) -> Record:
    """Order the rows by how far they may be trusted as anchors, by the first pass over them."""
    setup = setup_of(part, method)
    found = [efforts_by_row(work, part, method, blocks) for blocks in efforts]
    order = order_of_trust(found, setup.config, setup.problem)
    work.attempt.put_array("order", order)
    return work.attempt.record(rows=len(order))


def solve_anchors(
    work: Work,
    *,
    part: Json,
    method: str,
    view: int,
    learnt: Json,
    zones: Json | None,
    trust: Json | None,
) -> Record:
    """Solve the anchor sets of one view."""
    points = _points(work, part, method, view, learnt)
    if zones is not None:
        radii = Radii(work.array(zones, "radii"), zones["facts"]["recall"])
        points = replace(points, radii=radii)
    order = None if trust is None else work.array(trust, "order")
    put_anchors(work.attempt, view_anchors(points, setup_of(part, method), order))
    return work.attempt.record()


def route_rows(
    work: Work, *, part: Json, method: str, view: int, learnt: Json, anchors: Json, block: int
) -> Record:
    """Send a block of a part's rows to the anchors."""
    rows = work.array(part, "rows")[block * ROUTE_BLOCK_ROWS : (block + 1) * ROUTE_BLOCK_ROWS]
    config = _method(method)
    points = view_from(work, learnt, config.views[view]).apply(rows)
    problem = problem_of(config, config.views[view])
    work.attempt.put_array("routes", route_matrix(anchors_from(work, anchors), points, problem))
    return work.attempt.record()


def calibrate(
    work: Work,
    *,
    part: Json,
    method: str,
    view: int,
    learnt: Json,
    anchors: Json,
    efforts: list[Json] | None,
    routes: list[Json],
) -> Record:
    """Find how rare each effort of one view is."""
    config, sets = _method(method), anchors_from(work, anchors)
    fitted = view_from(work, learnt, config.views[view])
    routed = _routes(work, routes)
    if efforts is None:
        measured = routed
        standing = stand_by_routes(fitted, sets, routed, problem_of(config, config.views[view]))
    else:
        measured = efforts_by_row(work, part, method, efforts)
        problem = setup_of(part, method).problem
        standing = stand_by_batches(fitted, measured, sets, routed, config, problem)
    _put_standing(work, standing)
    # Sets that see different columns are not to agree.
    stability = None if config.views[view].separate else effort_stability(measured)
    return work.attempt.record(stability=stability, maps=len(standing.fitted.maps))


def _routes(work: Work, blocks: list[Json]) -> Floats:
    return np.concatenate([work.array(block, "routes") for block in blocks])


def _put_standing(work: Work, standing: Standing) -> None:
    for number, of_set in enumerate(standing.fitted.maps):
        put_calibration(work.attempt, f"anchor{number}", of_set)
    if standing.of_batches is not None:
        put_calibration(work.attempt, "batch", standing.of_batches)
    work.attempt.put_array("floor", standing.fitted.floor)
    for name in STANDING_ARRAYS:
        work.attempt.put_array(name, getattr(standing, name))


def share_company(
    work: Work,
    *,
    part: Json,
    method: str,
    views: list[Json],
    learnt: list[Json],
    anchors: list[Json],
) -> Record:
    """Average the rarity of the sample's rows with that of their neighbours."""
    config = _method(method)
    standings = _standings(work, config, views, learnt, anchors, None)
    view = config.company_view
    assert view is not None  # there is no such task otherwise
    points = standings[view].fitted.view.apply(work.array(part, "rows"))
    shared = share_rarity(points, view, standings, config)
    put_company(work.attempt, shared.company)
    work.attempt.put_array("seen", shared.seen)
    work.attempt.put_array("unseen", shared.unseen)
    return work.attempt.record()


def label_rows(
    work: Work,
    *,
    part: Json,
    method: str,
    is_sample: bool,
    measured: list[list[Json]],
    views: list[Json],
    learnt: list[Json],
    company: Json | None,
) -> Record:
    """Give the rows of a part what the score model is to learn.

    `measured` holds for each view the routes of the part's rows, or their efforts in batches.
    """
    if company is None:
        of_sample = np.column_stack([work.array(v, "target_rarity") for v in views])
    else:
        of_sample = work.array(company, "unseen")
    if is_sample:
        rarity = of_sample
    else:
        pairs = zip(measured, views, strict=True)
        rarity = np.column_stack([_rarity(work, part, method, *pair) for pair in pairs])
        rarity = _shared(work, part, method, learnt, company, rarity)
    work.attempt.put_array("rarity", rarity)
    targets = fit_targets(of_sample, shared=company is not None)
    work.attempt.put_array("shares", targets.shares(rarity))
    return work.attempt.record()


def _shared(
    work: Work, part: Json, method: str, learnt: list[Json], company: Json | None, rarity: Floats
) -> Floats:
    """Return the rarities of a part's rows averaged with those of their neighbours, if any."""
    config = _method(method)
    kept = _company(work, config, company)
    if kept is None:
        return rarity
    view = view_from(work, learnt[kept.view], config.views[kept.view])
    return kept.shared(view.apply(work.array(part, "rows")), rarity)


def _company(work: Work, config: MethodConfig, record: Json | None) -> Company | None:
    view = config.company_view
    if record is None or view is None:
        return None
    return company_from(work, record, view, config.company)


def _maps(work: Work, view: Json) -> tuple[Calibration, ...]:
    """Return how rare efforts against the anchors of a view are."""
    return tuple(calibration_from(work, view, f"anchor{n}") for n in range(view["facts"]["maps"]))


def _rarity(work: Work, part: Json, method: str, blocks: list[Json], view: Json) -> Floats:
    """Return how rare the efforts of a part's rows are in one view."""
    setup, floor = setup_of(part, method), work.array(view, "floor")
    if setup.config.two_passes:
        maps, routes = _maps(work, view), (work.array(block, "routes") for block in blocks)
        return np.concatenate([mean_rarity(r, setup.problem, floor, maps) for r in routes])
    found = efforts_by_row(work, part, method, blocks)
    values = effort_values(found, setup.config, setup.problem, float(floor[0]))
    return calibration_from(work, view, "batch").neg_log_survival(values)


def imagine_categories(
    work: Work,
    *,
    part: Json,
    method: str,
    views: list[Json],
    learnt: list[Json],
    anchors: list[Json],
    company: Json | None,
) -> Record:
    """Make rows with rare and unseen categories, and send them to the anchors for a target."""
    config = _method(method)
    levels = rare_levels(_schema(work, part))
    rows = imagined_rows(work.array(part, "rows"), levels, config.seed)
    standings = _standings(work, config, views, learnt, anchors, company)
    _put_lesson(work, lesson_of(rows, config, standings, _company(work, config, company)))
    return work.attempt.record()


def mix_rows(
    work: Work,
    *,
    part: Json,
    labels: Json,
    method: str,
    views: list[Json],
    learnt: list[Json],
    anchors: list[Json],
    company: Json | None,
) -> Record:
    """Make rows of two others, for trees that are given efforts."""
    config = _method(method)
    standings = _standings(work, config, views, learnt, anchors, company)
    rows, shares = work.array(part, "rows"), work.array(labels, "shares")
    taught = Lesson(rows, shares, work.array(labels, "rarity"))
    kept = _company(work, config, company)
    _put_lesson(work, mixed_lesson(taught, config, standings, kept))
    return work.attempt.record()


def _put_lesson(work: Work, lesson: Lesson) -> None:
    for name in ("rows", "rarity", "shares"):
        work.attempt.put_array(name, getattr(lesson, name))


def _standings(
    work: Work,
    config: MethodConfig,
    views: list[Json],
    learnt: list[Json],
    anchors: list[Json],
    company: Json | None,
) -> list[Standing]:
    """Return what the stages before have found out about all views."""
    by_view = enumerate(zip(views, learnt, anchors, strict=True))
    found = [_standing(work, config, number, *of_view) for number, of_view in by_view]
    if company is None:
        return found
    return with_shared(found, work.array(company, "seen"), work.array(company, "unseen"))


def _standing(
    work: Work, config: MethodConfig, view: int, calibrated: Json, learnt: Json, anchors: Json
) -> Standing:
    """Return what the stages before have found out about one view."""
    fitted = FittedView(
        view_from(work, learnt, config.views[view]),
        anchors_from(work, anchors),
        work.array(calibrated, "floor"),
        _maps(work, calibrated),
    )
    kept = {n: work.array(calibrated, n) for n in STANDING_ARRAYS}
    return Standing(fitted, of_batches=None, **kept)  # which only labelling needs


def choose_regressor(work: Work, *, part: Json, labels: Json, method: str) -> Record:
    """Find which score model does best on rows it has not seen."""
    rows, shares = work.array(part, "rows"), work.array(labels, "shares")
    return work.attempt.record(kind=best_by_validation(rows, shares, _method(method), 1))


def train_fold(
    work: Work,
    *,
    part: Json,
    labels: Json,
    extra: list[Json],
    method: str,
    kind: str,
    fold: int,
) -> Record:
    """Train on all folds but one, and predict that one."""
    config = _method(method)
    unseen = predict_fold(
        fit_of(_plain(kind), config.seed, None),
        (_taught(work, part, labels, kind), work.array(labels, "shares")),
        _extra_rows(work, extra, kind),
        folds=config.folds,
        seed=config.seed,
        fold=fold,
    )
    work.attempt.put_array("unseen", unseen)
    return work.attempt.record()


def _plain(kind: str) -> str:
    """Return what a hybrid model is trained as."""
    return "lightgbm" if kind == "hybrid" else kind


def _taught(work: Work, part: Json, labels: Json, kind: str) -> Floats:
    """Return the rows of a part as a kind of score model is taught them."""
    rows = work.array(part, "rows")
    return np.column_stack([rows, work.array(labels, "rarity")]) if kind == "hybrid" else rows


def _extra_rows(work: Work, extra: list[Json], kind: str) -> tuple[Floats, Floats] | None:
    """Return made-up rows and their targets, if there are any."""
    if not extra:
        return None
    rows = np.concatenate([_taught(work, made, made, kind) for made in extra])
    return rows, np.concatenate([work.array(made, "shares") for made in extra])


def train_model(
    work: Work,
    *,
    parts: list[Json],
    labels: list[Json],
    extra: list[Json],
    method: str,
    kind: str,
    plain: Json | None = None,
) -> Record:
    """Train the score model on all labelled rows, part by part where there are several."""
    pairs = [*zip(parts, labels, strict=True), *((made, made) for made in extra)]
    shares = np.concatenate([work.array(label, "shares") for _, label in pairs])
    seed = _method(method).seed
    if len(parts) == 1 or _plain(kind) != "lightgbm":
        rows = np.concatenate([_taught(work, *pair, kind) for pair in pairs])
        model = fit_of(_plain(kind), seed, None)(rows, shares)
    else:
        model = train_lightgbm_parts(_loaders(work, pairs, kind), shares, seed=seed)
    if plain is not None:
        files = ModelFiles.of(dict(_contents(work, plain)))
        n_features = work.array(parts[0], "rows").shape[1]
        model = HybridModel(model, score_model_from(files, "lightgbm", _method(method), n_features))
    for name, content in score_model_files(model).content.items():
        work.attempt.put(name, content)
    return work.attempt.record(kind=kind)


def _loaders(work: Work, pairs: list[tuple[Json, Json]], kind: str) -> list[Callable[[], Floats]]:
    """Return what loads the rows of each part; the last two are kept at hand."""

    @lru_cache(2)
    def load(number: int) -> Floats:
        return _taught(work, *pairs[number], kind)

    return [partial(load, number) for number in range(len(pairs))]


def judge_trees(
    work: Work, *, part: Json, labels: Json, folds: list[Json], method: str, kind: str
) -> Record:
    """Measure what trees over plain columns lose, and whether they are to be given efforts."""
    config, rows = _method(method), work.array(part, "rows")
    targets = mean_of_copies(rows, work.array(labels, "shares"))
    loss = distillation_loss(_unseen_outputs(work, folds, len(rows), config), targets)
    return work.attempt.record(loss=loss, hybrid=wants_hybrid(config, kind, loss))


def _unseen_outputs(work: Work, folds: list[Json], n_rows: int, config: MethodConfig) -> Floats:
    found = [work.array(fold, "unseen") for fold in folds]
    return fold_predictions(found, n_rows, folds=config.folds, seed=config.seed)


def assemble_model(
    work: Work,
    *,
    part: Json,
    labels: Json,
    views: list[Json],
    learnt: list[Json],
    anchors: list[Json],
    company: Json | None,
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
        Lesson(rows, work.array(labels, "shares"), work.array(labels, "rarity")),
        config,
        work.array(part, "fill"),
        _standings(work, config, views, learnt, anchors, company),
        _company(work, config, company),
        score_model,
        _unseen_outputs(work, folds, len(rows), config),
    )
    model = replace(
        model,
        feature_names=schema.features,
        origin=schema.origins,
        schema=schema,
        bins=Bins(work.array(part, "edges"), work.array(part, "spread")),
    )
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
