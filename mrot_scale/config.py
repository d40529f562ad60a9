"""All settings in one checked place, with the reasons behind the defaults.

`MethodConfig` is the method alone, as models keep it. `Config` adds what a job needs around it;
`config_layers` fills it.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from ipaddress import ip_address
from math import inf
from numbers import Real
from reprlib import Repr
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    NonNegativeInt,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from mrot_scale.config_base import Settings
from mrot_scale.config_nightly import GatesConfig, NightlyConfig
from mrot_scale.errors import ConfigError

WHOLE_TABLE_ROWS = 8_000
"""Rows above which one problem of all rows is refused unless forced: it needs rows x rows."""

KNOWN_CLUSTER_PACKAGES = (
    "dask_jobqueue",
    "dask_kubernetes",
    "dask_gateway",
    "dask_cloudprovider",
    "coiled",
    "dask",
    "distributed",
)
"""Packages whose classes a configuration may name without allow_class."""

LARGEST_CHUNK_BYTES = 2**28
"""A chunk is one task, held in memory several times over."""

TLS_FILES = ("tls_ca_file", "tls_cert", "tls_key")
"""Settings of a cluster that name its certificates."""

FLAG_SETTINGS = frozenset({"contamination", "threshold"})
"""Two ways to say what is flagged: whoever gives one replaces what was given before."""

ZONE_SETTINGS = frozenset({"alpha", "k", "radius"})
"""Three ways to give a zone: whoever gives one replaces what was given before."""

Method = Literal["model", "effort"]
NonFinite = Literal["reject", "impute", "score-nan"]
Scaling = Literal["none", "standard", "robust", "gentle"]
Regressor = Literal["lightgbm", "boosting", "svr", "knn", "auto", "custom"]

_ADDRESS = re.compile(
    r"(?P<scheme>tls|tcp)://(?P<host>\[[\dA-Fa-f:.]+\]|[\w.-]+):\d{1,5}", re.ASCII
)
_LAST_PORT = 65_535
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 100
_CLASS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_BYTE_UNITS = {"b": 1} | {
    f"{letter}{ending}": base**power
    for power, letter in enumerate("kmgt", start=1)
    for ending, base in (("b", 1_000), ("ib", 1_024))
}


def _byte_count(value: Any) -> Any:
    """Return a size written with a unit as a number; anything else is left to be checked."""
    if not isinstance(value, str | bool):
        return value
    found = re.fullmatch(r"(\d+)(\.\d+)?\s*(b|[kmgt]i?b)?", str(value).strip().lower(), re.ASCII)
    if found is None:
        raise ValueError("write a number of bytes, or one with a unit such as 16MiB or 64MB")
    whole, fraction, unit = found.groups()
    scale = _BYTE_UNITS[unit or "b"]
    return int(whole) * scale + int(float(fraction or 0) * scale)


def _byte_text(count: int) -> int | str:
    """Return a size with the largest binary unit that is exact, the way people write it."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if count and count % _BYTE_UNITS[unit.lower()] == 0:
            return f"{count // _BYTE_UNITS[unit.lower()]}{unit}"
    return count


Bytes = Annotated[
    int,
    Field(ge=1),
    BeforeValidator(_byte_count),
    PlainSerializer(_byte_text, when_used="json"),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}),
]
"""A size in bytes, as a number or with a unit: 16MiB, 64MB, 1.5 GiB."""


class ViewConfig(Settings):
    """One set of coordinates in which efforts are computed."""

    scaling: Scaling | tuple[Scaling, ...] = "robust"
    """none; standard (mean, deviation); robust (median, IQR, then arcsinh); gentle (the same, drawn
    in only far out); or one per column."""

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

    views: tuple[ViewConfig, ...] = Field(
        default=(
            ViewConfig(scaling="none", tables="narrow"),
            ViewConfig(scaling="gentle", tables="narrow"),
            ViewConfig(scaling="robust", separate=True, alpha=0.1, tables="narrow"),
            ViewConfig(scaling="none", relative=True, alpha=0.01, tables="wide"),
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

    company: int = Field(default=20, ge=0)
    """Neighbours in the sample whose rarity counts beside a row's own; 0: none. Only after a first
    pass, and not where efforts are relative to those around."""

    calibration: Literal["log-effort", "raw-effort"] = "log-effort"
    """Kernel estimate over logarithms (log-effort), or as in the paper without (raw-effort)."""

    label_rows: int = Field(default=20_000, ge=16)
    """Rows given an effort to learn from, drawn evenly over the table."""

    regressor: Regressor = "lightgbm"
    """Score model: lightgbm, boosting, svr, knn, auto (by validation), custom (from Python)."""

    hybrid: Literal["auto", "never", "always"] = "auto"
    """Give the trees efforts as columns: always, never, or auto (if they lose a point without)."""

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


class StoreConfig(Settings):
    """How a table is stored once read."""

    chunk_bytes: Bytes = Field(default=16 * 2**20, ge=1, le=LARGEST_CHUNK_BYTES)
    """Size of one chunk of rows, in bytes or such as 16MiB; at most 256MiB."""

    vocabulary: int = Field(default=65_536, ge=1, le=2**24)
    """Largest number of categories kept per column."""

    allow_lost_values: bool = False
    """Allow more than 1% of a column's distinct values to fall together in float32."""


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


class ClusterConfig(Settings):
    """Where tasks run."""

    kind: str = "local"
    """inline (this process), local (processes here), address (a scheduler), or module:Class."""

    address: str | None = None
    """Scheduler to connect to, such as tls://scheduler:8786; selects kind address."""

    workers: int | None = Field(default=None, ge=1)
    """Processes of a local cluster (one per core), otherwise workers to wait for (1)."""

    memory_limit: Bytes | None = None
    """Memory of one worker, such as 4GiB; a local one gets its share of the machine."""

    arguments: dict[str, Any] = Field(default={})
    """Keyword arguments of the class; from a file or flags only."""

    timeout_s: float = Field(default=60.0, gt=0)
    """Seconds to wait for workers."""

    silence_s: float = Field(default=3600.0, gt=0)
    """Seconds without any finished task after which a run gives up, to be gone on with."""

    dashboard_port: int = Field(default=0, ge=0, le=_LAST_PORT)
    """Port of a local cluster's dashboard on 127.0.0.1, if bokeh is installed; 0: any free one."""

    insecure: bool = False
    """Allow unencrypted tcp:// schedulers on other machines."""

    tls_ca_file: str | None = Field(default=None, min_length=1)
    """PEM file of the authority whose certificates are trusted, for tls:// addresses."""

    tls_cert: str | None = Field(default=None, min_length=1)
    """PEM file of the certificate shown to the scheduler."""

    tls_key: str | None = Field(default=None, min_length=1)
    """PEM file of its key; with none of the three, Dask's own configuration must name them."""

    allow_class: bool = False
    """Allow cluster classes outside the known packages; from a file or flags only."""

    @model_validator(mode="before")
    @classmethod
    def _address_selects_kind(cls, settings: Any) -> Any:
        return with_kind(settings) if isinstance(settings, dict) else settings

    @field_validator("kind")
    @classmethod
    def _kind_is_known(cls, kind: str) -> str:
        if kind not in ("inline", "local", "address") and not _CLASS.fullmatch(kind):
            raise ValueError("kind must be inline, local, address or module:Class")
        return kind

    @field_validator("address")
    @classmethod
    def _address_has_scheme_host_and_port(cls, address: str | None) -> str | None:
        if address is not None and not _ADDRESS.fullmatch(address):
            raise ValueError("address must look like tls://host:8786 (or tcp://host:8786)")
        if address is not None and not 0 < int(address.rpartition(":")[2]) <= _LAST_PORT:
            raise ValueError(f"address must end in a port from 1 to {_LAST_PORT}")
        return address

    @model_validator(mode="after")
    def _parts_fit_kind(self) -> Self:
        if self.kind == "address" and self.address is None:
            raise ValueError("kind address needs an address: set it, such as tls://scheduler:8786")
        if self.kind != "address" and self.address is not None:
            raise ValueError(f"address is given, but kind is {self.kind}: leave one of them out")
        if self.arguments and not self.is_class:
            raise ValueError(
                f"arguments are for a class, but kind is {self.kind}: "
                "leave them out or set kind to module:Class"
            )
        return self

    @model_validator(mode="after")
    def _certificates_are_whole_and_used(self) -> Self:
        missing = [name for name in TLS_FILES if name not in self.tls_files]
        if self.tls_files and missing:
            raise ValueError(f"certificates need all of {', '.join(TLS_FILES)}: set {missing[0]}")
        if self.tls_files and self.is_class:
            raise ValueError("tls_ca_file is for an address: a class takes security as arguments")
        if self.tls_files and self.address is not None and not self.is_tls:
            raise ValueError(f"tls_ca_file is given, but {self.address} is no tls:// address")
        return self

    @model_validator(mode="after")
    def _encrypted_or_allowed(self) -> Self:
        if self.address is not None and not self.insecure and not _is_private(self.address):
            raise ValueError(
                f"address {self.address} leaves this machine unencrypted: use tls://, "
                "or allow it with --insecure (cluster.insecure: true)"
            )
        return self

    @model_validator(mode="after")
    def _class_known_or_allowed(self) -> Self:
        package = re.split(r"[.:]", self.kind)[0]
        if self.is_class and not self.allow_class and package not in KNOWN_CLUSTER_PACKAGES:
            raise ValueError(
                f"kind {self.kind} is outside the known packages "
                f"({', '.join(KNOWN_CLUSTER_PACKAGES)}): "
                "allow it with --allow-class (cluster.allow_class: true) if you trust it"
            )
        return self

    @property
    def is_class(self) -> bool:
        """Whether the kind names a class to start the cluster with."""
        return ":" in self.kind

    @property
    def is_tls(self) -> bool:
        """Whether the scheduler's address is an encrypted one."""
        return self.address is not None and self.address.startswith("tls://")

    @property
    def tls_files(self) -> dict[str, str]:
        """The files of certificates that are given."""
        found = {name: getattr(self, name) for name in TLS_FILES}
        return {name: path for name, path in found.items() if path is not None}


def _is_private(address: str) -> bool:
    """Return whether nobody else can listen: encrypted, or never leaving this machine."""
    found = _ADDRESS.fullmatch(address)
    assert found is not None, "checked by the field"
    host = found["host"].strip("[]")
    if found["scheme"] == "tls" or host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a name, and names such as 127.example.com lead anywhere
        return False


def with_kind(cluster: dict[str, Any]) -> dict[str, Any]:
    """Return the block with kind address where only an address is given."""
    chosen = cluster.get("address") is not None and "kind" not in cluster
    return {**cluster, "kind": "address"} if chosen else cluster


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


def method_config(**settings: Any) -> MethodConfig:
    """Return the checked settings, or a `ConfigError` that names the first wrong one."""
    try:
        return MethodConfig(**settings)
    except ValidationError as error:
        raise ConfigError(first_complaint(error, MethodConfig)) from None


def full_config(settings: Mapping[str, Any]) -> Config:
    """Return all checked settings of a job, or a `ConfigError` that names the first wrong one."""
    try:
        return Config.model_validate(dict(settings))
    except ValidationError as error:
        raise ConfigError(first_complaint(error, Config)) from None


def view_config(settings: Any) -> ViewConfig:
    """Return one checked view, or a `ConfigError` that names the first wrong setting."""
    try:
        return ViewConfig.model_validate(settings)
    except ValidationError as error:
        raise ConfigError(f"views: {first_complaint(error, ViewConfig)}") from None


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


def first_complaint(error: ValidationError, root: type[BaseModel]) -> str:
    """Return what is wrong with the first wrong setting, and the nearest name for an unknown."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        known = _names_around(first["loc"], root)
        return f"{where} is not a setting.{did_you_mean(str(first['loc'][-1]), known)}"
    message = first["msg"].removeprefix("Value error, ")
    if not where:
        return f"{message}."
    if isinstance(first["input"], Mapping):  # a whole block, perhaps with secrets
        return f"{where}: {message}."
    return f"{where}: {message}, got {shown(first['input'])}."


def shown(value: Any) -> str:
    """Return a value for a message: short, however large or deep it is."""
    try:
        return _SHORT.repr(value)
    except (RecursionError, ValueError):  # too deep, or a number of too many digits
        return f"one {type(value).__name__} beyond all bounds"


def _names_around(place: tuple[int | str, ...], root: type[BaseModel]) -> dict[str, str]:
    """Return the names valid where an unknown one stands, and those of the blocks below it."""
    model = root
    for part in place[:-1]:
        if part in model.model_fields:
            model = inner_model(model.model_fields[str(part)].annotation) or model
    names = {name: name for name in model.model_fields}
    for name, field in model.model_fields.items():
        below = inner_model(field.annotation)
        for inner in below.model_fields if below else ():
            names.setdefault(inner, f"{name}.{inner}")
    return names


def inner_model(annotation: Any) -> type[BaseModel] | None:
    """Return the model that a field holds, directly or as a tuple of them."""
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def did_you_mean(name: str, known: dict[str, str]) -> str:
    """Return a hint at the known name nearest to one that is not."""
    close = get_close_matches(name, known, n=1)
    return f" Did you mean {known[close[0]]}?" if close else ""
