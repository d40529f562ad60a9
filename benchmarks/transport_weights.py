"""Does a table aggregated to distinct rows with counts rank as the full table does?

The full table is rounded to a grid; its distinct rows are the aggregated table and their counts the
weights. Every row of the full table gets the effort of its distinct row, so all sides are judged by
the same labels. Each side is one exact problem.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr

from benchmarks.transport_scenarios import SHARE, Floats, Generator, Ints, Labelled
from benchmarks.transport_sides import ALPHA, edge_distances
from mrot_scale import Problem, transport_efforts
from mrot_scale.method.batches import zone_count
from mrot_scale.method.cost import mass_zone, nearest_zone, squared_distances
from mrot_scale.method.transport import normalised_weights

NAME = "weighted rows"
PARAMETER = "width of the grid rows are rounded to, in spreads of a cluster"
WIDTHS = (0.1, 0.2, 0.4, 0.8, 1.2)

FULL = "full table, transport"
WEIGHTED_SIDES = (
    FULL,
    "full table, k-NN",
    "counted, transport",
    "counted, k-NN",
    "counts ignored, transport",
    "counts ignored, k-NN",
)

_CENTRES = np.array([[0.0, 0.0], [7.0, 0.0], [0.0, 7.0]])
_REACH = 4.0


@dataclass(frozen=True)
class Aggregated:
    """Distinct rows, how often each occurs, and which of them each full row is."""

    rows: Floats
    counts: Floats
    place: Ints


def rounded_table(width: float, n_rows: int, rng: Generator) -> Labelled:
    """Three clusters in two columns and anomalies spread over them and around, on a grid."""
    n_odd = round(SHARE * n_rows)
    normal = _CENTRES[rng.integers(3, size=n_rows - n_odd)] + rng.normal(size=(n_rows - n_odd, 2))
    odd = rng.uniform(_CENTRES.min(0) - _REACH, _CENTRES.max(0) + _REACH, (n_odd, 2))
    rows = width * np.round(np.vstack([normal, odd]) / width)
    return Labelled(rows, np.repeat([0, 1], [len(normal), n_odd]))


def aggregate(rows: Floats) -> Aggregated:
    """Return the distinct rows with their counts."""
    distinct, place, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    return Aggregated(distinct, counts.astype(np.float64), place.reshape(-1).astype(np.int64))


def weighted_sides(rows: Floats, alpha: float = ALPHA) -> dict[str, Floats]:
    """Return the effort of each row of the full table by every side."""
    table, problem = aggregate(rows), Problem(alpha=alpha)
    found = (
        _mean_by_place(transport_efforts(rows, problem), table),
        _mean_by_place(_edges(rows, alpha), table),
        transport_efforts(table.rows, problem, weights=table.counts),
        _edges(table.rows, alpha, table.counts),
        transport_efforts(table.rows, problem),
        _edges(table.rows, alpha),
    )
    return {side: some[table.place] for side, some in zip(WEIGHTED_SIDES, found, strict=True)}


def agreement(sides: dict[str, Floats]) -> dict[str, float]:
    """Return Spearman's correlation of each side with transport on the full table."""
    return {side: float(spearmanr(some, sides[FULL])[0]) for side, some in sides.items()}


def _edges(rows: Floats, alpha: float, counts: Floats | None = None) -> Floats:
    """Return the squared distance to the edge of each zone, counted in rows or in mass."""
    D = squared_distances(rows, rows)
    if counts is not None:
        return edge_distances(D, mass_zone(D, alpha, normalised_weights(counts, len(rows))))
    return edge_distances(D, nearest_zone(D, zone_count(len(rows), alpha, None)))


def _mean_by_place(efforts: Floats, table: Aggregated) -> Floats:
    """Return the mean effort of equal rows: a solver may send them to different places."""
    return np.asarray(np.bincount(table.place, weights=efforts) / table.counts)
