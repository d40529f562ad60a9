"""How many workers a job will have, and how much memory each of them."""

import os
from pathlib import Path

from mrot_scale.config.cluster import ClusterConfig
from mrot_scale.config.job import Config
from mrot_scale.jobs.plan_memory import MIB
from mrot_scale.jobs.plan_text import Plan, StagePlan
from mrot_scale.running.cluster import local_workers
from mrot_scale.threads import available_cores

BASE_BYTES = 450 * MIB
"""A worker that has imported and compiled everything, and done nothing else."""


def plan_of(command: str, stages: list[StagePlan], config: Config, output_bytes: int) -> Plan:
    """Return a plan of these stages on the workers the settings ask for."""
    return Plan(
        command,
        tuple(stages),
        worker_count(config.cluster),
        worker_memory(config.cluster),
        BASE_BYTES,
        sum(stage.written_bytes for stage in stages) + output_bytes,
    )


def worker_count(config: ClusterConfig) -> int:
    """Return how many tasks will run side by side."""
    if config.kind == "inline":
        return 1
    return local_workers(config) if config.kind == "local" else config.workers or 1


def worker_memory(config: ClusterConfig) -> int | None:
    """Return the memory of one worker; None where only the cluster knows it."""
    if config.memory_limit is not None:
        return config.memory_limit
    if config.kind == "inline":
        return machine_memory()
    if config.kind != "local":
        return None
    # Dask gives a worker of one thread the share of one core, however few workers there are.
    return machine_memory() // max(local_workers(config), available_cores())


def machine_memory() -> int:
    """Return the memory this process may use: the machine's, or what its container was given."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for place in _limit_files():
        try:
            found.append(int(place.read_text()))
        except (OSError, ValueError):  # not there, or "max"
            continue
    return min(found)


def _limit_files() -> list[Path]:
    """Return where cgroups of either version keep a memory limit for this process."""
    root, own = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
    lines = own.read_text().splitlines() if own.exists() else []
    paths = ["", *(line.split(":", 2)[2].strip("/") for line in lines if line.count(":") >= 2)]
    new = [root / path / "memory.max" for path in paths]
    return new + [root / "memory" / path / "memory.limit_in_bytes" for path in paths]
