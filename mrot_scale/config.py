"""All settings of the method in one checked place, with the reasons behind the defaults."""

import tomllib
from difflib import get_close_matches
from math import inf
from numbers import Real
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    ValidationError,
    field_validator,
    model_validator,
)

from mrot_scale.errors import ConfigError, MissingInputError

WHOLE_TABLE_ROWS = 8_000
"""Rows above which one problem of all rows is refused unless forced: it needs rows x rows."""

Method = Literal["model", "effort"]
NonFinite = Literal["reject", "impute", "score-nan"]
Regressor = Literal["lightgbm", "boosting", "svr", "knn", "auto", "custom"]


class ViewConfig(BaseModel):
    """One set of coordinates in which efforts are computed."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    scaling: (
        Literal["none", "standard", "robust"] | tuple[Literal["none", "standard", "robust"], ...]
    ) = "robust"
    """none; standard (mean, deviation); robust (median, IQR, then arcsinh); or one per column."""

    columns: tuple[NonNegativeInt, ...] | None = Field(default=None, min_length=1)
    """Positions of the columns used; all when omitted."""

    whiten: int | None = Field(default=None, ge=1)
    """Principal components kept and scaled to unit variance; for wide embeddings, say 128."""


class MethodConfig(BaseModel):
    """How efforts are computed, calibrated and learnt."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    alpha: float = Field(default=0.04, gt=0, lt=0.5)
    """Zone mass: the share of all rows that a row may not send its mass to."""

    k: int | None = Field(default=None, ge=1)
    """Number of other rows in every zone instead of a share."""

    radius: float | None = Field(default=None, gt=0)
    """Radius of an open ball as every zone instead of a share."""

    zone: Literal["reference", "batch"] = "reference"
    """Where a zone of mass alpha is measured: in a reference sample (FAISS) or in each batch."""

    reference_rows: int = Field(default=4_096, ge=64)
    """Rows of the reference sample; its zone holds alpha of them, enough for a steady radius."""

    ceiling: Literal["max", "zone"] | float = "max"
    """Cost inside the zone: the row's maximum, the largest inside the zone, or a number."""

    cost: Literal["engineered", "coulomb"] = "engineered"
    """The engineered cost, or the repulsive Coulomb baseline of the paper."""

    eps: float = Field(default=0.0, ge=0)
    """Entropic regularisation relative to the median cost; 0 solves exactly."""

    batch_rows: int | None = Field(default=256, ge=4)
    """Rows in one transport problem; null puts the whole table into one."""

    repeats: int = Field(default=8, ge=1)
    """Batches every labelled row takes part in, and number of anchor sets."""

    views: tuple[ViewConfig, ...] = Field(
        default=(
            ViewConfig(scaling="none"),
            ViewConfig(scaling="standard"),
            ViewConfig(scaling="robust"),
        ),
        min_length=1,
    )
    """Coordinates in which efforts are computed, all of them combined."""

    calibration: Literal["log-effort", "raw-effort"] = "log-effort"
    """Kernel estimate over log efforts, or over raw efforts as in the paper."""

    label_rows: int = Field(default=20_000, ge=16)
    """Rows given an effort to learn from, drawn evenly over the table."""

    regressor: Regressor = "lightgbm"
    """Score model; auto picks by k-fold validation, custom is an object given from Python."""

    folds: int = Field(default=5, ge=2)
    """Folds behind the out-of-fold outputs that calibrate the score model."""

    non_finite: NonFinite = "reject"
    """NaN and infinity: an error, the column's median, or a NaN score for the row."""

    seed: int = Field(default=0, ge=0)
    """Seed of every random choice."""

    row_limit: int | None = Field(default=WHOLE_TABLE_ROWS, ge=1)
    """Largest problem of all rows (batch_rows: null) that is not refused; null never refuses."""

    @field_validator("ceiling", mode="before")
    @classmethod
    def _ceiling_is_a_height(cls, value: Any) -> Any:
        if value in ("max", "zone"):
            return value
        if type(value) is bool or not isinstance(value, Real) or not 0 < float(value) < inf:
            raise ValueError("ceiling must be 'max', 'zone' or a positive number")
        return float(value)

    @model_validator(mode="after")
    def _one_zone(self) -> Self:
        if self.k is not None and self.radius is not None:
            raise ValueError("k and radius both set the zone: give one of them")
        return self

    @model_validator(mode="after")
    def _zone_fits_batch(self) -> Self:
        if self.k is not None and self.batch_rows is not None and self.k + 2 > self.batch_rows:
            raise ValueError(
                f"k must be at most {self.batch_rows - 2} (batch_rows - 2), got {self.k}: "
                "lower k or raise batch_rows"
            )
        return self


def method_config(**settings: Any) -> MethodConfig:
    """Return the checked settings, or a `ConfigError` that names the first wrong one."""
    try:
        return MethodConfig(**settings)
    except ValidationError as error:
        raise ConfigError(_first_complaint(error)) from None


def view_config(settings: Any) -> ViewConfig:
    """Return one checked view, or a `ConfigError` that names the first wrong setting."""
    try:
        return ViewConfig.model_validate(settings)
    except ValidationError as error:
        raise ConfigError(f"views: {_first_complaint(error)}") from None


def load_config(path: str | Path) -> MethodConfig:
    """Return the settings of a YAML or TOML file; what it leaves out keeps its default."""
    path = Path(path)
    if not path.is_file():
        raise MissingInputError(f"No configuration file at {path}.")
    try:
        text = path.read_text(encoding="utf-8")
        settings = tomllib.loads(text) if path.suffix.lower() == ".toml" else yaml.safe_load(text)
    except (yaml.YAMLError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {' '.join(str(error).split())}.") from None
    if not isinstance(settings, dict | None) or not all(isinstance(k, str) for k in settings or ()):
        raise ConfigError(f"{path} must hold settings as key: value, got {settings!r}.")
    try:
        return method_config(**(settings or {}))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def paper_settings() -> dict[str, Any]:
    """Return the method as published: whole table, k = 5 counting the row, raw-effort KDE."""
    return {
        "k": 4,
        "batch_rows": None,
        "repeats": 1,
        "views": (ViewConfig(scaling="none"),),
        "calibration": "raw-effort",
        "regressor": "boosting",
        "label_rows": 1_000_000_000,
    }


def _first_complaint(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"{where} is not a setting.{_nearest(str(first['loc'][-1]))}"
    message = first["msg"].removeprefix("Value error, ")
    if not where:
        return f"{message}."
    return f"{where}: {message}, got {first['input']!r}."


def _nearest(name: str) -> str:
    known = [*MethodConfig.model_fields, *ViewConfig.model_fields]
    close = get_close_matches(name, known, n=1)
    return f" Did you mean {close[0]}?" if close else ""
