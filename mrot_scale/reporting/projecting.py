"""Rows on a map: two principal directions of the model's own anchors, the same in every run."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mrot_scale.rows import fill_non_finite
from mrot_scale.scoring import FittedModel, FittedView

Floats = NDArray[np.float64]

_ANCHORS_LOOKED_AT = 2_048


@dataclass(frozen=True)
class Projection:
    """From rows to two coordinates."""

    view: FittedView
    kept: NDArray[np.int64]
    """Coordinates of the view that take part: those of redacted columns do not."""

    mean: Floats
    axes: Floats
    """Two directions, (kept, 2)."""

    explained: tuple[float, float]
    """Share of the anchors' variance along each."""

    def apply(self, rows: Floats, fill: Floats) -> Floats:
        """Return the place of each row, (n, 2)."""
        points = self.view.view.apply(fill_non_finite(rows, fill))[:, self.kept]
        return np.asarray((points - self.mean) @ self.axes)


def projection_of(model: FittedModel, redacted: set[int]) -> Projection | None:
    """Return the model's map; None where no view shows all columns together."""
    view = _whole_view(model)
    if view is None or (redacted and view.view.components.size):
        return None
    columns = view.view.spec.columns or range(model.n_features)
    hidden = [place for place, column in enumerate(columns) if column in redacted]
    anchors = np.concatenate([anchors.rows for anchors in view.anchors])
    anchors = anchors[:: max(len(anchors) // _ANCHORS_LOOKED_AT, 1)]
    kept = np.setdiff1d(np.arange(anchors.shape[1]), hidden)
    return None if len(kept) == 0 else _principal(view, kept, anchors[:, kept])


def _whole_view(model: FittedModel) -> FittedView | None:
    """Return a view in which columns weigh alike, if there is one."""
    whole = [v for v in model.views if v.anchors and v.anchors[0].columns is None]
    scaled = [v for v in whole if v.view.scaling != "none"]
    return next(iter([*scaled, *whole]), None)


def _principal(view: FittedView, kept: NDArray[np.int64], points: Floats) -> Projection:
    mean = points.mean(axis=0)
    _, sizes, axes = np.linalg.svd(points - mean, full_matrices=False)
    shares = sizes**2 / max(float((sizes**2).sum()), np.finfo(np.float64).tiny)
    two = np.zeros((len(kept), 2))
    for place in range(min(2, len(axes))):
        # A direction has two signs: the largest weight is positive, whatever the library says.
        sign = np.sign(axes[place][np.argmax(np.abs(axes[place]))]) or 1.0
        two[:, place] = sign * axes[place]
    first, second = [float(s) for s in [*shares[:2], 0.0, 0.0][:2]]
    return Projection(view, kept, mean, two, (first, second))
