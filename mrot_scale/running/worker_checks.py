"""What is asked of every worker before the first task."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from uuid import uuid4

from mrot_scale import __version__
from mrot_scale.errors import MrotError
from mrot_scale.storing.location import Location
from mrot_scale.versions import version_of

DECIDING_LIBRARIES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "POT",
    "faiss-cpu",
    "lightgbm",
    "pyarrow",
    "zarr",
    "dask",
    "distributed",
)
"""Libraries whose version may decide a byte of the result."""


def worker_versions() -> dict[str, str]:
    """Return the versions in this process that all workers must share."""
    found = {"python": ".".join(map(str, sys.version_info[:2])), "mrot-scale": __version__}
    return found | {name: version_of(name) for name in DECIDING_LIBRARIES}


@contextmanager
def probe_file(folder: Location) -> Iterator[None]:
    """Write a file into a folder for as long as somebody is to look whether it is there."""
    probe = folder / f".probe-{uuid4().hex[:12]}"
    probe.write(b"reachable")
    try:
        yield
    finally:
        probe.remove()


def check_storage(addresses: Sequence[str], seen: Mapping[str, Sequence[str]] | None = None) -> str:
    """Return what is wrong with the folders a worker reads (the first is also written to).

    `seen` is what the driver finds in them: a folder of the same name on the worker's own disk will
    not do.
    """
    advice = "workers of a cluster need storage they share."
    try:
        for number, address in enumerate(addresses):
            place = Location(address)
            if not place.exists():
                return f"nothing at {address}; {advice}"
            if number == 0:
                with probe_file(place):
                    pass
            missing = set((seen or {}).get(address, ())).difference(place.names())
            if missing:
                return f"{address} has no {min(missing)} there; {advice}"
    except MrotError as error:
        return str(error)
    return ""
