"""Rows with categories that are rare or were never seen, made up to teach the score model.

A sample holds few rows of a rare category and none of an unseen one, so trees learn nothing about
them. Efforts against anchors are defined for any row: copies of sampled rows are given such
categories and labelled by them.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mrot_scale.fitting import Standing
from mrot_scale.method.calibrate import calibrate_values
from mrot_scale.method.combine import combine_views
from mrot_scale.method.efforts import Problem
from mrot_scale.seeds import generator

Floats = NDArray[np.float64]

ROWS_PER_COLUMN = 200
"""Made-up rows for each categorical column: enough for some leaves, too few to matter else."""


def imagined_rows(rows: Floats, levels: Mapping[int, Floats], seed: int) -> Floats:
    """Return copies of some rows, each with one category replaced by a rare level."""
    made = []
    for position, rare in sorted(levels.items()):
        rng = generator(seed, "imagined", position)
        some = rows[rng.choice(len(rows), min(ROWS_PER_COLUMN, len(rows)), replace=False)].copy()
        some[:, position] = rng.choice(rare, len(some))
        made.append(some)
    return np.concatenate(made) if made else np.empty((0, rows.shape[1]))


def effort_shares(rows: Floats, standings: Sequence[Standing], problem: Problem) -> Floats:
    """Return for any rows the share of rows less anomalous, by their efforts against anchors."""
    unseen = combine_views(np.column_stack([s.unseen_rarity for s in standings]))
    rarity = [s.fitted.rarity(s.fitted.routes(rows, problem, 1), problem) for s in standings]
    calibration = calibrate_values(unseen, smoothing=1.0)
    found = calibration.neg_log_survival(combine_views(np.column_stack(rarity)))
    return np.asarray(-np.expm1(-found))
