"""What every stage of fitting shares: the settings, the plan, and the sample in each view."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mrot_scale.config.method import MethodConfig
from mrot_scale.config.views import ViewConfig
from mrot_scale.errors import DataError
from mrot_scale.method.batches import BatchPlan, fitting_batch_rows
from mrot_scale.method.efforts import Problem
from mrot_scale.method.neighbours import Radii
from mrot_scale.method.views import View, ViewSpec, fit_view
from mrot_scale.progress import Report
from mrot_scale.scoring import problem_of

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Points:
    """The sample in the coordinates of one view."""

    view: View
    config: ViewConfig
    rows: Floats
    radii: Radii | None = None
    """Reach of each row's zone; None where zones are made in the batch."""

    @property
    def name(self) -> str:
        return f"view {self.view.name}, "

    def radii_of(self, rows: Ids) -> Floats | None:
        return None if self.radii is None else self.radii.squared[rows]


@dataclass(frozen=True)
class Setup:
    """What every stage shares: the settings and the plan that follows from them."""

    config: MethodConfig
    problem: Problem
    """What rows meet in batches with: wider zones where that is the first of two passes."""

    plan: BatchPlan
    threads: int
    report: Report

    @property
    def is_whole_table(self) -> bool:
        return self.plan.batch_rows == self.plan.n_rows

    @property
    def measures_zones(self) -> bool:
        """Whether the reach of zones is measured by reference, not made in each batch."""
        config = self.config
        fixed = config.k is not None or config.radius is not None or config.cost == "coulomb"
        return not (fixed or config.zone == "batch" or self.is_whole_table)

    def problem_in(self, points: Points) -> Problem:
        """Return the problem between the anchors of a view."""
        return problem_of(self.config, points.config)

    def count_steps(self, stage: str, n_steps: int) -> Callable[[], None]:
        """Return a function to call after each of the stage's steps."""
        steps = itertools.count(1)
        self.report(stage, 0, n_steps)
        return lambda: self.report(stage, next(steps), n_steps)


def plan_fit(n_rows: int, config: MethodConfig, threads: int, progress: Report | None) -> Setup:
    """Return the plan and problem that a sample of this size meets in batches with."""
    given, config = config, config.for_batches
    size = fitting_batch_rows(n_rows, config.batch_rows, config.alpha, config.k)
    if size == n_rows and config.row_limit is not None and n_rows > config.row_limit:
        raise DataError(
            f"One problem of all rows is limited to {config.row_limit:,} rows, got {n_rows:,}: it "
            "needs a matrix of rows x rows. Use mini-batches (batch_rows=256), or force=True."
        )
    repeats = 1 if size == n_rows else config.repeats
    plan = BatchPlan(n_rows, size, repeats, config.seed)
    report = progress or (lambda stage, done, total: None)
    return Setup(given, problem_of(config), plan, threads, report)


def view_points(sample: Floats, config: ViewConfig) -> Points:
    """Return the sample in a view fitted to it."""
    view = fit_view(ViewSpec(config.scaling, config.columns, config.whiten), sample)
    return Points(view, config, view.apply(sample))
