"""Generated tables with known anomalies, each over a range of one difficulty."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Generator = np.random.Generator

N_ROWS = 1_024
SHARE = 0.04
"""Of the rows, anomalies where the scenario does not vary it."""


@dataclass(frozen=True)
class Labelled:
    """Rows and, for each, whether it is an anomaly (1)."""

    rows: Floats
    labels: Ints


@dataclass(frozen=True)
class Scenario:
    """One way of being anomalous."""

    name: str
    about: str
    parameter: str
    """What the difficulty is, as the axis of a figure calls it."""

    values: tuple[float, ...]
    draw: Callable[[float, int, Generator], Labelled]
    """From difficulty, number of rows and random numbers to a table."""


def _labelled(normal: Floats, anomalies: Floats) -> Labelled:
    return Labelled(
        np.vstack([normal, anomalies]), np.repeat([0, 1], [len(normal), len(anomalies)])
    )


_COLUMNS = 4
_CENTRES = 8.0 * np.eye(3, _COLUMNS)
"""Three normal clusters of unit spread, far enough apart not to touch."""

_ASIDE = np.array([8.0, 0.0, 0.0, 5.0])
"""Next to the first cluster, outside of it."""


def _clusters(n_rows: int, rng: Generator) -> Floats:
    return np.asarray(_CENTRES[rng.integers(3, size=n_rows)] + rng.normal(size=(n_rows, _COLUMNS)))


def _group(spread: float, share: float, n_rows: int, rng: Generator) -> Labelled:
    """Anomalies in one group next to normal clusters; difficulty: its share of the rows."""
    n_odd = round(share * n_rows)
    group = _ASIDE + spread * rng.normal(size=(n_odd, _COLUMNS))
    return _labelled(_clusters(n_rows - n_odd, rng), group)


def tight_group(share: float, n_rows: int, rng: Generator) -> Labelled:
    """A group three times as dense as the normal clusters."""
    return _group(0.3, share, n_rows, rng)


def wide_group(share: float, n_rows: int, rng: Generator) -> Labelled:
    """A group as wide as the normal clusters."""
    return _group(1.0, share, n_rows, rng)


def small_normal_cluster(share: float, n_rows: int, rng: Generator) -> Labelled:
    """The mirror image: the tight group is normal, and scattered rows are the anomalies."""
    n_odd = round(SHARE * n_rows)
    table = _group(0.3, share, n_rows - n_odd, rng)
    return _labelled(table.rows, _scattered(n_odd, 1.0, rng))


def round_cloud(columns: float, n_rows: int, rng: Generator) -> Labelled:
    """Gaussian rows; anomalies are inflated just so much that they stay about as hard to tell."""
    d, n_odd = int(columns), round(SHARE * n_rows)
    odd = (1 + 1.5 / np.sqrt(d)) * rng.normal(size=(n_odd, d))
    return _labelled(rng.normal(size=(n_rows - n_odd, d)), odd)


def flat_cloud(columns: float, n_rows: int, rng: Generator) -> Labelled:
    """Gaussian rows with variances 1, 1/2, 1/3, ...; anomalies as large, but as wide in each."""
    d, n_odd = int(columns), round(SHARE * n_rows)
    spread = 1 / np.sqrt(np.arange(1, d + 1))
    even = np.sqrt(np.mean(spread**2))
    return _labelled(
        spread * rng.normal(size=(n_rows - n_odd, d)), even * rng.normal(size=(n_odd, d))
    )


def scattered(reach: float, n_rows: int, rng: Generator) -> Labelled:
    """Anomalies spread evenly over a box around the clusters; difficulty: how far it reaches."""
    n_odd = round(SHARE * n_rows)
    return _labelled(_clusters(n_rows - n_odd, rng), _scattered(n_odd, reach, rng))


def _scattered(n_rows: int, reach: float, rng: Generator) -> Floats:
    return rng.uniform(_CENTRES.min(0) - reach, _CENTRES.max(0) + reach, (n_rows, _COLUMNS))


def local(distance: float, n_rows: int, rng: Generator) -> Labelled:
    """A dense and a thin cluster; anomalies are near the dense one, nearer than thin rows are."""
    n_odd = round(SHARE * n_rows)
    n_thin = n_rows // 5
    dense = 0.2 * rng.normal(size=(n_rows - n_odd - n_thin, _COLUMNS))
    thin = 20 + 3 * rng.normal(size=(n_thin, _COLUMNS))
    way = rng.normal(size=(n_odd, _COLUMNS))
    odd = distance * way / np.linalg.norm(way, axis=1, keepdims=True)
    return _labelled(np.vstack([dense, thin]), odd)


_SHARES = (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.12, 0.16)
_WIDTHS = (10.0, 30.0, 100.0, 200.0, 300.0)

SCENARIOS = (
    Scenario(
        "tight group",
        "anomalies form one tight group next to normal clusters",
        "share of the rows in the group",
        _SHARES,
        tight_group,
    ),
    Scenario(
        "wide group",
        "anomalies form one group as wide as the normal clusters",
        "share of the rows in the group",
        _SHARES,
        wide_group,
    ),
    Scenario(
        "small normal cluster",
        "the tight group is normal, scattered rows are the anomalies",
        "share of the rows in the group",
        _SHARES,
        small_normal_cluster,
    ),
    Scenario(
        "hubs, round cloud",
        "Gaussian rows, anomalies are inflated",
        "columns",
        _WIDTHS,
        round_cloud,
    ),
    Scenario(
        "hubs, flat cloud",
        "Gaussian rows of unequal variances, anomalies leave the wide directions",
        "columns",
        _WIDTHS,
        flat_cloud,
    ),
    Scenario(
        "scattered (control)",
        "anomalies lie evenly in a box around the clusters",
        "reach of the box beyond the clusters",
        (0.0, 1.0, 2.0, 4.0, 8.0),
        scattered,
    ),
    Scenario(
        "local (control)",
        "anomalies near a dense cluster, nearer than rows of a thin cluster are to each other",
        "distance from the middle of the dense cluster",
        (0.3, 0.4, 0.5, 0.6, 0.8),
        local,
    ),
)
