"""Contributions: parts of a row's rarity, the right columns first, whatever the chunking."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mrot_scale import MROT
from mrot_scale.config.scoring import Method
from mrot_scale.explaining import (
    can_explain,
    column_contributions,
    shares_of,
    weights_of,
)
from mrot_scale.scoring import FittedModel
from mrot_scale.synthetic import pump_readings

Floats = NDArray[np.float64]
FEW: dict[str, Any] = {"repeats": 2, "anchor_sets": 8, "label_rows": 2_000}


@pytest.fixture(scope="module")
def table() -> Floats:
    return pump_readings(2_000, seed=3).rows


@pytest.fixture(scope="module")
def model(table: Floats) -> FittedModel:
    return MROT(**FEW).fit(table).model_


@pytest.mark.parametrize("method", ["model", "effort"])
def test_contributions_sum_to_the_rarity_of_the_row(
    model: FittedModel, table: Floats, method: Method
) -> None:
    found = column_contributions(model, table[:200], method)
    assert (found >= 0).all()
    rarity = model.rarity_of(table[:200], method)
    np.testing.assert_allclose(found.sum(axis=1), rarity, rtol=1e-12)
    scores = model.score(table[:200], method)
    common = scores < 0.999
    np.testing.assert_allclose(1 - np.exp(-rarity[common]), scores[common], atol=1e-6)


@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(1, 119), max_size=5))
def test_any_chunking_gives_the_same_bits(
    model: FittedModel, table: Floats, cuts: list[int]
) -> None:
    whole = column_contributions(model, table[:120])
    parts = np.split(table[:120], sorted(cuts))
    found = np.concatenate([column_contributions(model, part) for part in parts])
    assert found.tobytes() == whole.tobytes()


def test_the_column_that_is_off_is_named_with_almost_all_of_it(
    model: FittedModel, table: Floats
) -> None:
    typical = np.median(table, axis=0)
    near = table[np.argsort(np.abs((table - typical) / table.std(axis=0)).sum(axis=1))[:20]]
    for column in range(table.shape[1]):
        odd = near.copy()
        odd[:, column] += 8 * table[:, column].std()
        found = shares_of(column_contributions(model, odd))
        assert (found.argmax(axis=1) == column).all()
        assert found[:, column].mean() > 0.6


def test_missing_values_count_as_medians(table: Floats) -> None:
    gaps = table.copy()
    gaps[::50, 3] = np.nan
    model = MROT(**FEW, non_finite="impute").fit(gaps).model_
    filled = np.where(np.isnan(gaps[:60]), model.fill, gaps[:60])
    expected = column_contributions(model, filled)
    assert column_contributions(model, gaps[:60]).tobytes() == expected.tobytes()


def test_whitened_models_are_explained_by_their_trees(table: Floats) -> None:
    whitened = MROT(**FEW, views=[{"scaling": "standard", "whiten": 4}]).fit(table)
    model = whitened.model_
    assert model.whole_view is None
    assert can_explain(model)
    found = column_contributions(model, table[:50])
    np.testing.assert_allclose(found.sum(axis=1), model.rarity_of(table[:50], "model"))
    raised = np.maximum(model.score_model.contributions(table[:50]), 0)  # type: ignore[attr-defined]
    assert (found.argmax(axis=1) == raised.argmax(axis=1)).all()
    knn = MROT(**FEW, views=[{"whiten": 4}], regressor="knn").fit(table)
    assert not can_explain(knn.model_)


def test_any_score_model_is_explained_where_there_are_normal_rows(table: Floats) -> None:
    detector = MROT(**FEW, regressor="knn").fit(table)
    odd = table[:5].copy()
    odd[:, 7] += 30 * table[:, 7].std()
    assert (detector.explain(odd).argmax(axis=1) == 7).all()


def test_the_view_that_rows_are_compared_in_is_a_robust_one(model: FittedModel) -> None:
    assert model.whole_view is not None
    assert model.whole_view.view.scaling == "gentle"
    assert model.whole_view.anchors[0].columns is None


def test_weights_keep_the_order_of_surprise_and_leave_little_to_the_usual() -> None:
    surprise = np.array([[0.0, 0.5, 1.0, 4.0, 100.0, 1e6]])
    weights = weights_of(surprise)
    assert (np.diff(weights[0]) > 0).all()
    assert weights[0, 2] < 0.1 < 0.5 < weights[0, 3]
    assert shares_of(np.zeros((1, 4))).tolist() == [[0.25] * 4]
