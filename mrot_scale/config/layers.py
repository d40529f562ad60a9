"""Where settings come from: a file, then the environment (`MROT_*`), then flags; later wins."""

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from mrot_scale.config.cluster import TLS_FILES, with_kind
from mrot_scale.config.complaints import did_you_mean, first_complaint, shown
from mrot_scale.config.job import Config
from mrot_scale.config.method import ZONE_SETTINGS
from mrot_scale.config.scoring import FLAG_SETTINGS
from mrot_scale.errors import ConfigError, MissingInputError
from mrot_scale.storing.location import Location

ENVIRONMENT_PREFIX = "MROT_"
RESERVED_VARIABLES = frozenset(
    {
        "MROT_DATA",
        "MROT_REQUIRE_ALL",
        "MROT_TEST",
        "MROT_FAULT",
        "MROT_CARELESS",
        "MROT_WEBHOOK",
    }
)
"""Variables of the project that are not settings."""

_OF_ONE_KIND = ("address", "arguments", *TLS_FILES)
"""Settings of a cluster that mean nothing to one of another kind."""

_LARGEST_FILE = 2**16
_DEEPEST = 100
_LARGEST_INTEGER_BITS = 64
"""Bounds of what is parsed at all: beyond them, parsers take minutes or run out of stack."""

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
    parse = _toml_value if location.suffix == ".toml" else _yaml_value
    settings = _parsed(_read_small(location), parse, str(path))
    if not isinstance(settings, dict | None) or not all(isinstance(k, str) for k in settings or ()):
        raise ConfigError(f"{path} must hold settings as key: value, got {shown(settings)}.")
    return settings or {}


def _read_small(location: Location) -> bytes:
    is_small = not location.is_local or location.size() <= _LARGEST_FILE
    content = location.read() if is_small else b""
    if not is_small or len(content) > _LARGEST_FILE:
        raise ConfigError(f"{location} is larger than any settings file ({_LARGEST_FILE:,} bytes).")
    return content


def _parsed(content: bytes, parse: Callable[[str], Any], name: str) -> Any:
    """Return what a text says, or why it cannot be read, in one line."""
    try:
        text = content.decode("utf-8")
        _check_depth(text)
        found = parse(text)
        _check_numbers(found)
        return found
    # Tags such as !!int, !!bool and !!timestamp let PyYAML stumble over values that are none.
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        raise ConfigError(f"{name} cannot be read: {' '.join(str(error).split())}.") from None
    except RecursionError:
        raise ConfigError(f"{name} cannot be read: it is nested too deeply.") from None


def _check_depth(text: str) -> None:
    """Refuse nesting that no settings need, before a parser meets it."""
    depth = deepest = 0
    for character in re.findall(r"[\[\]{}]", text):
        depth += 1 if character in "[{" else -1
        deepest = max(deepest, depth)
    if deepest > _DEEPEST:
        raise ValueError("it is nested too deeply")


def _toml_value(text: str) -> dict[str, Any]:
    """Return the settings of a TOML text; each dot in a name is another level."""
    names = [line.partition("=")[0] for line in text.splitlines() if line.lstrip()[:1] != "#"]
    if max((name.count(".") for name in names), default=0) > _DEEPEST:
        raise ValueError("it is nested too deeply")
    return tomllib.loads(text)


def _check_numbers(found: Any) -> None:
    """Refuse integers that could not even be printed."""
    inner = found.values() if isinstance(found, dict) else found
    if isinstance(inner, Iterable) and not isinstance(inner, str | bytes):
        for value in inner:
            _check_numbers(value)
    if isinstance(found, int) and found.bit_length() > _LARGEST_INTEGER_BITS:
        raise ValueError("it holds a number beyond all bounds")


class _PlainLoader(yaml.SafeLoader):
    """YAML without aliases: a few of them can stand for more than any memory holds."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not read, write the value out")
        return super().compose_node(parent, index)


def _yaml_value(text: str) -> Any:
    return yaml.load(text, _PlainLoader)  # noqa: S506 - a safe loader, and less than that


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
    if text[0] in "[{":
        return _parsed(text.encode(errors="replace"), _yaml_value, name)
    try:
        return json.loads(text)
    except ValueError:
        return text


def _refuse_code(name: str, setting: Setting, text: str) -> None:
    """Refuse what would run code: an environment is inherited, a file is the user's own."""
    only_from_file = {
        ("cluster", "arguments"),
        ("cluster", "allow_class"),
        ("nightly", "alert_command"),
    }
    if setting in only_from_file or (setting == ("cluster", "kind") and ":" in text):
        raise ConfigError(
            f"{name}: commands, cluster classes, their arguments and allow_class are not taken "
            "from the environment: write them in your configuration file or give the flag."
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
    if get_origin(annotation) is tuple:
        return (tuple,)
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
    if name == "scoring" and new.keys() & FLAG_SETTINGS:
        old = {setting: value for setting, value in old.items() if setting not in FLAG_SETTINGS}
    return _merged_cluster(old, new) if name == "cluster" else old | new


def _merged_cluster(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Merge, but another kind of cluster leaves what only the old one needs behind."""
    above = with_kind(above)
    if "kind" in above and above["kind"] != with_kind(below).get("kind"):
        below = {n: value for n, value in below.items() if n not in _OF_ONE_KIND}
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
