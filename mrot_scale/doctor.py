"""What could go wrong on this machine, found before a job does.

Nothing here raises and everything ends: what a check cannot find out is its finding. Only the
standard library is imported at the top, for a broken installation is one of the findings.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

if TYPE_CHECKING:
    from mrot_scale.config import ClusterConfig
    from mrot_scale.storing.location import Location

Status = Literal["ok", "warn", "fail"]
Checks = Iterator["Check"]

STORAGE_TIMEOUT_S = 60.0
SCHEDULER_TIMEOUT_S = 120.0
_CHILD_TIMEOUT_S = 60.0
_WORKER_TIMEOUT_S = 20.0

_OPTIONAL = ("s3fs",)
_MODULE_OF = {"POT": "ot", "faiss-cpu": "faiss", "scikit-learn": "sklearn"}
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_SHARED_FILE_SYSTEMS = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "fuse.sshfs")
_IN_MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs")
_LITTLE_MEMORY = 2 * 2**30
_LITTLE_SPACE = 2**30
_ID_BYTES = 24
"""Temporary space per row while identifiers are compared."""

_UNLIMITED = 2**60
"""Control groups of the first version write a number as large as this for no limit."""


@dataclass(frozen=True)
class Check:
    """One thing looked at: what was found, and what to do where that is not well."""

    name: str
    status: Status
    found: str
    advice: str = ""

    def to_json(self) -> dict[str, str]:
        return asdict(self)


def checks(
    storage: Sequence[str] = (), scheduler: "str | ClusterConfig | None" = None
) -> list[Check]:
    """Return what was found about installation, machine, storage and workers.

    `scheduler` is an address to connect to or the settings of a cluster; without it, a worker is
    started on this machine.
    """
    found: list[Check] = []
    for name, look in (
        ("python", _python),
        ("libraries", _libraries),
        ("native libraries", _native_libraries),
        ("threads", _threads),
        ("memory", _memory),
        ("temporary files", _temporary_files),
    ):
        found += _looked(name, look, STORAGE_TIMEOUT_S + _CHILD_TIMEOUT_S)
    sound = []
    for address in storage:
        there = _looked(f"storage {address}", _storage_look(address), STORAGE_TIMEOUT_S)
        found += there
        if all(check.status != "fail" for check in there):
            sound.append(address)
    return found + _looked("workers", _workers_look(scheduler, sound), SCHEDULER_TIMEOUT_S)


def doctor_text(found: Sequence[Check]) -> str:
    """Return the checks as aligned lines, each with what to do below it, and a summary."""
    width = max((len(_one_line(c.name)) for c in found), default=0)
    lines = []
    for check in found:
        lines.append(
            f"{check.status:<4}  {_one_line(check.name):<{width}}  {_one_line(check.found)}"
        )
        if check.advice:
            lines.append(f"{'':<{width + 6}}  -> {_one_line(check.advice)}")
    counts = {status: sum(c.status == status for c in found) for status in ("ok", "warn", "fail")}
    return "\n".join([*lines, "", ", ".join(f"{n} {status}" for status, n in counts.items())])


def _one_line(text: str) -> str:
    """Return a text without line breaks and control characters, whoever wrote it."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _looked(name: str, look: Callable[[], Checks], timeout_s: float) -> list[Check]:
    """Return what a look gives within its time; what it raises is a finding as well."""
    found: list[Check] = []
    failure: list[Exception] = []

    def run() -> None:
        try:
            for check in look():
                found.append(check)
        except Exception as error:
            failure.append(error)

    # A thread that nobody waits for at exit: storage that hangs would hang a pool's threads too.
    thread = Thread(target=run, name=f"doctor {name}", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if thread.is_alive():
        return [*found, _no_answer(name, timeout_s)]
    return [*found, *(_failed(name, error) for error in failure)]


def _no_answer(name: str, timeout_s: float) -> Check:
    advice = "Check network, endpoint and mounts, then run again."
    return Check(name, "fail", f"no answer within {timeout_s:g} s", advice)


def _failed(name: str, error: Exception) -> Check:
    if isinstance(error, ImportError):
        return Check(name, "fail", str(error), "Install mrot-scale again in a new environment.")
    is_ours = type(error).__module__.startswith("mrot_scale.")  # these say what to do themselves
    return Check(name, "fail", str(error) if is_ours else f"{type(error).__name__}: {error}")


def _python() -> Checks:
    found = ".".join(map(str, sys.version_info[:3]))
    try:
        needed = str(metadata("mrot-scale")["Requires-Python"])
    except PackageNotFoundError:
        advice = "Install it (pip install .) so that versions can be checked."
        yield Check("python", "warn", f"{found}; mrot-scale is not installed here", advice)
        return
    yield _version_check("python", found, needed.lstrip(">="))


def _libraries() -> Checks:
    from mrot_scale.running.worker_checks import DECIDING_LIBRARIES

    floors = _floors()
    for name in (*DECIDING_LIBRARIES, "fsspec", *_OPTIONAL):
        try:
            yield _version_check(name, version(name), floors.get(_normal(name), ""))
        except PackageNotFoundError:
            yield _missing_library(name)


def _missing_library(name: str) -> Check:
    if find_spec(_MODULE_OF.get(name, name)) is not None:  # under another name, as by conda
        return Check(name, "ok", "installed, version unknown")
    if name in _OPTIONAL:
        return Check(name, "ok", "not installed; only s3:// paths need it")
    return Check(name, "fail", "not installed", f"pip install {name}")


def _floors() -> dict[str, str]:
    """Return the lowest version of each library that the package's metadata ask for."""
    try:
        wanted = requires("mrot-scale") or []
    except PackageNotFoundError:
        return {}
    found = (re.match(r"([\w.-]+)(?:\[[^\]]*\])?\s*\(?>=\s*([\w.]+)", line) for line in wanted)
    return {_normal(match[1]): match[2] for match in found if match}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _version_check(name: str, found: str, floor: str) -> Check:
    if not floor:
        return Check(name, "ok", found)
    if _numbers(found) < _numbers(floor):
        return Check(name, "fail", f"{found}, needs {floor}", f"Install {name} {floor} or later.")
    return Check(name, "ok", f"{found} (needs {floor})")


def _numbers(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: enough to compare with a floor."""
    parts = re.match(r"\d+(\.\d+)*", text)
    found = tuple(int(n) for n in parts[0].split(".")) if parts else ()
    return found + (0,) * (4 - len(found))


_NATIVE_LOOK = """
import json
found = {"lightgbm": "", "pools": []}
try:
    import mrot_scale.model.lightgbm_model
except Exception as error:
    found["lightgbm"] = str(error)
for name in ("mrot_scale.method.neighbours", "mrot_scale.method.transport", "scipy.linalg"):
    try:
        __import__(name)
    except Exception:
        pass
from mrot_scale.threads import native_pools
found["pools"] = native_pools()
print(json.dumps(found))
"""


def _native_libraries() -> Checks:
    """Load them in a child process: one that cannot be loaded may end the process."""
    done = _child(_NATIVE_LOOK)
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        advice = "Install mrot-scale again in a new environment."
        yield Check("lightgbm", "fail", f"cannot be loaded: {reason[0]}", advice)
        return
    found = json.loads(done.stdout.splitlines()[-1])
    complaint = found["lightgbm"]
    advice = "Debian and Ubuntu: apt-get install libgomp1." if "libgomp" in complaint else ""
    loads = Check("lightgbm loads", "ok", "with its OpenMP runtime")
    yield Check("lightgbm loads", "fail", complaint, advice) if complaint else loads
    yield _pools_check([pool["name"] for pool in found["pools"]])


def _pools_check(names: Sequence[str]) -> Check:
    counts = {name: names.count(name) for name in sorted(set(names))}
    shown = ", ".join(f"{n} x {name}" for name, n in counts.items()) or "none"
    runtimes = {name for name in counts if name in ("libgomp", "libiomp", "libomp", "vcomp")}
    if len(runtimes) > 1:
        advice = "Different OpenMP runtimes in one process may hang: install all from one channel."
        return Check("thread pools", "warn", shown, advice)
    return Check("thread pools", "ok", f"{shown}, each held to one thread in tasks")


def _child(code: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603 - our own code in our own interpreter
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=_CHILD_TIMEOUT_S,
    )


def _threads() -> Checks:
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


def _memory() -> Checks:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = memory_limit()
    usable = total if limit is None else min(total, limit)
    found = f"{_size(total)} in all"
    found += "" if limit is None else f", this process may use {_size(limit)}"
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


def _temporary_files() -> Checks:
    folder = Path(tempfile.gettempdir())
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        file.write(b"writable")
    free = shutil.disk_usage(folder).free
    found = f"{folder} has {_size(free)} free, enough for {free // _ID_BYTES:,} identifiers"
    kind = file_system(folder)
    if free < _LITTLE_SPACE or kind in _IN_MEMORY_FILE_SYSTEMS:
        found += f" ({kind}, which is memory)" if kind in _IN_MEMORY_FILE_SYSTEMS else ""
        advice = "Set TMPDIR to a folder on a disk with more room."
        yield Check("temporary files", "warn", found, advice)
    else:
        yield Check("temporary files", "ok", found)


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.1f} GiB"


def _storage_look(address: str) -> Callable[[], Checks]:
    def look() -> Checks:
        from mrot_scale.storing.location import Location

        place = _existing(Location(address))
        note = "" if place == Location(address) else f" (in {place})"
        name = f"storage {address}"
        with _probe_folder(place) as probe:
            yield _objects_check(probe, name, note)
            yield _create_check(probe, name)
            if place.is_local:
                yield _links_check(probe.path, name)
                yield _locks_check(probe.path, name)
                yield _file_system_check(place.path, name)

    return look


def _existing(place: "Location") -> "Location":
    """Return the folder itself, or the one it would be made in: a look makes none to stay."""
    if not place.is_local:
        return place
    path = place.path
    while not path.is_dir():
        path = path.parent
    return type(place)(path)


@contextmanager
def _probe_folder(place: "Location") -> Iterator["Location"]:
    probe = place / f".mrot-scale-doctor-{uuid4().hex[:12]}"
    try:
        yield probe
    except Exception:
        with suppress(Exception):  # what went wrong first is what to tell
            probe.remove()
        raise
    probe.remove()


def _objects_check(probe: "Location", name: str, note: str) -> Check:
    """Write, read, list, replace and remove an object."""
    start, place = time.perf_counter(), probe / "object"
    problems = []
    for content in (b"first", b"second"):
        place.write(content)
        if place.read() != content:
            problems.append("reads something else than was written")
    if probe.names() != ["object"]:
        problems.append("does not list what was written")
    place.remove()
    if place.exists():
        problems.append("keeps what was removed")
    if problems:
        advice = "Storage must be consistent: another one is needed for stores and runs."
        return Check(name, "fail", f"{'; '.join(problems)}{note}", advice)
    took = 1_000 * (time.perf_counter() - start)
    return Check(name, "ok", f"writes, reads, lists and removes in {took:.0f} ms{note}")


def _create_check(probe: "Location", name: str) -> Check:
    """Tell whether an object can be created only where there is none: the journal needs it."""
    label, place = f"{name}: create once", probe / "once"
    advice = "Use storage with conditional writes (If-None-Match: *) or hard links."
    try:
        outcomes = (place.write_new(b"mine"), place.write_new(b"theirs"))
    except Exception as error:
        return replace(_failed(label, error), advice=advice)
    if outcomes == (True, False) and place.read() == b"mine":
        return Check(label, "ok", "a second writer is turned away")
    return Check(label, "fail", "a second writer overwrites the first", advice)


def _links_check(folder: Path, name: str) -> Check:
    """Tell whether a visible name can be moved from one generation of scores to the next."""
    label = f"{name}: links"
    try:
        for target in ("one", "two"):
            (folder / target).mkdir()
            (folder / ".new").symlink_to(target)
            (folder / ".new").replace(folder / "visible")
        moved = (folder / "visible").resolve().name == "two"
    except OSError as error:
        moved, reason = False, error.strerror or str(error)
    else:
        reason = "a replaced link leads to the old folder"
    if moved:
        return Check(label, "ok", "symbolic links work and can be replaced")
    advice = "Write scores to a disk with symbolic links, or to an object store."
    return Check(label, "fail", f"symbolic links do not work: {reason}", advice)


_LOCK_LOOK = """
import fcntl, sys
with open(sys.argv[1], "ab") as file:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("held")
    else:
        print("free")
"""


def _locks_check(folder: Path, name: str) -> Check:
    """Tell whether one process sees another's lock, and its end."""
    import fcntl

    label, path = f"{name}: locks", folder / "lock"
    advice = "Two runs on one output could not see each other here: use another disk for runs."
    try:
        with path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            during = _child(_LOCK_LOOK, str(path)).stdout.strip()
        after = _child(_LOCK_LOOK, str(path)).stdout.strip()
    except OSError as error:
        return Check(label, "fail", f"flock fails: {error.strerror or error}", advice)
    if (during, after) == ("held", "free"):
        return Check(label, "ok", "flock is seen by other processes")
    found = f"flock is not seen by other processes (while held: {during or 'error'})"
    return Check(label, "fail", found, advice)


def _file_system_check(path: Path, name: str) -> Check:
    label, kind = f"{name}: file system", file_system(path)
    free = shutil.disk_usage(path).free
    found = f"{kind or 'unknown'}, {_size(free)} free"
    if kind in _SHARED_FILE_SYSTEMS:
        advice = "Locks and renames over a network are less sure: run one job per output at a time."
        return Check(label, "warn", found, advice)
    if kind in _IN_MEMORY_FILE_SYSTEMS:
        return Check(label, "warn", found, "This is memory: it is gone when the machine restarts.")
    if free < _LITTLE_SPACE:
        return Check(label, "warn", found, "Make room: a store takes about 4 bytes per value.")
    return Check(label, "ok", found)


def file_system(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """Return the type of the file system a path is on, None where nobody tells."""
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return None
    real, found, depth = path.resolve(), None, -1
    for line in lines:
        mount, _, source = line.partition(" - ")
        point = Path(_unescaped(mount.split()[4]))
        # Of mounts on the same folder the last one hides the others.
        if (real == point or point in real.parents) and len(point.parts) >= depth:
            found, depth = source.split()[0], len(point.parts)
    return found


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def _workers_look(
    scheduler: "str | ClusterConfig | None", storage: Sequence[str]
) -> Callable[[], Checks]:
    def look() -> Checks:
        from mrot_scale.running.cluster import open_workers
        from mrot_scale.storing.location import Location

        config = _cluster_config(scheduler)
        places = [place for place in map(Location, storage) if place.exists()]
        start = time.perf_counter()
        with open_workers(config, places) as workers:
            took = time.perf_counter() - start
            found = (
                f"{workers.count} answered after {took:.1f} s, with the versions of this process"
            )
            found += ", and reached the storage" if places else ""
        yield Check("workers", "ok", f"{_where(config)}: {found}")

    return look


def _cluster_config(scheduler: "str | ClusterConfig | None") -> "ClusterConfig":
    from pydantic import ValidationError

    from mrot_scale.config import ClusterConfig
    from mrot_scale.errors import ConfigError

    if isinstance(scheduler, ClusterConfig):
        return scheduler
    chosen = {"kind": "local"} if scheduler is None else {"address": scheduler}
    try:
        return ClusterConfig.model_validate(
            {**chosen, "workers": 1, "timeout_s": _WORKER_TIMEOUT_S}
        )
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise ConfigError(f"{scheduler!r}: {reason}.") from None


def _where(config: "ClusterConfig") -> str:
    return config.address or ("this machine" if config.kind == "local" else config.kind)
