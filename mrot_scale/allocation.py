"""Memory that was freed is kept for the next block of rows, as far as the C library lets us.

By default glibc gives large arrays back to the system when they are freed, and Dask tells its
workers to do so with everything. The next block then gets new pages, each of which the kernel
fills with zeros first: a third of the time of scoring.
"""

import ctypes
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD of malloc.h

_KEPT_BYTES = 2**26
_KEPT_ARRAY_BYTES = 2**25
"""Arrays up to this size are kept: the largest that glibc allows."""


@cache
def keep_freed_memory() -> bool:
    """Let this process keep what it frees, up to 64 MiB; tell whether the C library can."""
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # another C library than glibc
        return False
    kept = set_option(_TRIM_THRESHOLD, _KEPT_BYTES)
    return bool(kept and set_option(_MMAP_THRESHOLD, _KEPT_ARRAY_BYTES))
