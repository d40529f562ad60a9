"""From the estimator's parameters to settings: preset or config, then what is set by hand."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils import check_random_state

from mrot_scale.config.method import ZONE_SETTINGS, MethodConfig, method_config, paper_settings
from mrot_scale.config.views import ViewConfig, view_config
from mrot_scale.errors import ConfigError

_PLAIN_SETTINGS = (
    "alpha",
    "k",
    "radius",
    "zone",
    "ceiling",
    "cost",
    "eps",
    "batch_rows",
    "repeats",
    "anchor_rows",
    "anchor_sets",
    "average",
    "distrust",
    "first_alpha",
    "company",
    "loneliness",
    "label_rows",
    "hybrid",
    "non_finite",
)
"""Parameters that are settings of the method under the same name."""


def config_from_parameters(parameters: Mapping[str, Any]) -> MethodConfig:
    """Return the settings that the estimator's parameters ask for."""
    settings = {name: parameters[name] for name in _PLAIN_SETTINGS}
    settings["regressor"] = _regressor_kind(parameters["regressor"])
    settings["seed"] = _seed(parameters["random_state"])
    by_hand = _changed(settings)
    if parameters["views"] is not None:
        by_hand["views"] = _view_configs(parameters["views"])
    base = _base_settings(parameters["preset"], parameters["config"])
    if by_hand.keys() & ZONE_SETTINGS:  # one zone replaces the other, however given
        base = {name: value for name, value in base.items() if name not in ZONE_SETTINGS}
    forced = {"row_limit": None} if parameters["force"] else {}
    return method_config(**(base | by_hand | forced))


def _base_settings(preset: Any, config: Any) -> dict[str, Any]:
    if preset is not None and config is not None:
        raise ConfigError("preset and config both set the method: give one of them.")
    if config is not None:
        if not isinstance(config, MethodConfig):
            raise ConfigError(
                f"config must be a MethodConfig, as load_config gives it, got {config!r}."
            )
        base = {name: getattr(config, name) for name in MethodConfig.model_fields}
        if base["views"] == MethodConfig().views:  # other passes have other default views
            del base["views"]
        return base
    if preset not in (None, "paper"):
        raise ConfigError(f"preset must be None or 'paper', got {preset!r}.")
    return {} if preset is None else paper_settings()


def _view_configs(views: Any) -> tuple[ViewConfig, ...]:
    if isinstance(views, str) or not hasattr(views, "__iter__"):
        raise ConfigError(f"views must be a sequence of scalings or dicts, got {views!r}.")
    return tuple(view_config({"scaling": v} if isinstance(v, str) else v) for v in views)


def _regressor_kind(regressor: Any) -> str:
    if isinstance(regressor, str):
        return regressor
    if not isinstance(regressor, BaseEstimator) or not is_regressor(regressor):
        raise ConfigError(f"regressor must be a name or a regressor object, got {regressor!r}.")
    return "custom"


def _changed(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that differ from their defaults."""
    defaults = MethodConfig()
    return {n: v for n, v in settings.items() if v != getattr(defaults, n)}


def _seed(random_state: Any) -> int:
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return int(random_state)
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise ConfigError(str(error)) from None
