"""What a report holds, as plain values: to JSON and back, within bounds whatever the table."""

import json
import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from mrot_scale.errors import DamagedDataError

FORMAT = "mrot-scale-report"
VERSION = 1

Kind = Literal["fit", "score", "nightly"]
Json = dict[str, Any]

LONGEST_TEXT = 120
"""Characters of a name, category or identifier that are kept."""

COLUMNS_PER_ROW = 6
"""Columns named for a flagged row, at most."""

COLUMNS_KEPT = 200
"""Columns with their distribution, drift or quality, at most."""

_INPUT = ("path", "rows", "columns")
_MODEL = ("path", "id", "kind", "method", "label_rows")
_LEVELS = ("fail", "warn", "ok")


@dataclass(frozen=True)
class Contents:
    """One run; parts that are missing are empty or None, never absent."""

    kind: Kind
    title: str
    run: Json
    input: Json = field(default_factory=lambda: dict.fromkeys(_INPUT))
    model: Json = field(default_factory=lambda: dict.fromkeys(_MODEL))
    notices: list[Json] = field(default_factory=list)
    """Gates and warnings, the worst first: level, name, message."""

    rows: Json = field(default_factory=lambda: dict.fromkeys(("rows", "flagged", "missing")))
    threshold: float | None = None
    scores: Json = field(default_factory=lambda: {"edges": [], "counts": [], "expected": []})
    efforts: list[Json] = field(default_factory=list)
    flagged: list[Json] = field(default_factory=list)
    columns: dict[str, Json] = field(default_factory=dict)
    map: Json = field(
        default_factory=lambda: {
            "x": [],
            "y": [],
            "score": [],
            "id": [],
            "row": [],
            "explained": [],
        }
    )
    drift: list[Json] = field(default_factory=list)
    quality: list[Json] = field(default_factory=list)
    stages: dict[str, float] = field(default_factory=dict)
    left_out: list[Json] = field(default_factory=list)
    """Columns of the source that are no features: name, reason."""

    notes: dict[str, str] = field(default_factory=dict)
    """For each part of the page, what is not in it and why."""

    def to_bytes(self) -> bytes:
        found = {"format": FORMAT, "version": VERSION, **asdict(self)}
        return (json.dumps(plain(found), indent=1, allow_nan=False) + "\n").encode()

    @classmethod
    def from_bytes(cls, content: bytes, name: str) -> "Contents":
        """Return what `to_bytes` wrote, or say that it is none."""
        try:
            found = json.loads(content)
            if found["format"] != FORMAT or found["version"] != VERSION:
                raise ValueError("another format")
            return cls(**{known.name: found[known.name] for known in fields(cls)})
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DamagedDataError(f"{name} is no report ({error!s:.200}).") from None


def empty_map() -> Json:
    return {"x": [], "y": [], "score": [], "id": [], "row": [], "explained": []}


def plain(value: Any) -> Any:
    """Return a value in types that JSON has; numbers that are not finite become null."""
    if isinstance(value, dict):
        return {str(name): plain(below) for name, below in value.items()}
    if isinstance(value, list | tuple):
        return [plain(below) for below in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def short(text: Any) -> str:
    """Return a text cut where it is long."""
    found = str(text)
    return found if len(found) <= LONGEST_TEXT else f"{found[: LONGEST_TEXT - 1]}…"


def rounded(value: Any, digits: int = 7) -> float | None:
    """Return a number with as many digits as a stored value has; None where it is not finite."""
    found = float(value)
    return float(f"{found:.{digits}g}") if math.isfinite(found) else None


def notice(level: str, name: str, message: str) -> Json:
    return {"level": level, "name": name, "message": message}


def worst_first(notices: list[Json]) -> list[Json]:
    return sorted(notices, key=lambda found: _LEVELS.index(found["level"]))
