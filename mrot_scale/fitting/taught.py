"""The score model is taught: its rows, their targets, and whether it needs efforts too."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.config.method import MethodConfig
from mrot_scale.fitting.setup import Setup
from mrot_scale.imagined import mixed_rows
from mrot_scale.method.company import Company
from mrot_scale.model.choose import train_score_model
from mrot_scale.model.hybrid import (
    HybridModel,
    distillation_loss,
    mean_of_copies,
    wants_hybrid,
)
from mrot_scale.model.regressors import ScoreModel, out_of_fold
from mrot_scale.scoring import view_rarities
from mrot_scale.standing import (
    Standing,
    fit_targets,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Lesson:
    """What the score model is taught with."""

    rows: Floats
    shares: Floats
    """Target of each row."""

    rarity: Floats
    """Rarity of each row in each view, (n, views): columns of a hybrid model."""

    @property
    def hybrid_rows(self) -> Floats:
        return np.column_stack([self.rows, self.rarity])


def train_stage(
    taught: Lesson,
    setup: Setup,
    regressor: Any,
    standings: list[Standing],
    company: Company | None,
) -> tuple[ScoreModel, Floats]:
    """Return the score model and the outputs that models like it gave on rows they had not seen."""
    config, threads = setup.config, setup.threads
    folds, seed = config.folds, config.seed
    done = setup.count_steps("train", 2)
    fit, model = train_score_model(taught.rows, taught.shares, config, regressor, threads)
    done()
    rows, shares = taught.rows, taught.shares
    unseen = out_of_fold(fit, rows, shares, folds=folds, seed=seed, threads=threads)
    if wants_hybrid(config, model.kind, distillation_loss(unseen, mean_of_copies(rows, shares))):
        rows, mixed = taught.hybrid_rows, mixed_lesson(taught, config, standings, company)
        extra = (mixed.hybrid_rows, mixed.shares)
        trees = fit(np.concatenate([rows, extra[0]]), np.concatenate([shares, extra[1]]))
        model = HybridModel(trees, model)
        unseen = out_of_fold(
            fit, rows, shares, folds=folds, seed=seed, threads=threads, extra=extra
        )
    done()
    return model, unseen


def mixed_lesson(
    taught: Lesson, config: MethodConfig, standings: list[Standing], company: Company | None
) -> Lesson:
    """Return made-up rows with the targets that their efforts against anchors give."""
    rows = mixed_rows(taught.rows, taught.shares, config.seed)
    return lesson_of(rows, config, standings, company)


def lesson_of(
    rows: Floats, config: MethodConfig, standings: list[Standing], company: Company | None
) -> Lesson:
    """Return any rows with the targets that their efforts against anchors give."""
    unseen = np.column_stack([s.unseen_rarity for s in standings])
    rarity = view_rarities([s.fitted for s in standings], config, rows, company)
    targets = fit_targets(unseen, shared=company is not None)
    return Lesson(rows, targets.shares(rarity), rarity)
