"""Tasks and families become cells, on one or several processes, each on one core."""

import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks.quality_cells import Cell, CellFile
from benchmarks.quality_families import Family, Scored
from benchmarks.quality_sets import Ints, Split, at_most
from mrot_scale.errors import DataError, MrotError
from mrot_scale.threads import one_native_thread, start_native_libraries_small


@dataclass(frozen=True)
class Task:
    """One split that every method is tried on."""

    dataset: str
    seed: int
    load: Callable[[], Split]
    """Picklable, such as a partial of a module's function."""

    size: int
    """Values in the data set: larger ones run first."""

    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further fields that tell its cells apart."""

    @property
    def identity(self) -> dict[str, Any]:
        return {"dataset": self.dataset, "seed": self.seed, **self.extra}


@dataclass(frozen=True)
class Unit:
    """What one process does in one go: one family on one task."""

    task: Task
    family: Family
    max_train: int | None = None


def pending_units(
    tasks: Sequence[Task], families: Sequence[Family], cells: CellFile, **options: Any
) -> list[Unit]:
    """Return what is left to do, the largest data sets first."""
    units = [
        Unit(task, family, options.get("max_train"))
        for task in sorted(tasks, key=lambda task: -task.size)
        for family in families
    ]
    return unfinished(units, cells, retry_failed=bool(options.get("retry_failed")))


def unfinished(units: Sequence[Unit], cells: CellFile, *, retry_failed: bool) -> list[Unit]:
    """Return the units with a method that has no finished cell."""
    return [unit for unit in units if wanted_methods(unit, cells, retry_failed=retry_failed)]


def wanted_methods(unit: Unit, cells: CellFile, *, retry_failed: bool) -> set[str]:
    """Return the methods of the unit without a finished cell."""

    def is_wanted(method: str) -> bool:
        cell = cells.find({**unit.task.identity, "method": method})
        return cell is None or (retry_failed and "error" in cell)

    return {method for method in unit.family.methods if is_wanted(method)}


def run_units(units: Sequence[Unit], cells: CellFile, *, jobs: int, retry_failed: bool) -> None:
    """Run the units and write the cells that were missing as they come."""
    start = time.perf_counter()
    for n_done, (number, found) in enumerate(_results(units, jobs), start=1):
        wanted = wanted_methods(units[number], cells, retry_failed=retry_failed)
        new = [cell for cell in found if cell["method"] in wanted]
        cells.append(new)
        for cell in new:
            _report(f"[{n_done}/{len(units)}, {time.perf_counter() - start:.0f} s]", cell)


def _results(units: Sequence[Unit], jobs: int) -> Iterator[tuple[int, list[Cell]]]:
    """Yield the number of each unit with its cells, as they are finished."""
    if jobs <= 1 or len(units) < 2:
        yield from ((number, run_unit(unit)) for number, unit in enumerate(units))
        return
    _start_small()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_end_with_parent) as pool:
        futures = {pool.submit(run_unit, unit): number for number, unit in enumerate(units)}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise MrotError(
                "A process died, perhaps for want of memory. Finished cells are kept: run the "
                "same command again, with fewer --jobs."
            ) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _start_small() -> None:
    """Let the native libraries of the processes started from here begin with one thread."""
    start_native_libraries_small()
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")


def _end_with_parent() -> None:
    """End this process once the one that started it is gone: its pool would wait for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def run_unit(unit: Unit) -> list[Cell]:
    """Return the cells of one family on one task; what it raises becomes their error."""
    try:
        with one_native_thread():
            return list(_scored_cells(unit))
    except Exception as error:
        text = _error_text(error)
        return [
            {**unit.task.identity, "method": method, "error": text}
            for method in unit.family.methods
        ]


def _scored_cells(unit: Unit) -> Iterator[Cell]:
    split, seed = unit.task.load(), unit.task.seed
    limits = [limit for limit in (unit.family.row_limit, unit.max_train) if limit is not None]
    train = at_most(split.train, min(limits, default=None), seed)
    sizes = {"n_train": len(train), "n_test": len(split.test), "d": train.shape[1]}
    for scored in unit.family.score(train, split.test, seed):
        yield {
            **unit.task.identity,
            "method": scored.method,
            **quality(split.labels, scored),
            "fit_s": round(scored.fit_s, 4),
            "score_s": round(scored.score_s, 4),
            **sizes,
        }


def quality(labels: Ints, scored: Scored) -> dict[str, float]:
    """Return the areas under the ROC curve and under the precision-recall curve, in points."""
    n_wrong = int((~np.isfinite(scored.scores)).sum())
    if n_wrong:
        raise DataError(f"{n_wrong} of {len(labels)} scores are not finite.")
    return {
        "roc": 100 * float(roc_auc_score(labels, scored.scores)),
        "pr": 100 * float(average_precision_score(labels, scored.scores)),
    }


def _error_text(error: Exception) -> str:
    """Return what was raised in one line, without the place of this machine's scratch folder."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text.replace(tempfile.gettempdir(), "TMP")[:300]


def _report(progress: str, cell: Cell) -> None:
    identity = " ".join(str(v) for k, v in cell.items() if k not in _RESULTS)
    if "error" in cell:
        outcome = f"FAILED: {cell['error']}"
    else:
        outcome = (
            f"ROC {cell['roc']:.2f}, PR {cell['pr']:.2f}, "
            f"{cell['fit_s']:.1f} s + {cell['score_s']:.1f} s"
        )
    print(f"{progress} {identity}: {outcome}", file=sys.stderr, flush=True)


_RESULTS = {"error", "roc", "pr", "fit_s", "score_s", "n_train", "n_test", "d"}
