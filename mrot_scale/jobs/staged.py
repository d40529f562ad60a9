"""What a scoring run has made, before any of it is published."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrot_scale.encoding import recounted
from mrot_scale.jobs.score_tasks import GroupModel, ScoreOptions, open_model
from mrot_scale.model.persist import model_schema
from mrot_scale.profiles import Profile, category_profiles
from mrot_scale.running.commit import Record, RunFolder
from mrot_scale.scoring import FittedModel
from mrot_scale.storing.store import FeatureStore


@dataclass(frozen=True)
class Staged:
    """What a scoring run has made, before any of it is published."""

    store: FeatureStore
    records: list[Record]
    run: RunFolder
    model: FittedModel
    options: ScoreOptions
    groups: list[GroupModel]

    @property
    def models(self) -> list[FittedModel]:
        """The models by the groups of rows, that for all other rows last."""
        return [*(open_model(g.model, g.identity) for g in self.groups), self.model]

    def totals(self) -> dict[str, int]:
        return {name: self.total(name) for name in ("rows", "flagged", "missing")}

    def total(self, name: str) -> int:
        """Return the sum over chunks of `rows`, `flagged` or `missing`."""
        return sum(record.facts[name] for record in self.records)

    def profile(self) -> Profile:
        """Return how the rows and their scores are spread."""
        names = ["categories", "scores", *(["spread"] if self.model.bins is not None else [])]
        return self.profile_of({name: self._summed(name) for name in names})

    def profile_of(self, counts: Mapping[str, Any]) -> Profile:
        """Return the profile that counts over all chunks make."""
        schema = model_schema(self.model)
        values = counts["spread"] if self.model.bins is not None else np.zeros((0, 0), int)
        seen = recounted(self.store.schema, counts["categories"], self.store.n_rows)
        categories = category_profiles(schema, seen)
        return Profile(self.store.n_rows, values, counts["scores"], categories)

    def _summed(self, part: str) -> Any:
        arrays = [r.objects[part].read_array(self.run.location) for r in self.records]
        return np.sum(arrays, axis=0)
