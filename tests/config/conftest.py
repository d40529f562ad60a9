"""Tests of settings begin with none in the environment."""

import os

import pytest

from mrot_scale.config.layers import RESERVED_VARIABLES


@pytest.fixture(autouse=True)
def _no_settings_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have settings in the environment."""
    for name in list(os.environ):
        if name.startswith("MROT_") and name not in RESERVED_VARIABLES:
            monkeypatch.delenv(name)
