"""Whether Python and the libraries are there, recent enough, and load."""

import json
import re
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from importlib.util import find_spec

from mrot_scale.doctor_checks import Check, Checks, child

_OPTIONAL = ("s3fs",)
_MODULE_OF = {"POT": "ot", "faiss-cpu": "faiss", "scikit-learn": "sklearn"}

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


def python() -> Checks:
    """Yield whether this Python is recent enough."""
    found = ".".join(map(str, sys.version_info[:3]))
    try:
        needed = str(metadata("mrot-scale")["Requires-Python"])
    except PackageNotFoundError:
        advice = "Install it (pip install .) so that versions can be checked."
        yield Check("python", "warn", f"{found}; mrot-scale is not installed here", advice)
        return
    yield _version_check("python", found, needed.lstrip(">="))


def libraries() -> Checks:
    """Yield whether each library is there and recent enough."""
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


def native_libraries() -> Checks:
    """Load them in a child process: one that cannot be loaded may end the process."""
    done = child(_NATIVE_LOOK)
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
