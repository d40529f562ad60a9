"""How much room disks have, what file system they are, and whether its links and locks work."""

import re
import shutil
import tempfile
from pathlib import Path

from mrot_scale.doctor_checks import Check, Checks, child, gib_text

_SHARED_FILE_SYSTEMS = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "fuse.sshfs")
_IN_MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs")
_LITTLE_SPACE = 2**30

_ID_BYTES = 24
"""Temporary space per row while identifiers are compared."""

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


def temporary_files() -> Checks:
    """Yield whether temporary files have room, and on a disk."""
    folder = Path(tempfile.gettempdir())
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        file.write(b"writable")
    free = shutil.disk_usage(folder).free
    found = f"{folder} has {gib_text(free)} free, enough for {free // _ID_BYTES:,} identifiers"
    kind = file_system(folder)
    if free < _LITTLE_SPACE or kind in _IN_MEMORY_FILE_SYSTEMS:
        found += f" ({kind}, which is memory)" if kind in _IN_MEMORY_FILE_SYSTEMS else ""
        advice = "Set TMPDIR to a folder on a disk with more room."
        yield Check("temporary files", "warn", found, advice)
    else:
        yield Check("temporary files", "ok", found)


def links_check(folder: Path, name: str) -> Check:
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


def locks_check(folder: Path, name: str) -> Check:
    """Tell whether one process sees another's lock, and its end."""
    import fcntl

    label, path = f"{name}: locks", folder / "lock"
    advice = "Two runs on one output could not see each other here: use another disk for runs."
    try:
        with path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            during = child(_LOCK_LOOK, str(path)).stdout.strip()
        after = child(_LOCK_LOOK, str(path)).stdout.strip()
    except OSError as error:
        return Check(label, "fail", f"flock fails: {error.strerror or error}", advice)
    if (during, after) == ("held", "free"):
        return Check(label, "ok", "flock is seen by other processes")
    found = f"flock is not seen by other processes (while held: {during or 'error'})"
    return Check(label, "fail", found, advice)


def file_system_check(path: Path, name: str) -> Check:
    """Tell what file system a path is on, and how much room it has."""
    label, kind = f"{name}: file system", file_system(path)
    free = shutil.disk_usage(path).free
    found = f"{kind or 'unknown'}, {gib_text(free)} free"
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
