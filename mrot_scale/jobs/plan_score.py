"""What scoring a store will do, before it does it."""

from mrot_scale.config.job import Config
from mrot_scale.explaining import prepare_explaining
from mrot_scale.jobs.plan_calibration import (
    coded_byte_seconds,
    read_row_seconds,
    seconds_of,
    seconds_per_row,
    with_seconds,
)
from mrot_scale.jobs.plan_memory import (
    BOOSTER_BYTES,
    FILLED_COPIES,
    VIEW_COPIES,
    Need,
    amount,
    company_search,
    routed_efforts,
    routing_matrices,
    stage_of,
    table,
)
from mrot_scale.jobs.plan_text import Plan
from mrot_scale.jobs.plan_workers import plan_of
from mrot_scale.jobs.report_parts import parts_bytes
from mrot_scale.jobs.score_tasks import BLOCK_ROWS, ScoreOptions, score_stored
from mrot_scale.method.resemblance import COMPARED_ROWS, NORMAL_ROWS
from mrot_scale.model.regressors import SklearnModel
from mrot_scale.scoring import FittedModel
from mrot_scale.storing.store import FeatureStore

# Measured once, as settings hardly change them; they matter little beside what is timed.
_TABLE_VALUE_S = 1e-7


def plan_score(
    model: FittedModel,
    store: FeatureStore,
    options: ScoreOptions,
    config: Config,
    *,
    calibrated: bool = True,
) -> Plan:
    """Return what scoring a store will do."""
    chunks = store.chunks
    ids_bytes = [e.n_bytes for n, e in store.manifest.files.items() if n.startswith("ids/")]
    written = store.n_rows * _output_row_bytes(options) + len(chunks) * 4_096
    written += sum(ids_bytes) if options.parquet else 0
    written += parts_bytes(config.report, len(chunks), store.n_rows, model.n_features)
    read = store.stored_bytes + (sum(ids_bytes) if options.parquet else 0)
    chunk = _chunk_need(model, store, options, max(ids_bytes, default=0))
    scoring = _score_need(model, min(store.n_rows, chunks.chunk_rows), options)
    is_chunk = chunk.n_bytes >= scoring.n_bytes or options.method == "model"
    sets = "anchor_rows" if model.config.own_sets else "batch_rows"
    setting = "store.chunk_bytes and ingest again" if is_chunk else f"{sets} and fit again"
    stages = [stage_of("score", len(chunks), (read, written), chunk + scoring, setting)]
    if calibrated:
        seconds = store.n_rows * _task_row_seconds(model, store, options)
        stages = with_seconds(stages, {"score": seconds})
    return plan_of("score", stages, config, written)


def _output_row_bytes(options: ScoreOptions) -> int:
    """Return what one row takes in the arrays and in Parquet."""
    specs = options.arrays(1, 1).values()
    in_arrays = sum(spec.chunk_bytes for spec in specs)
    in_tables = 8 * (2 + len(options.keep) + 2 * options.top_columns) if options.parquet else 0
    return in_arrays + in_tables


def _chunk_need(
    model: FittedModel, store: FeatureStore, options: ScoreOptions, ids_bytes: int
) -> Need:
    """Memory for a chunk as it is read, and its scores as they are written."""
    chunk_rows, n_columns = store.chunks.chunk_rows, model.n_features
    n_rows = min(chunk_rows, store.n_rows)
    need = table("chunk", chunk_rows, n_columns, FILLED_COPIES, size=4)
    need += table("its rows", n_rows, n_columns, 2, size=4)
    need += table("scores", chunk_rows, 2 + 2 * options.top_columns, 3, size=4)
    if options.parquet:
        n_kept = 2 + len(options.keep) + 4 * options.top_columns
        need += table("table", chunk_rows, n_kept, 3) + amount("identifiers", 8 * ids_bytes)
    return need


def _score_need(model: FittedModel, n_rows: int, options: ScoreOptions) -> Need:
    """Memory to score a block of rows, and of the model."""
    routed = options.method == "effort" or model.is_hybrid
    copies = 6 + VIEW_COPIES if routed else 5
    copies += 3 if options.top_columns else 0
    need = table("block", min(n_rows, BLOCK_ROWS), model.n_features, copies)
    anchors = [a.rows for view in model.views for a in view.anchors]
    n_bytes = 2 * BOOSTER_BYTES + 2 * sum(rows.nbytes for rows in anchors)
    if model.company is not None:
        kept = (model.company.rows, model.company.rarity, model.company.reach)
        n_bytes += 3 * sum(part.nbytes for part in kept)
    if isinstance(model.score_model, SklearnModel):
        n_bytes += 4 * model.score_model.rows.nbytes
    need += amount("model", n_bytes)
    if options.top_columns and model.whole_view is not None:
        need += table("normal rows", NORMAL_ROWS, model.n_features, 3)
        need += table("differences", COMPARED_ROWS, NORMAL_ROWS, 6)
    if routed:
        need += routing_matrices(n_rows, max(map(len, anchors)), model.config.eps)
        n_sets = max(len(view.anchors) for view in model.views)
        need += routed_efforts(min(n_rows, BLOCK_ROWS), n_sets)
        if model.company is not None:
            n_company, width = model.company.rows.shape
            need += company_search(min(n_rows, BLOCK_ROWS), n_company, width, model.company.count)
    return need


def _task_row_seconds(model: FittedModel, store: FeatureStore, options: ScoreOptions) -> float:
    """Return the estimated work for one row, from reading it to writing its score."""
    written = _output_row_bytes(options)
    in_table = (3 + len(options.keep) + 2 * options.top_columns) * _TABLE_VALUE_S
    seconds = _scored_row_seconds(model, store, options) + read_row_seconds(store)
    seconds += written * coded_byte_seconds()
    return seconds + (in_table if options.parquet else 0.0)


def _scored_row_seconds(model: FittedModel, store: FeatureStore, options: ScoreOptions) -> float:
    """Time scoring rows of the store as a task does."""
    stored = store.read_chunk(len(store.chunks) - 1)
    model.score_model.prepare(store.n_rows)
    if options.top_columns:
        prepare_explaining(model, store.n_rows)

    def seconds(n_rows: int) -> float:
        return seconds_of(lambda: score_stored(model, store, stored[:n_rows], options))

    return seconds_per_row(seconds, len(stored), store.n_rows)
