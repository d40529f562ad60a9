"""Settings files: what ships is valid, and mistakes are named."""

from pathlib import Path

import pytest

from mrot_scale import MethodConfig, load_config
from mrot_scale.config import method_config, paper_settings
from mrot_scale.errors import ConfigError, MissingInputError

CONFIGS = Path(__file__).parent.parent / "configs"


@pytest.mark.parametrize("path", sorted(CONFIGS.iterdir()), ids=lambda p: p.name)
def test_every_shipped_file_is_valid(path: Path) -> None:
    load_config(path)


def test_the_default_file_writes_out_the_defaults() -> None:
    assert load_config(CONFIGS / "default.yaml") == MethodConfig()


def test_the_paper_file_is_the_paper_preset() -> None:
    assert load_config(CONFIGS / "paper.yaml") == method_config(**paper_settings())


def test_toml_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('alpha = 0.1\n[[views]]\nscaling = "none"\n')
    config = load_config(path)
    assert config.alpha == 0.1
    assert [view.scaling for view in config.views] == ["none"]


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text("# nothing\n")
    assert load_config(path) == MethodConfig()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alhpa: 0.1", "alhpa is not a setting. Did you mean alpha?"),
        ("views: [{scalling: none}]", "Did you mean scaling?"),
        ("alpha: 2", "alpha: Input should be less than 0.5"),
        ("[1, 2]", "must hold settings"),
        ("1: 2", "must hold settings"),
        ("alpha: [", "cannot be read"),
        ("k: 3\nradius: 1.0", "both"),
        ("alpha: !!python/object/apply:os.system ['true']", "cannot be read"),
    ],
)
def test_mistakes_are_named_with_the_file(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert message in str(caught.value)
    assert "wrong.yaml" in str(caught.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match=r"absent\.yaml"):
        load_config(tmp_path / "absent.yaml")
