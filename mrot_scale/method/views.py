"""The coordinates a problem is solved in: a scaling, a subset of columns, perhaps whitened.

Different scalings find different anomalies, so efforts are computed in several views and combined.
A view is fitted on a sample and is then a few arrays.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mrot_scale.errors import ConfigError

Floats = NDArray[np.float64]
Scaling = Literal["none", "standard", "robust", "gentle", "auto"]
_PROJECTED_ROWS = 256

SCALINGS: tuple[Scaling, ...] = get_args(Scaling)

_GENTLE = 2.0
"""IQRs from the median at which a gentle scaling begins to draw values in: where a box plot's
whiskers end, so that most rows keep their distances as they are."""

_LEAST_IQR = 0.2
"""Where a quarter of the rows or more have the median, an IQR counts as at least this share of what
the middle 90% of the rows span (a normal column's is twice that): such a value may leave next to
nothing of the IQR, which then says nothing of how the other rows spread."""

_HEAP_SHARE = 0.25

_LEAST_EVENNESS = 0.5
"""Below it columns do not share a unit: unscaled, few of them would make all the distances."""

_STRAY_SHARE = 0.01
"""Rows at either end of a column whose distance is not counted then: one bad reading in a table of
thousands does not decide how it is scaled."""


@dataclass(frozen=True)
class ViewSpec:
    """What a view is to be, before it has seen data."""

    scaling: Scaling | tuple[Scaling, ...] = "robust"
    """One scaling for all columns of the view, or one for each of them."""

    columns: tuple[int, ...] | None = None
    """Positions of the columns used; all when omitted."""

    whiten: int | None = None
    """Number of principal components kept and scaled to unit variance; none when omitted."""

    @property
    def name(self) -> str:
        parts: list[str] = [self.scaling if isinstance(self.scaling, str) else "mixed"]
        if self.columns is not None:
            parts.append(f"{len(self.columns)}-columns")
        if self.whiten is not None:
            parts.append(f"whiten-{self.whiten}")
        return "-".join(parts)


@dataclass(frozen=True)
class View:
    """A fitted view: `apply` takes rows to the coordinates in which distances are measured."""

    spec: ViewSpec
    center: Floats
    """Subtracted from each column, shape (d,)."""

    scale: Floats
    """Divides each column afterwards, shape (d,); 1 for a constant column."""

    squash: NDArray[np.bool_]
    """Columns passed through arcsinh last, shape (d,)."""

    mean: Floats = field(default_factory=lambda: np.zeros(0))
    """Subtracted before the projection, shape (d,); empty without whitening."""

    components: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """Whitening projection, shape (d, q); empty without whitening."""

    def apply(self, rows: Floats) -> Floats:
        """Return the rows in this view's coordinates, shape (n, q)."""
        columns = self.spec.columns
        chosen = rows if columns is None else rows[:, list(columns)]
        scaled = (chosen - self.center) / self.scale
        scaled = np.where(self.squash, np.arcsinh(scaled), scaled)
        if self.components.size:
            scaled = _project(scaled - self.mean, self.components)
        return np.ascontiguousarray(scaled)

    @property
    def scaling(self) -> Scaling | tuple[Scaling, ...]:
        """The scaling it has: of auto, the one that the sample decided for."""
        decided: Scaling = "gentle" if self.is_scaled_by_choice else "none"
        asked = self.spec.scaling
        if isinstance(asked, str):
            return decided if asked == "auto" else asked
        return tuple(decided if scaling == "auto" else scaling for scaling in asked)

    @property
    def is_scaled_by_choice(self) -> bool:
        """Whether auto found that columns have to be scaled."""
        asked = _scaling_of_each(self.spec.scaling, len(self.squash))
        undecided = np.array([scaling == "auto" for scaling in asked], dtype=bool)
        return bool((undecided & self.squash).any())

    @property
    def name(self) -> str:
        decided = replace(self.spec, scaling=self.scaling).name
        return f"{decided} (auto)" if self.spec.scaling == "auto" else decided

    @property
    def keeps_columns(self) -> bool:
        """Whether it holds every column of a row, so that rows can be had back from it."""
        return self.spec.columns is None and self.spec.whiten is None

    def restored(self, points: Floats) -> Floats:
        """Return the rows that `apply` took to these points; only where it keeps columns."""
        scaled = np.where(self.squash, np.sinh(np.where(self.squash, points, 0.0)), points)
        return np.asarray(scaled * self.scale + self.center)


def _project(rows: Floats, components: Floats) -> Floats:
    """Return `rows @ components`, each row the same to the last bit whatever rows it comes with.

    A matrix product rounds by its shape, so every product here has the same one.
    """
    projected = np.empty((len(rows), components.shape[1]))
    block = np.zeros((_PROJECTED_ROWS, rows.shape[1]))
    for start in range(0, len(rows), _PROJECTED_ROWS):
        some = rows[start : start + _PROJECTED_ROWS]
        block[: len(some)] = some
        projected[start : start + len(some)] = (block @ components)[: len(some)]
    return projected


def fit_view(spec: ViewSpec, sample: Floats) -> View:
    """Return the view with its statistics taken from the sample."""
    if spec.columns is not None and max(spec.columns) >= sample.shape[1]:
        raise ConfigError(
            f"View {spec.name} uses column {max(spec.columns)}, but the table has only columns "
            f"0 to {sample.shape[1] - 1}."
        )
    chosen = sample if spec.columns is None else sample[:, list(spec.columns)]
    scalings = _decided(_scaling_of_each(spec.scaling, chosen.shape[1]), chosen)
    pairs = [_center_and_scale(x, s) for x, s in zip(chosen.T, scalings, strict=True)]
    center, scale = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    squash = np.array([s in ("robust", "gentle") for s in scalings], dtype=bool)
    view = View(spec, np.ascontiguousarray(center), np.ascontiguousarray(scale), squash)
    if spec.whiten is None:
        return view
    mean, components = _whitening(view.apply(sample), spec.whiten)
    return View(spec, view.center, view.scale, squash, mean, components)


def _scaling_of_each(scaling: Scaling | Sequence[Scaling], n_columns: int) -> Sequence[Scaling]:
    if isinstance(scaling, str):
        return [scaling] * n_columns
    if len(scaling) != n_columns:
        raise ConfigError(f"A view of {n_columns} columns was given {len(scaling)} scalings.")
    return scaling


def _decided(scalings: Sequence[Scaling], columns: Floats) -> list[Scaling]:
    """Return the scalings with auto replaced by what suits the columns that have it."""
    undecided = np.array([scaling == "auto" for scaling in scalings], dtype=bool)
    even = undecided.any() and evenness(columns[:, undecided]) >= _LEAST_EVENNESS
    return [("none" if even else "gentle") if s == "auto" else s for s in scalings]


def evenness(columns: Floats) -> float:
    """Return how evenly columns share the variance: from 0, one has it all, to 1, all alike.

    By the participation ratio, squared sum over sum of squares. Columns of at most two values are
    left out, unless there is only one other: a flag is a choice, and has no unit that could differ
    from the others'.
    """
    counted = [column for column in columns.T if len(np.unique(column)) > 2]
    if len(counted) == 1:  # which may still be all that distances are made of
        counted = [column for column in columns.T if np.ptp(column) > 0]
    if len(counted) < 2:
        return 1.0
    usual = [_without_strays(column) for column in counted]
    widest = max(np.ptp(column) for column in usual)
    if widest == 0:
        return 1.0
    variances = np.array([(column / widest).var() for column in usual])
    carrying = float(variances.sum() ** 2 / (variances**2).sum())
    return (carrying - 1) / (len(counted) - 1)


def _without_strays(column: Floats) -> Floats:
    low, high = np.quantile(column, [_STRAY_SHARE, 1 - _STRAY_SHARE])
    return np.clip(column, low, high)


def _center_and_scale(column: Floats, scaling: Scaling) -> tuple[float, float]:
    """Return what to subtract and divide by; a constant column keeps the scale 1."""
    if scaling not in SCALINGS:
        raise ConfigError(f"scaling must be one of {', '.join(SCALINGS)}, got {scaling!r}.")
    if column.min() == column.max():  # deviations of equal numbers need not round to 0
        return float(column[0]), 1.0
    lowest, low, median, high, highest = np.quantile(column, [0.05, 0.25, 0.5, 0.75, 0.95])
    deviation = float(column.std())
    if scaling == "none":
        return float(median), 1.0
    if scaling == "standard":
        return float(column.mean()), deviation or 1.0
    spread = float(high - low)
    if spread == 0:  # one value in most rows
        spread = deviation or 1.0
    elif np.mean(column == median) >= _HEAP_SHARE:
        spread = max(spread, _LEAST_IQR * float(highest - lowest))
    return float(median), _GENTLE * spread if scaling == "gentle" else spread


def _whitening(scaled: Floats, n_components: int) -> tuple[Floats, Floats]:
    """Return mean and projection to shrunk, unit-variance principal components."""
    from sklearn.covariance import ledoit_wolf

    if not 1 <= n_components <= scaled.shape[1]:
        raise ConfigError(
            f"whiten must be between 1 and {scaled.shape[1]} (columns of the view), "
            f"got {n_components}."
        )
    covariance, _ = ledoit_wolf(scaled)
    variances, axes = np.linalg.eigh(covariance)
    largest = np.argsort(variances)[::-1][:n_components]
    floor = np.finfo(np.float64).eps * max(float(variances.max()), 1e-300)
    unit = axes[:, largest] / np.sqrt(np.maximum(variances[largest], floor))
    return scaled.mean(axis=0), np.ascontiguousarray(unit)
