"""What the scheduler costs: two workers against two processes running the same tasks without Dask.

    python -m benchmarks.parallel [--rows 2e6] [--features 32] [--repeats 3] [--out DIR]

Both run the very tasks of the pipeline, in one run on one machine, taking turns. Start-up of
processes is not counted on either side. The ratio is Dask's rows per second over the others'.
"""

import argparse
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.record import claim_folder, json_lines, versions
from benchmarks.tables import write_table
from mrot_scale import Config, ingest
from mrot_scale.config.cluster import ClusterConfig
from mrot_scale.jobs.fit_job import fit
from mrot_scale.jobs.score_job import score
from mrot_scale.running.cluster import open_workers
from mrot_scale.running.commit import Record
from mrot_scale.running.run_log import Note, unnoted
from mrot_scale.running.tasks import Task, run_task
from mrot_scale.running.workers import OnRecord, Workers

STAGES = ("efforts", "score")
_LIBRARIES = ("numpy", "dask", "distributed", "lightgbm")


class PlainProcesses:
    """Two processes, each running its half of the tasks in order; no scheduler between them."""

    dashboard: str | None = None

    def __init__(self, count: int) -> None:
        self.count = count
        context = multiprocessing.get_context("spawn")
        self._pipes, self._processes = [], []
        for _ in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs,), daemon=True)
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)
        for pipe in self._pipes:
            pipe.recv()  # ready: everything is imported

    def run(
        self, run: str, tasks: Sequence[Task], on_record: OnRecord, note: Note = unnoted
    ) -> None:
        for number, pipe in enumerate(self._pipes):
            pipe.send((run, list(tasks[number :: self.count])))
        for pipe in self._pipes:
            for record in pipe.recv():
                on_record(Record.from_json(record))

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join()


def _serve(pipe: Any) -> None:
    import mrot_scale.jobs.label_tasks
    import mrot_scale.jobs.model_tasks
    import mrot_scale.jobs.score_tasks  # noqa: F401

    pipe.send("ready")
    while (order := pipe.recv()) is not None:
        run, tasks = order
        pipe.send([run_task(run, task) for task in tasks])


class TimedWorkers:
    """Workers with a stop-watch for each stage."""

    dashboard: str | None = None

    def __init__(self, inner: Workers) -> None:
        self._inner, self.count = inner, inner.count
        self.seconds: dict[str, float] = {}

    def run(
        self, run: str, tasks: Sequence[Task], on_record: OnRecord, note: Note = unnoted
    ) -> None:
        start = time.perf_counter()
        self._inner.run(run, tasks, on_record, note)
        if tasks:
            self.seconds[tasks[0].key.split("/")[0]] = time.perf_counter() - start


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    out = Path(options.out) if options.out else None
    if out:
        claim_folder(out, "parallel.json")
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        rows = measure(Path(folder), int(float(options.rows)), options.features, options.repeats)
    found = ratios(rows)
    result = {"rows": rows, "ratios": found, "versions": versions(_LIBRARIES)}
    for stage, ratio in found.items():
        print(f"{stage:<8} Dask's rate is {ratio:.3f} of two processes without it")
    if out:
        (out / "parallel.json").write_text(json_lines(result))


def measure(folder: Path, n_rows: int, n_features: int, repeats: int) -> list[dict[str, Any]]:
    """Return the seconds of each stage, by Dask and without, in turns."""
    write_table(folder / "table.parquet", n_rows, n_features)
    store, model = folder / "store", folder / "model"
    ingest(folder / "table.parquet", store)
    plain = PlainProcesses(2)
    rows: list[dict[str, Any]] = []
    try:
        with open_workers(ClusterConfig(workers=2)) as by_dask:
            sides: dict[str, Workers] = {"dask": by_dask, "plain": plain}
            _run_on(plain, lambda: fit(store, model, _CONFIG))
            for repeat in range(-1, repeats):  # the first turn warms both sides up
                for name, workers in sides.items():
                    seconds = _once(folder, store, model, workers, f"{name}{repeat}")
                    if repeat >= 0:
                        rows += [
                            {"side": name, "stage": s, "repeat": repeat, "seconds": seconds[s]}
                            for s in STAGES
                        ]
    finally:
        plain.close()
    return rows


_CONFIG = Config(hybrid="never", cluster=ClusterConfig(kind="inline"))


def _once(folder: Path, store: Path, model: Path, workers: Workers, tag: str) -> dict[str, float]:
    timed = TimedWorkers(workers)
    _run_on(timed, lambda: fit(store, folder / f"model-{tag}", _CONFIG))
    _run_on(timed, lambda: score(model, store, folder / f"scores-{tag}", _CONFIG))
    return timed.seconds


def _run_on(workers: Workers, job: Callable[[], Any]) -> None:
    """Run a job on the given workers, whatever its configuration says."""
    with patch("mrot_scale.jobs.opening.open_workers", lambda *_: nullcontext(workers)):
        job()


def ratios(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return for each stage the median rate by Dask over the median rate without."""
    found = {}
    for stage in STAGES:
        median = {
            side: statistics.median(
                r["seconds"] for r in rows if r["side"] == side and r["stage"] == stage
            )
            for side in ("dask", "plain")
        }
        found[stage] = median["plain"] / median["dask"]
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", default="2e6")
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scratch", help="folder for tables and stores; the system's by default")
    parser.add_argument("--out")
    return parser


if __name__ == "__main__":
    main()
