"""What fitting a store will do, before it does it: tasks, bytes, memory, disk and time by stage.

Task counts are those the jobs submit; where rows are left out on the way (by a condition, or with
missing values under `score-nan`) they are upper bounds. Sizes are upper bounds, compression not
counted on. Memory is arrays counted in the code of the tasks, and tests hold tasks to it. Times are
estimates: a few pieces of the work are timed, the rest is multiplication.
"""

from dataclasses import replace

from mrot_scale.config.job import Config
from mrot_scale.fitting.setup import Setup
from mrot_scale.jobs.labelled import EFFORT_BLOCK_BATCHES, ROUTE_BLOCK_ROWS
from mrot_scale.jobs.plan_calibration import with_seconds
from mrot_scale.jobs.plan_memory import (
    CALIBRATION_BYTES,
    CODED_COPIES,
    EFFORT_COPIES,
    FILLED_COPIES,
    HELD_ARRAYS,
    PART_COPIES,
    SEARCHED_ROWS,
    VIEW_COPIES,
    amount,
    matrices,
    stage_of,
    table,
)
from mrot_scale.jobs.plan_seconds import fit_seconds
from mrot_scale.jobs.plan_sizes import FitSizes, numbered_rows, setting_of
from mrot_scale.jobs.plan_text import Plan, StagePlan
from mrot_scale.jobs.plan_training import (
    assemble_stage,
    choose_stage,
    hybrid_stage,
    imagine_stage,
    judge_stage,
    train_stage,
    validate_stage,
)
from mrot_scale.jobs.plan_workers import plan_of
from mrot_scale.method.transport import ASSIGNMENT_ROWS
from mrot_scale.storing.store import FeatureStore


def plan_fit_job(store: FeatureStore, config: Config, *, calibrated: bool = True) -> Plan:
    """Return what fitting a store will do, stage by stage."""
    fit = FitSizes(store, config.for_columns(len(store.schema.features)))
    stages = [
        _sample_stage(fit),
        _gather_stage(fit),
        _views_stage(fit),
        *_neighbours_stage(fit),
        _efforts_stage(fit),
        *_trust_stage(fit),
        _anchors_stage(fit),
        _routes_stage(fit),
        _calibrate_stage(fit),
        *_company_stage(fit),
        _label_stage(fit),
        *imagine_stage(fit),
        *choose_stage(fit),
        train_stage(fit),
        judge_stage(fit),
        *hybrid_stage(fit),
        assemble_stage(fit),
        validate_stage(fit),
    ]
    if calibrated:
        stages = with_seconds(stages, fit_seconds(fit, {s.name: s for s in stages}))
    return plan_of("fit", stages, config, fit.model_bytes)


def _sample_stage(fit: FitSizes) -> StagePlan:
    chunks = fit.store.chunks
    written = 4 * (fit.n_labelled + fit.held_rows) * fit.n_features
    filled = min(chunks.chunk_rows, fit.store.n_rows)
    need = table("chunk", chunks.chunk_rows, fit.n_features, FILLED_COPIES, size=4)
    need += table("its rows", filled, fit.n_features, CODED_COPIES - 1, size=4)
    need += amount("row numbers", 16 * numbered_rows(fit))
    moved = (fit.store.stored_bytes, written)
    return stage_of("sample", len(chunks), moved, need, "store.chunk_bytes and ingest again")


def _gather_stage(fit: FitSizes) -> StagePlan:
    n_columns, held = fit.n_features, fit.held_rows
    piece_rows = min(HELD_ARRAYS * fit.store.chunks.chunk_rows, fit.largest + held)
    need = (
        table("rows", fit.largest, n_columns, CODED_COPIES)
        + table("held-out rows", held, n_columns, 4)
        + table("pieces", piece_rows, n_columns, 2, size=4)
    )
    read = 4 * n_columns * (fit.n_labelled + fit.n_parts * held)
    moved = (read, fit.all_bytes + 8 * held * n_columns)
    stage = stage_of("gather", fit.n_parts, moved, need, fit.rows_setting)
    return replace(stage, one_by_one=True)


def _views_stage(fit: FitSizes) -> StagePlan:
    written = 8 * sum(c * (4 + w) for c, w in zip(fit.columns, fit.widths, strict=True))
    moved = (fit.n_views * fit.first_bytes, written)
    return stage_of("views", fit.n_views, moved, fit.points(fit.part_rows[0]), fit.rows_setting)


def _neighbours_stage(fit: FitSizes) -> list[StagePlan]:
    if not fit.setups[0].measures_zones:
        return []
    n_reference = min(fit.config.reference_rows, fit.part_rows[0])
    n_inside = max(1, round(fit.setups[0].problem.alpha * n_reference)) + 2
    need = fit.points(fit.largest)
    if fit.n_met > 1:
        need += table("the sample's rows and points", fit.part_rows[0], fit.n_features, 2)
    need += table("reference", n_reference, max(fit.widths), 5)
    need += table("neighbours", min(fit.largest, SEARCHED_ROWS), n_inside, 5)
    met = sum(fit.part_rows[: fit.n_met])
    written = fit.n_met_views * 8 * met
    read = fit.n_met_views * (8 * met * fit.n_features + (fit.n_met - 1) * fit.first_bytes)
    n_tasks = fit.n_met_views * fit.n_met
    return [stage_of("neighbours", n_tasks, (read, written), need, fit.rows_setting)]


def _efforts_stage(fit: FitSizes) -> StagePlan:
    setups, part_rows = fit.setups[: fit.n_met], fit.part_rows[: fit.n_met]
    batch_rows = max(setup.plan.batch_rows for setup in setups)
    rows = fit.points(fit.largest) + table("row numbers and zones", fit.largest, 1, 8)
    solving = matrices(batch_rows, batch_rows, _solver_copies(fit, batch_rows))
    blocks = [_effort_blocks(setup) for setup in setups]
    read = sum(
        8 * n * (fit.n_features + 1) * count for n, count in zip(part_rows, blocks, strict=True)
    )
    kept = sum(8 * n * s.plan.repeats for n, s in zip(part_rows, setups, strict=True))
    moved = (fit.n_met_views * read, fit.n_met_views * kept)
    n_tasks = fit.n_met_views * sum(blocks)
    setting = setting_of(fit, rows, solving, "batch_rows")
    return stage_of("efforts", n_tasks, moved, rows + solving, setting)


def _trust_stage(fit: FitSizes) -> list[StagePlan]:
    if not fit.config.two_passes:
        return []
    n_rows, repeats = fit.part_rows[0], fit.setups[0].plan.repeats
    need = table("efforts", n_rows, repeats, fit.n_met_views + 4) + table("values", n_rows, 1, 16)
    moved = (fit.n_met_views * 8 * n_rows * repeats, 8 * n_rows)
    return [stage_of("trust", 1, moved, need, fit.rows_setting)]


def _effort_blocks(setup: Setup) -> int:
    return setup.plan.repeats * -(-setup.plan.batches_per_repeat // EFFORT_BLOCK_BATCHES)


def _solver_copies(fit: FitSizes, batch_rows: int) -> int:
    """Return how many matrices a batch needs: entropic, by assignment, or by network simplex."""
    if fit.config.eps > 0:
        return 11
    return 4 if batch_rows <= ASSIGNMENT_ROWS else 8


def _anchors_stage(fit: FitSizes) -> StagePlan:
    rows = fit.points(fit.part_rows[0]) + table("row numbers and zones", fit.part_rows[0], 1, 8)
    copies = 11 if fit.config.eps > 0 else 8
    solving = matrices(fit.anchor_rows, fit.anchor_rows, copies)
    solving += amount("anchors", 3 * fit.view_anchor_bytes)
    moved = (fit.n_views * (fit.first_bytes + 8 * fit.part_rows[0]), fit.anchor_bytes)
    return stage_of("anchors", fit.n_views, moved, rows + solving, setting_of(fit, rows, solving))


def _routes_stage(fit: FitSizes) -> StagePlan:
    part_rows = fit.part_rows[: fit.n_routed]
    n_rows = max(part_rows)
    n_blocks = sum(-(-n // ROUTE_BLOCK_ROWS) for n in part_rows)
    block_rows = min(n_rows, ROUTE_BLOCK_ROWS)
    rows = (
        table("rows", n_rows, fit.n_features, PART_COPIES + 1)
        + table("points", block_rows, max(fit.columns), VIEW_COPIES)
        + table("efforts", block_rows, fit.n_sets, 3)
    )
    routing = fit.routes(block_rows) + amount("anchors", 3 * fit.view_anchor_bytes)
    read = n_blocks * (fit.n_views * 8 * n_rows * fit.n_features + fit.anchor_bytes)
    moved = (read, 8 * sum(part_rows) * sum(plan.n_sets for plan in fit.anchors))
    setting = setting_of(fit, rows, routing)
    return stage_of("routes", fit.n_views * n_blocks, moved, rows + routing, setting)


def _calibrate_stage(fit: FitSizes) -> StagePlan:
    n_rows, n_views = fit.part_rows[0], fit.n_views
    need = table("efforts and routes", n_rows, fit.n_sets, 8) + table("values", n_rows, 1, 16)
    need += amount("anchors", 3 * fit.view_anchor_bytes)
    read = n_views * 16 * n_rows * fit.n_sets + fit.anchor_bytes
    own_maps = sum(plan.n_sets for plan in fit.anchors if plan.columns is not None)
    written = n_views * (4 * 8 * n_rows + 2 * CALIBRATION_BYTES) + own_maps * CALIBRATION_BYTES
    return stage_of("calibrate", n_views, (read, written), need, fit.rows_setting)


def _company_stage(fit: FitSizes) -> list[StagePlan]:
    if fit.n_company == 0:
        return []
    n_rows = fit.part_rows[0]
    need = fit.points(n_rows) + table("values", n_rows, 10 * fit.n_views, 1) + fit.company(n_rows)
    need += amount("anchors", 3 * fit.anchor_bytes)
    read = fit.first_bytes + fit.anchor_bytes + fit.n_views * 4 * 8 * n_rows
    maps = fit.loneliness_maps * CALIBRATION_BYTES
    moved = (read, fit.company_bytes + maps + 2 * 8 * n_rows * fit.n_views)
    return [stage_of("company", 1, moved, need, fit.rows_setting)]


def _label_stage(fit: FitSizes) -> StagePlan:
    at_once, n_efforts = min(fit.largest, ROUTE_BLOCK_ROWS), fit.n_sets
    held = sum(plan.n_sets for plan in fit.anchors)
    if not fit.config.two_passes:
        at_once, n_efforts = fit.largest, fit.setups[0].plan.repeats
        held = fit.n_views * n_efforts
    need = table("efforts", at_once, n_efforts, EFFORT_COPIES)
    need += table("efforts held", fit.largest, held, 1)
    need += table("values", fit.largest, 2 * fit.n_views + 4, 2)
    if fit.n_company and fit.n_parts > 1:
        need += fit.points(fit.largest) + fit.company(fit.largest)
    read = 8 * fit.n_labelled * held + fit.n_views * fit.n_parts * 8 * fit.part_rows[0]
    written = 8 * fit.n_labelled * (1 + fit.n_views)
    return stage_of("label", fit.n_parts, (read, written), need, fit.rows_setting)
