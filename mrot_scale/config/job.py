"""All settings of a job: the method's, and what is needed around it."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, ValidationError

from mrot_scale.config.base import Settings
from mrot_scale.config.cluster import ClusterConfig
from mrot_scale.config.complaints import first_complaint
from mrot_scale.config.method import MethodConfig
from mrot_scale.config.nightly import GatesConfig, NightlyConfig
from mrot_scale.config.scoring import ScoringConfig
from mrot_scale.config.sizes import Bytes
from mrot_scale.errors import ConfigError

LARGEST_CHUNK_BYTES = 2**28
"""A chunk is one task, held in memory several times over."""


class StoreConfig(Settings):
    """How a table is stored once read."""

    chunk_bytes: Bytes = Field(default=16 * 2**20, ge=1, le=LARGEST_CHUNK_BYTES)
    """Size of one chunk of rows, in bytes or such as 16MiB; at most 256MiB."""

    vocabulary: int = Field(default=65_536, ge=1, le=2**24)
    """Largest number of categories kept per column."""

    allow_lost_values: bool = False
    """Allow more than 1% of a column's distinct values to fall together in float32."""


class RunConfig(Settings):
    """Where a run keeps its own files."""

    folder: str | None = Field(default=None, min_length=1)
    """Run directory, local or s3://; the output's path with .run added when omitted."""

    keep_stages: bool = False
    """Keep intermediate arrays after success."""


class ReportConfig(Settings):
    """The page that a run leaves for people."""

    enabled: bool = True
    """Write a report beside the output; scores and models are the same without."""

    redact: tuple[str, ...] = ()
    """Columns, the identifier too, whose values are to be in no report."""

    rows: int = Field(default=500, ge=0, le=2_000)
    """Flagged rows in the table, at most: those that score highest."""

    points: int = Field(default=1_500, ge=0, le=5_000)
    """Rows on the map, beside those in the table: at even distances over all rows."""


class Config(MethodConfig):
    """All settings of a job: the method's, and around it storage, scoring, cluster and run."""

    coverage: Literal["sample", "all"] = "sample"
    """Rows given an effort: a sample of label_rows of them, or all."""

    store: StoreConfig = StoreConfig()
    """How a table is stored once read."""

    scoring: ScoringConfig = ScoringConfig()
    """What is written for each scored row."""

    cluster: ClusterConfig = ClusterConfig()
    """Where tasks run."""

    run: RunConfig = RunConfig()
    """Where a run keeps its own files."""

    report: ReportConfig = ReportConfig()
    """The page that a run leaves for people."""

    nightly: NightlyConfig = NightlyConfig()
    """What a scheduled job reads, and which model it scores with."""

    gates: GatesConfig = GatesConfig()
    """What is checked before a night is published; each level is given as {warn: x, fail: y}."""

    @property
    def method(self) -> MethodConfig:
        """The method's settings alone, as a model keeps them."""
        return MethodConfig(**{name: getattr(self, name) for name in MethodConfig.model_fields})


def full_config(settings: Mapping[str, Any]) -> Config:
    """Return all checked settings of a job, or a `ConfigError` that names the first wrong one."""
    try:
        return Config.model_validate(dict(settings))
    except ValidationError as error:
        raise ConfigError(first_complaint(error, Config)) from None
