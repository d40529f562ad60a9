"""Radii against brute force in float64, and the candidate searches FAISS does for anchors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mrot_scale.errors import DataError
from mrot_scale.method import neighbours
from mrot_scale.method.cost import ball_zone, nearest_zone, squared_distances
from mrot_scale.method.neighbours import LiftedAnchors, ReferenceIndex
from tests.strategies import any_clouds, chunk_sizes, examples, tied_clouds

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def _gaussian(seed: int, n_rows: int, n_columns: int) -> Floats:
    return np.random.default_rng(seed).normal(size=(n_rows, n_columns))


def _brute_radii(
    rows: Floats, ids: Ints, reference: Floats, reference_ids: Ints, n_inside: int
) -> Floats:
    """Return the squared distance to the nearest reference row after the first `n_inside`."""
    radii = []
    for row, own in zip(rows, ids, strict=True):
        distance = ((reference - row) ** 2).sum(axis=1)
        others = np.sort(distance[reference_ids != own])
        radii.append(others[n_inside])
    return np.array(radii)


# --- radii from the exhaustive index -------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.004, 0.04, 0.3])
@pytest.mark.parametrize("n_columns", [1, 3, 20])
def test_radii_of_reference_rows_are_those_of_brute_force(n_columns: int, alpha: float) -> None:
    rows, ids = _gaussian(0, 500, n_columns), np.arange(500)
    found = ReferenceIndex(rows, ids).radii(rows, ids, alpha)
    expected = _brute_radii(rows, ids, rows, ids, round(alpha * 500))
    np.testing.assert_allclose(found.squared, expected, rtol=1e-6)
    assert np.isclose(found.squared, expected, rtol=1e-12).mean() > 0.99  # float32 ties apart
    assert found.recall == 1.0


def test_radii_of_rows_partly_in_the_reference() -> None:
    """A row is left out of its own zone by its id, wherever it stands."""
    table = _gaussian(1, 300, 4)
    reference_ids = np.random.default_rng(2).permutation(300)[:200]
    index = ReferenceIndex(table[reference_ids], reference_ids)
    found = index.radii(table, np.arange(300), 0.05).squared
    expected = _brute_radii(table, np.arange(300), table[reference_ids], reference_ids, 10)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    strangers = index.radii(table, np.arange(1000, 1300), 0.05).squared
    inside = np.isin(np.arange(300), reference_ids)
    assert (strangers[inside] < found[inside]).all()
    np.testing.assert_array_equal(strangers[~inside], found[~inside])


@examples(80)
@given(tied_clouds(min_rows=5, max_rows=30), st.data())
def test_radii_with_ties_and_equal_rows(points: Floats, data: st.DataObject) -> None:
    n = len(points)
    n_inside = data.draw(st.integers(1, n - 2))
    ids = np.array(data.draw(st.permutations(range(n))))
    found = ReferenceIndex(points, ids).radii(points, ids, n_inside / n).squared
    expected = _brute_radii(points, ids, points, ids, n_inside)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0)


@examples(60)
@given(any_clouds(min_rows=6, max_rows=20), st.integers(1, 4))
def test_the_radius_is_a_distance_of_the_batch_bit_by_bit(points: Floats, n_inside: int) -> None:
    """So that `<` decides: the row that set the radius is outside the open ball, nearer ones in."""
    n, ids = len(points), np.arange(len(points))
    radii = ReferenceIndex(points, ids).radii(points, ids, n_inside / n).squared
    D = squared_distances(points, points)
    others = D.copy()
    np.fill_diagonal(others, np.nan)
    assert ((others == radii[:, None]).sum(axis=1) >= 1).all()
    zone = ball_zone(D, radii)
    assert (zone.sum(axis=1) <= n_inside + 1).all()


def test_the_radius_has_the_bits_of_the_batch_in_many_columns_too() -> None:
    """Sums of many squares depend on their order: one function must do all of them."""
    points, ids = _gaussian(19, 60, 100), np.arange(60)
    radii = ReferenceIndex(points, ids).radii(points, ids, 0.1).squared
    D = squared_distances(points, points)
    assert ((radii[:, None] == D).sum(axis=1) == 1).all()
    assert (ball_zone(D, radii).sum(axis=1) == 7).all()


def test_without_ties_the_ball_is_the_nearest_zone() -> None:
    points, ids = _gaussian(3, 200, 3), np.arange(200)
    radii = ReferenceIndex(points, ids).radii(points, ids, 0.05).squared
    D = squared_distances(points, points)
    np.testing.assert_array_equal(ball_zone(D, radii), nearest_zone(D, 10))


@examples(12)
@given(st.data())
def test_radii_do_not_depend_on_the_chunks_asked(data: st.DataObject) -> None:
    rows, ids = _gaussian(4, 60, 3), np.arange(60)
    index = ReferenceIndex(rows, ids)
    whole = index.radii(rows, ids, 0.1).squared
    cuts = np.cumsum(data.draw(chunk_sizes(60)))[:-1]
    parts = [index.radii(rows[i], ids[i], 0.1).squared for i in np.split(ids, cuts)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_radii_do_not_depend_on_the_query_block(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, ids = _gaussian(5, 100, 3), np.arange(100)
    index = ReferenceIndex(rows, ids)
    whole = index.radii(rows, ids, 0.1).squared
    monkeypatch.setattr(neighbours, "_QUERY_BLOCK", 33)
    np.testing.assert_array_equal(index.radii(rows, ids, 0.1).squared, whole)


def test_radii_survive_an_offset_that_float32_cannot_hold() -> None:
    rows, ids = _gaussian(6, 300, 3) + 1e9, np.arange(300)
    found = ReferenceIndex(rows, ids).radii(rows, ids, 0.05).squared
    expected = _brute_radii(rows, ids, rows, ids, 15)
    assert np.isclose(found, expected, rtol=1e-6).mean() > 0.99


@pytest.mark.parametrize("reach", [1e4, 1e8, 1e12])
def test_one_far_row_does_not_spoil_the_radii_of_the_others(reach: float) -> None:
    rows, ids = _gaussian(7, 1000, 3), np.arange(1000)
    rows[0] *= reach
    found = ReferenceIndex(rows, ids).radii(rows, ids, 0.02).squared
    expected = _brute_radii(rows, ids, rows, ids, 20)
    assert np.isclose(found, expected, rtol=1e-3).mean() > 0.99


def test_a_zone_holds_at_least_one_reference_row() -> None:
    rows, ids = _gaussian(8, 50, 2), np.arange(50)
    found = ReferenceIndex(rows, ids).radii(rows, ids, 1e-6).squared
    np.testing.assert_allclose(found, _brute_radii(rows, ids, rows, ids, 1), rtol=1e-6)


@pytest.mark.parametrize(("n_rows", "alpha", "inside"), [(2, 0.1, 1), (10, 0.9, 9), (3, 0.6, 2)])
def test_a_reference_too_small_for_the_zone_is_refused(
    n_rows: int, alpha: float, inside: int
) -> None:
    rows, ids = _gaussian(9, n_rows, 2), np.arange(n_rows)
    message = rf"zone of {inside} reference rows.*at least {inside + 2} rows, got {n_rows}"
    with pytest.raises(DataError, match=message):
        ReferenceIndex(rows, ids).radii(rows, ids, alpha)


def test_the_smallest_reference_that_fits_is_accepted() -> None:
    rows, ids = np.array([[0.0], [1.0], [3.0]]), np.arange(3)
    found = ReferenceIndex(rows, ids).radii(rows, ids, 0.1).squared
    assert found.tolist() == [9.0, 4.0, 9.0]


# --- radii through cells -------------------------------------------------------------------------


def test_cells_report_their_recall_and_come_close_to_brute_force() -> None:
    rows, ids = _gaussian(10, 3_000, 6), np.arange(3_000)
    index = ReferenceIndex(rows, ids, flat_limit=1_000)
    found = index.radii(rows[:400], ids[:400], 0.01)
    expected = _brute_radii(rows[:400], ids[:400], rows, ids, 30)
    assert 0.95 <= found.recall < 1.0
    # Missed neighbours can only push the radius outwards, and not far at this recall.
    assert (found.squared >= expected * (1 - 1e-6)).all()
    assert np.median(found.squared / expected) < 1.02
    assert np.mean(found.squared / expected) < 1.05
    assert np.isclose(found.squared, expected, rtol=1e-6).mean() > 0.2


def test_the_reported_recall_is_the_share_of_true_neighbours_found() -> None:
    rows, ids = _gaussian(11, 3_000, 6), np.arange(3_000)
    index = ReferenceIndex(rows, ids, flat_limit=1_000)
    recall = index.radii(rows[:4], ids[:4], 0.01).recall
    probe = rows[:: 3_000 // 256][:256]  # whatever rows are asked for, recall is the index's own
    _, candidates = index._index.search(index._as_float32(probe), 32)
    shares = []
    for row, found in zip(probe, candidates, strict=True):
        nearest = np.argsort(((rows - row) ** 2).sum(axis=1))[:32]
        shares.append(len(set(nearest) & set(found)) / 32)
    assert recall == pytest.approx(np.mean(shares), abs=1e-3)


def test_cells_give_the_same_radii_every_time() -> None:
    rows, ids = _gaussian(12, 2_000, 4), np.arange(2_000)
    first, second = (
        ReferenceIndex(rows, ids, flat_limit=500).radii(rows[:200], ids[:200], 0.02)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.squared, second.squared)
    assert first.recall == second.recall


def test_cells_give_the_same_radii_whatever_was_asked_before() -> None:
    """One index serves all chunks: a hard chunk must not change the radii of an easy one."""
    rng = np.random.default_rng(18)
    easy = np.hstack([rng.normal(size=(1_500, 2)) * 0.01, np.zeros((1_500, 10))])
    hard = rng.normal(size=(1_500, 12))
    rows, ids = np.vstack([easy, hard]), np.arange(3_000)
    index = ReferenceIndex(rows, ids, flat_limit=1_000)
    first = index.radii(rows[:200], ids[:200], 0.02)
    index.radii(rows[1_500:1_700], ids[1_500:1_700], 0.02)
    again = index.radii(rows[:200], ids[:200], 0.02)
    np.testing.assert_array_equal(again.squared, first.squared)
    assert again.recall == first.recall


def test_cells_that_hold_too_few_rows_are_made_up_for() -> None:
    """A zone larger than the cells visited still gets its radius, here the true one."""
    rows, ids = _gaussian(13, 1_000, 2), np.arange(1_000)
    index = ReferenceIndex(rows, ids, flat_limit=100)
    index._index.nprobe = 1
    found = index._block_radii(rows[:50], ids[:50], 400)
    expected = _brute_radii(rows[:50], ids[:50], rows, ids, 400)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_flat_limit_itself_is_still_searched_exhaustively() -> None:
    rows, ids = _gaussian(14, 1_000, 8), np.arange(1_000)
    exact = ReferenceIndex(rows, ids, flat_limit=1_000).radii(rows, ids, 0.01)
    cells = ReferenceIndex(rows, ids, flat_limit=999).radii(rows, ids, 0.01)
    assert exact.recall == 1.0
    assert cells.recall < 1.0


# --- anchors -------------------------------------------------------------------------------------


def test_lifted_anchors_are_searched_by_distance_less_price() -> None:
    rng = np.random.default_rng(15)
    anchors, v, rows = rng.normal(size=(80, 5)), rng.normal(size=80), rng.normal(size=(60, 5))
    index = LiftedAnchors(anchors, v)
    D = ((rows[:, None] - anchors) ** 2).sum(axis=2)
    for found, values in ((index.cheapest(rows, 6), D - v), (index.nearest(rows, 6), D)):
        assert found.shape == (60, 6)
        chosen = np.take_along_axis(values, found, axis=1)
        np.testing.assert_allclose(chosen, np.sort(values, axis=1)[:, :6], atol=1e-5)


def test_lifted_anchors_survive_an_offset() -> None:
    rng = np.random.default_rng(16)
    anchors, v, rows = rng.normal(size=(80, 5)), rng.normal(size=80), rng.normal(size=(60, 5))
    here, there = LiftedAnchors(anchors, v), LiftedAnchors(anchors + 1e8, v)
    assert (here.cheapest(rows, 1) == there.cheapest(rows + 1e8, 1)).mean() > 0.95
    assert (here.nearest(rows, 1) == there.nearest(rows + 1e8, 1)).mean() > 0.95


def test_threads_do_not_change_the_radii() -> None:
    rows, ids = _gaussian(17, 9_000, 3), np.arange(9_000)
    index = ReferenceIndex(rows[:2_000], ids[:2_000])
    one, two = (index.radii(rows, ids, 0.04, threads=n).squared for n in (1, 2))
    np.testing.assert_array_equal(one, two)
