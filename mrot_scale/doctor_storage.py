"""Whether storage keeps what is written to it, tried in a folder that is removed again."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

from mrot_scale.doctor_checks import Check, Checks, failed
from mrot_scale.doctor_disks import file_system_check, links_check, locks_check

if TYPE_CHECKING:
    from mrot_scale.storing.location import Location


def storage_look(address: str) -> Callable[[], Checks]:
    """Return the look at a folder or at an object store."""

    def look() -> Checks:
        from mrot_scale.storing.location import Location

        place = _existing(Location(address))
        note = "" if place == Location(address) else f" (in {place})"
        name = f"storage {address}"
        with _probe_folder(place) as probe:
            yield _objects_check(probe, name, note)
            yield _create_check(probe, name)
            if place.is_local:
                yield links_check(probe.path, name)
                yield locks_check(probe.path, name)
                yield file_system_check(place.path, name)

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
        return replace(failed(label, error), advice=advice)
    if outcomes == (True, False) and place.read() == b"mine":
        return Check(label, "ok", "a second writer is turned away")
    return Check(label, "fail", "a second writer overwrites the first", advice)
