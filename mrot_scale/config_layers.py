"""Where settings come from: a file, then the environment (`MROT_*`), then flags; later wins."""

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from mrot_scale.config import (
    ZONE_SETTINGS,
    Config,
    did_you_mean,
    first_complaint,
    with_kind,
)
from mrot_scale.errors import ConfigError, MissingInputError
from mrot_scale.storing.location import Location

ENVIRONMENT_PREFIX = "MROT_"
RESERVED_VARIABLES = frozenset({"MROT_DATA", "MROT_REQUIRE_ALL", "MROT_TEST", "MROT_FAULT"})
"""Variables of the project that are not settings."""

Setting = tuple[str, ...]
"""Where a setting stands: (name,) or (block, name)."""


def load_config(
    path: str | Path | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Config:
    """Return the settings of a YAML or TOML file, of the environment and of flags; later wins.

    `overrides` are flags, blocks nested: {"cluster": {"workers": 2}}; None means not given. A
    complaint about cluster.workers calls the flag --workers. `environment` is `os.environ` unless
    given.
    """
    layers = [
        _Layer({} if path is None else _file_settings(path), lambda _: str(path)),
        _Layer(
            _environment_settings(os.environ if environment is None else environment), _variable
        ),
        _Layer(_given(overrides or {}), lambda setting: f"--{setting[-1].replace('_', '-')}"),
    ]
    settings: dict[str, Any] = {}
    for layer in layers:
        settings = _merged(settings, layer.settings)
    try:
        return Config.model_validate(settings)
    except ValidationError as error:
        raise ConfigError(_complaint_with_origin(error, layers)) from None


@dataclass(frozen=True)
class _Layer:
    """Settings from one source, and what to call each of them in a complaint."""

    settings: dict[str, Any]
    origin: Callable[[Setting], str]


def _file_settings(path: str | Path) -> dict[str, Any]:
    location = Location(path)
    if location.is_local and not location.path.is_file():
        raise MissingInputError(f"No configuration file at {path}.")
    content = location.read()
    try:
        text = content.decode("utf-8")
        settings = tomllib.loads(text) if location.suffix == ".toml" else yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:  # YAML's impossible dates are ValueErrors
        raise ConfigError(f"{path} cannot be read: {' '.join(str(error).split())}.") from None
    if not isinstance(settings, dict | None) or not all(isinstance(k, str) for k in settings or ()):
        raise ConfigError(f"{path} must hold settings as key: value, got {settings!r}.")
    return settings or {}


def _environment_settings(environment: Mapping[str, str]) -> dict[str, Any]:
    known = {_variable(setting): setting for setting in _all_settings()}
    settings: dict[str, Any] = {}
    for name in sorted(environment):
        if not name.startswith(ENVIRONMENT_PREFIX) or name in RESERVED_VARIABLES:
            continue
        if name not in known:
            hint = did_you_mean(name.upper(), {n: n for n in known})
            raise ConfigError(
                f"{name} in the environment is not a setting.{hint} Rename or unset it."
            )
        if text := environment[name].strip():  # schedulers hand on empty variables
            block = settings
            for part in known[name][:-1]:
                block = block.setdefault(part, {})
            block[known[name][-1]] = _environment_value(name, known[name], text)
    return settings


def _environment_value(name: str, setting: Setting, text: str) -> Any:
    """Return what a variable says: text, a JSON scalar, or a YAML (so also JSON) list."""
    _refuse_code(name, setting, text)
    if text == "null":
        return None
    if str in _types_of(setting):  # a folder named 2024 stays text
        return text
    try:
        return yaml.safe_load(text) if text[0] in "[{" else json.loads(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{name} cannot be read: {' '.join(str(error).split())}.") from None
    except ValueError:
        return text


def _refuse_code(name: str, setting: Setting, text: str) -> None:
    """Refuse what would run code: an environment is inherited, a file is the user's own."""
    only_from_file = {("cluster", "arguments"), ("cluster", "allow_class")}
    if setting in only_from_file or (setting == ("cluster", "kind") and ":" in text):
        raise ConfigError(
            f"{name}: cluster classes, their arguments and allow_class are not taken from the "
            "environment: write them in your configuration file or give the flag."
        )


def _variable(setting: Setting) -> str:
    return ENVIRONMENT_PREFIX + "__".join(setting).upper()


def _all_settings() -> Iterator[Setting]:
    for name in Config.model_fields:
        block = _block(name)
        yield from ((name, inner) for inner in block.model_fields) if block else [(name,)]


def _types_of(setting: Setting) -> tuple[Any, ...]:
    model = _block(setting[0]) or Config
    annotation = model.model_fields[setting[-1]].annotation
    return get_args(annotation) or (annotation,)


def _block(name: str) -> type[BaseModel] | None:
    """Return the model of a block of settings, None for a setting of its own."""
    annotation = Config.model_fields[name].annotation if name in Config.model_fields else None
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return None


def _given(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that were given."""
    return {
        name: _given(value) if isinstance(value, Mapping) and _block(name) else value
        for name, value in overrides.items()
        if value is not None
    }


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of `below` where `above` says nothing; blocks are merged one by one."""
    if above.keys() & ZONE_SETTINGS:
        below = {name: value for name, value in below.items() if name not in ZONE_SETTINGS}
    merged = below | above
    for name in filter(_block, above):
        merged[name] = _merged_block(name, below.get(name), above[name])
    return merged


def _merged_block(name: str, below: Any, above: Any) -> Any:
    old, new = ({} if side is None else side for side in (below, above))  # "store:" alone is empty
    if not isinstance(old, dict):  # no block at all, and to be told even if overridden
        return old
    if not isinstance(new, dict):
        return new
    return _merged_cluster(old, new) if name == "cluster" else old | new


def _merged_cluster(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Merge, but another kind of cluster leaves address and arguments of the old one behind."""
    above = with_kind(above)
    if "kind" in above and above["kind"] != below.get("kind"):
        below = {n: value for n, value in below.items() if n not in ("address", "arguments")}
    return below | above


def _complaint_with_origin(error: ValidationError, layers: list[_Layer]) -> str:
    complaint = first_complaint(error, Config)
    place = error.errors(include_url=False)[0]["loc"]
    origins = {s: layer.origin(s) for layer in layers for s in _settings_in(layer.settings)}
    concerned = {
        setting: origin
        for setting, origin in origins.items()
        if all(part == wanted for part, wanted in zip(setting, place, strict=False))
    }
    words = re.findall(r"\w+", complaint)
    named = [origin for setting, origin in concerned.items() if setting[-1] in words]
    return f"{', '.join(dict.fromkeys(named or concerned.values()))}: {complaint}"


def _settings_in(settings: dict[str, Any]) -> Iterator[Setting]:
    for name, value in settings.items():
        if _block(name) and isinstance(value, dict):
            yield from ((name, str(inner)) for inner in value)
        else:
            yield (name,)
