"""Settings of scoring: by what, and which rows are flagged."""

from typing import Literal, Self

from pydantic import Field, model_validator

from mrot_scale.config.base import Settings

FLAG_SETTINGS = frozenset({"contamination", "threshold"})
"""Two ways to say what is flagged: whoever gives one replaces what was given before."""

Method = Literal["model", "effort"]


class ScoringConfig(Settings):
    """What is written for each scored row."""

    method: Method = "model"
    """Score by the trees (model, fast) or by transport to anchor rows (effort, sees more)."""

    contamination: float = Field(default=0.01, gt=0, le=0.5)
    """Share of the training rows that would be flagged; it sets the threshold."""

    threshold: float | None = Field(default=None, gt=0, le=1)
    """Score above which rows are flagged, in place of a share."""

    flag: bool = True
    """Write whether a row's score is above the threshold."""

    percentile: bool = False
    """Write the share of training rows that score lower."""

    top_columns: int = Field(default=0, ge=0, le=10)
    """Number of contributing columns written for flagged rows."""

    @model_validator(mode="after")
    def _one_threshold(self) -> Self:
        if self.threshold is not None and "contamination" in self.model_fields_set:
            raise ValueError("threshold and contamination both say what is flagged: give one")
        return self
