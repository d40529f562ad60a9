"""Settings as text say what they hold, and can be read again."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
import yaml
from pydantic import BaseModel

from mrot_scale.config.complaints import inner_model
from mrot_scale.config.job import Config
from mrot_scale.config.layers import load_config
from mrot_scale.config.text import initial_text, schema_text, show_config
from tests.config.given import CONFIGS

MODELS: list[type[BaseModel]] = [
    Config,
    *filter(None, (inner_model(field.annotation) for field in Config.model_fields.values())),
]


def loaded(text: str, folder: Path) -> Config:
    path = folder / "settings.yaml"
    path.write_text(text)
    return load_config(path, environment={})


def choices(annotation: Any) -> Iterator[str]:
    for inner in get_args(annotation):
        yield from [inner] if get_origin(annotation) is Literal else choices(inner)


@pytest.mark.parametrize("path", sorted(CONFIGS.iterdir()), ids=lambda p: p.name)
def test_what_is_shown_can_be_read_again(path: Path, tmp_path: Path) -> None:
    config = load_config(path, environment={})
    assert loaded(show_config(config), tmp_path) == config


def test_settings_are_shown_in_the_order_of_their_definition() -> None:
    shown = yaml.safe_load(show_config(Config()))
    assert list(shown) == list(Config.model_fields)
    assert shown["store"]["chunk_bytes"] == "16MiB"
    assert shown["cluster"]["kind"] == "local"


def test_the_initial_file_holds_exactly_the_defaults(tmp_path: Path) -> None:
    assert loaded(initial_text(), tmp_path) == Config()


def test_the_initial_file_names_and_explains_every_setting() -> None:
    text = initial_text()
    held = yaml.safe_load(text)
    assert list(held) == list(Config.model_fields)
    assert list(held["cluster"]) == list(type(Config().cluster).model_fields)
    lines = text.splitlines()
    for above, line in pairwise(lines):
        if re.match(r" {0,2}\w+:", line):
            assert above.lstrip().startswith("#"), line
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
def test_explanations_name_every_choice(model: type[BaseModel]) -> None:
    for name, field in model.model_fields.items():
        assert field.description, name
        assert all(choice in field.description for choice in choices(field.annotation)), name


def test_the_schema_forbids_unknown_keys_and_explains_known_ones() -> None:
    schema = json.loads(schema_text())
    assert list(schema["properties"]) == list(Config.model_fields)
    assert schema["additionalProperties"] is False
    assert schema["properties"]["alpha"]["description"].startswith("Zone mass")
    cluster = schema["$defs"]["ClusterConfig"]
    assert cluster["additionalProperties"] is False
    assert '{"type": "string"}' in json.dumps(cluster["properties"]["memory_limit"])
    assert schema_text().startswith('{\n  "$schema"')
