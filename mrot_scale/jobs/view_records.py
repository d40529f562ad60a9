"""What the stages of a fit have found out about its views, on its way to later tasks."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.config.method import MethodConfig
from mrot_scale.jobs.packing import anchors_from, company_from, standing_from, view_from
from mrot_scale.method.company import Company
from mrot_scale.method.views import View
from mrot_scale.running.tasks import Work
from mrot_scale.standing import Standing, with_shared

Floats = NDArray[np.float64]
Json = Any


@dataclass(frozen=True)
class ViewRecords:
    """Records of all views, in their order, and of the company rows keep in one of them."""

    learnt: list[Json]
    """Coordinates, by `learn_view`."""

    anchors: list[Json]
    """Anchors and their prices, by `solve_anchors`."""

    calibrated: list[Json]
    """How rare efforts are, by `calibrate`."""

    company: Json | None = None
    """Neighbours and what they share, by `share_company`; None before, or where there are none."""

    def to_json(self) -> dict[str, Json]:
        """Return the records as an argument of tasks: `ViewRecords(**argument)` gives them back."""
        return asdict(self)

    def view(self, work: Work, config: MethodConfig, number: int) -> View:
        """Return the coordinates of one view."""
        return view_from(work, self.learnt[number], config.views[number])

    def company_kept(self, work: Work, config: MethodConfig) -> Company | None:
        """Return the company that rows keep, if any."""
        view = config.company_view
        if self.company is None or view is None:
            return None
        return company_from(work, self.company, view, config)

    def standings(self, work: Work, config: MethodConfig) -> list[Standing]:
        """Return how rare the sample's rows are in each view, in company where they keep any."""
        found = [self._standing_alone(work, config, n) for n in range(len(config.views))]
        if self.company is None:
            return found
        seen, unseen = (work.array(self.company, name) for name in ("seen", "unseen"))
        return with_shared(found, seen, unseen)

    def _standing_alone(self, work: Work, config: MethodConfig, number: int) -> Standing:
        view, anchors = self.view(work, config, number), anchors_from(work, self.anchors[number])
        return standing_from(work, self.calibrated[number], view, anchors)

    def target_rarity(self, work: Work) -> Floats:
        """Return what the score model learns of the sample's rows: shape (n, views).

        It is that of the standings, for tasks that need nothing else of them.
        """
        if self.company is not None:
            return work.array(self.company, "unseen")
        return np.column_stack([work.array(view, "target_rarity") for view in self.calibrated])
