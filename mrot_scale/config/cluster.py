"""Settings of where tasks run, and what is refused as unsafe."""

import re
from ipaddress import ip_address
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from mrot_scale.config.base import Settings
from mrot_scale.config.sizes import Bytes

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

TLS_FILES = ("tls_ca_file", "tls_cert", "tls_key")
"""Settings of a cluster that name its certificates."""

_ADDRESS = re.compile(
    r"(?P<scheme>tls|tcp)://(?P<host>\[[\dA-Fa-f:.]+\]|[\w.-]+):\d{1,5}", re.ASCII
)
_LAST_PORT = 65_535
_CLASS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


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
