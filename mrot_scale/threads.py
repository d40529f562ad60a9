"""The one owner of thread counts: every native library is bounded here."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

from mrot_scale.errors import ConfigError


def resolve_threads(n_jobs: int | None) -> int:
    """Return the number of threads meant by scikit-learn's `n_jobs`: None is 1, -1 all cores."""
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, int) or n_jobs == 0:
        raise ConfigError(f"n_jobs must be None or a whole number other than 0, got {n_jobs!r}.")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return n_jobs if n_jobs > 0 else max(1, (cores or 1) + 1 + n_jobs)


@contextmanager
def bounded_threads(threads: int) -> Iterator[None]:
    """Hold BLAS and OpenMP of this process to `threads`, FAISS included."""
    with threadpool_limits(limits=threads):
        yield
