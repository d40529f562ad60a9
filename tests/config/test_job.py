"""Settings of a job: what ships is valid, and the method is a part that stands alone."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from mrot_scale import MROT
from mrot_scale.config.job import Config
from mrot_scale.config.layers import load_config
from mrot_scale.config.method import MethodConfig, method_config, paper_settings
from mrot_scale.errors import ConfigError
from tests.config.given import CONFIGS


@pytest.mark.parametrize("path", sorted(CONFIGS.iterdir()), ids=lambda p: p.name)
def test_every_shipped_file_is_valid(path: Path) -> None:
    load_config(path)


def test_the_files_promised_are_there() -> None:
    names = {path.stem for path in CONFIGS.iterdir()}
    assert names == {"default", "paper", "embeddings", "laptop", "cluster", "nightly"}


def test_the_default_file_writes_out_the_defaults() -> None:
    assert load_config(CONFIGS / "default.yaml") == Config()


def test_the_paper_file_is_the_paper_preset() -> None:
    assert load_config(CONFIGS / "paper.yaml").method == method_config(**paper_settings())


@pytest.mark.parametrize("size", ["0", "257MiB", "1TiB"])
def test_chunks_that_no_worker_could_hold_are_refused(size: str) -> None:
    with pytest.raises(ConfigError, match="chunk_bytes"):
        load_config(overrides={"store": {"chunk_bytes": size}}, environment={})


def test_the_method_alone_is_what_a_model_keeps() -> None:
    config = load_config(overrides={"repeats": 3, "cluster": {"workers": 2}, "coverage": "all"})
    assert type(config.method) is MethodConfig
    assert config.method == MethodConfig(repeats=3)
    assert MROT(config=config)._config() == MethodConfig(repeats=3)


def test_settings_cannot_be_changed_after_checking() -> None:
    config = Config()
    with pytest.raises(ValidationError, match="frozen"):
        config.cluster.workers = 2  # type: ignore[misc]
    config.cluster.arguments["cores"] = 4
    assert Config().cluster.arguments == {}
