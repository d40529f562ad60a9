"""The sample's rows meet in batches, with zones as far as its neighbours reach."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mrot_scale.fitting.setup import Points, Setup
from mrot_scale.method.batches import zone_count
from mrot_scale.method.efforts import solve_batches
from mrot_scale.method.neighbours import Radii, ReferenceIndex
from mrot_scale.seeds import generator

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


def measure_neighbours(points: list[Points], setup: Setup) -> list[Points]:
    """Return the points with the reach of each row's zone, where it is measured by reference."""
    if not setup.measures_zones:
        return points
    done = setup.count_steps("neighbours", len(points))
    measured = []
    for p in points:
        ids = np.arange(setup.plan.n_rows)
        radii = zone_radii(reference_index(p.rows, setup), p.rows, ids, setup)
        measured.append(replace(p, radii=radii))
        done()
    return measured


def reference_index(rows: Floats, setup: Setup) -> ReferenceIndex:
    """Return the index of the reference rows drawn from the sample's points."""
    order = generator(setup.config.seed, "reference").permutation(setup.plan.n_rows)
    reference = np.sort(order[: setup.config.reference_rows])
    return ReferenceIndex(rows[reference], reference)


def zone_radii(index: ReferenceIndex, rows: Floats, ids: Ids, setup: Setup) -> Radii:
    """Return the reach of the zones of some rows; `ids` are their numbers in the sample."""
    batch_rows = setup.plan.batch_rows
    alpha = zone_count(batch_rows, setup.problem.alpha, None) / batch_rows
    return index.radii(rows, ids, alpha, threads=setup.threads)


def batch_stage(points: list[Points], setup: Setup) -> list[Floats]:
    """Return for each view the effort of each row in each of its batches, (n, repeats)."""
    done = setup.count_steps("efforts", setup.plan.n_batches * len(points))
    return [
        solve_batches(
            p.rows,
            setup.plan,
            setup.problem,
            name=p.name,
            squared_radii=None if p.radii is None else p.radii.squared,
            threads=setup.threads,
            on_batch=done,
        )
        for p in points
    ]
