"""Settings of one view: the coordinates in which efforts are computed."""

from typing import Any, Literal, Self

from pydantic import Field, NonNegativeInt, ValidationError, model_validator

from mrot_scale.config.base import Settings
from mrot_scale.config.complaints import first_complaint
from mrot_scale.errors import ConfigError

Scaling = Literal["none", "standard", "robust", "gentle", "auto"]


class ViewConfig(Settings):
    """One set of coordinates in which efforts are computed."""

    scaling: Scaling | tuple[Scaling, ...] = "robust"
    """none; standard (mean, deviation); robust (median, IQR, then arcsinh); gentle (the same, drawn
    in only far out); auto (none if columns share the variance evenly, else gentle); or one per
    column."""

    columns: tuple[NonNegativeInt, ...] | None = Field(default=None, min_length=1)
    """Positions of the columns used; all when omitted."""

    whiten: int | None = Field(default=None, ge=1)
    """Principal components kept and scaled to unit variance; for wide embeddings, say 128."""

    separate: bool = False
    """Look at each column by itself, and average how rare rows are in them; needs distrust."""

    alpha: float | None = Field(default=None, gt=0, lt=0.5)
    """Zone mass in this view instead of the method's."""

    relative: bool = False
    """Divide a row's effort by the efforts of the anchors in its zone; needs distrust."""

    distrust: float | None = Field(default=None, ge=0, le=0.5)
    """Share of the sample that are no anchors in this view instead of the method's."""

    tables: Literal["any", "narrow", "wide"] = "any"
    """Tables the view is for: any, narrow (fewer columns than wide_columns) or wide (others)."""

    @model_validator(mode="after")
    def _separate_or_whitened(self) -> Self:
        if self.separate and self.whiten is not None:
            raise ValueError("whiten mixes the columns that separate would look at one by one")
        if self.separate and self.relative:
            raise ValueError("relative is about neighbours in all columns: leave separate out")
        return self

    @property
    def suits_company(self) -> tuple[bool, bool]:
        """Whether it has all columns, and whether it draws in values far out."""
        scalings = (self.scaling,) if isinstance(self.scaling, str) else self.scaling
        return self.columns is None, all(s in ("robust", "gentle") for s in scalings)

    @property
    def needs_first_pass(self) -> bool:
        """Whether it asks for what only the second of two passes does."""
        return self.separate or self.relative or (self.alpha, self.distrust) != (None, None)

    def is_for(self, tables: Literal["narrow", "wide"]) -> bool:
        """Return whether the view looks at such tables."""
        return self.tables in ("any", tables)


def view_config(settings: Any) -> ViewConfig:
    """Return one checked view, or a `ConfigError` that names the first wrong setting."""
    try:
        return ViewConfig.model_validate(settings)
    except ValidationError as error:
        raise ConfigError(f"views: {first_complaint(error, ViewConfig)}") from None
