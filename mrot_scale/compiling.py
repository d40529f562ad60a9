"""Python loops become machine code. The only importer of Numba.

Its cache on disk is left off because it is pickle: a process compiles for itself, which takes about
a second, and only what it has much work for.
"""

from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def can_compile() -> bool:
    """Tell whether Numba is there and loads."""
    try:
        import numba  # noqa: F401
    except (ImportError, OSError):
        return False
    return True


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function compiled, once per process; it lets other threads run meanwhile."""
    import numba

    found: Callable[..., Any] = numba.njit(nogil=True)(function)
    return found
