"""How many threads are meant, and that libraries are held to them."""

import os
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from mrot_scale.errors import ConfigError
from mrot_scale.threads import available_cores, one_native_thread, resolve_threads


@pytest.mark.parametrize(
    ("n_jobs", "cores", "expected"),
    [(None, 4, 1), (1, 4, 1), (3, 4, 3), (1_000, 4, 4), (-1, 4, 4), (-2, 4, 3), (-9, 4, 1)],
)
def test_n_jobs_means_what_it_means_in_scikit_learn(
    n_jobs: int | None, cores: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    assert resolve_threads(n_jobs) == expected


def test_numbers_of_numpy_are_numbers() -> None:
    assert resolve_threads(np.int64(1)) == 1


@pytest.mark.parametrize("n_jobs", [0, True, 1.5, "all"])
def test_what_is_no_number_of_threads_is_refused(n_jobs: Any) -> None:
    with pytest.raises(ConfigError, match="n_jobs"):
        resolve_threads(n_jobs)


def test_native_libraries_are_held_to_one_thread() -> None:
    with one_native_thread():
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
    assert max(pool["num_threads"] for pool in threadpool_info()) == available_cores()


def test_tasks_that_overlap_do_not_lift_the_limit_for_each_other() -> None:
    np.ones((4, 4)) @ np.ones((4, 4))  # a library with threads is loaded
    first, second = one_native_thread(), one_native_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert {pool["num_threads"] for pool in threadpool_info()} == {1}
    second.__exit__(None, None, None)
