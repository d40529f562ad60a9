"""The models that rows are scored by, and what tells them from others."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mrot_scale.config.job import Config
from mrot_scale.jobs.score_choices import score_options
from mrot_scale.jobs.score_tasks import GroupModel, ScoreOptions
from mrot_scale.model.persist import load_model
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import MANIFEST, Entry
from mrot_scale.thresholds import stored_choice


@dataclass(frozen=True)
class Models:
    """The model rows are scored by, or the one for each value of a column and one for the rest."""

    main: Location
    by: str | None = None
    groups: Mapping[Any, Location] = field(default_factory=dict)

    @property
    def places(self) -> list[Location]:
        return [self.main, *self.groups.values()]

    def identity(self) -> dict[str, Any]:
        """Return what tells these models from others."""
        found: dict[str, Any] = {"model": model_identity(self.main)}
        if self.by is not None:
            each = [[value, model_identity(place)] for value, place in self.groups.items()]
            found["groups"] = {"by": self.by, "models": each}
        return found

    def group_models(self, options: ScoreOptions, config: Config) -> list[GroupModel]:
        """Return what tasks need to know of the groups' models."""
        found, chosen = [], stored_choice(self.main)
        for value, place in self.groups.items():
            model, saved = load_model(place)
            stored = stored_choice(place) or chosen
            own = score_options(model, saved, config, options.parquet, options.keep, stored)
            found.append(GroupModel(value, place.address, model_identity(place), own.threshold))
        return found


def model_identity(model: Location) -> str:
    """Return the digest of a model's list of files."""
    return Entry.of((model / MANIFEST).read()).sha256
