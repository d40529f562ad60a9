"""What cores and memory the machine has, and what of them control groups leave this process."""

import os
from collections.abc import Iterator
from pathlib import Path

from mrot_scale.doctor_checks import Check, Checks, gib_text

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_LITTLE_MEMORY = 2 * 2**30

_UNLIMITED = 2**60
"""Control groups of the first version write a number as large as this for no limit."""


def threads() -> Checks:
    """Yield how many cores may be used."""
    from mrot_scale.threads import available_cores

    usable, quota = available_cores(), cpu_quota()
    found = f"{os.cpu_count()} cores, {usable} usable"
    settings = [f"{n}={os.environ[n]}" for n in _THREAD_VARIABLES if n in os.environ]
    found += "".join(f", {setting}" for setting in settings)
    if quota is not None and quota < usable:
        advice = f"Set cluster.workers to {max(1, int(quota))}: more only wait for each other."
        yield Check("threads", "warn", f"{found}, but a quota of {quota:g}", advice)
    else:
        yield Check("threads", "ok", found)


def memory() -> Checks:
    """Yield how much memory may be used."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = memory_limit()
    usable = total if limit is None else min(total, limit)
    found = f"{gib_text(total)} in all"
    found += "" if limit is None else f", this process may use {gib_text(limit)}"
    if usable < _LITTLE_MEMORY:
        advice = "Lower store.chunk_bytes and label_rows, and set cluster.workers to 1."
        yield Check("memory", "warn", found, advice)
    else:
        yield Check("memory", "ok", found)


def memory_limit(root: Path = Path("/")) -> int | None:
    """Return the memory control groups leave this process, None where they set no limit."""
    texts = _group_texts(root, "memory", "memory.max", "memory.limit_in_bytes")
    limits = [int(text) for text in texts if text.isdigit() and int(text) < _UNLIMITED]
    return min(limits, default=None)


def cpu_quota(root: Path = Path("/")) -> float | None:
    """Return how many cores' time control groups leave this process, None where all."""
    pairs = [text.split() for text in _group_texts(root, "cpu", "cpu.max", None)]
    quotas = _group_texts(root, "cpu", None, "cpu.cfs_quota_us")
    periods = _group_texts(root, "cpu", None, "cpu.cfs_period_us")
    pairs += [list(pair) for pair in zip(quotas, periods, strict=False)]
    shares = [int(p[0]) / int(p[1]) for p in pairs if len(p) == 2 and p[0].isdigit()]
    return min(shares, default=None)


def _group_texts(root: Path, controller: str, second: str | None, first: str | None) -> list[str]:
    """Return a file of every control group around this process, in either version's layout."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found: list[str] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            found += _texts_upwards(root / "sys/fs/cgroup", path, second)
        elif controller in controllers.split(","):
            found += _texts_upwards(root / "sys/fs/cgroup" / controller, path, first)
    return found


def _texts_upwards(top: Path, path: str, name: str | None) -> Iterator[str]:
    """Yield the file of a group and of those around it; containers see only the outermost."""
    inner = Path(path.lstrip("/"))
    for group in (inner, *inner.parents) if name else ():
        try:
            yield (top / group / str(name)).read_text().strip()
        except OSError:
            continue
