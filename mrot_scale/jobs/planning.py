"""What a job will do, before it does it: tasks, bytes, memory, disk and time of every stage.

Task counts are those the jobs submit; where rows are left out on the way (by a condition, or with
missing values under `score-nan`) they are upper bounds. Sizes are upper bounds, compression not
counted on. Memory is arrays counted in the code of the tasks, and tests hold tasks to it. Times are
estimates: a few pieces of the work are timed here, the rest is multiplication.
"""

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mrot_scale.config import ClusterConfig, Config
from mrot_scale.encoding import rare_levels
from mrot_scale.fitting import TRAINING_SCORES_KEPT, Setup, plan_fit
from mrot_scale.jobs.fit_tasks import label_plan
from mrot_scale.jobs.imagined import ROWS_PER_COLUMN
from mrot_scale.jobs.labelled import (
    EFFORT_BLOCK_BATCHES,
    HELD_OUT_ROWS,
    ROUTE_BLOCK_ROWS,
    LabelPlan,
)
from mrot_scale.jobs.plan_text import (
    Need,
    Plan,
    StagePlan,
    amount,
    matrices,
    plan_text,
    stage_of,
    table,
)
from mrot_scale.jobs.score_tasks import BLOCK_ROWS, ScoreOptions
from mrot_scale.method.anchors import fit_anchor_set, route_costs
from mrot_scale.method.efforts import Problem, batch_efforts
from mrot_scale.method.neighbours import ReferenceIndex
from mrot_scale.method.transport import ASSIGNMENT_ROWS
from mrot_scale.model.choose import CANDIDATES, fit_of
from mrot_scale.model.lightgbm_model import LightgbmModel
from mrot_scale.model.regressors import ScoreModel, SklearnModel, n_folds
from mrot_scale.reading.stream import TableStream, rows_per_batch
from mrot_scale.running.cluster import local_workers
from mrot_scale.running.commit import whole_array
from mrot_scale.scoring import FittedModel, problem_of
from mrot_scale.storing.chunks import RowChunks, rows_per_chunk
from mrot_scale.storing.ingestion import ColumnChoice, StoreBuilder
from mrot_scale.storing.statistics import BLOCK_ROWS as MEASURED_ROWS
from mrot_scale.storing.store import FeatureStore
from mrot_scale.threads import available_cores, one_native_thread

__all__ = ["Plan", "StagePlan", "plan_fit_job", "plan_ingest", "plan_score", "plan_text"]

Floats = NDArray[np.float64]

MIB = 2**20
BASE_BYTES = 350 * MIB
"""A worker that has imported everything and done nothing."""

_CODED_COPIES = 6
"""Of rows that are read and written: bytes, decoded, cut, chosen, encoded, sealed."""

_FILLED_COPIES = 2
"""Of a whole chunk, also where fewer rows are in it."""

_PART_COPIES = 2
"""Of a part's rows while they are read; one of them stays."""

_VIEW_COPIES = 5
"""Of the columns of a view while they are scaled: chosen, centred, scaled, squashed, together."""

_HELD_ARRAYS = 8
"""Arrays of earlier stages that a worker keeps at hand."""

_ROUTED_ROWS, _SEARCHED_ROWS = 4_096, 4_096
"""Rows that are sent to anchors, or looked up in the index, at a time."""

_CHUNKS_IN_HAND = 3
"""Chunks an ingest has filled but not yet written, at most."""

_BINNED_ROWS = 200_000
"""Rows LightGBM looks at to find its bins."""

_LEAF_HISTOGRAM_BYTES = 63 * 256 * 16
_SVR_CACHE_BYTES = 200 * MIB
_BOOSTER_BYTES = 2 * MIB
_CALIBRATION_BYTES = 2 * 8 * 4_097

_COUNTED_BLOCKS = 1_000
"""Blocks of rows up to which the sizes of parts are counted exactly: half a second."""

# Seconds that settings hardly change, measured once; they matter little beside what is timed.
_TASK_S = 0.02
_VIEWED_VALUE_S = 2e-8
_LEARNT_VALUE_S = 1.2e-7
_CALIBRATED_VALUE_S = 5e-7
_DRAWN_ROW_S = 1e-8
_TABLE_VALUE_S = 1e-7
_EXPLAINED_SHARE = 0.02

_TIMED_BATCH_ROWS = 256
_TIMED_ROUTES = 1_024
_TIMED_SEARCHES = 256
_TIMED_VALUES = 2**18
_TIMED_TRAINING = (2_000, 10_000)
_TIMED_SLOW_TRAINING = (100, 300)
_GROWTH = {"lightgbm": 1.0, "boosting": 1.1, "svr": 2.0, "knn": 1.0}
_BLOCK_S = 0.1


# ---------------------------------------------------------------- workers


def worker_count(config: ClusterConfig) -> int:
    """Return how many tasks will run side by side."""
    if config.kind == "inline":
        return 1
    return local_workers(config) if config.kind == "local" else config.workers or 1


def worker_memory(config: ClusterConfig) -> int | None:
    """Return the memory of one worker; None where only the cluster knows it."""
    if config.memory_limit is not None:
        return config.memory_limit
    if config.kind == "inline":
        return machine_memory()
    if config.kind != "local":
        return None
    # Dask gives a worker of one thread the share of one core, however few workers there are.
    return machine_memory() // max(local_workers(config), available_cores())


def machine_memory() -> int:
    """Return the memory this process may use: the machine's, or what its container was given."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for place in _limit_files():
        try:
            found.append(int(place.read_text()))
        except (OSError, ValueError):  # not there, or "max"
            continue
    return min(found)


def _limit_files() -> list[Path]:
    """Return where cgroups of either version keep a memory limit for this process."""
    root, own = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
    lines = own.read_text().splitlines() if own.exists() else []
    paths = ["", *(line.split(":", 2)[2].strip("/") for line in lines if line.count(":") >= 2)]
    new = [root / path / "memory.max" for path in paths]
    return new + [root / "memory" / path / "memory.limit_in_bytes" for path in paths]


def _plan(command: str, stages: list[StagePlan], config: Config, output_bytes: int) -> Plan:
    return Plan(
        command,
        tuple(stages),
        worker_count(config.cluster),
        worker_memory(config.cluster),
        BASE_BYTES,
        sum(stage.written_bytes for stage in stages) + output_bytes,
    )


def _with_seconds(stages: list[StagePlan], seconds: dict[str, float]) -> list[StagePlan]:
    return [
        replace(s, seconds=seconds[s.name] + _TASK_S * s.n_tasks if s.name in seconds else None)
        for s in stages
    ]


# ---------------------------------------------------------------- ingest


def plan_ingest(stream: TableStream, n_features: int, config: Config) -> Plan:
    """Return what reading a table into a store will do; it runs in this process alone."""
    n_rows, source_bytes = _source_size(stream)
    chunk_rows = rows_per_chunk(config.store.chunk_bytes, n_features)
    written = n_rows * (4 * n_features + 8 * _carried_columns(stream, n_features))
    n_chunks = len(RowChunks(n_rows, chunk_rows))
    in_hand = min(_CHUNKS_IN_HAND, n_chunks)
    batch_rows = min(n_rows, rows_per_batch(len(stream.schema.names)))
    block_rows = min(n_rows, MEASURED_ROWS, max(2**22 // n_features, 1))
    need = (
        table("chunk", chunk_rows, n_features, _FILLED_COPIES, size=4)
        + table("its rows", min(n_rows, chunk_rows), n_features, 4 * in_hand, size=4)
        + table("record batch", batch_rows, n_features, 5)
        + table("statistics", block_rows, n_features, 4)
    )
    stage = stage_of("ingest", n_chunks, (source_bytes, written), need, "store.chunk_bytes")
    seconds = {"ingest": n_rows * _ingested_row_seconds(n_features)}
    plan = _plan("ingest", _with_seconds([stage], seconds), config, written)
    return replace(plan, workers=1, worker_bytes=config.cluster.memory_limit or machine_memory())


def _source_size(stream: TableStream) -> tuple[int, int]:
    """Return rows and bytes of a source; rows are guessed from the size where nobody knows."""
    width = 8 * max(len(stream.schema.names), 1)
    n_bytes = sum(int(size) for _, size, _ in stream.identity.get("files", ()))
    n_rows = n_bytes // width if stream.n_rows is None else stream.n_rows
    return n_rows, n_bytes or n_rows * width


def _carried_columns(stream: TableStream, n_features: int) -> int:
    return 1 + max(0, len(stream.schema.names) - n_features)


def _ingested_row_seconds(n_features: int) -> float:
    """Time encoding, measuring and compressing some rows of numbers."""
    n_rows = max(256, _TIMED_VALUES // n_features)
    names = [f"c{i}" for i in range(n_features)]
    numbers = np.random.default_rng(0).normal(size=(n_features, n_rows))
    batch = pa.RecordBatch.from_arrays([pa.array(x) for x in numbers], names)
    choice = ColumnChoice(tuple(names), None, (), (), ())
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        builder = StoreBuilder(choice, batch.schema, scratch=Path(scratch), vocabulary=1)
        for content in builder.chunks([batch], n_rows):
            content.digest()
            whole_array("float32", content.features.shape).encode(content.features)
        builder.finish(allow_lost_values=True)
    return (time.perf_counter() - start) / n_rows


# ---------------------------------------------------------------- fit


@dataclass(frozen=True)
class _Fit:
    """A store and the settings to fit it with, as sizes."""

    store: FeatureStore
    config: Config

    @cached_property
    def label(self) -> LabelPlan:
        return label_plan(self.store, self.config.method, self.config.coverage)

    @property
    def n_features(self) -> int:
        return len(self.store.schema.features)

    @cached_property
    def part_rows(self) -> tuple[int, ...]:
        """Rows of each part; where counting would take long, about as many as it will have."""
        label, n_rows = self.label, self.store.n_rows
        if label.n_parts == 1:
            return (n_rows if label.coverage == "all" else min(n_rows, label.label_rows),)
        if label.n_parts * (1 + n_rows // 65_536) > _COUNTED_BLOCKS:
            return (-(-n_rows // label.n_parts),) * label.n_parts
        parts = range(label.n_parts)
        return tuple(len(label.rows_of_part(part, 0, n_rows)) for part in parts)

    @property
    def n_parts(self) -> int:
        return len(self.part_rows)

    @property
    def n_labelled(self) -> int:
        return sum(self.part_rows)

    @property
    def largest(self) -> int:
        return max(self.part_rows)

    @property
    def held_rows(self) -> int:
        is_sample = self.label.coverage == "sample" and self.store.n_rows > self.label.label_rows
        return min(HELD_OUT_ROWS, self.store.n_rows - self.label.label_rows) if is_sample else 0

    @cached_property
    def setups(self) -> tuple[Setup, ...]:
        """What `plan_fit` says of each part."""
        by_size = {n: plan_fit(n, self.config.method, 1, None) for n in set(self.part_rows)}
        return tuple(by_size[n] for n in self.part_rows)

    @property
    def anchor_rows(self) -> int:
        return self.setups[0].plan.batch_rows

    @property
    def n_sets(self) -> int:
        return self.setups[0].plan.repeats

    @property
    def n_views(self) -> int:
        return len(self.config.views)

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """Columns each view reads."""
        return tuple(len(v.columns) if v.columns else self.n_features for v in self.config.views)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Coordinates of each view."""
        pairs = zip(self.config.views, self.columns, strict=True)
        return tuple(view.whiten or columns for view, columns in pairs)

    @property
    def n_imagined(self) -> int:
        per_column = min(ROWS_PER_COLUMN, self.part_rows[0])
        return per_column * len(rare_levels(self.store.schema))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Score models that may be trained."""
        return CANDIDATES if self.config.regressor == "auto" else (self.config.regressor,)

    @property
    def first_bytes(self) -> int:
        return 8 * self.part_rows[0] * self.n_features

    @property
    def all_bytes(self) -> int:
        return 8 * self.n_labelled * self.n_features

    @property
    def anchor_bytes(self) -> int:
        """Anchors of all views."""
        return 8 * self.n_sets * self.anchor_rows * sum(width + 2 for width in self.widths)

    @property
    def score_model_bytes(self) -> int:
        kept = 8 * (self.n_labelled + self.n_imagined) * (self.n_features + 1)
        return max(_BOOSTER_BYTES if kind == "lightgbm" else kept for kind in self.kinds)

    @property
    def model_bytes(self) -> int:
        calibrations = (self.n_views + 2) * _CALIBRATION_BYTES + 8 * TRAINING_SCORES_KEPT
        views = 8 * sum(c * (4 + w) for c, w in zip(self.columns, self.widths, strict=True))
        return self.anchor_bytes + self.score_model_bytes + calibrations + views + 4_096

    @property
    def rows_setting(self) -> str:
        """What makes parts smaller."""
        by_label_rows = self.n_parts == 1 or self.largest <= 1.2 * self.config.label_rows
        return "label_rows" if by_label_rows else "coverage to sample"

    def points(self, n_rows: int) -> Need:
        """Memory to read a part and see it in a view."""
        whitened = 3 if any(view.whiten for view in self.config.views) else 0
        copies = _PART_COPIES + (self.n_parts > 1)  # the part before may still be held
        return table("rows", n_rows, self.n_features, copies) + table(
            "points", n_rows, max(self.columns), _VIEW_COPIES + whitened
        )

    def routes(self, n_rows: int) -> Need:
        """Memory to send rows to the anchors of a view."""
        copies = 6 if self.config.eps > 0 else 4
        return matrices(min(n_rows, _ROUTED_ROWS), self.anchor_rows, copies)


def plan_fit_job(store: FeatureStore, config: Config, *, calibrated: bool = True) -> Plan:
    """Return what fitting a store will do, stage by stage."""
    fit = _Fit(store, config)
    stages = [
        _sample_stage(fit),
        _gather_stage(fit),
        _views_stage(fit),
        *_neighbours_stage(fit),
        _efforts_stage(fit),
        _anchors_stage(fit),
        _routes_stage(fit),
        _calibrate_stage(fit),
        _label_stage(fit),
        *_imagine_stage(fit),
        *_choose_stage(fit),
        _train_stage(fit),
        _assemble_stage(fit),
        _validate_stage(fit),
    ]
    if calibrated:
        stages = _with_seconds(stages, _fit_seconds(fit, {s.name: s for s in stages}))
    return _plan("fit", stages, config, fit.model_bytes)


def _sample_stage(fit: _Fit) -> StagePlan:
    chunks = fit.store.chunks
    written = 4 * (fit.n_labelled + fit.held_rows) * fit.n_features
    filled = min(chunks.chunk_rows, fit.store.n_rows)
    need = table("chunk", chunks.chunk_rows, fit.n_features, _FILLED_COPIES, size=4)
    need += table("its rows", filled, fit.n_features, _CODED_COPIES - 1, size=4)
    need += amount("row numbers", 16 * _numbered_rows(fit))
    moved = (fit.store.stored_bytes, written)
    return stage_of("sample", len(chunks), moved, need, "store.chunk_bytes and ingest again")


def _numbered_rows(fit: _Fit) -> int:
    """Return how many row numbers a task holds to know which rows are drawn."""
    if fit.n_parts > 1:
        return fit.store.chunks.chunk_rows + 65_536
    # NumPy shuffles all numbers where more than a fiftieth of them is wanted.
    is_shuffled = fit.part_rows[0] > fit.store.n_rows // 50
    return fit.store.n_rows if is_shuffled else 2 * fit.part_rows[0]


def _gather_stage(fit: _Fit) -> StagePlan:
    n_columns, held = fit.n_features, fit.held_rows
    piece_rows = min(_HELD_ARRAYS * fit.store.chunks.chunk_rows, fit.largest + held)
    need = (
        table("rows", fit.largest, n_columns, _CODED_COPIES)
        + table("held-out rows", held, n_columns, 4)
        + table("pieces", piece_rows, n_columns, 2, size=4)
    )
    read = 4 * n_columns * (fit.n_labelled + fit.n_parts * held)
    moved = (read, fit.all_bytes + 8 * held * n_columns)
    stage = stage_of("gather", fit.n_parts, moved, need, fit.rows_setting)
    return replace(stage, one_by_one=True)


def _views_stage(fit: _Fit) -> StagePlan:
    written = 8 * sum(c * (4 + w) for c, w in zip(fit.columns, fit.widths, strict=True))
    moved = (fit.n_views * fit.first_bytes, written)
    return stage_of("views", fit.n_views, moved, fit.points(fit.part_rows[0]), fit.rows_setting)


def _neighbours_stage(fit: _Fit) -> list[StagePlan]:
    if not fit.setups[0].measures_zones:
        return []
    n_reference = min(fit.config.reference_rows, fit.part_rows[0])
    n_inside = max(1, round(fit.config.alpha * n_reference)) + 2
    need = fit.points(fit.largest)
    if fit.n_parts > 1:
        need += table("the sample's rows and points", fit.part_rows[0], fit.n_features, 2)
    need += table("reference", n_reference, max(fit.widths), 5)
    need += table("neighbours", min(fit.largest, _SEARCHED_ROWS), n_inside, 4)
    written = fit.n_views * 8 * fit.n_labelled
    read = fit.n_views * (fit.all_bytes + (fit.n_parts - 1) * fit.first_bytes)
    n_tasks = fit.n_views * fit.n_parts
    return [stage_of("neighbours", n_tasks, (read, written), need, fit.rows_setting)]


def _effort_blocks(setup: Setup) -> int:
    return setup.plan.repeats * -(-setup.plan.batches_per_repeat // EFFORT_BLOCK_BATCHES)


def _efforts_stage(fit: _Fit) -> StagePlan:
    batch_rows = max(setup.plan.batch_rows for setup in fit.setups)
    rows = fit.points(fit.largest) + table("row numbers and zones", fit.largest, 1, 8)
    solving = matrices(batch_rows, batch_rows, _solver_copies(fit, batch_rows))
    blocks = [_effort_blocks(setup) for setup in fit.setups]
    read = sum(
        8 * n * (fit.n_features + 1) * count for n, count in zip(fit.part_rows, blocks, strict=True)
    )
    kept = sum(8 * n * s.plan.repeats for n, s in zip(fit.part_rows, fit.setups, strict=True))
    moved = (fit.n_views * read, fit.n_views * kept)
    n_tasks = fit.n_views * sum(blocks)
    return stage_of("efforts", n_tasks, moved, rows + solving, _setting(fit, rows, solving))


def _solver_copies(fit: _Fit, batch_rows: int) -> int:
    """Return how many matrices a batch needs: entropic, by assignment, or by network simplex."""
    if fit.config.eps > 0:
        return 11
    return 4 if batch_rows <= ASSIGNMENT_ROWS else 8


def _setting(fit: _Fit, rows: Need, solving: Need) -> str:
    return "batch_rows" if solving.n_bytes > rows.n_bytes else fit.rows_setting


def _anchors_stage(fit: _Fit) -> StagePlan:
    per_view = fit.anchor_bytes // fit.n_views
    rows = fit.points(fit.part_rows[0]) + table("row numbers and zones", fit.part_rows[0], 1, 8)
    copies = 11 if fit.config.eps > 0 else 8
    solving = matrices(fit.anchor_rows, fit.anchor_rows, copies)
    solving += amount("anchors", 3 * per_view)
    moved = (fit.n_views * (fit.first_bytes + 8 * fit.part_rows[0]), fit.anchor_bytes)
    return stage_of("anchors", fit.n_views, moved, rows + solving, _setting(fit, rows, solving))


def _routes_stage(fit: _Fit) -> StagePlan:
    n_rows = fit.part_rows[0]
    n_blocks, block_rows = -(-n_rows // ROUTE_BLOCK_ROWS), min(n_rows, ROUTE_BLOCK_ROWS)
    rows = (
        table("rows", n_rows, fit.n_features, _PART_COPIES + 1)
        + table("points", block_rows, max(fit.columns), _VIEW_COPIES)
        + table("efforts", block_rows, fit.n_sets, 3)
    )
    routing = fit.routes(block_rows) + amount("anchors", 3 * fit.anchor_bytes // fit.n_views)
    read = n_blocks * (fit.n_views * fit.first_bytes + fit.anchor_bytes)
    moved = (read, fit.n_views * 8 * n_rows * fit.n_sets)
    setting = _setting(fit, rows, routing)
    return stage_of("routes", fit.n_views * n_blocks, moved, rows + routing, setting)


def _calibrate_stage(fit: _Fit) -> StagePlan:
    n_rows, n_views = fit.part_rows[0], fit.n_views
    need = table("efforts and routes", n_rows, fit.n_sets, 8) + table("values", n_rows, 1, 16)
    need += amount("anchors", 3 * fit.anchor_bytes // n_views)
    read = n_views * 16 * n_rows * fit.n_sets + fit.anchor_bytes
    written = n_views * (4 * 8 * n_rows + 2 * _CALIBRATION_BYTES)
    return stage_of("calibrate", n_views, (read, written), need, fit.rows_setting)


def _label_stage(fit: _Fit) -> StagePlan:
    need = table("efforts", fit.largest, fit.n_sets, 6)
    need += table("values", fit.largest, 2 * fit.n_views + 4, 2)
    read = fit.n_views * (8 * fit.n_labelled * fit.n_sets + fit.n_parts * 8 * fit.part_rows[0])
    return stage_of("label", fit.n_parts, (read, 8 * fit.n_labelled), need, fit.rows_setting)


def _imagine_stage(fit: _Fit) -> list[StagePlan]:
    if fit.n_imagined == 0:
        return []
    n_rows, made = fit.part_rows[0], fit.n_imagined
    rows = (
        table("rows", n_rows, fit.n_features, _PART_COPIES + 1)
        + table("made-up rows", made, fit.n_features, 3 + _VIEW_COPIES)
        + table("values", n_rows, 4 * fit.n_views + 4, 1)
    )
    routing = fit.routes(made) + amount("anchors", 3 * fit.anchor_bytes)
    read = fit.first_bytes + fit.anchor_bytes + fit.n_views * 4 * 8 * n_rows
    moved = (read, 8 * made * (fit.n_features + 1))
    return [stage_of("imagine", 1, moved, rows + routing, _setting(fit, rows, routing))]


def _learning(fit: _Fit, n_rows: int) -> Need:
    """Memory to train a score model on rows in memory."""
    need = table("rows", n_rows, fit.n_features, _CODED_COPIES)
    need += amount("histograms", _LEAF_HISTOGRAM_BYTES * fit.n_features)
    if "svr" in fit.kinds:
        need += amount("kernel cache", min(_SVR_CACHE_BYTES, 4 * n_rows**2))
    return need


def _learning_by_parts(fit: _Fit) -> Need:
    """Memory to train LightGBM on all parts, loaded a few at a time."""
    held = min(_HELD_ARRAYS, fit.n_parts) + 2
    return (
        table("parts held", fit.largest, fit.n_features, held)
        + table("rows in bins", fit.n_labelled, fit.n_features, 1, size=1)
        + table("rows behind bins", min(fit.n_labelled, _BINNED_ROWS), fit.n_features, 2)
        + table("targets and gradients", fit.n_labelled, 1, 6)
        + amount("histograms", _LEAF_HISTOGRAM_BYTES * fit.n_features)
    )


def _choose_stage(fit: _Fit) -> list[StagePlan]:
    if fit.config.regressor != "auto":
        return []
    moved = (fit.first_bytes + 8 * fit.part_rows[0], 0)
    return [stage_of("choose", 1, moved, _learning(fit, fit.part_rows[0]), fit.rows_setting)]


def _train_stage(fit: _Fit) -> StagePlan:
    folds = n_folds(fit.part_rows[0], fit.config.folds)
    needs = [_learning(fit, fit.part_rows[0] + fit.n_imagined)]
    if fit.n_parts > 1:
        in_parts = fit.kinds == ("lightgbm",)
        together = _learning(fit, fit.n_labelled + fit.n_imagined)
        needs.append(_learning_by_parts(fit) if in_parts else together)
    largest = max(needs, key=lambda need: need.n_bytes)
    made = 8 * fit.n_imagined * (fit.n_features + 1)
    read = fit.all_bytes + 8 * fit.n_labelled + made
    read += folds * (fit.first_bytes + 8 * fit.part_rows[0] + made)
    moved = (read, fit.score_model_bytes + 8 * fit.part_rows[0])
    return stage_of("train", 1 + folds, moved, largest, fit.rows_setting)


def _assemble_stage(fit: _Fit) -> StagePlan:
    n_rows = fit.part_rows[0]
    need = table("rows", n_rows, fit.n_features, 4)
    need += table("values", n_rows, 6 * fit.n_views + 8, 1)
    need += amount("model", 4 * fit.model_bytes)
    read = fit.first_bytes + fit.model_bytes + 8 * n_rows * (4 * fit.n_views + 1)
    return stage_of("assemble", 1, (read, fit.model_bytes), need, fit.rows_setting)


def _validate_stage(fit: _Fit) -> StagePlan:
    held = fit.held_rows
    rows = table("held-out rows", held, fit.n_features, 4 + _VIEW_COPIES)
    rows += amount("model", 4 * fit.model_bytes)
    routing = fit.routes(held)
    read = fit.model_bytes + 8 * held * fit.n_features
    return stage_of("validate", 1, (read, 0), rows + routing, _setting(fit, rows, routing))


# ---------------------------------------------------------------- score


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
    read = store.stored_bytes + (sum(ids_bytes) if options.parquet else 0)
    chunk = _chunk_need(model, store, options, max(ids_bytes, default=0))
    scoring = _score_need(model, min(store.n_rows, chunks.chunk_rows), options)
    is_chunk = chunk.n_bytes >= scoring.n_bytes or options.method == "model"
    setting = "store.chunk_bytes and ingest again" if is_chunk else "batch_rows and fit again"
    stages = [stage_of("score", len(chunks), (read, written), chunk + scoring, setting)]
    if calibrated:
        seconds = store.n_rows * _scored_row_seconds(model, store, options)
        stages = _with_seconds(stages, {"score": seconds})
    return _plan("score", stages, config, written)


def _output_row_bytes(options: ScoreOptions) -> int:
    """Return what one row takes in the arrays and in Parquet."""
    specs = options.arrays(1, 1).values()
    in_arrays = sum(spec.chunk_bytes for spec in specs)
    in_tables = 8 * (2 + len(options.keep) + options.top_columns) if options.parquet else 0
    return in_arrays + in_tables


def _chunk_need(
    model: FittedModel, store: FeatureStore, options: ScoreOptions, ids_bytes: int
) -> Need:
    """Memory for a chunk as it is read, and its scores as they are written."""
    chunk_rows, n_columns = store.chunks.chunk_rows, model.n_features
    n_rows = min(chunk_rows, store.n_rows)
    need = table("chunk", chunk_rows, n_columns, _FILLED_COPIES, size=4)
    need += table("its rows", n_rows, n_columns, 2, size=4)
    need += table("scores", chunk_rows, 2 + options.top_columns, 3, size=4)
    if options.parquet:
        n_kept = 2 + len(options.keep) + 3 * options.top_columns
        need += table("table", chunk_rows, n_kept, 3) + amount("identifiers", 8 * ids_bytes)
    return need


def _score_need(model: FittedModel, n_rows: int, options: ScoreOptions) -> Need:
    """Memory to score a block of rows, and of the model."""
    copies = 5 if options.method == "model" else 5 + _VIEW_COPIES
    copies += 3 if options.top_columns else 0
    need = table("block", min(n_rows, BLOCK_ROWS), model.n_features, copies)
    anchors = [a.rows for view in model.views for a in view.anchors]
    n_bytes = 2 * _BOOSTER_BYTES + 2 * sum(rows.nbytes for rows in anchors)
    if isinstance(model.score_model, SklearnModel):
        n_bytes += 4 * model.score_model.rows.nbytes
    need += amount("model", n_bytes)
    if options.method == "effort":
        routing = 6 if model.config.eps > 0 else 4
        need += matrices(min(n_rows, _ROUTED_ROWS), max(map(len, anchors)), routing)
    return need


# ---------------------------------------------------------------- calibration


def _timed(call: Callable[[], object], tries: int = 2) -> float:
    """Return the shortest time a call took, with one thread as in a task."""
    found = []
    with one_native_thread():
        for _ in range(tries):
            start = time.perf_counter()
            call()
            found.append(time.perf_counter() - start)
    return min(found)


def _random(n_rows: int, n_columns: int) -> Floats:
    return np.random.default_rng(0).normal(size=(n_rows, n_columns))


def _read_row_seconds(store: FeatureStore) -> float:
    """Time reading the last chunk, which is as long as the others or shorter."""
    last = len(store.chunks) - 1
    start, stop = store.chunks.chunk_to_rows(last)
    return _timed(lambda: store.read_chunk(last), tries=1) / (stop - start)


def _coded_byte_seconds() -> float:
    """Time encoding and decoding an array, in memory."""
    values = _random(_TIMED_VALUES // 64, 32)
    spec = whole_array("float64", values.shape)
    both = _timed(lambda: spec.decode(spec.encode(values), "calibration"))
    return both / 2 / values.nbytes


@dataclass(frozen=True)
class _ViewSpeed:
    """Seconds of the work in one view."""

    batch: float
    """To solve one batch."""

    anchor_set: float
    """To solve one anchor set."""

    route: float
    """To send one row to one anchor set."""

    zone: float
    """To measure the zone of one row."""


def _view_speed(fit: _Fit, width: int) -> _ViewSpeed:
    """Time the work of a view of so many coordinates on random rows."""
    problem, size = problem_of(fit.config), fit.anchor_rows
    timed = min(size, _TIMED_BATCH_ROWS)
    rows = _random(max(timed, _TIMED_ROUTES), width)
    anchors = fit_anchor_set(rows[:timed], np.arange(timed), problem, "calibration")
    anchor_s = _timed(
        lambda: fit_anchor_set(rows[:timed], np.arange(timed), problem, "calibration"), tries=1
    )
    anchor_s *= (size / timed) ** 2.5  # network simplex, measured up to 2,500 rows
    batch_s = anchor_s
    if problem.eps == 0 and size <= ASSIGNMENT_ROWS:
        batch_s = _timed(lambda: batch_efforts(rows[:timed], problem, "calibration"))
        batch_s *= (size / timed) ** 3
    route_s = _timed(lambda: route_costs(anchors, rows, problem)) / len(rows) * size / timed
    return _ViewSpeed(batch_s, anchor_s, route_s, _zone_seconds(fit, width, problem))


def _zone_seconds(fit: _Fit, width: int, problem: Problem) -> float:
    if not fit.setups[0].measures_zones:
        return 0.0
    n_reference = min(fit.config.reference_rows, fit.part_rows[0])
    n_timed = min(n_reference, max(512, 4 * _TIMED_VALUES // width))
    rows = _random(n_timed, width)
    index = ReferenceIndex(rows, np.arange(n_timed))
    some = rows[:_TIMED_SEARCHES]
    found = _timed(lambda: index.radii(some, np.arange(len(some)), problem.alpha))
    return found / len(some) * n_reference / n_timed


@dataclass(frozen=True)
class _Learner:
    """How the time of one kind of score model grows with rows and columns."""

    column_s: float
    """For each column, whatever the rows."""

    value_s: float
    """For each value, where time grows with the rows alone."""

    growth: float
    """Power of the rows."""

    predicted_row_s: float

    def train(self, n_rows: int, n_columns: int) -> float:
        grown = self.value_s * float(n_rows**self.growth)
        return n_columns * (self.column_s + grown)


def _learner(kind: str, n_columns: int) -> _Learner:
    """Time small trainings of a kind of score model."""
    fit, width = fit_of(kind, 0, None), min(n_columns, 4)
    few, many = _TIMED_TRAINING if kind == "lightgbm" else _TIMED_SLOW_TRAINING
    rows, targets = _random(many, width), np.random.default_rng(1).uniform(size=many)
    few_s = _timed(lambda: fit(rows[:few], targets[:few]), tries=1)
    fitted: list[ScoreModel] = []
    many_s = _timed(lambda: fitted.append(fit(rows, targets)), tries=1)
    some = rows[:_TIMED_SEARCHES]
    predict_s = _timed(lambda: fitted[0].predict(some)) / len(some)
    growth = _GROWTH[kind]
    value_s = max(many_s - few_s, 0.0) / width / (many**growth - few**growth)
    column_s = max(few_s / width - value_s * few**growth, 0.0)
    return _Learner(column_s, value_s, growth, predict_s)


def _fit_seconds(fit: _Fit, stages: dict[str, StagePlan]) -> dict[str, float]:
    """Return the estimated work of each stage."""
    byte_s = _coded_byte_seconds()
    seconds = {name: byte_s * stage.written_bytes for name, stage in stages.items()}
    for found in (
        _sampling_seconds(fit, stages, byte_s),
        _view_seconds(fit, stages),
        _training_seconds(fit, byte_s),
    ):
        seconds |= {name: seconds[name] + s for name, s in found.items() if name in seconds}
    return seconds


def _sampling_seconds(fit: _Fit, stages: dict[str, StagePlan], byte_s: float) -> dict[str, float]:
    # Every task finds out anew which rows are drawn.
    drawn = fit.store.n_rows * fit.n_parts if fit.n_parts > 1 else _drawn_rows(fit)
    first, n_rows = fit.part_rows[0], fit.n_labelled
    return {
        "sample": fit.store.n_rows * _read_row_seconds(fit.store) + drawn * _DRAWN_ROW_S,
        "gather": byte_s * stages["gather"].read_bytes,
        "views": first * sum(fit.columns) * _LEARNT_VALUE_S,
        "calibrate": fit.n_views * (0.05 + first * fit.n_sets * _CALIBRATED_VALUE_S),
        "label": fit.n_views * (0.02 + n_rows * fit.n_sets * _CALIBRATED_VALUE_S),
    }


def _drawn_rows(fit: _Fit) -> int:
    return len(fit.store.chunks) * _numbered_rows(fit)


def _view_seconds(fit: _Fit, stages: dict[str, StagePlan]) -> dict[str, float]:
    """Return the work of the stages that solve, measure and route, over all views."""
    speeds = {width: _view_speed(fit, width) for width in sorted(set(fit.widths))}
    n_batches = sum(setup.plan.n_batches for setup in fit.setups)
    per_view = [speeds[width] for width in fit.widths]
    seen = fit.largest * sum(fit.columns) * _VIEWED_VALUE_S
    blocks = stages["efforts"].n_tasks // fit.n_views
    routed = sum(s.route for s in per_view) * fit.n_sets
    return {
        "neighbours": fit.n_labelled * sum(s.zone for s in per_view) + 2 * fit.n_parts * seen,
        "efforts": n_batches * sum(s.batch for s in per_view) + blocks * seen,
        "anchors": fit.n_sets * sum(s.anchor_set for s in per_view) + seen,
        "routes": fit.part_rows[0] * routed + seen,
        "imagine": fit.n_imagined * routed + 0.1,
        "validate": fit.held_rows * routed + 0.2,
    }


def _training_seconds(fit: _Fit, byte_s: float) -> dict[str, float]:
    """Return the work of choosing, training and trying score models; `auto` counts the slowest."""
    learners = [_learner(kind, fit.n_features) for kind in fit.kinds]
    first, n_columns = fit.part_rows[0], fit.n_features
    folds = n_folds(first, fit.config.folds)
    fold_rows = first * (folds - 1) // folds + fit.n_imagined
    by_fold = [folds * x.train(fold_rows, n_columns) + first * x.predicted_row_s for x in learners]
    whole = [x.train(fit.n_labelled + fit.n_imagined, n_columns) for x in learners]
    reading = byte_s * (fit.all_bytes + folds * fit.first_bytes)
    return {
        "choose": sum(by_fold),
        "train": max(map(sum, zip(by_fold, whole, strict=True))) + reading,
        "assemble": 0.2 + first * max(x.predicted_row_s for x in learners),
    }


def _scored_row_seconds(model: FittedModel, store: FeatureStore, options: ScoreOptions) -> float:
    """Return the estimated work for one row, from reading it to writing its score."""
    rows = model.fill + _random(_ROUTED_ROWS, model.n_features)
    few = rows[:64]
    value_s = _timed(lambda: model.raw_values(few, options.method)) / len(few)
    more = rows[: int(min(len(rows), _BLOCK_S / value_s))]
    if len(more) > len(few):
        value_s = _timed(lambda: model.raw_values(more, options.method), tries=1) / len(more)
    written = _output_row_bytes(options)
    in_table = (3 + len(options.keep) + options.top_columns) * _TABLE_VALUE_S
    seconds = value_s + _read_row_seconds(store) + written * _coded_byte_seconds()
    seconds += in_table if options.parquet else 0.0
    if options.top_columns and isinstance(model.score_model, LightgbmModel):
        trees = model.score_model
        seconds += _EXPLAINED_SHARE * _timed(lambda: trees.contributions(few)) / len(few)
    return seconds
