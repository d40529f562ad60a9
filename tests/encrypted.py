"""Schedulers and workers with certificates, on loopback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mrot_scale.certificates import Certificates
from mrot_scale.config.cluster import ClusterConfig
from tests.servers import LOOPBACK, Process, answers, free_port, started, wait_until, worker_command


def settings(made: Certificates) -> dict[str, str]:
    """Return the settings of a cluster that name its certificates."""
    return {
        "tls_ca_file": str(made.ca_file),
        "tls_cert": str(made.cert),
        "tls_key": str(made.key),
    }


def options(made: Certificates) -> list[str]:
    """Return the options of Dask's commands that name them."""
    named = settings(made).items()
    return [word for name, path in named for word in (f"--{name.replace('_', '-')}", path)]


@dataclass(frozen=True)
class Encrypted:
    """A scheduler that speaks TLS alone."""

    port: int
    process: Process
    certificates: Certificates

    @property
    def address(self) -> str:
        return f"tls://{LOOPBACK}:{self.port}"

    def config(self, **more: Any) -> ClusterConfig:
        """Return the settings of somebody who belongs to the cluster."""
        belonging = {"address": self.address, "timeout_s": 20.0, **settings(self.certificates)}
        return ClusterConfig.model_validate(belonging | more)


@contextmanager
def encrypted_scheduler(made: Certificates) -> Iterator[Encrypted]:
    """Start a scheduler with certificates."""
    port = free_port()
    command = [
        *(sys.executable, "-m", "dask", "scheduler", "--dashboard-address", f"{LOOPBACK}:0"),
        *("--protocol", "tls", "--host", LOOPBACK, "--port", str(port), *options(made)),
    ]
    with started(command) as process:
        wait_until(lambda: answers(port), "the scheduler listens")
        yield Encrypted(port, process, made)


@contextmanager
def encrypted_worker(found: Encrypted, *more: str) -> Iterator[Process]:
    """Start a worker with the scheduler's certificates."""
    command = worker_command(found.address, *options(found.certificates), *more)
    with started(command) as process:
        wait_until(lambda: "Registered to" in process.errors, "a worker has registered")
        yield process
