"""The plan of batches: who meets whom, how often, and that it is a function of the seed alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrot_scale.errors import DataError
from mrot_scale.method.batches import Batch, BatchPlan, fitting_batch_rows, zone_count
from tests.strategies import batch_sizes, examples, seeds


def _same(first: Batch, second: Batch) -> bool:
    return (
        (first.repeat, first.number) == (second.repeat, second.number)
        and np.array_equal(first.rows, second.rows)
        and np.array_equal(first.own, second.own)
    )


@examples(120)
@given(batch_sizes(), st.integers(1, 5), seeds)
def test_every_row_is_owned_once_in_each_repeat(
    sizes: tuple[int, int], repeats: int, seed: int
) -> None:
    n_rows, batch_rows = sizes
    plan = BatchPlan(n_rows, batch_rows, repeats, seed)
    owned = np.zeros((repeats, n_rows), dtype=int)
    for batch in plan:
        np.add.at(owned[batch.repeat], batch.rows[batch.own], 1)
    assert (owned == 1).all()


@examples(120)
@given(batch_sizes(), st.integers(1, 5), seeds)
def test_every_batch_has_exactly_m_distinct_rows_in_ascending_order(
    sizes: tuple[int, int], repeats: int, seed: int
) -> None:
    n_rows, batch_rows = sizes
    batches = list(BatchPlan(n_rows, batch_rows, repeats, seed))
    for batch in batches:
        assert batch.rows.shape == batch.own.shape == (batch_rows,)
        assert (np.diff(batch.rows) > 0).all()
        assert batch.rows[0] >= 0
        assert batch.rows[-1] < n_rows
    numbers = [(b.repeat, b.number) for b in batches]
    per_repeat = (n_rows + batch_rows - 1) // batch_rows
    assert numbers == [(r, b) for r in range(repeats) for b in range(per_repeat)]


@examples(60)
@given(batch_sizes(), st.integers(1, 5), seeds)
def test_the_plan_knows_how_many_batches_it_has(
    sizes: tuple[int, int], repeats: int, seed: int
) -> None:
    plan = BatchPlan(*sizes, repeats, seed)
    assert plan.n_batches == len(list(plan))
    assert plan.batches_per_repeat == len(list(plan.repeat_batches(0)))


@examples(60)
@given(batch_sizes(), st.integers(1, 4), seeds)
def test_the_same_seed_gives_the_same_plan_and_repeats_stand_alone(
    sizes: tuple[int, int], repeats: int, seed: int
) -> None:
    plan, again = BatchPlan(*sizes, repeats, seed), BatchPlan(*sizes, repeats, seed)
    whole = list(plan)
    # A worker that computes the last repeat first, or alone, gets the same batches.
    by_repeat = [list(again.repeat_batches(r)) for r in reversed(range(repeats))][::-1]
    alone = [batch for batches in by_repeat for batch in batches]
    assert len(whole) == len(alone)
    assert all(_same(a, b) for a, b in zip(whole, alone, strict=True))


@examples(60)
@given(st.integers(40, 120), st.integers(10, 20), seeds)
def test_another_seed_or_repeat_gives_another_plan(n_rows: int, batch_rows: int, seed: int) -> None:
    first = next(iter(BatchPlan(n_rows, batch_rows, 2, seed))).rows
    other_seed = next(iter(BatchPlan(n_rows, batch_rows, 2, seed + 1))).rows
    other_repeat = next(BatchPlan(n_rows, batch_rows, 2, seed).repeat_batches(1)).rows
    assert not np.array_equal(first, other_seed)
    assert not np.array_equal(first, other_repeat)


def test_more_repeats_keep_the_earlier_ones() -> None:
    few, many = list(BatchPlan(50, 16, 2, 7)), list(BatchPlan(50, 16, 5, 7))
    assert all(_same(a, b) for a, b in zip(few, many, strict=False))
    assert len(many) > len(few)


def test_fillers_are_rows_of_other_batches_and_are_not_owned() -> None:
    *whole, last = BatchPlan(50, 16, 1, 3).repeat_batches(0)
    assert all(batch.own.all() for batch in whole)
    assert last.own.sum() == 2
    elsewhere = np.concatenate([batch.rows for batch in whole])
    assert set(last.rows[~last.own]) <= set(elsewhere)
    assert not set(last.rows[last.own]) & set(elsewhere)


def test_rows_meet_across_the_whole_table() -> None:
    """A batch is a uniform draw, not a neighbourhood of row numbers."""
    batches = BatchPlan(10_000, 250, 1, 0)
    means = np.array([batch.rows.mean() for batch in batches])
    spread = 10_000 / np.sqrt(12 * 250)
    assert np.abs(means - 5_000).max() < 5 * spread


def test_a_batch_is_named_by_repeat_and_number() -> None:
    batch = Batch(3, 14, np.arange(2), np.ones(2, dtype=bool))
    assert str(batch) == "repeat 3, batch 14"


@pytest.mark.parametrize(
    ("batch_rows", "alpha", "k", "expected"),
    [
        (256, 0.04, None, 10),
        (256, 0.02, None, 5),
        (128, 0.04, None, 5),
        (20, 0.04, None, 2),
        (256, 0.04, 7, 7),
        (20, 0.4, 1, 1),
    ],
)
def test_zone_count(batch_rows: int, alpha: float, k: int | None, expected: int) -> None:
    assert zone_count(batch_rows, alpha, k) == expected


@pytest.mark.parametrize(
    ("n_rows", "wanted", "k", "expected"),
    [
        (1000, 256, None, 256),
        (512, 256, None, 256),
        (511, 256, None, 255),
        (100, 256, None, 50),
        (101, 256, None, 50),
        (100, None, None, 100),
        (1000, None, None, 1000),
        (8, 256, None, 4),
        (7, 256, None, 7),  # half of it has no row outside the zone
        (4, 256, None, 4),
        (100, 30, 28, 30),
        (100, 30, 29, 100),
        (1000, 10, 3, 10),
    ],
)
def test_fitting_batch_rows(n_rows: int, wanted: int | None, k: int | None, expected: int) -> None:
    assert fitting_batch_rows(n_rows, wanted, 0.04, k) == expected


@examples(200)
@given(st.integers(1, 400), st.none() | st.integers(4, 300), st.none() | st.integers(1, 30))
def test_a_fitting_batch_keeps_a_row_outside_the_zone(
    n_rows: int, wanted: int | None, k: int | None
) -> None:
    needed = (2 if k is None else k) + 2
    if n_rows < needed:
        with pytest.raises(DataError, match=rf"Found {n_rows} row.*at least {needed}"):
            fitting_batch_rows(n_rows, wanted, 0.04, k)
        return
    size = fitting_batch_rows(n_rows, wanted, 0.04, k)
    assert size - zone_count(size, 0.04, k) >= 2
    assert size == n_rows or (wanted is not None and size == min(wanted, n_rows // 2))
