"""Column statistics: equal to NumPy's, whatever the cutting of the stream."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from mrot_scale.errors import DamagedDataError
from mrot_scale.seeds import generator
from mrot_scale.storing import statistics
from mrot_scale.storing.statistics import ColumnStatistics
from mrot_scale.storing.summaries import QUANTILE_LEVELS, ColumnSummary
from tests.strategies import chunk_sizes, examples, seeds

Floats = NDArray[np.float64]


def summaries(rows: Floats, sizes: list[int] | None = None, **options: int) -> list[ColumnSummary]:
    """Statistics of rows that arrive in pieces of these sizes."""
    gathered = ColumnStatistics(rows.shape[1], **options)
    with np.errstate(over="ignore"):
        stored = rows.astype(np.float32)
    stops = np.cumsum([len(rows)] if sizes is None else sizes)
    for start, stop in zip([0, *stops[:-1]], stops, strict=True):
        gathered.add(rows[start:stop], stored[start:stop])
    return gathered.finish()


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 8 rows, so that few rows make many blocks."""
    monkeypatch.setattr(statistics, "BLOCK_ROWS", 8)


def some_rows(seed: int, n_rows: int, n_columns: int = 3) -> Floats:
    """Rows with ties, NaN, both infinities and, at times, a column without any value."""
    rng = np.random.default_rng(seed)
    rows = np.round(rng.normal(100.0, 5.0, size=(n_rows, n_columns)), 1)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    rows[rng.random(rows.shape) < 0.05] = -np.inf
    rows[rng.random(rows.shape) < 0.05] = np.inf
    if seed % 3 == 0:
        rows[:, 0] = np.nan
    return rows


@pytest.mark.usefixtures("small_blocks")
@examples(100)
@given(seed=seeds, n_rows=st.integers(1, 600), sample=st.integers(0, 40), draw=st.data())
def test_any_cutting_gives_the_same_bytes(seed: int, n_rows: int, sample: int, draw: Any) -> None:
    rows = some_rows(seed, n_rows)
    sizes = draw.draw(chunk_sizes(n_rows))
    whole, pieces = summaries(rows, sample_rows=sample), summaries(rows, sizes, sample_rows=sample)
    assert repr(pieces) == repr(whole)


def test_a_stream_of_several_real_blocks_gives_the_same_bytes() -> None:
    rows = some_rows(1, 150_000)
    layouts = [rows, np.asfortranarray(rows), np.repeat(rows, 2, axis=1)[:, ::2]]
    sizes = [[150_000], [65_536, 65_536, 18_928], [1, 70_000, 5, 0, 79_994]]
    assert len({repr(summaries(r, s)) for r in layouts for s in sizes}) == 1


@pytest.mark.usefixtures("small_blocks")
@examples(100)
@given(seed=seeds, n_rows=st.integers(1, 600))
def test_counts_moments_and_quantiles_are_numpys(seed: int, n_rows: int) -> None:
    rows = some_rows(seed, n_rows)
    for x, found in zip(rows.T, summaries(rows), strict=True):
        finite = x[np.isfinite(x)]
        assert found.count == len(finite)
        assert (found.missing, found.infinite) == (np.isnan(x).sum(), np.isinf(x).sum())
        assert found.first_bad_rows == tuple(np.flatnonzero(~np.isfinite(x))[:5])
        if len(finite) == 0:
            assert (found.min, found.max, found.mean, found.deviation) == (None,) * 4
            assert found.quantiles == ()
        else:
            assert (found.min, found.max) == (finite.min(), finite.max())
            assert found.mean == pytest.approx(finite.mean(), rel=1e-13)
            assert found.deviation == pytest.approx(finite.std(), rel=1e-10, abs=1e-12)
            np.testing.assert_allclose(found.quantiles, np.quantile(finite, QUANTILE_LEVELS))


@pytest.mark.usefixtures("small_blocks")
@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 40), st.integers(1, 3)),
        elements=st.floats(allow_nan=True, allow_infinity=True),
    )
)
def test_any_values_give_a_summary_that_json_can_hold(rows: Floats) -> None:
    for x, found in zip(rows.T, summaries(rows), strict=True):
        text = json.dumps(found.to_json(), allow_nan=False)
        assert ColumnSummary.from_json(json.loads(text)) == found
        if found.count:
            assert found.min is not None
            assert found.max is not None
            assert found.mean is not None
            assert found.min <= found.mean <= found.max
            wide = x[np.isfinite(x)].astype(np.longdouble)
            assert found.deviation == pytest.approx(float(wide.std()), rel=1e-6, abs=1e-300)


def test_a_small_spread_far_from_zero_is_measured() -> None:
    x = 1e9 + np.random.default_rng(0).normal(0.0, 1e-3, size=(200_000, 1))
    (found,) = summaries(x)
    centred = x - 1e9
    assert found.deviation == pytest.approx(float(centred.std()), rel=1e-9)


def test_equal_values_have_no_deviation() -> None:
    (found,) = summaries(np.full((100_000, 1), 0.1))
    assert (found.mean, found.deviation) == (0.1, 0.0)


def test_an_empty_stream_and_no_columns() -> None:
    (found,) = ColumnStatistics(1).finish()
    assert (found.count, found.min, found.quantiles, found.lost_share) == (0, None, (), 0.0)
    assert ColumnStatistics(0).finish() == []


def test_the_sample_is_of_all_rows_alike() -> None:
    rows = np.arange(300_000.0)[:, None]
    (found,) = summaries(rows, [100_000] * 3, sample_rows=2_000)
    # The largest gap of 2,000 uniform values to their law: 1.63 / sqrt(2000) in 1 of 100 cases.
    gap = np.abs(np.array(found.quantiles) / 300_000 - QUANTILE_LEVELS).max()
    assert gap < 1.63 / np.sqrt(2_000)


def test_the_sample_holds_on_to_the_smallest_keys() -> None:
    n_rows, kept = 200_000, 500
    gathered = ColumnStatistics(1, sample_rows=kept)
    rows = np.arange(float(n_rows))[:, None]
    gathered.add(rows, rows.astype(np.float32))
    gathered.finish()
    sizes = [65_536, 65_536, 65_536, n_rows - 3 * 65_536]
    keys = np.concatenate(
        [
            generator(0, "statistics", b).integers(2**64, size=n, dtype=np.uint64)
            for b, n in enumerate(sizes)
        ]
    )
    expected = np.argsort(keys, kind="stable")[:kept]
    np.testing.assert_array_equal(gathered._sample.columns()[0], expected)


def test_lost_values_are_those_float32_cannot_tell_apart() -> None:
    close = 2.0**24 + np.arange(1_000.0)  # float32 keeps every other one
    far = np.arange(1_000.0)
    lossy, sound = summaries(np.column_stack([close, far]))
    assert lossy.lost_share == pytest.approx(0.5, abs=0.002)
    assert sound.lost_share == 0.0


@pytest.mark.usefixtures("small_blocks")
def test_lost_values_are_pooled_over_every_sixteenth_block() -> None:
    rows = np.arange(8.0 * 17)[:, None]
    rows[8 : 8 * 16] = 2.0**24 + np.arange(8.0 * 15)[:, None]  # blocks that are not looked at
    rows[-8:, 0] = [2.0**24, 2.0**24 + 1, 1, 1, 1, 2, np.nan, np.inf]  # 4 distinct, 1 lost
    (found,) = summaries(rows)
    assert found.lost_share == 1 / 12


def test_ordinary_decimals_are_not_lost_for_meeting_by_chance() -> None:
    rows = np.random.default_rng(0).normal(1.7, 0.1, size=(200_000, 1))
    (found,) = summaries(rows)
    assert found.lost_share < 0.002


def test_values_stored_from_their_origin_are_kept() -> None:
    rows, origin = 2.0**24 + np.arange(1_000.0)[:, None], np.array([2.0**24])
    gathered = ColumnStatistics(1)
    gathered.add(rows, (rows - origin).astype(np.float32))
    assert gathered.finish()[0].lost_share == 0.0


def test_values_beyond_float32_are_lost_to_each_other() -> None:
    (found,) = summaries(np.array([[1e100], [1e200], [np.inf], [1.0]]))
    assert found.lost_share == pytest.approx(1 / 3)


def test_wide_tables_get_shorter_blocks() -> None:
    gathered = ColumnStatistics(5_000)
    assert gathered._values.nbytes <= 8 * 2**22


def test_rows_that_do_not_fit_are_refused() -> None:
    gathered = ColumnStatistics(2)
    with pytest.raises(ValueError, match=r"\(4, 3\).*2 columns"):
        gathered.add(np.zeros((4, 3)), np.zeros((4, 3), dtype=np.float32))
    with pytest.raises(ValueError, match=r"\(1, 2\)"):
        gathered.add(np.zeros((4, 2)), np.zeros((1, 2), dtype=np.float32))


SOUND: dict[str, Any] = {
    "count": 2,
    "missing": 1,
    "infinite": 0,
    "first_bad_rows": [7],
    "min": -1,
    "max": 2.0,
    "mean": 0.5,
    "deviation": 1.5,
    "quantiles": [],
    "lost_share": 0.0,
}


@pytest.mark.parametrize(
    "change",
    [
        {"count": -1},
        {"count": True},
        {"count": 2.0},
        {"count": 0},
        {"missing": "1"},
        {"infinite": None},
        {"first_bad_rows": [9, 7]},
        {"first_bad_rows": [1, 2, 3, 4, 5, 6]},
        {"first_bad_rows": 7},
        {"min": None},
        {"max": float("nan")},
        {"mean": float("inf")},
        {"mean": 10**400},
        {"deviation": -1.0},
        {"quantiles": [0.0, 1.0]},
        {"quantiles": [1.0] * 10 + [0.0]},
        {"quantiles": [None] * 11},
        {"lost_share": 1.5},
        {"lost_share": None},
        {"more": 1},
    ],
)
def test_junk_is_no_summary(change: dict[str, Any]) -> None:
    assert ColumnSummary.from_json(SOUND).first_bad_rows == (7,)
    with pytest.raises(DamagedDataError, match="|".join([*change, "keys"])):
        ColumnSummary.from_json(SOUND | change)


@pytest.mark.parametrize("junk", [None, [], {}, "count", {"count": 1}])
def test_what_is_no_object_of_all_keys_is_no_summary(junk: Any) -> None:
    with pytest.raises(DamagedDataError, match="keys"):
        ColumnSummary.from_json(junk)
