"""What is asked of every worker before the first task."""

import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from uuid import uuid4

from mrot_scale import __version__
from mrot_scale.errors import MrotError
from mrot_scale.storing.location import Location

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
    return found | {name: _version_of(name) for name in DECIDING_LIBRARIES}


def _version_of(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:  # installed under another name, as by conda
        return "unknown"


def check_storage(addresses: Sequence[str]) -> str:
    """Return what is wrong with the folders a worker reads (the first is also written to)."""
    try:
        for number, address in enumerate(addresses):
            place = Location(address)
            if not place.exists():
                return f"nothing at {address}; workers of a cluster need storage they share."
            if number == 0:
                probe = place / f".probe-{uuid4().hex[:12]}"
                probe.write(b"reachable")
                probe.remove()
    except MrotError as error:
        return str(error)
    return ""
