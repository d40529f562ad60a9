"""Pieces of the work are timed here, on random rows and with one thread as in a task."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mrot_scale.jobs.plan_sizes import FitSizes
from mrot_scale.jobs.plan_text import StagePlan
from mrot_scale.method.anchors import fit_anchor_set, route_costs
from mrot_scale.method.efforts import Problem, batch_efforts
from mrot_scale.method.neighbours import ReferenceIndex
from mrot_scale.method.transport import ASSIGNMENT_ROWS
from mrot_scale.model.choose import fit_of
from mrot_scale.model.regressors import ScoreModel
from mrot_scale.running.commit import whole_array
from mrot_scale.scoring import problem_of
from mrot_scale.storing.store import FeatureStore
from mrot_scale.threads import one_native_thread

Floats = NDArray[np.float64]

_TASK_S = 0.02
"""To send a task and take its record, measured once."""

_TIMED_BATCH_ROWS = 256
_TIMED_ROUTES = 1_024
_TIMED_SEARCHES = 256
_TIMED_ROWS = (32, 512, 8_192)
_SHORT_WORK_S = 10.0
_LONGEST_TIMING_S = 5.0
TIMED_VALUES = 2**18
_TIMED_TRAINING = (2_000, 10_000)
_TIMED_SLOW_TRAINING = (100, 300)
_GROWTH = {"lightgbm": 1.0, "boosting": 1.1, "svr": 2.0, "knn": 1.0}


def with_seconds(stages: list[StagePlan], seconds: dict[str, float]) -> list[StagePlan]:
    """Return the stages with their estimated work."""
    return [
        replace(s, seconds=seconds[s.name] + _TASK_S * s.n_tasks if s.name in seconds else None)
        for s in stages
    ]


def seconds_of(call: Callable[[], object], tries: int = 2) -> float:
    """Return the shortest time a call took, with one thread as in a task."""
    found = []
    with one_native_thread():
        for _ in range(tries):
            start = time.perf_counter()
            call()
            found.append(time.perf_counter() - start)
    return min(found)


def seconds_per_row(seconds: Callable[[int], float], n_at_hand: int, n_rows: int) -> float:
    """Return the seconds that each of many rows takes, given what the first of some at hand take.

    From some number of rows on loops are compiled, so few of them say little of many. More are
    timed unless they would take long, or all rows so short that it does not matter.
    """
    row_s = 0.0
    for timed in _TIMED_ROWS:
        n_timed = min(timed, n_at_hand)
        if row_s * n_timed > _LONGEST_TIMING_S:
            break
        row_s = seconds(n_timed) / n_timed
        if row_s * n_rows < _SHORT_WORK_S or n_timed == n_at_hand:
            break
    return row_s


def random_rows(n_rows: int, n_columns: int) -> Floats:
    """Return rows to time something on."""
    return np.random.default_rng(0).normal(size=(n_rows, n_columns))


def read_row_seconds(store: FeatureStore) -> float:
    """Time reading the last chunk, which is as long as the others or shorter."""
    last = len(store.chunks) - 1
    start, stop = store.chunks.chunk_to_rows(last)
    return seconds_of(lambda: store.read_chunk(last), tries=1) / (stop - start)


def coded_byte_seconds() -> float:
    """Time encoding and decoding an array, in memory."""
    values = random_rows(TIMED_VALUES // 64, 32)
    spec = whole_array("float64", values.shape)
    both = seconds_of(lambda: spec.decode(spec.encode(values), "calibration"))
    return both / 2 / values.nbytes


@dataclass(frozen=True)
class ViewSpeed:
    """Seconds of the work in one view."""

    batch: float
    """To solve one batch."""

    anchor_set: float
    """To solve one anchor set."""

    route: float
    """To send one row to one anchor set."""

    zone: float
    """To measure the zone of one row."""


def view_speed(fit: FitSizes, width: int) -> ViewSpeed:
    """Time the work of a view of so many coordinates on random rows."""
    problem, size = problem_of(fit.config), fit.anchor_rows
    timed = min(size, _TIMED_BATCH_ROWS)
    rows = random_rows(max(timed, _TIMED_ROUTES), width)
    anchors = fit_anchor_set(rows[:timed], np.arange(timed), problem, "calibration")
    anchor_s = seconds_of(
        lambda: fit_anchor_set(rows[:timed], np.arange(timed), problem, "calibration"), tries=1
    )
    anchor_s *= (size / timed) ** 2.5  # network simplex, measured up to 2,500 rows
    batch_s = anchor_s
    if problem.eps == 0 and size <= ASSIGNMENT_ROWS:
        batch_s = seconds_of(lambda: batch_efforts(rows[:timed], problem, "calibration"))
        batch_s *= (size / timed) ** 3
    route_s = seconds_of(lambda: route_costs(anchors, rows, problem)) / len(rows) * size / timed
    return ViewSpeed(batch_s, anchor_s, route_s, _zone_seconds(fit, width, problem))


def _zone_seconds(fit: FitSizes, width: int, problem: Problem) -> float:
    if not fit.setups[0].measures_zones:
        return 0.0
    n_reference = min(fit.config.reference_rows, fit.part_rows[0])
    n_timed = min(n_reference, max(512, 4 * TIMED_VALUES // width))
    rows = random_rows(n_timed, width)
    index = ReferenceIndex(rows, np.arange(n_timed))
    some = rows[:_TIMED_SEARCHES]
    found = seconds_of(lambda: index.radii(some, np.arange(len(some)), problem.alpha))
    return found / len(some) * n_reference / n_timed


@dataclass(frozen=True)
class Learner:
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


def learner(kind: str, n_columns: int) -> Learner:
    """Time small trainings of a kind of score model."""
    fit, width = fit_of(kind, 0, None), min(n_columns, 4)
    few, many = _TIMED_TRAINING if kind == "lightgbm" else _TIMED_SLOW_TRAINING
    rows, targets = random_rows(many, width), np.random.default_rng(1).uniform(size=many)
    few_s = seconds_of(lambda: fit(rows[:few], targets[:few]), tries=1)
    fitted: list[ScoreModel] = []
    many_s = seconds_of(lambda: fitted.append(fit(rows, targets)), tries=1)
    some = rows[:_TIMED_SEARCHES]
    predict_s = seconds_of(lambda: fitted[0].predict(some)) / len(some)
    growth = _GROWTH[kind]
    value_s = max(many_s - few_s, 0.0) / width / (many**growth - few**growth)
    column_s = max(few_s / width - value_s * few**growth, 0.0)
    return Learner(column_s, value_s, growth, predict_s)
