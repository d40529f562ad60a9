"""Empty places to write to: a folder on disk, or one in memory that stands for an object store."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from mrot_scale.storing.location import Location

KINDS = ("disk", "memory")


@contextmanager
def fresh_place(kind: str, tmp_path: Path) -> Iterator[Location]:
    """Yield a location where nothing is yet."""
    if kind == "disk":
        yield Location(tmp_path / "place")
        return
    found = Location(f"memory://{uuid4().hex}")
    yield found
    found.remove()
