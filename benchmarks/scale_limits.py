"""What the machine can do at best: one limit, by one or several processes at once.

    python -m benchmarks.scale_limits copy --rows N --features D --processes P
    python -m benchmarks.scale_limits zarr|trees|tasks --folder DIR --processes P

DIR holds a store and a model. Prints rows, seconds and rows per second as JSON. `copy` copies
float32 rows in memory, `zarr` reads and decodes every chunk of the store, `trees` walks the
model's trees and lets LightGBM do so, `tasks` scores the store by processes without Dask.
"""

import argparse
import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.parallel import PlainProcesses, TimedWorkers
from mrot_scale import Config, score
from mrot_scale.config.cluster import ClusterConfig
from mrot_scale.encoding import Decoder
from mrot_scale.errors import MrotError
from mrot_scale.jobs.score_tasks import BLOCK_ROWS
from mrot_scale.model.lightgbm_model import LightgbmModel
from mrot_scale.model.persist import load_model, model_schema
from mrot_scale.model.tree_walk import complete_trees
from mrot_scale.storing.location import Location
from mrot_scale.storing.store import FeatureStore

Work = Callable[[], Any]
Prepare = Callable[[int, int], Work]
"""Makes what one of several processes is to do; making it is not counted."""

_MOST_VALUES, _COPIED_VALUES = 2**27, 2**29
"""Values of the array that is copied, at most, and of all copies of it, at least."""

_TREE_ROWS = 400_000


def at_once(prepare: Prepare, processes: int) -> tuple[float, list[Any]]:
    """Return the seconds from the first to begin to the last to end, and what each returned."""
    context = multiprocessing.get_context("spawn")
    pipes, started = [], []
    for number in range(processes):
        ours, theirs = context.Pipe()
        arguments = (theirs, prepare, number, processes)
        process = context.Process(target=_serve, args=arguments, daemon=True)
        process.start()
        theirs.close()  # or one that died would be waited for
        pipes.append(ours)
        started.append(process)
    for message in ("ready", "go"):
        for pipe in pipes:
            pipe.recv() if message == "ready" else pipe.send(message)
    found = [pipe.recv() for pipe in pipes]
    for process in started:
        process.join()
    first, last = min(start for start, _, _ in found), max(end for _, end, _ in found)
    return last - first, [result for _, _, result in found]


def _serve(pipe: Any, prepare: Prepare, number: int, processes: int) -> None:
    work = prepare(number, processes)
    pipe.send("ready")
    pipe.recv()
    start = time.perf_counter()  # the same clock in all processes of a machine
    result = work()
    pipe.send((start, time.perf_counter(), result))


def measure_copy(n_rows: int, n_features: int, processes: int) -> dict[str, Any]:
    """Measure how fast rows are copied in memory."""
    n_rows = min(n_rows, _MOST_VALUES // n_features)
    copies = -(-_COPIED_VALUES // (n_rows * n_features))
    seconds, _ = at_once(partial(_copying, n_rows, n_features, copies), processes)
    return _rate(n_rows, seconds / copies)


def _copying(n_rows: int, n_features: int, copies: int, number: int, processes: int) -> Work:
    mine = len(range(number, n_rows, processes))
    rows = np.ones((mine, n_features), dtype=np.float32)
    target = rows.copy()

    def work() -> None:
        for _ in range(copies):
            np.copyto(target, rows)

    return work


def measure_zarr(folder: Path, processes: int) -> dict[str, Any]:
    """Measure how fast the store is merely read, digests and decoding included."""
    seconds, found = at_once(partial(_reading, folder), processes)
    return _rate(sum(found), seconds)


def _reading(folder: Path, number: int, processes: int) -> Work:
    store = FeatureStore.open(Location(folder / "store"))
    store.read_chunk(0)  # libraries that are loaded on first use
    mine = list(store.chunks)[number::processes]
    return lambda: sum(len(store.read_chunk(chunk)) for chunk in mine)


def measure_trees(folder: Path, processes: int) -> dict[str, Any]:
    """Measure the compiled walk and LightGBM on the same trees and rows, and compare the bits."""
    slow_s, expected = at_once(partial(_predicting, folder, "lightgbm"), processes)
    fast_s, found = at_once(partial(_predicting, folder, "walk"), processes)
    n_rows = sum(map(len, found))
    return {
        **_rate(n_rows, fast_s),
        "lightgbm_rows_per_s": n_rows / slow_s,
        "ratio": slow_s / fast_s,
        "equal": b"".join(map(bytes, found)) == b"".join(map(bytes, expected)),
    }


def _predicting(folder: Path, side: str, number: int, processes: int) -> Work:
    model, _ = load_model(Location(folder / "model"))
    if not isinstance(model.score_model, LightgbmModel):
        raise MrotError("Only plain trees are walked here: fit with hybrid: never.")
    blocks = _blocks(folder, number, processes)
    predict = _predictor(model.score_model.text(), side)
    predict(blocks[0][:1])  # compiles, or lets LightGBM make its trees

    return lambda: np.concatenate([predict(block) for block in blocks])


def _predictor(text: str, side: str) -> Callable[[Any], NDArray[np.float64]]:
    if side == "lightgbm":
        return LightgbmModel(text).predict
    trees = complete_trees(text)
    if trees is None:
        raise MrotError("These trees are not for walking.")
    return trees.walk


def _blocks(folder: Path, number: int, processes: int) -> list[NDArray[np.float64]]:
    """Return a process's share of the rows, cut and decoded as scoring has them."""
    store = FeatureStore.open(Location(folder / "store"))
    model, _ = load_model(Location(folder / "model"))
    decoder = Decoder(model_schema(model), store.schema)
    n_rows = min(store.n_rows, _TREE_ROWS)
    start, stop = number * n_rows // processes, (number + 1) * n_rows // processes
    found = []
    for chunk in store.chunks:
        first, last = store.chunks.chunk_to_rows(chunk)
        if first < stop and last > start:
            rows = store.read_chunk(chunk)[max(start - first, 0) : stop - first]
            cuts = range(0, len(rows), BLOCK_ROWS)
            found += [decoder.rows(rows[cut : cut + BLOCK_ROWS]) for cut in cuts]
    return found


def measure_tasks(folder: Path, processes: int) -> dict[str, Any]:
    """Measure the score stage by processes that a pipe tells what to do, started as workers are."""
    plain = PlainProcesses(processes)
    workers = TimedWorkers(plain)
    config = Config(cluster=ClusterConfig(kind="inline"))
    try:
        with (
            tempfile.TemporaryDirectory(dir=folder) as out,
            patch("mrot_scale.jobs.opening.open_workers", lambda *_: nullcontext(workers)),
        ):
            found = score(folder / "model", folder / "store", Path(out) / "scores", config)
    finally:
        plain.close()
    return _rate(found.n_rows, workers.seconds["score"])


def _rate(n_rows: int, seconds: float) -> dict[str, Any]:
    return {"measured_rows": n_rows, "seconds": seconds, "rows_per_s": n_rows / seconds}


def main(arguments: Sequence[str] | None = None) -> None:
    given = _parser().parse_args(arguments)
    of_folder = {"zarr": measure_zarr, "trees": measure_trees, "tasks": measure_tasks}
    if given.limit == "copy":
        found = measure_copy(given.rows, given.features, given.processes)
    else:
        found = of_folder[given.limit](given.folder, given.processes)
    print(json.dumps(found))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale_limits", description=__doc__)
    parser.add_argument("limit", choices=("copy", "zarr", "trees", "tasks"))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--features", type=int)
    parser.add_argument("--processes", type=int, default=1)
    return parser


if __name__ == "__main__":
    main()
