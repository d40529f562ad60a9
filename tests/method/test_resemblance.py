"""The normal rows a row resembles: those that agree with it in most columns."""

import numpy as np
import pytest
from numpy.typing import NDArray

from mrot_scale.method import resemblance
from mrot_scale.method.resemblance import NormalRows, compile_comparison, normal_rows

Floats = NDArray[np.float64]


def two_groups(n: int = 400, d: int = 6, seed: int = 0) -> Floats:
    """Return rows around 0 and around 10, in all columns."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 10.0 * (np.arange(n) % 2)[:, None]


def brute_force(normal: NormalRows, point: Floats) -> list[int]:
    """Return the rows most alike by the definition, one at a time."""
    scaled, limit = point / normal.scale, 4.0
    while True:
        squares = [np.square(scaled - row) for row in normal.rows]
        order = sorted(
            range(len(squares)), key=lambda j: (float(np.minimum(squares[j], limit).sum()), j)
        )
        chosen = order[: normal.n_alike]
        at_limit = sum(int((squares[j] >= limit).sum()) for j in chosen)
        if 2 * at_limit <= normal.n_alike * len(point):
            return sorted(chosen)
        limit *= 4


@pytest.mark.parametrize("seed", range(3))
def test_the_rows_most_alike_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    normal = normal_rows(two_groups(seed=seed))
    points = rng.normal(size=(12, 6)) * 5
    points[:4] *= 100  # far from everything: the limit is doubled
    found = normal.compare(points)
    assert [list(ids) for ids in found.ids] == [brute_force(normal, point) for point in points]
    chosen = normal.rows[found.ids] * normal.scale
    np.testing.assert_allclose(found.mean, chosen.mean(axis=1))
    expected = (points - found.mean) ** 2 / (normal.scale**2 + chosen.var(axis=1))
    np.testing.assert_allclose(found.surprise, expected)


def test_columns_that_agree_decide_however_odd_the_others_are() -> None:
    normal = normal_rows(two_groups())
    for odd in (30.0, -3_000.0, 1e9):
        row = np.array([[0.0, 0.0, 0.0, 0.0, odd, 10.0]])
        found = normal.compare(row)
        assert np.abs(found.mean[0]).max() < 2  # the group around 0, not the nearest rows
        assert set(np.argsort(-found.surprise[0])[:2]) == {4, 5}
        assert found.surprise[0, :4].max() < 4


def test_compiled_and_plain_comparison_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    normal = normal_rows(np.round(two_groups(), 1))  # ties
    points = np.round(rng.normal(size=(300, 6)) * rng.choice([1, 5, 500], size=(300, 1)), 1)
    monkeypatch.setattr(resemblance, "_is_compiled", lambda: False)
    plain = normal.compare(points)
    monkeypatch.setattr(resemblance, "_is_compiled", lambda: True)
    fast = normal.compare(points)
    assert plain.ids.tobytes() == fast.ids.tobytes()
    assert plain.surprise.tobytes() == fast.surprise.tobytes()
    compile_comparison()


@pytest.mark.parametrize("sizes", [[300], [1] * 40 + [260], [64, 1, 235], [150, 150]])
def test_a_row_is_compared_alike_whatever_its_company(sizes: list[int]) -> None:
    points = np.random.default_rng(2).normal(size=(300, 6)) * 4
    normal = normal_rows(two_groups())
    whole = normal.compare(points).surprise
    parts = np.split(points, np.cumsum(sizes)[:-1])
    found = np.concatenate([normal.compare(part).surprise for part in parts])
    assert found.tobytes() == whole.tobytes()


def test_ordinary_rows_are_about_as_surprising_as_usual() -> None:
    normal = normal_rows(two_groups(4_000))
    surprise = normal.compare(two_groups(1_000, seed=5)).surprise
    assert 0.05 < np.median(surprise) < 0.8
    assert (surprise > 16).mean() < 0.01


def test_a_column_of_one_value_is_surprising_as_soon_as_it_differs() -> None:
    rows = two_groups()
    rows[:, 2] = 7.0
    normal = normal_rows(rows)
    row = rows[:1].copy()
    assert normal.compare(row).surprise[0, 2] == 0
    row[0, 2] = 8.0
    assert normal.compare(row).surprise[0].argmax() == 2


@pytest.mark.parametrize("n_rows", [1, 2, 5, 9])
def test_a_handful_of_normal_rows_will_do(n_rows: int) -> None:
    normal = normal_rows(two_groups(n_rows))
    found = normal.compare(two_groups(7, seed=3))
    assert found.ids.shape == (7, min(n_rows, 8))
    assert np.isfinite(found.surprise).all()
    assert normal.compare(np.zeros((0, 6))).surprise.shape == (0, 6)
