"""The one owner of thread counts: every native library is bounded here."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from numbers import Integral
from threading import Lock
from typing import Any

from mrot_scale.errors import ConfigError


def resolve_threads(n_jobs: Any) -> int:
    """Return the number of threads meant by scikit-learn's `n_jobs`: None is 1, -1 all cores.

    More threads than cores only get in each other's way, so cores are the limit.
    """
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ConfigError(f"n_jobs must be None or a whole number other than 0, got {n_jobs!r}.")
    wanted, cores = int(n_jobs), available_cores()
    return min(wanted, cores) if wanted > 0 else max(1, cores + 1 + wanted)


def available_cores() -> int:
    """Return the cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def start_native_libraries_small() -> None:
    """Let native libraries start with one thread: each extra one costs memory before any work."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


class _NativeLimit:
    """Native libraries held to one thread for as long as anybody needs it.

    The limit is the process's, so the first to come sets it and the last to go lifts it: tasks
    that overlap in one process must not lift it for each other.
    """

    def __init__(self) -> None:
        self._lock, self._n_users = Lock(), 0
        self._limits: Any = None

    def enter(self) -> None:
        with self._lock:
            if self._n_users == 0:
                self._limits = _controller(len(sys.modules)).limit(limits=1)
            self._n_users += 1

    def leave(self) -> None:
        with self._lock:
            self._n_users -= 1
            if self._n_users == 0:
                self._limits.restore_original_limits()


@lru_cache(1)
def _controller(n_modules: int) -> Any:
    """Return what holds the native libraries; looked for again when more modules were loaded.

    Looking takes milliseconds, as long as scoring some thousand rows.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


_LIMIT = _NativeLimit()


@contextmanager
def one_native_thread() -> Iterator[None]:
    """Hold BLAS and OpenMP of this process to one thread each.

    Work is shared out by rows and batches over Python threads instead: results then do not depend
    on how a library would have split its sums, and no library's threads wait for each other.
    """
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()


def native_pools() -> list[dict[str, Any]]:
    """Return the thread pools of native libraries loaded so far: name, file and threads of each."""
    from threadpoolctl import threadpool_info

    return [
        {"name": str(p["prefix"]), "file": str(p["filepath"]), "threads": int(p["num_threads"])}
        for p in threadpool_info()
    ]
