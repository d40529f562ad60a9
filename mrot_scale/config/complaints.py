"""What is wrong with a setting, in one line, and which one may have been meant."""

from collections.abc import Mapping
from difflib import get_close_matches
from reprlib import Repr
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 100


def first_complaint(error: ValidationError, root: type[BaseModel]) -> str:
    """Return what is wrong with the first wrong setting, and the nearest name for an unknown."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        known = _names_around(first["loc"], root)
        return f"{where} is not a setting.{did_you_mean(str(first['loc'][-1]), known)}"
    message = first["msg"].removeprefix("Value error, ")
    if not where:
        return f"{message}."
    if isinstance(first["input"], Mapping):  # a whole block, perhaps with secrets
        return f"{where}: {message}."
    return f"{where}: {message}, got {shown(first['input'])}."


def shown(value: Any) -> str:
    """Return a value for a message: short, however large or deep it is."""
    try:
        return _SHORT.repr(value)
    except (RecursionError, ValueError):  # too deep, or a number of too many digits
        return f"one {type(value).__name__} beyond all bounds"


def _names_around(place: tuple[int | str, ...], root: type[BaseModel]) -> dict[str, str]:
    """Return the names valid where an unknown one stands, and those of the blocks below it."""
    model = root
    for part in place[:-1]:
        if part in model.model_fields:
            model = inner_model(model.model_fields[str(part)].annotation) or model
    names = {name: name for name in model.model_fields}
    for name, field in model.model_fields.items():
        below = inner_model(field.annotation)
        for inner in below.model_fields if below else ():
            names.setdefault(inner, f"{name}.{inner}")
    return names


def inner_model(annotation: Any) -> type[BaseModel] | None:
    """Return the model that a field holds, directly or as a tuple of them."""
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def did_you_mean(name: str, known: dict[str, str]) -> str:
    """Return a hint at the known name nearest to one that is not."""
    close = get_close_matches(name, known, n=1)
    return f" Did you mean {known[close[0]]}?" if close else ""
