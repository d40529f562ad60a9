"""Complaints are short, whatever they are about."""

import pytest

from mrot_scale.config.method import method_config
from mrot_scale.errors import ConfigError


def test_settings_that_python_gave_are_shown_short() -> None:
    with pytest.raises(ConfigError, match="got one int beyond all bounds"):
        method_config(alpha=1 << 20_000)
