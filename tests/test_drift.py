"""Drift: PSI and KS as one would work them out by hand, and what chance alone would give."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrot_scale.drift import SCORE, Drift, drift_of, largest, profile_drift, training_profile
from mrot_scale.jobs.fit_job import fit
from mrot_scale.jobs.ingest_job import ingest
from mrot_scale.model.persist import load_model, model_schema
from mrot_scale.profiles import Bins, Profile, count_values
from mrot_scale.scoring import FittedModel
from mrot_scale.storing.location import Location
from mrot_scale.storing.schema import Column, Schema
from tests.jobs.made import TINY, mixed_table, write_parts
from tests.strategies import examples

COUNTS = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        *[st.lists(st.integers(0, 50), min_size=n, max_size=n).filter(any) for _ in range(2)]
    )
)
"""Two spreads over the same bins, each of one row at least."""


def psi_by_hand(before: list[int], now: list[int]) -> float:
    """Add up (p - q) log(p / q), where an empty bin counts as half a row, or a share of 1e-4."""
    total, least = 0.0, max(1e-4, 0.5 / min(sum(before), sum(now)))
    for a, b in zip(before, now, strict=True):
        p, q = max(a / sum(before), least), max(b / sum(now), least)
        total += (p - q) * math.log(p / q)
    return total


def ks_by_hand(before: list[float], now: list[float], ends: list[float]) -> float:
    """Compare how many values are at most so large, at the ends of the bins."""
    found = [0.0]
    for end in ends:
        p = sum(value <= end for value in before) / len(before)
        q = sum(value <= end for value in now) / len(now)
        found.append(abs(p - q))
    return max(found)


def counted(before: list[int], now: list[int]) -> Drift:
    return drift_of("x", np.array(before), np.array(now))


@examples(150)
@given(COUNTS)
def test_psi_is_the_sum_one_works_out_by_hand(counts: tuple[list[int], list[int]]) -> None:
    before, now = counts
    assert counted(before, now).psi == pytest.approx(psi_by_hand(before, now), abs=1e-12)


@examples(150)
@given(COUNTS)
def test_psi_is_the_same_from_either_side_and_never_negative(
    counts: tuple[list[int], list[int]],
) -> None:
    before, now = counts
    there, back = counted(before, now), counted(now, before)
    assert there.psi >= 0
    assert there.psi == pytest.approx(back.psi, abs=1e-12)
    assert there.ks == pytest.approx(back.ks, abs=1e-12)
    assert there.nulls == pytest.approx(-back.nulls, abs=1e-12)
    assert there.chance == pytest.approx(back.chance)
    assert 0 <= there.ks <= 1 + 1e-12


@examples(50)
@given(COUNTS, st.integers(1, 9))
def test_more_rows_of_the_same_spread_are_no_drift(
    counts: tuple[list[int], list[int]], factor: int
) -> None:
    before, _ = counts
    drift = counted(before, [factor * count for count in before])
    assert drift.psi == pytest.approx(0, abs=1e-12)
    assert drift.ks == pytest.approx(0, abs=1e-12)
    assert drift.nulls == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("before", "now", "psi", "ks", "nulls"),
    [
        ([50, 50, 0], [50, 50, 0], 0.0, 0.0, 0.0),
        ([50, 50, 0], [25, 75, 0], 0.25 * math.log(3), 0.25, 0.0),
        ([50, 25, 25], [25, 50, 25], 0.5 * math.log(2), 1 / 3, 0.0),
        ([100, 0], [50, 50], 0.5 * math.log(2) + 0.495 * math.log(100), 0.0, 0.5),
        ([100, 0, 0], [0, 100, 0], 2 * 0.995 * math.log(200), 1.0, 0.0),
    ],
)
def test_drifts_worked_out_on_paper(
    before: list[int], now: list[int], psi: float, ks: float, nulls: float
) -> None:
    drift = counted(before, now)
    assert drift.psi == pytest.approx(psi, abs=1e-12)
    assert drift.ks == pytest.approx(ks)
    assert drift.nulls == pytest.approx(nulls)


@examples(60)
@given(
    st.lists(st.floats(-9, 9, width=32), min_size=1, max_size=60),
    st.lists(st.floats(-9, 9, width=32), min_size=1, max_size=60),
)
def test_ks_is_the_largest_difference_of_distribution_functions(
    before: list[float], now: list[float]
) -> None:
    bins = Bins.of(np.array(before).reshape(-1, 1))
    counts = count_values(bins.edges, np.array(now).reshape(-1, 1))
    found = drift_of("x", bins.counts[0], counts[0])
    assert found.ks == pytest.approx(ks_by_hand(before, now, bins.edges[0].tolist()), abs=1e-12)


def test_rows_without_a_value_do_not_move_the_distribution_functions() -> None:
    assert counted([40, 40, 20], [10, 10, 80]).ks == pytest.approx(0)
    assert counted([40, 40, 20], [10, 10, 80]).nulls == pytest.approx(0.6)


@pytest.mark.parametrize("n_rows", [200, 1_000])
def test_chance_is_what_rows_of_the_same_spread_give_on_average(n_rows: int) -> None:
    rng = np.random.default_rng(3)
    found: list[Drift] = []
    for _ in range(200):
        bins = Bins.of(rng.normal(size=(4_000, 1)))
        found.append(
            drift_of("x", bins.counts[0], count_values(bins.edges, rng.normal(size=(n_rows, 1)))[0])
        )
    mean = sum(drift.psi for drift in found) / len(found)
    assert found[0].chance == pytest.approx(21 * (1 / 4_000 + 1 / n_rows))
    assert 0.75 < mean / found[0].chance < 1.35


def test_bins_nobody_is_in_leave_nothing_to_chance() -> None:
    assert counted([10, 0, 0, 10], [5, 0, 0, 5]).chance == pytest.approx(1 / 20 + 1 / 10)
    assert counted([10, 0], [10, 0]).chance == 0


@pytest.mark.parametrize(("before", "now"), [([0, 0], [0, 0]), ([5, 5], [0, 0]), ([0, 0], [5, 5])])
def test_no_rows_at_all_give_finite_figures(before: list[int], now: list[int]) -> None:
    drift = counted(before, now)
    assert all(math.isfinite(x) for x in (drift.psi, drift.ks, drift.chance, drift.nulls))


@pytest.mark.parametrize(
    ("shift", "low", "high"), [(0.1, 0.005, 0.03), (0.5, 0.2, 0.3), (1, 0.8, 1.1)]
)
def test_a_shifted_normal_column_has_the_psi_theory_gives(
    shift: float, low: float, high: float
) -> None:
    """The PSI of two normal distributions a shift apart is its square; bins lose a little."""
    rng = np.random.default_rng(1)
    bins = Bins.of(rng.normal(size=(50_000, 1)))
    now = count_values(bins.edges, rng.normal(size=(50_000, 1)) + shift)
    assert low < drift_of("x", bins.counts[0], now[0]).psi < high


# --- whole profiles


def two_column_schema() -> Schema:
    kind = Column("kind", "category", vocabulary=("a", "b"), counts=(6, 4))
    return Schema((Column("x", "number"), kind, Column("y", "number")), (0.0,) * 3, 10, "row")


def profile(x: list[int], y: list[int], scores: list[int], **categories: list[int]) -> Profile:
    unused = [99] * len(x)  # a category's code is no value: its place must not be looked at
    return Profile(
        sum(x),
        np.array([x, unused, y]),
        np.array(scores),
        {name: np.array(counts) for name, counts in categories.items()},
    )


def test_every_feature_is_compared_by_its_own_counts_and_the_score_last() -> None:
    before = profile([5, 5, 0], [9, 1, 0], [4, 6], kind=[6, 4, 0, 0])
    now = profile([2, 8, 0], [9, 1, 0], [5, 5], kind=[1, 9, 0, 0])
    found = profile_drift(two_column_schema(), before, now)
    assert [drift.name for drift in found] == ["x", "kind", "y", SCORE]
    expected = [([5, 5, 0], [2, 8, 0]), ([6, 4, 0, 0], [1, 9, 0, 0]), ([9, 1], [9, 1])]
    for drift, (a, b) in zip(found, [*expected, ([4, 6], [5, 5])], strict=True):
        assert drift.psi == pytest.approx(psi_by_hand(a, b), abs=1e-12)


@pytest.mark.parametrize("which", ["before", "now"])
def test_categories_that_were_not_counted_are_left_out(which: str) -> None:
    known = profile([5, 5, 0], [9, 1, 0], [4, 6], kind=[6, 4, 0, 0])
    bare = profile([5, 5, 0], [9, 1, 0], [4, 6])
    pair = (bare, known) if which == "before" else (known, bare)
    assert [d.name for d in profile_drift(two_column_schema(), *pair)] == ["x", "y", SCORE]


def test_what_moved_most_is_what_chance_explains_least() -> None:
    noisy, real = Drift("noisy", 0.5, 0, 0.45, 0), Drift("real", 0.3, 0, 0.01, 0)
    assert largest([noisy, real]) == real
    assert largest(iter([noisy])) == noisy
    assert largest([]) is None


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> FittedModel:
    folder = tmp_path_factory.mktemp("model")
    source = write_parts(mixed_table(600), folder / "table")
    store = ingest(source, folder / "store", id="reading", config=TINY)
    fit(store.store, folder / "model", TINY)
    found, _ = load_model(Location(folder / "model"))
    return found


@pytest.mark.parametrize("method", ["model", "effort"])
def test_a_fitted_model_knows_its_training_rows(model: FittedModel, method: Any) -> None:
    schema = model_schema(model)
    found = training_profile(model, schema, method)
    assert found is not None
    assert found.n_rows == 600
    assert found.values.shape[0] == len(schema.features)
    assert (found.values.sum(axis=1) == TINY["label_rows"]).all()
    kinds = mixed_table(600)["kind"].to_pylist()
    order = sorted("abc", key=kinds.count, reverse=True)
    expected = [*(kinds.count(value) for value in order), 0, kinds.count(None)]
    assert found.categories["kind"].tolist() == expected
    assert found.scores.sum() == len(model.training_scores[method])
    same = profile_drift(schema, found, found)
    assert [drift.name for drift in same] == [*schema.features, SCORE]
    assert all(drift.psi == drift.ks == drift.nulls == 0 for drift in same)


def test_a_model_without_bins_knows_no_training_rows(model: FittedModel) -> None:
    schema = model_schema(model)
    assert training_profile(replace(model, bins=None), schema, "model") is None
