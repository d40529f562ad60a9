"""What each column did to the score of a row.

A score says how rare a row is: its rarity is -log of the share of rows that are more anomalous, so
4.6 is one in a hundred. Contributions share it out among the columns, by how far the row differs
in each from the normal rows that it resembles in most of them, measured against how far normal rows
usually differ there. Where a model has no normal rows with all columns (whitened views only), its
trees share the rarity out, by how much each column raised their raw score.
"""

import numpy as np
from numpy.typing import NDArray

from mrot_scale.compiling import can_compile
from mrot_scale.config.scoring import Method
from mrot_scale.method.resemblance import compile_comparison
from mrot_scale.model.hybrid import Explaining
from mrot_scale.rows import fill_non_finite
from mrot_scale.scoring import FittedModel

Floats = NDArray[np.float64]

COMPILED_FROM = 250_000
"""Rows to score from which on compiling the comparison of flagged ones pays."""

ORDINARY = 4.0
"""Squared differences up to this many times the usual one say little against a column."""

_BLOCK_ROWS = 4_096


def can_explain(model: FittedModel) -> bool:
    """Return whether the model can say what each column did."""
    return model.whole_view is not None or isinstance(model.score_model, Explaining)


def prepare_explaining(model: FittedModel, n_rows: int) -> None:
    """Get ready for the flagged ones of so many rows: from so many on, compiling pays."""
    if n_rows >= COMPILED_FROM and model.whole_view is not None and can_compile():
        compile_comparison()


def column_contributions(model: FittedModel, rows: Floats, method: Method = "model") -> Floats:
    """Return how much of each row's rarity each column accounts for, (n, features).

    They are never negative, and sum to the rarity of the row by the method; next to nothing for
    columns in which it is as rows like it usually are.
    """
    found = np.empty(rows.shape)
    for start in range(0, len(rows), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        filled = fill_non_finite(rows[block], model.fill)
        rarity = model.rarity_of(filled, method)
        found[block] = rarity[:, None] * shares_of(column_weights(model, filled))
    return found


def column_weights(model: FittedModel, rows: Floats) -> Floats:
    """Return how much of what is odd in finite rows is odd in each column, on any scale."""
    if model.whole_view is None or model.normal is None:
        assert isinstance(model.score_model, Explaining)
        return np.maximum(model.score_model.contributions(rows), 0.0)
    return weights_of(model.normal.compare(model.whole_view.view.apply(rows)).surprise)


def weights_of(surprise: Floats) -> Floats:
    """Return the weight of each column by how surprising it is, (n, d).

    Logarithms, because a column may be off by a thousand times what is usual: it is not to hide one
    that is off by a hundred. Squares, so that the many columns that are as usual weigh little.
    """
    return np.asarray(np.log1p(np.square(surprise / ORDINARY)))


def shares_of(weights: Floats) -> Floats:
    """Return weights that sum to 1 in each row; equal ones where none has any."""
    total = weights.sum(axis=1, keepdims=True)
    even = np.full_like(weights, 1.0 / weights.shape[1])
    return np.asarray(np.divide(weights, total, out=even, where=total > 0))
