"""Whether workers answer, with the versions of this process, and reach the storage."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mrot_scale.doctor_checks import Check, Checks

if TYPE_CHECKING:
    from mrot_scale.config.cluster import ClusterConfig

_WORKER_TIMEOUT_S = 20.0


def workers_look(
    scheduler: "str | ClusterConfig | None", storage: Sequence[str]
) -> Callable[[], Checks]:
    """Return the look at the workers of a scheduler, or at one started on this machine."""

    def look() -> Checks:
        from mrot_scale.running.cluster import open_workers
        from mrot_scale.storing.location import Location

        config = _cluster_config(scheduler)
        places = [place for place in map(Location, storage) if place.exists()]
        start = time.perf_counter()
        with open_workers(config, places) as workers:
            took = time.perf_counter() - start
            found = (
                f"{workers.count} answered after {took:.1f} s, with the versions of this process"
            )
            found += ", and reached the storage" if places else ""
        yield Check("workers", "ok", f"{_where(config)}: {found}")

    return look


def _cluster_config(scheduler: "str | ClusterConfig | None") -> "ClusterConfig":
    from pydantic import ValidationError

    from mrot_scale.config.cluster import ClusterConfig
    from mrot_scale.errors import ConfigError

    if isinstance(scheduler, ClusterConfig):
        return scheduler
    chosen = {"kind": "local"} if scheduler is None else {"address": scheduler}
    try:
        return ClusterConfig.model_validate(
            {**chosen, "workers": 1, "timeout_s": _WORKER_TIMEOUT_S}
        )
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise ConfigError(f"{scheduler!r}: {reason}.") from None


def _where(config: "ClusterConfig") -> str:
    return config.address or ("this machine" if config.kind == "local" else config.kind)
