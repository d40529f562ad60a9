"""Models on disk: each under an id of its own, never changed; which partition each was fitted for,
and which somebody chose.

Every fact is a file of its own, written once, so that runs at the same time need no lock.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mrot_scale.errors import ConfigError, DamagedDataError, MissingInputError
from mrot_scale.scheduled.layout import Layout, json_bytes, names_below, read_json
from mrot_scale.scheduled.partitions import Partition, in_order, parse_partition
from mrot_scale.scheduled.policy import Promotion
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import MANIFEST, Entry

ENTRY = "entry.json"
MODEL = "model"
LATEST = "latest"
_OWN_FOLDERS = ("fits", "promotions", "decisions")
_ID = re.compile(r"[\w.-]{1,100}-[0-9a-f]{10}", re.ASCII)


@dataclass(frozen=True)
class ModelEntry:
    """A model of the registry, or one at any path."""

    id: str
    location: Location
    """Directory of the model for rows of no group, or of all."""

    facts: dict[str, Any]
    """What it was made of and for."""

    @property
    def by(self) -> str | None:
        return self.facts.get("by")

    def groups(self) -> list[tuple[Any, Location]]:
        """Return the values that have a model of their own, and where it is."""
        folder = self.location.sibling("groups")
        return [(g["value"], folder / g["folder"]) for g in self.facts.get("groups", [])]


def model_id(value: str, terms: Any) -> str:
    """Return the id of what certain inputs and settings give, fitted for a partition."""
    digest = hashlib.sha256(json.dumps(terms, sort_keys=True).encode()).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9_.-]', '_', value)[:60]}-{digest[:10]}"


class Registry:
    """The models of one job."""

    def __init__(self, layout: Layout) -> None:
        self._place = layout.models

    def folder(self, id: str) -> Location:
        return self._place / id

    def ids(self) -> list[str]:
        """Return the ids of all finished models, in the order of the partitions they are for."""
        names = [n for n in names_below(self._place) if n not in _OWN_FOLDERS and n[0] != "."]
        entries = {n: read_json(self._place / n / ENTRY) for n in names}
        values = {n: self._partition_of(n, e) for n, e in entries.items() if e is not None}
        order = {value: place for place, value in enumerate(in_order(list(set(values.values()))))}
        return sorted(values, key=lambda n: (order[values[n]], n))

    def _partition_of(self, id: str, facts: dict[str, Any]) -> str:
        if not isinstance(facts.get("partition"), str):
            raise DamagedDataError(f"{self.folder(id) / ENTRY} is damaged. Restore or remove it.")
        return str(facts["partition"])

    def entry(self, id: str) -> ModelEntry:
        """Return a finished model."""
        found = read_json(self.folder(id) / ENTRY) if _ID.fullmatch(id) else None
        if found is None:
            known = ", ".join(self.ids()[-5:]) or "none yet"
            raise MissingInputError(f"No model {id!r} in {self._place}; it has: {known}.")
        return ModelEntry(id, self.folder(id) / MODEL, found)

    def has(self, id: str) -> bool:
        return (self.folder(id) / ENTRY).exists()

    def add(self, id: str, facts: dict[str, Any]) -> ModelEntry:
        """Declare a model finished, unless it is already."""
        (self.folder(id) / ENTRY).write_new(json_bytes(facts))
        return self.entry(id)

    def named(self, name: str) -> ModelEntry:
        """Return a model by its id, as `latest`, or by a path."""
        if name == LATEST:
            ids = self.ids()
            if not ids:
                raise MissingInputError(f"There is no model in {self._place} yet.")
            return self.entry(ids[-1])
        if "/" in name:
            place = Location(name)
            if not (place / MANIFEST).exists():
                raise MissingInputError(f"No model at {place}.")
            mark = Entry.of((place / MANIFEST).read()).sha256[:10]
            return ModelEntry(f"{name}#{mark}", place, {})
        return self.entry(name)

    def fits(self) -> dict[str, str]:
        """Return which model was fitted for which partition, by value."""
        return self._facts("fits", "model")

    def record_fit(self, partition: Partition, id: str) -> str:
        """Note which model a partition has; the first to say so is right while that one exists."""
        place = self._place / "fits" / f"{partition.name}.json"
        content = json_bytes({"value": partition.value, "model": id})
        if not place.write_new(content) and not self.has(self.fits()[partition.value]):
            place.write(content)
        return self.fits()[partition.value]

    def promotions(self) -> list[Promotion]:
        return [Promotion(v, id) for v, id in self._facts("promotions", "model").items()]

    def promote(self, id: str, start: Partition) -> None:
        """Choose a model for all partitions from one on."""
        self.entry(id)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        facts = {"value": start.value, "model": id, "at": now}
        (self._place / "promotions" / f"{start.name}.json").write(json_bytes(facts))

    def decision(self, partition: Partition) -> dict[str, Any] | None:
        """Return what was found when a partition was compared with its model's training rows."""
        return read_json(self._place / "decisions" / f"{partition.name}.json")

    def record_decision(self, partition: Partition, facts: dict[str, Any]) -> None:
        place = self._place / "decisions" / f"{partition.name}.json"
        place.write_new(json_bytes({"value": partition.value, **facts}))

    def _facts(self, folder: str, name: str) -> dict[str, str]:
        place = self._place / folder
        found = [read_json(place / below) for below in names_below(place) if below[0] != "."]
        try:
            return {str(f["value"]): str(f[name]) for f in found if f is not None}
        except KeyError as error:
            raise DamagedDataError(f"{place} holds a file without {error}.") from None


def check_same_key(partition: Partition, key: str) -> None:
    """Refuse a partition of another key than the job's."""
    if partition.key != key:
        raise ConfigError(
            f"{partition} is no partition by {key!r}. Set nightly.key to {partition.key!r}."
        )


def listed_models(output: str | Path) -> list[dict[str, Any]]:
    """Return what is known of each model of a job, with the partitions it was promoted from."""
    layout = Layout(Location(output))
    if not layout.root.exists():
        raise MissingInputError(f"Nothing at {layout.root}.")
    registry = Registry(layout)
    promotions = registry.promotions()
    return [
        {**registry.entry(id).facts, "promoted": [p.start for p in promotions if p.model == id]}
        for id in registry.ids()
    ]


def promote_model(
    output: str | Path, model: str, start: str, key: str = "date", *, dry_run: bool = False
) -> dict[str, Any]:
    """Let a model score all partitions from one on; return which model that is."""
    registry = Registry(Layout(Location(output)))
    entry = registry.entry(registry.named(model).id)
    is_day = key == "date"
    partition = parse_partition(
        start if is_day else None, None if is_day else f"{key}={start}", key
    )
    if not dry_run:
        registry.promote(entry.id, partition)
    return {"model": entry.id, "from": partition.value, "dry_run": dry_run}
