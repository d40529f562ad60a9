"""The fitted parts become a model, with the last map of each scoring method."""

import numpy as np
from numpy.typing import NDArray

from mrot_scale.config.method import MethodConfig
from mrot_scale.config.scoring import Method
from mrot_scale.fitting.taught import Lesson
from mrot_scale.method.calibrate import Calibration, calibrate_values
from mrot_scale.method.combine import combine_views
from mrot_scale.method.company import Company
from mrot_scale.model.regressors import ScoreModel
from mrot_scale.scoring import FittedModel
from mrot_scale.standing import (
    Standing,
)

Floats = NDArray[np.float64]

TRAINING_SCORES_KEPT = 10_001


def assemble(
    taught: Lesson,
    config: MethodConfig,
    fill: Floats,
    standings: list[Standing],
    company: Company | None,
    score_model: ScoreModel,
    unseen: Floats,
) -> FittedModel:
    """Return the parts together, with the last map of each scoring method."""
    seen_effort = combine_views(np.column_stack([s.seen_rarity for s in standings]))
    unseen_effort = combine_views(np.column_stack([s.unseen_rarity for s in standings]))
    last: dict[Method, Calibration] = {
        "model": calibrate_values(unseen),
        "effort": calibrate_values(unseen_effort),
    }
    rows = taught.rows
    if score_model.kind == "hybrid":
        rows = np.column_stack([rows, *(s.seen_rarity for s in standings)])
    training: dict[Method, NDArray[np.float32]] = {
        "model": thinned(last["model"].score(score_model.predict(rows))),
        "effort": thinned(last["effort"].score(seen_effort)),
    }
    return FittedModel(
        config,
        None,
        fill,
        views=tuple(s.fitted for s in standings),
        score_model=score_model,
        last=last,
        training_scores=training,
        company=company,
    )


def thinned(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the scores ascending, at most `TRAINING_SCORES_KEPT` of them, ends included."""
    ordered = np.sort(scores)
    if len(ordered) <= TRAINING_SCORES_KEPT:
        return ordered
    kept = np.linspace(0, len(ordered) - 1, TRAINING_SCORES_KEPT).round().astype(np.int64)
    return ordered[kept]
