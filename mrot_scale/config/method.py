"""Settings of the method alone, as models keep them, with the reasons behind the defaults."""

from math import inf
from numbers import Real
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from mrot_scale.config.base import Settings
from mrot_scale.config.complaints import first_complaint
from mrot_scale.config.views import ViewConfig
from mrot_scale.errors import ConfigError

WHOLE_TABLE_ROWS = 8_000
"""Rows above which one problem of all rows is refused unless forced: it needs rows x rows."""

ZONE_SETTINGS = frozenset({"alpha", "k", "radius"})
"""Three ways to give a zone: whoever gives one replaces what was given before."""

NonFinite = Literal["reject", "impute", "score-nan"]
Regressor = Literal["lightgbm", "boosting", "svr", "knn", "auto", "custom"]

_WHOLE_VIEWS = tuple(ViewConfig(scaling=s) for s in ("none", "standard", "robust"))
"""What a single pass looks at."""


class MethodConfig(Settings):
    """How efforts are computed, calibrated and learnt."""

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
    """Cost inside the zone: max (the row's largest), zone (the zone's largest), or a number."""

    cost: Literal["engineered", "coulomb"] = "engineered"
    """The engineered cost, or coulomb: the repulsive baseline of the paper."""

    eps: float = Field(default=0.0, ge=0)
    """Entropic regularisation relative to the median cost; 0 solves exactly."""

    batch_rows: int | None = Field(default=256, ge=4)
    """Rows in one transport problem; null puts the whole table into one."""

    repeats: int = Field(default=8, ge=1)
    """Batches every labelled row takes part in."""

    anchor_rows: int | None = Field(default=512, ge=4)
    """Anchors in one set: in large ones a zone ends between rows of one group less often. null, or
    a zone of k rows: as many as in a batch."""

    anchor_sets: int = Field(default=16, ge=1)
    """Sets of anchors in each view that efforts are averaged over; few leave much to chance."""

    average: Literal["middle", "mean"] = "middle"
    """Over which sets: middle (the half of them in the middle, so that few cannot outvote the
    others) or mean (all, as in models of before). Sets of single columns are all counted."""

    views: tuple[ViewConfig, ...] = Field(
        default=(
            ViewConfig(scaling="auto", tables="narrow"),
            ViewConfig(scaling="gentle", tables="narrow"),
            ViewConfig(scaling="robust", separate=True, alpha=0.1, tables="narrow"),
            ViewConfig(scaling="none", relative=True, alpha=0.015, tables="wide"),
            ViewConfig(scaling="robust", relative=True, alpha=0.01, distrust=0.05, tables="wide"),
        ),
        min_length=1,
    )
    """Coordinates in which efforts are computed, all combined; without distrust three scalings."""

    wide_columns: int | None = Field(default=128, ge=1)
    """Columns from which views for wide tables are used: distances there are much alike, and only
    next to those around do they tell; null: never."""

    distrust: float = Field(default=0.1, ge=0, le=0.5)
    """Share of the sample, by a first pass the hardest to move, that are no anchors; 0: no pass."""

    first_alpha: float = Field(default=0.16, gt=0, lt=0.5)
    """Zone mass of the first pass: wide, so that groups of anomalies cannot hide in it."""

    company: int = Field(default=12, ge=0)
    """Neighbours in the sample whose rarity counts beside a row's own; 0: none. Only after a first
    pass, and not where efforts are relative to those around."""

    loneliness: float = Field(default=0.0, ge=0, le=10)
    """What lying apart from those neighbours counts on top; 0: nothing. Try 0.5 where anomalies
    break relations between columns. Only where rows keep company."""

    calibration: Literal["log-effort", "raw-effort"] = "log-effort"
    """Kernel estimate over logarithms (log-effort), or as in the paper without (raw-effort)."""

    label_rows: int = Field(default=20_000, ge=16)
    """Rows given an effort to learn from, drawn evenly over the table."""

    regressor: Regressor = "lightgbm"
    """Score model: lightgbm, boosting, svr, knn, auto (by validation), custom (from Python)."""

    hybrid: Literal["auto", "never", "always"] = "auto"
    """Give the trees efforts as columns: always, never, or auto (where they lose half a point)."""

    folds: int = Field(default=5, ge=2)
    """Folds behind the out-of-fold outputs that calibrate the score model."""

    non_finite: NonFinite = "reject"
    """NaN and infinity: reject (an error), impute (column medians), or score-nan (NaN scores)."""

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

    @model_validator(mode="before")
    @classmethod
    def _views_fit_passes(cls, settings: Any) -> Any:
        """Take the views of a single pass where neither views nor a first pass are asked for."""
        if isinstance(settings, dict) and "views" not in settings:
            single = settings.get("batch_rows", 256) is None or settings.get("distrust", 0.1) == 0
            return {**settings, "views": _WHOLE_VIEWS} if single else settings
        return settings

    @model_validator(mode="after")
    def _separate_columns_need_a_first_pass(self) -> Self:
        if any(view.needs_first_pass for view in self.views) and not self.two_passes:
            raise ValueError(
                "views with separate columns, relative efforts, a distrust or an alpha of their "
                "own need a first pass: set distrust above 0 and give batch_rows, or leave these "
                "out"
            )
        for tables in self.kinds_of_tables:
            if not any(view.is_for(tables) and not view.separate for view in self.views):
                raise ValueError(
                    "a first pass needs a view of all columns: give one without separate "
                    f"for {tables} tables"
                )
        return self

    @model_validator(mode="after")
    def _relative_needs_ranks(self) -> Self:
        always = any(view.relative and view.tables != "wide" for view in self.views)
        if always and not self.zones_by_rank:
            raise ValueError(
                "relative efforts need zones of nearest rows: leave radius and coulomb out"
            )
        return self

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

    @property
    def two_passes(self) -> bool:
        """Whether batches only choose the anchors, whose prices then give all efforts."""
        return self.distrust > 0 and self.batch_rows is not None

    def distrust_in(self, view: ViewConfig) -> float:
        """Return the share of the sample that are no anchors in a view."""
        return self.distrust if view.distrust is None else view.distrust

    @property
    def for_batches(self) -> "MethodConfig":
        """The settings that rows meet in batches with: those of the first of two passes."""
        return self.model_copy(update={"alpha": self.first_alpha}) if self.two_passes else self

    @property
    def own_sets(self) -> bool:
        """Whether sets of anchors have a size of their own.

        A zone of k rows holds as large a share of them as of a batch only if they are as many.
        """
        return None not in (self.batch_rows, self.anchor_rows) and self.k is None

    @property
    def set_rows(self) -> int | None:
        """Anchors wanted in one set; None for all rows."""
        return self.anchor_rows if self.own_sets else self.batch_rows

    @property
    def zones_by_rank(self) -> bool:
        """Whether a zone holds the nearest rows, which a row's effort can be held against."""
        return self.radius is None and self.cost == "engineered"

    @property
    def kinds_of_tables(self) -> tuple[Literal["narrow", "wide"], ...]:
        """Kinds of tables there are views for."""
        return ("narrow", "wide") if self.wide_columns and self.zones_by_rank else ("narrow",)

    def for_columns(self, n_columns: int) -> Self:
        """Return the settings with the views for a table of so many columns alone."""
        wide = "wide" in self.kinds_of_tables and n_columns >= (self.wide_columns or 0)
        views = (v for v in self.views if v.is_for("wide" if wide else "narrow"))
        chosen = tuple(view.model_copy(update={"tables": "any"}) for view in views)
        return self.model_copy(update={"views": chosen})

    @property
    def batch_views(self) -> tuple[int, ...]:
        """Numbers of the views in which rows meet in batches."""
        return tuple(i for i, view in enumerate(self.views) if not view.separate)

    @property
    def company_view(self) -> int | None:
        """Number of the view in which rows keep company; None where they keep none.

        One of all columns, that draws in values far out, if there is any.
        """
        if self.company == 0 or not self.two_passes or any(view.relative for view in self.views):
            return None
        return max(self.batch_views, key=lambda i: (*self.views[i].suits_company, -i))


def method_config(**settings: Any) -> MethodConfig:
    """Return the checked settings, or a `ConfigError` that names the first wrong one."""
    try:
        return MethodConfig(**settings)
    except ValidationError as error:
        raise ConfigError(first_complaint(error, MethodConfig)) from None


def paper_settings() -> dict[str, Any]:
    """Return the method as published: whole table, k = 5 counting the row, raw-effort KDE."""
    return {
        "k": 4,
        "batch_rows": None,
        "repeats": 1,
        "anchor_sets": 1,
        "views": (ViewConfig(scaling="none"),),
        "distrust": 0.0,
        "calibration": "raw-effort",
        "regressor": "boosting",
        "hybrid": "never",
        "label_rows": 1_000_000_000,
    }
