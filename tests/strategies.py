"""Hypothesis strategies for tables of points, weights and sizes, and how many examples to try."""

import os
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Strategy = Any

seeds = st.integers(0, 2**32 - 1)
"""Seeds of random generators."""


def examples(count: int) -> Any:
    """Settings of a property: repeatable, or ten times as many new ones in a thorough run."""
    thorough = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
    return settings(
        max_examples=10 * count if thorough else count,
        derandomize=not thorough,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def _cloud(seed: int, n_rows: int, n_columns: int, law: str) -> Floats:
    rng = np.random.default_rng(seed)
    size = (n_rows, n_columns)
    if law == "normal":
        return rng.normal(size=size)
    if law == "uniform":
        return rng.uniform(-3.0, 3.0, size=size)
    if law == "skewed":
        return rng.lognormal(size=size)
    two = rng.normal(size=size)
    two[: n_rows // 3] += 6.0
    return two


def clouds(*, min_rows: int = 5, max_rows: int = 16, max_columns: int = 4) -> Strategy:
    """Points in general position: drawn from densities, so no two distances are equal."""
    return st.builds(
        _cloud,
        seed=seeds,
        n_rows=st.integers(min_rows, max_rows),
        n_columns=st.integers(1, max_columns),
        law=st.sampled_from(["normal", "uniform", "skewed", "clusters"]),
    )


@st.composite
def tied_clouds(draw: Any, *, min_rows: int = 5, max_rows: int = 12) -> Floats:
    """Points on a small integer grid: equal distances, equal rows, perhaps constant columns."""
    n_rows = draw(st.integers(min_rows, max_rows))
    n_columns = draw(st.integers(1, 3))
    width = draw(st.integers(0, 4))
    grid = hnp.arrays(np.float64, (n_rows, n_columns), elements=st.integers(0, width).map(float))
    points: Floats = draw(grid)
    if draw(st.booleans()):
        constant = np.full((n_rows, 1), draw(st.sampled_from([0.0, -7.0, 0.1, 1e6])))
        points = np.hstack([points, constant])
    return points


@st.composite
def repeated_clouds(draw: Any, *, min_rows: int = 5, max_rows: int = 12) -> Floats:
    """A few points of a density, each repeated, in random order."""
    n_rows = draw(st.integers(min_rows, max_rows))
    originals = draw(clouds(min_rows=2, max_rows=max(2, n_rows // 2)))
    which = draw(st.lists(st.integers(0, len(originals) - 1), min_size=n_rows, max_size=n_rows))
    return np.asarray(originals[which])


def any_clouds(*, min_rows: int = 5, max_rows: int = 12) -> Strategy:
    """Every kind of table."""
    return st.one_of(
        clouds(min_rows=min_rows, max_rows=max_rows),
        tied_clouds(min_rows=min_rows, max_rows=max_rows),
        repeated_clouds(min_rows=min_rows, max_rows=max_rows),
    )


def weights(n_rows: int) -> Strategy:
    """Positive weights of one table, some of them far apart, of any sum."""
    element = st.one_of(
        st.floats(0.05, 5.0, allow_nan=False), st.sampled_from([1.0, 1.0, 1e-3, 100.0])
    )
    return st.lists(element, min_size=n_rows, max_size=n_rows).map(np.array)


@st.composite
def weighted_clouds(draw: Any, *, min_rows: int = 5, max_rows: int = 10) -> tuple[Floats, Floats]:
    """A table of any kind and its weights."""
    points = draw(any_clouds(min_rows=min_rows, max_rows=max_rows))
    return points, draw(weights(len(points)))


@st.composite
def batch_sizes(draw: Any, *, max_rows: int = 200) -> tuple[int, int]:
    """A number of rows and a batch size no larger, divisible or not."""
    n_rows = draw(st.integers(1, max_rows))
    return n_rows, draw(st.integers(1, n_rows))


def chunk_sizes(total: int) -> Strategy:
    """Ways to cut `total` rows into consecutive chunks: the sizes, some perhaps of one row."""
    cuts = st.sets(st.integers(1, max(1, total - 1)), max_size=8)
    return cuts.map(lambda c: np.diff([0, *sorted(x for x in c if x < total), total]).tolist())
