"""A store and the settings to fit it with become sizes: rows, parts, views, bytes."""

from dataclasses import dataclass
from functools import cached_property

from mrot_scale.config.job import Config
from mrot_scale.config.views import ViewConfig
from mrot_scale.encoding import rare_levels
from mrot_scale.fitting.anchored import AnchorPlan, anchor_plan
from mrot_scale.fitting.assembled import TRAINING_SCORES_KEPT
from mrot_scale.fitting.setup import Setup, plan_fit
from mrot_scale.imagined import ROWS_PER_COLUMN
from mrot_scale.jobs.labelled import HELD_OUT_ROWS, LabelPlan, label_plan
from mrot_scale.jobs.plan_memory import (
    BOOSTER_BYTES,
    CALIBRATION_BYTES,
    PART_COPIES,
    VIEW_COPIES,
    Need,
    company_search,
    routed_efforts,
    routing_matrices,
    table,
)
from mrot_scale.method.company import most_company_rows
from mrot_scale.method.trust import n_trusted
from mrot_scale.model.choose import CANDIDATES
from mrot_scale.storing.store import FeatureStore

_COUNTED_BLOCKS = 1_000
"""Blocks of rows up to which the sizes of parts are counted exactly: half a second."""


@dataclass(frozen=True)
class FitSizes:
    """A store and the settings to fit it with, as sizes."""

    store: FeatureStore
    config: Config

    @cached_property
    def label(self) -> LabelPlan:
        return label_plan(self.store, self.config.method, self.config.coverage)

    @property
    def n_features(self) -> int:
        return len(self.store.schema.features)

    @cached_property
    def part_rows(self) -> tuple[int, ...]:
        """Rows of each part; where counting would take long, about as many as it will have."""
        label, n_rows = self.label, self.store.n_rows
        if label.n_parts == 1:
            return (n_rows if label.coverage == "all" else min(n_rows, label.label_rows),)
        if label.n_parts * (1 + n_rows // 65_536) > _COUNTED_BLOCKS:
            return (-(-n_rows // label.n_parts),) * label.n_parts
        parts = range(label.n_parts)
        return tuple(len(label.rows_of_part(part, 0, n_rows)) for part in parts)

    @property
    def n_parts(self) -> int:
        return len(self.part_rows)

    @property
    def n_labelled(self) -> int:
        return sum(self.part_rows)

    @property
    def largest(self) -> int:
        return max(self.part_rows)

    @property
    def held_rows(self) -> int:
        is_sample = self.label.coverage == "sample" and self.store.n_rows > self.label.label_rows
        return min(HELD_OUT_ROWS, self.store.n_rows - self.label.label_rows) if is_sample else 0

    @cached_property
    def setups(self) -> tuple[Setup, ...]:
        """What `plan_fit` says of each part."""
        by_size = {n: plan_fit(n, self.config.method, 1, None) for n in set(self.part_rows)}
        return tuple(by_size[n] for n in self.part_rows)

    @property
    def n_met(self) -> int:
        """Parts whose rows meet in batches: a first pass is over the sample alone."""
        return 1 if self.config.two_passes else self.n_parts

    @property
    def n_met_views(self) -> int:
        """Views in which rows meet in batches."""
        return len(self.config.batch_views)

    @property
    def n_routed(self) -> int:
        """Parts whose rows are sent to the anchors while fitting."""
        return self.n_parts if self.config.two_passes else 1

    @cached_property
    def anchors(self) -> tuple[AnchorPlan, ...]:
        """What each view's anchors will be."""
        method = self.config.method
        pairs = zip(self.widths, method.views, strict=True)
        return tuple(anchor_plan(self._trusted_in(v), width, v, method) for width, v in pairs)

    def _trusted_in(self, view: ViewConfig) -> int:
        """Return how many rows of the sample may be anchors in a view."""
        method, n_rows = self.config.method, self.part_rows[0]
        return n_trusted(n_rows, method.distrust_in(view)) if method.two_passes else n_rows

    @property
    def anchor_rows(self) -> int:
        """Anchors of the largest set."""
        return max(plan.anchor_rows for plan in self.anchors)

    @property
    def set_setting(self) -> str:
        """What makes sets of anchors smaller."""
        return "anchor_rows" if self.config.own_sets else "batch_rows"

    @property
    def n_sets(self) -> int:
        """Anchor sets of the view that has most, or repeats of its batches."""
        return max(self.setups[0].plan.repeats, *(plan.n_sets for plan in self.anchors))

    @property
    def n_views(self) -> int:
        return len(self.config.views)

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """Columns each view reads."""
        return tuple(len(v.columns) if v.columns else self.n_features for v in self.config.views)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Coordinates of each view."""
        pairs = zip(self.config.views, self.columns, strict=True)
        return tuple(view.whiten or columns for view, columns in pairs)

    @property
    def n_imagined(self) -> int:
        per_column = min(ROWS_PER_COLUMN, self.part_rows[0])
        return per_column * len(rare_levels(self.store.schema))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Score models that may be trained."""
        return CANDIDATES if self.config.regressor == "auto" else (self.config.regressor,)

    @property
    def may_be_hybrid(self) -> bool:
        """Whether trees may be trained again with efforts as columns."""
        wanted = self.config.two_passes and self.config.hybrid != "never"
        return wanted and "lightgbm" in self.kinds

    @property
    def first_bytes(self) -> int:
        return 8 * self.part_rows[0] * self.n_features

    @property
    def all_bytes(self) -> int:
        return 8 * self.n_labelled * self.n_features

    @cached_property
    def anchor_bytes_by_view(self) -> tuple[int, ...]:
        views = zip(self.anchors, self.widths, self.config.views, strict=True)
        return tuple(
            8 * plan.n_sets * plan.anchor_rows * (2 + view.relative + seen_columns(plan, width))
            for plan, width, view in views
        )

    @property
    def anchor_bytes(self) -> int:
        """Anchors of all views."""
        return sum(self.anchor_bytes_by_view)

    @property
    def view_anchor_bytes(self) -> int:
        """Anchors of the view that has most: all columns of a wide table are much."""
        return max(self.anchor_bytes_by_view)

    @property
    def n_company(self) -> int:
        """Rows that others share their rarity with; none where rows keep no company."""
        if self.config.company_view is None:
            return 0
        most = most_company_rows(self.company_width, self.config.label_rows)
        return min(most, self.part_rows[0])

    @property
    def loneliness_maps(self) -> int:
        """Maps from how far apart rows lie to how rare that is: one, where it counts."""
        return int(self.n_company > 0 and self.config.loneliness > 0)

    @property
    def company_width(self) -> int:
        """Coordinates in which rows keep company."""
        view = self.config.company_view
        return 0 if view is None else self.widths[view]

    @property
    def company_bytes(self) -> int:
        return 8 * self.n_company * (self.company_width + self.n_views + 1)

    @property
    def score_model_bytes(self) -> int:
        kept = 8 * (self.n_labelled + self.n_imagined) * (self.n_features + 1)
        trees = (1 + self.may_be_hybrid) * BOOSTER_BYTES
        return max(trees if kind == "lightgbm" else kept for kind in self.kinds)

    @property
    def model_bytes(self) -> int:
        own_maps = sum(plan.n_sets for plan in self.anchors if plan.columns is not None)
        n_maps = self.n_views + 2 + own_maps + self.loneliness_maps
        calibrations = n_maps * CALIBRATION_BYTES + 8 * TRAINING_SCORES_KEPT
        views = 8 * sum(c * (4 + w) for c, w in zip(self.columns, self.widths, strict=True))
        fitted = self.anchor_bytes + self.company_bytes + self.score_model_bytes
        return fitted + calibrations + views + 4_096

    @property
    def rows_setting(self) -> str:
        """What makes parts smaller."""
        by_label_rows = self.n_parts == 1 or self.largest <= 1.2 * self.config.label_rows
        return "label_rows" if by_label_rows else "coverage to sample"

    def points(self, n_rows: int) -> Need:
        """Memory to read a part and see it in a view."""
        whitened = 3 if any(view.whiten for view in self.config.views) else 0
        copies = PART_COPIES + (self.n_parts > 1)  # the part before may still be held
        return table("rows", n_rows, self.n_features, copies) + table(
            "points", n_rows, max(self.columns), VIEW_COPIES + whitened
        )

    def routes(self, n_rows: int) -> Need:
        """Memory to send rows to the anchors of a view."""
        return routing_matrices(n_rows, self.anchor_rows, self.config.eps)

    def rarities(self, n_rows: int) -> Need:
        """Memory to send rows to all anchors and find how rare their efforts are."""
        need = self.routes(n_rows) + routed_efforts(n_rows, self.n_sets)
        return need + self.company(n_rows) if self.n_company else need

    def company(self, n_rows: int) -> Need:
        """Memory to share the rarity of rows with their neighbours."""
        return company_search(n_rows, self.n_company, self.company_width, self.config.company)


def setting_of(fit: FitSizes, rows: Need, solving: Need, solved: str | None = None) -> str:
    """Return what to change for a smaller task: what the larger part of it depends on.

    `solved` is the setting behind what is solved; that of sets of anchors when omitted.
    """
    return (solved or fit.set_setting) if solving.n_bytes > rows.n_bytes else fit.rows_setting


def seen_columns(plan: AnchorPlan, width: int) -> int:
    """Return how many coordinates of a view one anchor set sees."""
    return width if plan.columns is None else 1


def numbered_rows(fit: FitSizes) -> int:
    """Return how many row numbers a task holds to know which rows are drawn."""
    if fit.n_parts > 1:
        return fit.store.chunks.chunk_rows + 65_536
    # NumPy shuffles all numbers where more than a fiftieth of them is wanted.
    is_shuffled = fit.part_rows[0] > fit.store.n_rows // 50
    return fit.store.n_rows if is_shuffled else 2 * fit.part_rows[0]
