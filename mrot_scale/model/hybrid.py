"""Trees that are given efforts beside the columns, and when they need them.

Trees over plain columns score fast, but cut space along its axes: where anomalies are local they
lose some of what the efforts know. How much is measured on rows they have not seen.
"""

import numpy as np
from numpy.typing import NDArray

from mrot_scale.config.method import MethodConfig
from mrot_scale.model.lightgbm_model import LightgbmModel
from mrot_scale.model.regressors import ScoreModel

Floats = NDArray[np.float64]

LOSS_LIMIT = 0.5
"""Points that plain trees may lose of the efforts' order. Where they lose a whole one they may miss
many more of the anomalies: 2 points of AUC on cover, 10 where a few causes explain the columns."""

TOP_SHARES = (0.01, 0.05, 0.1)
"""Shares of the rows, by target, that trees are asked to find."""


class HybridModel:
    """Trees over columns and the rarity in each view; trees over columns alone explain."""

    kind = "hybrid"

    def __init__(self, trees: ScoreModel, plain: ScoreModel) -> None:
        assert isinstance(trees, LightgbmModel)
        assert isinstance(plain, LightgbmModel)
        self.trees, self.plain = trees, plain

    def prepare(self, n_rows: int) -> None:
        """Get ready for many rows."""
        self.trees.prepare(n_rows)

    def predict(self, rows: Floats) -> Floats:
        """Return raw scores of rows with their rarities as last columns."""
        return self.trees.predict(rows)

    def contributions(self, rows: Floats) -> Floats:
        """Return how much each column moved the raw score of the plain trees, (n, d)."""
        return self.plain.contributions(rows)


Explaining = LightgbmModel | HybridModel
"""Score models that can say what each column did."""


def wants_hybrid(config: MethodConfig, kind: str, loss: float) -> bool:
    """Return whether the trees are to be given efforts, by what they lose without."""
    if kind != "lightgbm" or not config.two_passes or config.hybrid == "never":
        return False
    return config.hybrid == "always" or loss > LOSS_LIMIT


def distillation_loss(outputs: Floats, targets: Floats) -> float:
    """Return how many points outputs lose of what targets know: 0 for the same order.

    The larger of two losses: of AUC-ROC in finding the rows of highest target, as a mean over
    several shares of such rows, and of rank correlation over all rows.
    """
    highest = np.sort(targets)[::-1]
    counts = sorted({max(1, round(share * len(targets))) for share in TOP_SHARES})
    tops = [targets >= highest[n - 1] for n in counts]  # equal targets stay together
    from sklearn.metrics import roc_auc_score

    found = [1 - roc_auc_score(top, outputs) for top in tops if not top.all()]
    return 100 * max(float(np.mean(found or [0.0])), 1 - _rank_correlation(outputs, targets))


def mean_of_copies(rows: Floats, targets: Floats) -> Floats:
    """Return the targets, for equal rows their mean: no function of a row can tell them apart."""
    group = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    return np.asarray((np.bincount(group, targets) / np.bincount(group))[group])


def _rank_correlation(outputs: Floats, targets: Floats) -> float:
    if np.ptp(outputs) == 0 or np.ptp(targets) == 0:  # the same order only if neither has any
        return float(np.ptp(outputs) == np.ptp(targets))
    from scipy.stats import spearmanr

    return float(spearmanr(outputs, targets).statistic)
