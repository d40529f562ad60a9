"""Settings of scheduled jobs: what a night reads, which model it gets, and what is too much."""

from datetime import date
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from mrot_scale.config.base import Settings

Level = Literal["ok", "warn", "fail"]


class NightlyConfig(Settings):
    """What a scheduled job reads, and which model it scores with."""

    key: str = Field(default="date", min_length=1, pattern=r"^[^/=]+$")
    """Key of the input's folders, as in date=2026-11-14/."""

    id: str | None = Field(default=None, min_length=1)
    """Column that names each row once; rows are numbered without it."""

    exclude: tuple[str, ...] = ()
    """Columns not to learn from."""

    keep: tuple[str, ...] = ()
    """Columns to carry along to the scores."""

    times: bool = False
    """Learn from columns of dates and times too; a later night then looks unlike all before it."""

    exclude_where: str | None = Field(default=None, min_length=1)
    """Condition such as label == 1; rows that meet it are scored, but not learnt from."""

    training_partitions: int = Field(default=30, ge=1)
    """Partitions a model learns from: those up to the one it is fitted for, at most so many."""

    model: str | None = Field(default=None, min_length=1)
    """Score with this model: an id of the registry, latest, or a path; by refit_* when omitted."""

    refit_every: int | None = Field(default=None, ge=1)
    """Fit a new model every so many days (or partitions, where keys are no dates); null never."""

    refit_drift: float | None = Field(default=None, gt=0)
    """Fit a new model for a partition in which the PSI of a column passes this; null never."""

    refit_from: str | None = Field(default=None, min_length=1)
    """Partition that refit_every counts from; the first one a model was fitted for when omitted."""

    @field_validator("refit_from", mode="before")
    @classmethod
    def _day_as_text(cls, value: Any) -> Any:
        """Take what YAML reads as a date or a number for the text it was."""
        return str(value) if isinstance(value, date | int) else value

    by: str | None = Field(default=None, min_length=1)
    """Column whose values get a model each: per machine, per customer."""

    group_rows: int = Field(default=5_000, ge=16)
    """Training rows a value of that column needs for a model of its own; others share one."""

    most_groups: int = Field(default=100, ge=1)
    """Models of single values at most; the values with most rows have them."""

    empty: Literal["fail", "skip"] = "fail"
    """A partition without rows: fail (gate rows_below) or skip (nothing to do)."""

    metrics: str | None = Field(default=None, min_length=1)
    """Folder to copy the metrics to, such as that of Prometheus's textfile collector."""

    alert_command: tuple[str, ...] = ()
    """Command and arguments to run on warn, fail and recovery, given JSON to read; file only."""

    alert_seconds: float = Field(default=30.0, gt=0)
    """How long a command or webhook may take; a late one is given up, the job is not."""


class Limit(Settings):
    """Two levels of one figure; what is not given is not checked."""

    warn: float | None = None
    """Beyond this the night is published and a warning is given."""

    fail: float | None = None
    """Beyond this nothing is published."""


class ColumnRule(Settings):
    """What the values of one column must be."""

    min: float | None = None
    """Smallest value allowed."""

    max: float | None = None
    """Largest value allowed."""

    nulls: float | None = Field(default=None, ge=0, le=1)
    """Largest share of missing values."""

    level: Literal["warn", "fail"] = "fail"
    """What a broken rule does."""

    @model_validator(mode="after")
    def _says_something_possible(self) -> Self:
        if self.min is None and self.max is None and self.nulls is None:
            raise ValueError("a rule needs min, max or nulls")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}")
        return self


class GatesConfig(Settings):
    """What is checked before a night is published; each level is given as {warn: x, fail: y}."""

    rows_below: Limit = Limit(fail=1)
    """Fewer rows than this."""

    rows_change: Limit = Limit(warn=0.5)
    """Rows against the partition before: share by which they grew or shrank."""

    missing_scores: Limit = Limit(fail=0)
    """Share of rows without a score."""

    flagged_above: Limit = Limit(warn=0.05, fail=0.5)
    """Share of rows flagged."""

    flagged_below: Limit = Limit()
    """Share of rows flagged, from below."""

    psi: Limit = Limit(warn=0.25)
    """Population stability index of any column against the training rows."""

    ks: Limit = Limit(warn=0.25)
    """Largest difference of a column's distribution functions against the training rows."""

    score_psi: Limit = Limit(warn=0.25)
    """Population stability index of the score against the training rows."""

    score_ks: Limit = Limit(warn=0.25)
    """Largest difference of the score's distribution functions against the training rows."""

    previous_psi: Limit = Limit(warn=0.25)
    """Population stability index of any column, or of the score, against the partition before."""

    previous_ks: Limit = Limit(warn=0.25)
    """The same by the largest difference of distribution functions."""

    nulls: Limit = Limit(warn=0.05, fail=0.5)
    """Share of missing values of any column, beyond the training rows' share."""

    new_columns: Level = "warn"
    """A column that the model does not know: ok, warn or fail."""

    columns: dict[str, ColumnRule] = Field(default={})
    """Rules for single columns, such as {temperature: {min: -40, max: 90, nulls: 0.01}}."""

    @model_validator(mode="after")
    def _warnings_come_first(self) -> Self:
        for name in type(self).model_fields:
            limit = getattr(self, name)
            if not isinstance(limit, Limit) or limit.warn is None or limit.fail is None:
                continue
            sign = -1 if name.endswith("_below") else 1
            if sign * limit.warn > sign * limit.fail:
                raise ValueError(f"{name}: warn {limit.warn:g} lies beyond fail {limit.fail:g}")
        return self
