"""Tails: SciPy's generalised Pareto law is the oracle, and bends are where they were put."""

import numpy as np
import pytest
from scipy.stats import genpareto

from mrot_scale.tails import Tail, elbow, fit_excesses, fit_tail


@pytest.mark.parametrize("shape", [-0.3, 0.0, 0.2, 0.6])
@pytest.mark.parametrize("scale", [0.01, 3.0])
def test_fits_are_as_likely_as_scipys(shape: float, scale: float) -> None:
    excess = genpareto.rvs(shape, scale=scale, size=400, random_state=1)
    found = fit_excesses(excess)
    reference = genpareto.fit(excess, floc=0)
    likelihood = genpareto.logpdf(excess, found[0], scale=found[1]).sum()
    assert likelihood >= genpareto.logpdf(excess, reference[0], scale=reference[2]).sum() - 0.01
    assert found[0] == pytest.approx(shape, abs=0.15)
    assert found[1] == pytest.approx(scale, rel=0.2)


@pytest.mark.parametrize("shape", [-0.2, 0.0, 1e-12, 0.4])
def test_values_exceeded_are_scipys_quantiles(shape: float) -> None:
    tail = Tail(level=5.0, share=0.05, shape=shape, scale=2.0)
    for share in (0.05, 0.01, 1e-4):
        expected = 5.0 + genpareto.isf(share / 0.05, shape, scale=2.0)
        assert tail.value_exceeded_by(share) == pytest.approx(expected)


def test_exponential_values_go_on_as_they_began() -> None:
    values = np.random.default_rng(0).exponential(size=20_000)
    tail = fit_tail(values)
    assert tail.share == pytest.approx(0.05)
    assert abs(tail.shape) < 0.1
    assert tail.value_exceeded_by(1e-4) == pytest.approx(-np.log(1e-4), rel=0.1)


@pytest.mark.parametrize("values", [[0.0], [1.0, 1.0, 1.0], [1.0, 2.0], list(range(30))])
def test_few_or_equal_values_have_a_tail_too(values: list[float]) -> None:
    tail = fit_tail(np.array(values, dtype=np.float64))
    assert np.isfinite(tail.value_exceeded_by(tail.share / 10))
    assert min(values) <= elbow(np.array(values, dtype=np.float64)) <= max(values)


def test_the_elbow_is_where_few_values_leave_the_many() -> None:
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.uniform(0, 1, 2_000), rng.uniform(5, 9, 20)])
    assert 0.99 < elbow(values) < 5.2
