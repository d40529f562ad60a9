"""What every job does first: settle the settings, find its input, open its run folder."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrot_scale.config import Config
from mrot_scale.config_layers import load_config
from mrot_scale.progress import Report
from mrot_scale.running.cluster import open_workers
from mrot_scale.running.commit import RunFolder
from mrot_scale.running.runner import Runner
from mrot_scale.running.worker_checks import worker_versions
from mrot_scale.storing.location import Location
from mrot_scale.storing.store import is_store

AnyConfig = Config | Mapping[str, Any] | str | Path | None


def settled(config: AnyConfig, **overrides: Any) -> Config:
    """Return the settings: given as such, by name or by value, then what the call itself says."""
    if isinstance(config, Config):
        given = config.model_dump(exclude_unset=True)
        return load_config(None, overrides=_over(given, overrides), environment={})
    if isinstance(config, Mapping):
        return load_config(None, overrides=_over(dict(config), overrides))
    return load_config(config, overrides=overrides)


def _over(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        if isinstance(value, Mapping):
            merged[name] = _over(dict(merged.get(name) or {}), value)
        elif value is not None:
            merged[name] = value
    return merged


def quiet(stage: str, done: int, total: int) -> None:
    """Report to nobody."""


def run_location(config: Config, output: Location) -> Location:
    """Return where the run of an output keeps its journal and stages."""
    return (
        Location(config.run.folder) if config.run.folder else output.sibling(f"{output.name}.run")
    )


def for_input(config: Config) -> Config:
    """Return the settings for ingesting a job's own input: that run has a folder of its own."""
    return config.model_copy(update={"run": config.run.model_copy(update={"folder": None})})


def fingerprint(command: str, inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> Any:
    """Return what must be equal for a run to be gone on with."""
    return {
        "command": command,
        "inputs": dict(inputs),
        "settings": dict(settings),
        "versions": worker_versions(),
    }


@dataclass(frozen=True)
class Input:
    """A store to work on, and whether it was made for this job alone."""

    store: Location
    is_temporary: bool

    def discard(self) -> None:
        if self.is_temporary:
            self.store.remove()
            self.store.sibling(f"{self.store.name}.run").remove()


def store_of(source: Any, output: Location) -> Input:
    """Return the store a job reads: the one given, or where its table source will be ingested."""
    if isinstance(source, str | Path | Location) and is_store(Location(source)):
        return Input(Location(source), is_temporary=False)
    return Input(output.sibling(f"{output.name}.input"), is_temporary=True)


@contextmanager
def opened_runner(
    run: RunFolder, config: Config, report: Report | None, *inputs: Location
) -> Iterator[Runner]:
    """Yield a runner on workers that can reach the run folder and the inputs."""
    with open_workers(config.cluster, [run.location, *inputs]) as workers:
        yield Runner(run, workers, report or quiet)
