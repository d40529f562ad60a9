"""How far a fitted model can be trusted, in a few figures."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from mrot_scale.method.efforts import Average, log_efforts_over_sets
from mrot_scale.scoring import FittedModel

Floats = NDArray[np.float64]

HIGH_SCORE = 0.99


def effort_stability(efforts: Floats, average: Average) -> float | None:
    """Return the rank correlation of efforts between the two halves of the repeats or sets."""
    if efforts.shape[1] < 2:
        return None
    halves = efforts[:, ::2], efforts[:, 1::2]
    least = float(np.finfo(np.float64).tiny)
    return rank_correlation(*(log_efforts_over_sets(half, least, average) for half in halves))


def rank_correlation(first: Floats, second: Floats) -> float | None:
    """Return Spearman's correlation; None where one side does not vary."""
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(spearmanr(first, second).statistic)


def validation_figures(model: FittedModel, held_out: Floats) -> dict[str, Any]:
    """Return how the model does on rows that were not used to fit it."""
    if len(held_out) == 0:
        return {"held_out_rows": 0}
    by_model = model.score(held_out, "model").astype(np.float64)
    by_effort = model.score(held_out, "effort").astype(np.float64)
    return {
        "held_out_rows": len(held_out),
        "distillation_loss": float(np.mean((by_model - by_effort) ** 2)),
        "distillation_rank_correlation": rank_correlation(by_model, by_effort),
        "share_above_99_model": float(np.mean(by_model > HIGH_SCORE)),
        "share_above_99_effort": float(np.mean(by_effort > HIGH_SCORE)),
    }
