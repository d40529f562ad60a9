"""Two models on the same rows: how alike they rank them, and whom they flag."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from mrot_scale.config.job import Config
from mrot_scale.drift import drift_of
from mrot_scale.errors import DataError
from mrot_scale.jobs.opening import AnyConfig, settled
from mrot_scale.profiles import count_scores
from mrot_scale.scheduled.layout import Layout
from mrot_scale.scheduled.profiling import OpenedModel, opened_model, scored_sample
from mrot_scale.scheduled.registry import Registry
from mrot_scale.storing.location import Location


@dataclass(frozen=True)
class Compared:
    """Two models side by side on the same rows."""

    first: str
    second: str
    n_rows: int
    """Rows looked at: a sample at even distances, where there are many."""

    rank_correlation: float | None
    """Spearman's, over rows that both give a score; None where one of them tells none apart."""

    flagged_first: int
    flagged_second: int
    flagged_both: int
    flagged_overlap: float
    """Rows both flag, as a share of those either flags."""

    score_psi: float
    score_ks: float
    largest_difference: float


def compare_models(
    output: str | Path, first: str, second: str, rows: str | Path, config: AnyConfig = None
) -> Compared:
    """Score the same rows with two models of a registry (or at paths)."""
    settings, registry = settled(config), Registry(Layout(Location(output)))
    models = [opened_model(registry.named(name)) for name in (first, second)]
    scores = [scored_sample(model, rows, settings) for model in models]
    if scores[0] is None or scores[1] is None:
        raise DataError(f"There are 0 rows at {rows}.")
    return _compared(models, scores[0], scores[1], settings)


def _compared(
    models: list[OpenedModel],
    first: NDArray[np.float32],
    second: NDArray[np.float32],
    config: Config,
) -> Compared:
    flagged = [
        s > model.options(config).threshold
        for s, model in zip((first, second), models, strict=True)
    ]
    either, both = (flagged[0] | flagged[1]).sum(), (flagged[0] & flagged[1]).sum()
    known = ~(np.isnan(first) | np.isnan(second))
    drift = drift_of("score", count_scores(first), count_scores(second))
    return Compared(
        first=models[0].entry.id,
        second=models[1].entry.id,
        n_rows=len(first),
        rank_correlation=_rank_correlation(first[known], second[known]),
        flagged_first=int(flagged[0].sum()),
        flagged_second=int(flagged[1].sum()),
        flagged_both=int(both),
        flagged_overlap=float(both / either) if either else 1.0,
        score_psi=drift.psi,
        score_ks=drift.ks,
        largest_difference=float(np.abs(first[known] - second[known]).max(initial=0.0)),
    )


def _rank_correlation(first: Any, second: Any) -> float | None:
    if len(np.unique(first)) < 2 or len(np.unique(second)) < 2:
        return None
    return float(spearmanr(first, second).statistic)
