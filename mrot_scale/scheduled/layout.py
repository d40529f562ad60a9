"""Where everything of a scheduled job is, below its output."""

import json
from dataclasses import dataclass
from typing import Any

from mrot_scale.errors import DamagedDataError, MissingInputError
from mrot_scale.scheduled.partitions import Partition
from mrot_scale.storing.location import Location

TERMS = "terms.json"
"""In a folder of work: what it was begun with."""


@dataclass(frozen=True)
class Layout:
    """The folders of one job."""

    root: Location

    @property
    def models(self) -> Location:
        return self.root / "models"

    @property
    def runs(self) -> Location:
        return self.root / "runs"

    @property
    def all_scores(self) -> Location:
        return self.root / "scores"

    def scores(self, partition: Partition) -> Location:
        """Where plain readers find the scores of a partition."""
        return self.all_scores / partition.name

    def work(self, partition: Partition) -> Location:
        """What an unfinished run goes on with."""
        return self.runs / "work" / partition.name

    def state(self, partition: Partition) -> Location:
        """How the last run of a partition ended."""
        return self.runs / "partitions" / f"{partition.name}.json"

    def profile(self, partition: Partition) -> Location:
        """How the rows of a partition are spread."""
        return self.runs / "profiles" / f"{partition.name}.json"

    def report(self, partition: Partition) -> Location:
        return self.root / "reports" / f"{partition.name}.html"

    @property
    def history(self) -> Location:
        """The page over all nights."""
        return self.root / "history.html"


def read_json(place: Location) -> dict[str, Any] | None:
    """Return what a small file of ours says, None where there is none."""
    try:
        content = place.read()
    except MissingInputError:
        return None
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise DamagedDataError(f"{place} is damaged. Remove it, and run the partition again.")
    return found


def json_bytes(value: Any) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def names_below(place: Location) -> list[str]:
    """Return the names in a folder that need not exist."""
    return place.names() if place.exists() else []
