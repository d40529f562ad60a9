"""What every job does first: settle the settings, find its input, open its run folder."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrot_scale.config.job import Config, full_config
from mrot_scale.config.layers import load_config
from mrot_scale.config.text import recorded_config
from mrot_scale.errors import DataError, MrotError
from mrot_scale.jobs.plan_text import Plan
from mrot_scale.progress import Report, silent, tell_dashboard
from mrot_scale.reading.sources import open_source
from mrot_scale.running.cluster import open_workers
from mrot_scale.running.commit import RunFolder
from mrot_scale.running.run_log import RunLog, recorded
from mrot_scale.running.runner import Runner
from mrot_scale.running.worker_checks import worker_versions
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import read_format
from mrot_scale.storing.store import FeatureStore, is_store

RUN_CONFIG = "config.yaml"
RUN_PLAN = "plan.json"

AnyConfig = Config | Mapping[str, Any] | str | Path | None


def settled(config: AnyConfig, **overrides: Any) -> Config:
    """Return the settings: given as such, by name or by value, then what the call itself says."""
    if isinstance(config, Config):
        return full_config(_over(config.model_dump(exclude_unset=True), overrides))
    if isinstance(config, Mapping):
        return full_config(_over(dict(config), overrides))
    return load_config(config, overrides=overrides)


def _over(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        if isinstance(value, Mapping):
            merged[name] = _over(dict(merged.get(name) or {}), value)
        elif value is not None:
            merged[name] = value
    return merged


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
    """What a job reads: a store, or a table it has to ingest for itself first."""

    given: Any
    store: Location
    is_table: bool
    id: str | None

    @property
    def is_object(self) -> bool:
        """Whether it is a table in memory, known by its rows only once they are stored."""
        return self.is_table and not isinstance(self.given, str | Path | Location)

    @property
    def name(self) -> str:
        """What people know it by."""
        return "a table in memory" if self.is_object else str(self.given)

    def identity(self) -> dict[str, Any]:
        """Return what tells this input from another."""
        if self.is_table and not self.is_object:
            return {"table": open_source(self.given, id_column=self.id).identity, "id": self.id}
        return {"store": FeatureStore.open(self.store).identity()}

    def opened(self, check: Callable[[FeatureStore], None]) -> FeatureStore:
        """Return the store after a check; one that is refused is not left behind."""
        try:
            found = FeatureStore.open(self.store)
            check(found)
        except MrotError:
            self.discard()
            raise
        return found

    def discard(self) -> None:
        """Remove what was ingested for this job alone."""
        if self.is_table:
            self.store.remove()
            self.store.sibling(f"{self.store.name}.run").remove()


def input_of(given: Any, output: Location, id: str | None) -> Input:
    """Return the input of a job: the store given, or where its table will be ingested."""
    if isinstance(given, str | Path | Location):
        place = Location(given)
        if is_store(place):
            return Input(given, place, is_table=False, id=None)
        if place.is_folder() and (found := read_format(place)) is not None:
            raise DataError(f"{place} is a {found}, neither a store nor a table.")
    found_at = Input(given, output.sibling(f"{output.name}.input"), is_table=True, id=id)
    if found_at.is_object:  # what an earlier call ingested may be another table
        found_at.discard()
    return found_at


@contextmanager
def begun(run: RunFolder, config: Config, plan: Plan | None = None) -> Iterator[RunLog]:
    """Yield the log of one attempt at a run, after seeing to what earlier ones left."""
    known = len(run.records)
    with recorded(run.location, command=run.fingerprint["command"], committed=known) as log:
        run.keep(RUN_CONFIG, recorded_config(config).encode())
        if plan is not None:
            run.keep(RUN_PLAN, (json.dumps(plan.to_json(), indent=1) + "\n").encode())
        damaged = run.drop_damaged()
        if damaged:
            log.write("damaged", tasks=damaged)
        yield log


@contextmanager
def opened_runner(
    run: RunFolder,
    log: RunLog,
    config: Config,
    report: Report | None,
    *inputs: Location,
    prepare: Callable[[], None] | None = None,
) -> Iterator[Runner]:
    """Yield a runner on workers that can reach the run folder and the inputs."""
    with open_workers(config.cluster, [run.location, *inputs], prepare) as workers:
        where = {"kind": config.cluster.kind, "dashboard": workers.dashboard}
        log.write("workers", count=workers.count, **where)
        if workers.dashboard is not None:
            tell_dashboard(report or silent, workers.dashboard)
        yield Runner(run, workers, report or silent, log.write)
