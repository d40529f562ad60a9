"""What a night reads: its files, by name, size, stamp and digest."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mrot_scale.errors import DamagedDataError
from mrot_scale.reading.parts import Part

_BLOCK = 2**22


@dataclass(frozen=True)
class InputFile:
    """One file as it was when a run looked at it."""

    name: str
    size: int
    stamp: int | str
    """Time of the last change in ns, or an object store's mark of the content."""

    digest: str | None = None
    """sha256 of a local file; an object store's stamp says as much."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, found: Any) -> "InputFile":
        try:
            return cls(found["name"], found["size"], found["stamp"], found["digest"])
        except (KeyError, TypeError) as error:
            raise DamagedDataError(f"This describes no input file ({error}).") from None


def listed(parts: Iterable[Part]) -> list[InputFile]:
    """Return files without having read them."""
    return [InputFile(part.name, part.size, part.stamp) for part in parts]


def digested(parts: Iterable[Part]) -> list[InputFile]:
    """Return files with the digests of those on disk."""
    return [InputFile(p.name, p.size, p.stamp, _digest(p)) for p in parts]


def _digest(part: Part) -> str | None:
    if not part.location.is_local:
        return None
    found = hashlib.sha256()
    with part.location.open() as file:
        while block := file.read(_BLOCK):
            found.update(block)
    return found.hexdigest()


def are_same(known: Sequence[InputFile], parts: Sequence[Part]) -> bool:
    """Tell whether files are what they were: untouched, or written again with the same content."""
    now = listed(parts)
    if [(f.name, f.size) for f in known] != [(f.name, f.size) for f in now]:
        return False
    touched = [i for i, f in enumerate(known) if f.stamp != now[i].stamp]
    return all(
        known[i].digest is not None and known[i].digest == _digest(parts[i]) for i in touched
    )
