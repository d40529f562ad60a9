"""Every setting: its type, default, range and meaning, from the models that check them."""

import json
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, WithJsonSchema
from pydantic.fields import FieldInfo

from docs.generate.tables import table
from mrot_scale.config.complaints import inner_model
from mrot_scale.config.job import Config

_HEADS = ("setting", "default", "takes", "meaning")
_NAMES = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    NoneType: "null",
    dict: "mapping",
    Any: "anything",
}
_BOUNDS = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}


def configuration() -> str:
    """Return the tables of all settings: those at the top, then each block."""
    blocks = _blocks()
    top = [n for n in Config.model_fields if n not in blocks]
    parts = ["## At the top\n", _settings(Config, "", top), *_items(Config, "", top)]
    for name, model in blocks.items():
        meaning = Config.model_fields[name].description
        below = list(model.model_fields)
        parts += [f"\n## `{name}`\n", f"{meaning}\n", _settings(model, name, below)]
        parts += _items(model, name, below)
    return "\n".join(parts) + "\n"


def setting_names() -> Iterator[str]:
    """Give the name of every setting as a reader looks it up: alpha, store.chunk_bytes."""
    blocks = _blocks()
    for name in Config.model_fields:
        if name in blocks:
            yield from (f"{name}.{below}" for below in blocks[name].model_fields)
        else:
            yield name


def _blocks() -> dict[str, type[BaseModel]]:
    """Return the settings that hold others, by name."""
    kinds = {name: field.annotation for name, field in Config.model_fields.items()}
    return {n: k for n, k in kinds.items() if isinstance(k, type) and issubclass(k, BaseModel)}


def _settings(model: type[BaseModel], block: str, names: list[str]) -> str:
    defaults = _defaults(model)
    fields = {n: model.model_fields[n] for n in names}
    return table(
        _HEADS,
        [
            (
                f"`{block}.{name}`" if block else f"`{name}`",
                _value_text(defaults[name]),
                ", ".join(filter(None, (_type_text(field), _range_text(field)))),
                field.description or "",
            )
            for name, field in fields.items()
        ],
    )


def _items(model: type[BaseModel], block: str, names: list[str]) -> list[str]:
    """Return a table for each model that settings are made of, named by who holds it."""
    holders: dict[type[BaseModel], list[str]] = {}
    for name in names:
        inner = inner_model(model.model_fields[name].annotation)
        if inner is not None:
            holders.setdefault(inner, []).append(f"`{block}.{name}`" if block else f"`{name}`")
    return [
        f"\n### {_title(inner)}\n\n"
        f"{inner.__doc__} In {', '.join(held)}.\n\n{_settings(inner, '', list(inner.model_fields))}"
        for inner, held in holders.items()
    ]


def _title(model: type[BaseModel]) -> str:
    """Return what one such item is called: ColumnRule becomes Column rule."""
    name = model.__name__.removesuffix("Config")
    return "".join(f" {c.lower()}" if i and c.isupper() else c for i, c in enumerate(name))


def _defaults(model: type[BaseModel]) -> dict[str, Any]:
    """Return defaults the way a settings file has them; what is required has none."""
    found = {n: f.default for n, f in model.model_fields.items() if not f.is_required()}
    made = model.model_construct(**found).model_dump(mode="json", exclude_unset=False)
    for name, value in found.items():
        if isinstance(value, tuple) and value and isinstance(value[0], BaseModel):
            made[name] = [item.model_dump(mode="json", exclude_unset=True) for item in value]
        elif isinstance(value, BaseModel):
            made[name] = value.model_dump(mode="json", exclude_unset=True)
    return made


def _value_text(value: Any) -> str:
    return f"`{json.dumps(value, ensure_ascii=False)}`" if value is not None else "`null`"


def _type_text(field: FieldInfo) -> str:
    if any(isinstance(part, WithJsonSchema) for part in field.metadata):
        return "size"
    return _name_of(field.annotation)


def _name_of(kind: Any) -> str:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        is_size = any(isinstance(part, WithJsonSchema) for part in parts)
        return "size" if is_size else _name_of(parts[0])
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in parts)
    if origin in (Union, UnionType):
        return " or ".join(_name_of(part) for part in parts)
    if origin is tuple:
        return f"list of {_name_of(parts[0])}"
    if origin is dict:
        return f"mapping of {_name_of(parts[0])} to {_name_of(parts[1])}"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        name = _title(kind).lower()
        return f"[{name}](#{name.replace(' ', '-')})"
    return _NAMES.get(kind) or str(getattr(kind, "__name__", kind))


def _range_text(field: FieldInfo) -> str:
    """Return what else is asked of a value, as far as the model says it in figures."""
    found: dict[str, str] = {}
    for part in field.metadata:
        for name, words in _BOUNDS.items():
            if (bound := getattr(part, name, None)) is not None:
                found[name] = f"{words} {_bound_text(field, bound)}"
        if (length := getattr(part, "min_length", None)) is not None:
            found["length"] = "not empty" if length == 1 else f"at least {length} long"
        if (pattern := getattr(part, "pattern", None)) is not None:
            found["pattern"] = f"`{pattern}`"
    return ", ".join(found.values())


def _bound_text(field: FieldInfo, bound: float) -> str:
    if _type_text(field).startswith("size"):
        return f"{bound // 2**20}MiB" if bound % 2**20 == 0 else f"{bound} byte"
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"
