"""Compiled trees give, to the last bit, what LightGBM gives."""

import lightgbm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrot_scale.model.booster_text import canonical_text
from mrot_scale.model.lightgbm_model import WALKED_FROM, LightgbmModel, train_lightgbm
from mrot_scale.model.tree_walk import DEEPEST, complete_trees


def trained(seed: int, n_columns: int = 5, **settings: object) -> lightgbm.Booster:
    rng = np.random.default_rng(seed)
    rows = np.round(rng.normal(size=(400, n_columns)), 2)  # values that meet thresholds
    targets = rng.random(400)
    given = {"verbosity": -1, "min_data_in_leaf": 2, "num_threads": 1, **settings}
    return lightgbm.train(given, lightgbm.Dataset(rows, targets), num_boost_round=20)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    depth=st.integers(1, DEEPEST),
    leaves=st.integers(2, 80),
    n_rows=st.integers(0, 1_100),
)
def test_any_trees_give_the_same_bits(seed: int, depth: int, leaves: int, n_rows: int) -> None:
    booster = trained(seed, max_depth=depth, num_leaves=leaves)
    trees = complete_trees(canonical_text(booster.model_to_string()))
    assert trees is not None
    rng = np.random.default_rng(seed + 1)
    rows = np.round(rng.normal(scale=3, size=(n_rows, 5)), 2)
    rows[rng.random(rows.shape) < 0.05] = 0.0
    expected = booster.predict(rows, raw_score=True) if n_rows else np.empty(0)
    assert trees.walk(rows).tobytes() == expected.tobytes()


def test_values_on_and_beside_a_threshold_go_the_same_way() -> None:
    booster = trained(3, max_depth=6)
    trees = complete_trees(canonical_text(booster.model_to_string()))
    assert trees is not None
    limits = trees.threshold[np.isfinite(trees.threshold)][:200]
    beside = np.concatenate([limits, np.nextafter(limits, np.inf), np.nextafter(limits, -np.inf)])
    rows = np.tile(beside[:, None], (1, 5))
    assert trees.walk(rows).tobytes() == booster.predict(rows, raw_score=True).tobytes()


def test_trees_that_are_too_deep_are_left_to_lightgbm() -> None:
    booster = trained(0, max_depth=DEEPEST + 4, num_leaves=200)
    assert complete_trees(canonical_text(booster.model_to_string())) is None


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_left_to_lightgbm(odd: float) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 3))
    model = train_lightgbm(rows, rng.random(500), seed=0)
    before = LightgbmModel(model.text())
    rows[7, 1] = odd
    model.prepare(WALKED_FROM)
    assert model.predict(rows).tobytes() == before.predict(rows).tobytes()


def test_a_prepared_model_predicts_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3_000, 4))
    model = train_lightgbm(rows, rng.random(3_000), seed=0)
    before = model.predict(rows)
    model.prepare(WALKED_FROM - 1)
    is_walked = [model.is_walked]
    model.prepare(WALKED_FROM)
    assert [*is_walked, model.is_walked] == [False, True]
    assert model.predict(rows).tobytes() == before.tobytes()
    assert model.predict(np.asfortranarray(rows)).tobytes() == before.tobytes()
