"""Settings as text: those in force, their schema, and a commented file to start from."""

import json
from collections.abc import Iterator
from textwrap import wrap
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from mrot_scale.config.complaints import inner_model
from mrot_scale.config.job import Config

_LINE_WIDTH = 100
SECRETS = ("arguments", "alert_command")
"""Settings that may hold credentials, and stay out of every record."""

_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_HEADING = (
    "Settings of mrot-scale with their defaults. Leave out what you do not want to change; "
    "environment (MROT_ALPHA, MROT_CLUSTER__WORKERS) and flags win over this file."
)


def show_config(config: Config) -> str:
    """Return all settings in force as YAML, in the order of their definition."""
    return _as_yaml(config.model_dump(mode="json"))


def shown_settings(config: Config) -> dict[str, Any]:
    """Return all settings without what may be a secret, for records that stay."""
    found = config.model_dump(mode="json")
    for block in found.values():
        if isinstance(block, dict):
            block.update({name: "(not shown)" for name in SECRETS if block.get(name)})
    return found


def recorded_config(config: Config) -> str:
    """Return what a record keeps of the settings, as YAML."""
    return _as_yaml(shown_settings(config))


def schema_text() -> str:
    """Return the JSON schema of a settings file."""
    schema = {"$schema": _SCHEMA_DIALECT} | Config.model_json_schema()
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def initial_text() -> str:
    """Return a settings file that holds every default, each with its explanation."""
    lines = [*_comment(_HEADING), *_block_lines(Config())]
    return "\n".join(lines) + "\n"


def _block_lines(block: BaseModel, *, is_inner: bool = False) -> Iterator[str]:
    values = block.model_dump(mode="json")
    for name, field in type(block).model_fields.items():
        value = getattr(block, name)
        yield ""
        yield from _explanation(field)
        if isinstance(value, BaseModel) and is_inner:
            yield f"{name}: {_on_one_line(values[name])}"
        elif isinstance(value, BaseModel):
            yield f"{name}:"
            below = _without_first(_block_lines(value, is_inner=True))
            yield from (f"  {line}".rstrip() for line in below)
        else:
            yield from _setting_lines(name, value, values[name])


def _explanation(field: FieldInfo) -> Iterator[str]:
    """Say what a setting is, and what each of its items holds."""
    yield from _comment(field.description or "")
    model = inner_model(field.annotation)
    if model is not None and model is not field.annotation:
        for name, inner in model.model_fields.items():
            yield from _comment(f"{name}: {inner.description}", indent="  ")


def _comment(text: str, indent: str = "") -> list[str]:
    width = _LINE_WIDTH - len(f"  # {indent}")  # within a block, a comment is indented
    return [f"# {indent}{line}" for line in wrap(text, width, break_on_hyphens=False)]


def _without_first(lines: Iterator[str]) -> Iterator[str]:
    next(lines)
    return lines


def _setting_lines(name: str, value: Any, dumped: Any) -> list[str]:
    """Return a setting; items of a list on a line each, without what they leave at its default."""
    if not isinstance(value, tuple) or not value:
        return _as_yaml({name: dumped}).splitlines()
    items = [item.model_dump(mode="json", exclude_unset=True) for item in value]
    return [f"{name}:", *(f"- {_on_one_line(item)}" for item in items)]


def _on_one_line(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, default_flow_style=True).strip()


def _as_yaml(settings: dict[str, Any]) -> str:
    return yaml.safe_dump(settings, sort_keys=False, allow_unicode=True, width=_LINE_WIDTH)
