"""Where the time of each command goes, all of it in this process, one thing after another."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any
from unittest.mock import patch

from benchmarks.profile_timers import Timed, Timers, timed
from mrot_scale import fit, ingest, score
from mrot_scale.config.job import Config
from mrot_scale.config.layers import load_config
from mrot_scale.encoding import Decoder
from mrot_scale.jobs.score_tasks import BLOCK_ROWS
from mrot_scale.model.persist import load_model, model_schema
from mrot_scale.reading.sources import open_source
from mrot_scale.storing.location import Location
from mrot_scale.storing.store import FeatureStore

Seconds = dict[str, float]

REST = "everything else"
COMPILING = "compile and load, once per process"

_WRITING = (
    Timed("mrot_scale.storing.arrays:ArraySpec.encode", "encode Zarr: zstd, crc32c"),
    Timed("mrot_scale.storing.location:_write_and_sync", "write files"),
    Timed("mrot_scale.storing.location:_sync", "fsync"),
    Timed("mrot_scale.running.commit:Journal.append", "journal", whole=True),
    Timed("mrot_scale.storing.manifest:Entry.of", "digest"),
)
_INGEST = (
    Timed("mrot_scale.storing.ingestion:StoreBuilder.chunks", "cut into chunks", iterates=True),
    Timed("mrot_scale.storing.ingestion:StoreBuilder._encoded", "stack columns", iterates=True),
    Timed("mrot_scale.storing.columns:ColumnEncoder.encode", "encode columns"),
    Timed("mrot_scale.storing.ingestion:to_stored", "to float32"),
    Timed("mrot_scale.storing.statistics:ColumnStatistics.add", "statistics"),
    Timed("mrot_scale.storing.statistics:ColumnStatistics.finish", "statistics"),
    Timed("mrot_scale.storing.ingestion:ChunkContent.digest", "digest"),
    Timed("pyarrow.parquet:write_table", "identifiers as Parquet"),
    Timed("mrot_scale.jobs.ingest_job:publish_once", "publish", whole=True),
    *_WRITING,
)
_SCORE = (
    Timed("mrot_scale.jobs.score_tasks:open_store", "open store and model", whole=True),
    Timed("mrot_scale.jobs.score_tasks:open_model", "open store and model", whole=True),
    Timed("mrot_scale.storing.location:Location.read", "read files"),
    Timed("mrot_scale.storing.arrays:ArraySpec.decode", "decode Zarr: crc32c, zstd"),
    Timed("mrot_scale.encoding:Decoder.rows", "to float64"),
    Timed("mrot_scale.scoring:FittedModel.score_by_policy", "check and copy rows"),
    Timed("mrot_scale.scoring:surely_finite", "check and copy rows"),
    Timed("mrot_scale.scoring:view_rarities", "efforts", whole=True),
    Timed("mrot_scale.model.lightgbm_model:LightgbmModel.predict", "LightGBM"),
    Timed("mrot_scale.model.tree_walk:CompleteTrees.walk", "tree walk"),
    Timed("mrot_scale.method.calibrate:Calibration.score", "calibrate"),
    Timed("mrot_scale.jobs.score_tasks:_tables", "Parquet: columns"),
    Timed("mrot_scale.jobs.score_tasks:_parquet_bytes", "Parquet: encode"),
    Timed("mrot_scale.jobs.score_outputs:publish_generation", "publish", whole=True),
    *_WRITING,
)


def inline_config() -> Config:
    """Return the settings of the environment, with all tasks in this process."""
    return load_config(overrides={"cluster": {"kind": "inline"}})


def profile_ingest(table: Path, folder: Path) -> Seconds:
    """Return the seconds of each part of an ingest; writing waits for nobody and nobody for it."""
    timers, config = Timers(), inline_config()

    def opened(*arguments: Any, **options: Any) -> Any:
        stream = open_source(*arguments, **options)

        def read(columns: Any) -> Any:
            return timers.iterated(stream.read(columns), "read Parquet")

        return replace(stream, read=read)

    with (
        patch("mrot_scale.jobs.ingest_job.ThreadPoolExecutor", _NoPool),
        patch("mrot_scale.jobs.ingest_job.open_source", opened),
        timed(timers, _INGEST),
    ):
        return _with_rest(timers, lambda: ingest(table, folder / "store", config=config))


class _NoPool:
    """Does at once what a pool would do beside."""

    def __init__(self, count: int) -> None:
        pass

    def __enter__(self) -> "_NoPool":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        pass

    def submit(self, work: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        found: Future[Any] = Future()
        found.set_result(work(*arguments))
        return found


def profile_fit(folder: Path) -> Seconds:
    """Return the seconds of each stage of a fit, as it reports them."""
    timers = Timers()
    begun: dict[str, float] = {}

    def report(stage: str, done: int, total: int) -> None:
        now = time.perf_counter()
        begun.setdefault(stage, now)
        if 0 < total <= done:
            took = now - begun.pop(stage)
            timers.seconds[stage] = timers.seconds.get(stage, 0.0) + took

    config = inline_config()
    store, model = folder / "store", folder / "model"
    return _with_rest(timers, lambda: fit(store, model, config, progress=report))


def profile_score(folder: Path) -> Seconds:
    """Return the seconds of each part of scoring, to Zarr and to Parquet."""
    timers, config = Timers(), inline_config()
    model, store = folder / "model", folder / "store"
    compiling = _compiling_s(model, store)
    out, table = folder / "scores", folder / "parquet"
    with timed(timers, _SCORE):
        found = _with_rest(timers, lambda: score(model, store, out, config, parquet=table))
    return {COMPILING: compiling, **found}


def _compiling_s(model: Path, store: Path) -> float:
    """Return how much longer the first block of rows takes than the next."""
    fitted, opened = load_model(Location(model))[0], FeatureStore.open(Location(store))
    fitted.score_model.prepare(opened.n_rows)
    decoder = Decoder(model_schema(fitted), opened.schema)
    rows = decoder.rows(opened.read_chunk(0)[:BLOCK_ROWS])
    took = []
    for _ in range(2):
        start = time.perf_counter()
        fitted.score(rows, "model")
        took.append(time.perf_counter() - start)
    return max(took[0] - took[1], 0.0)


def _with_rest(timers: Timers, work: Callable[[], Any]) -> Seconds:
    """Return what timers counted while work was done, and what none of them did."""
    start = time.perf_counter()
    work()
    total = time.perf_counter() - start
    return {**timers.seconds, REST: total - sum(timers.seconds.values())}
