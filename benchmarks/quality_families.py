"""What every method of a quality benchmark looks like from outside."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Result = TypeVar("Result")

LIBRARIES = ("numpy", "scipy", "scikit-learn", "lightgbm", "POT", "faiss-cpu", "pyod")
"""Libraries whose versions decide what the methods find."""


@dataclass(frozen=True)
class Scored:
    """The test rows as one method sees them."""

    method: str
    scores: Floats
    """Higher = more anomalous."""

    fit_s: float
    score_s: float


@dataclass(frozen=True)
class Family:
    """Methods that share one fit, so that their cells are computed together."""

    methods: tuple[str, ...]
    score: Callable[[Floats, Floats, int], list[Scored]]
    """From training rows, test rows and seed to the scores of the test rows by each method."""

    row_limit: int | None = None
    """Largest number of training rows it is given; all when None."""


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """Return what the work returns and the seconds it took."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start
