"""Sizes in bytes, written as people write them."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

_BYTE_UNITS = {"b": 1} | {
    f"{letter}{ending}": base**power
    for power, letter in enumerate("kmgt", start=1)
    for ending, base in (("b", 1_000), ("ib", 1_024))
}


def _byte_count(value: Any) -> Any:
    """Return a size written with a unit as a number; anything else is left to be checked."""
    if not isinstance(value, str | bool):
        return value
    found = re.fullmatch(r"(\d+)(\.\d+)?\s*(b|[kmgt]i?b)?", str(value).strip().lower(), re.ASCII)
    if found is None:
        raise ValueError("write a number of bytes, or one with a unit such as 16MiB or 64MB")
    whole, fraction, unit = found.groups()
    scale = _BYTE_UNITS[unit or "b"]
    return int(whole) * scale + int(float(fraction or 0) * scale)


def _byte_text(count: int) -> int | str:
    """Return a size with the largest binary unit that is exact, the way people write it."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if count and count % _BYTE_UNITS[unit.lower()] == 0:
            return f"{count // _BYTE_UNITS[unit.lower()]}{unit}"
    return count


Bytes = Annotated[
    int,
    Field(ge=1),
    BeforeValidator(_byte_count),
    PlainSerializer(_byte_text, when_used="json"),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}),
]
"""A size in bytes, as a number or with a unit: 16MiB, 64MB, 1.5 GiB."""
