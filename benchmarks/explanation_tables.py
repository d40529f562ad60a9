"""Tables with anomalies planted in columns that they remember."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mrot_scale.synthetic import pump_readings

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Planted:
    """Rows, the kind of each, and which values were planted."""

    name: str
    rows: Floats
    kind: NDArray[np.str_]
    disturbed: Bools

    @property
    def kinds(self) -> list[str]:
        """Kinds that are odd in some columns; rows odd in all of them have no right answer."""
        found = [str(k) for k in np.unique(self.kind) if k != "normal"]
        return [k for k in found if not self.disturbed[self.kind == k].all(axis=1).any()]


def planted_tables(n_rows: int, share: float, seed: int) -> Iterator[Planted]:
    """Yield the pump readings and tables of other shapes."""
    pumps = pump_readings(n_rows, anomaly_share=share, seed=seed)
    yield Planted("pumps", pumps.rows, pumps.kind, pumps.disturbed)
    for make in (correlated, clusters, skewed):
        rng = np.random.default_rng([seed, len(make.__name__)])
        rows, disturbed = make(n_rows, rng.permutation(n_rows)[: int(share * n_rows)], rng)
        kind = np.where(disturbed.any(axis=1), "planted", "normal")
        yield Planted(make.__name__, rows, kind, disturbed)


def wide_table(n_rows: int, n_odd: int, seed: int) -> Planted:
    """Return 200 columns that eight causes explain, in three clusters of unequal spread.

    Half of the odd rows are two small groups of their own; the others have each half of their
    columns from another row.
    """
    rng = np.random.default_rng([seed, 200])
    causes, cluster = rng.normal(size=(8, 200)), rng.integers(3, size=n_rows)
    own = rng.normal(size=(n_rows, 8)) @ causes + np.sqrt(2) * rng.normal(size=(n_rows, 200))
    rows = 3 * rng.normal(size=(3, 200))[cluster] + np.array([0.6, 1.0, 1.5])[cluster, None] * own
    kind, disturbed = np.full(n_rows, "normal", dtype="<U7"), np.zeros(rows.shape, dtype=bool)
    grouped, broken = np.array_split(rng.permutation(n_rows)[:n_odd], 2)
    kind[grouped], kind[broken] = "grouped", "broken"
    groups = 3.5 * rng.normal(size=(2, 200))
    rows[grouped] = groups[np.arange(len(grouped)) % 2] + 0.4 * own[grouped]
    disturbed[grouped] = True
    disturbed[broken] = rng.random((len(broken), 200)) < 0.5
    others = rows[rng.integers(n_rows, size=len(broken))]
    rows[broken] = np.where(disturbed[broken], others, rows[broken])
    return Planted("wide", rows, kind, disturbed)


def correlated(
    n_rows: int, places: NDArray[np.int64], rng: np.random.Generator
) -> tuple[Floats, Bools]:
    """Return ten columns that three causes explain; one or two are shifted off that plane."""
    rows = rng.normal(size=(n_rows, 3)) @ rng.normal(size=(3, 10))
    rows += 0.3 * rng.normal(size=rows.shape)
    disturbed = np.zeros(rows.shape, dtype=bool)
    for place in places:
        columns = rng.choice(10, rng.integers(1, 3), replace=False)
        signs = rng.choice([-1.0, 1.0], len(columns))
        rows[place, columns] += signs * rng.uniform(2, 4, len(columns))
        disturbed[place, columns] = True
    return rows, disturbed


def clusters(
    n_rows: int, places: NDArray[np.int64], rng: np.random.Generator
) -> tuple[Floats, Bools]:
    """Return six clusters; two columns are those of another cluster, where these differ."""
    centers, spreads = rng.uniform(-6, 6, size=(6, 8)), rng.uniform(0.2, 1, size=(6, 8))
    own = rng.integers(6, size=n_rows)
    rows = centers[own] + spreads[own] * rng.normal(size=(n_rows, 8))
    disturbed = np.zeros(rows.shape, dtype=bool)
    for place in places:
        mine = own[place]
        other = rng.choice(np.delete(np.arange(6), mine))
        apart = np.flatnonzero(np.abs(centers[other] - centers[mine]) > 4 * spreads[mine])
        if len(apart) < 2:
            continue
        columns = rng.choice(apart, 2, replace=False)
        values = centers[other] + spreads[other] * rng.normal(size=8)
        rows[place, columns], disturbed[place, columns] = values[columns], True
    return rows, disturbed


def skewed(
    n_rows: int, places: NDArray[np.int64], rng: np.random.Generator
) -> tuple[Floats, Bools]:
    """Return long-tailed columns, one a product of two, a rare flag and a count; some far up."""
    rows = np.exp(0.8 * rng.normal(size=(n_rows, 8)))
    rows[:, 3] = rows[:, 0] * rows[:, 1] * np.exp(0.1 * rng.normal(size=n_rows))
    rows[:, 6], rows[:, 7] = rng.random(n_rows) < 0.02, rng.integers(0, 5, n_rows)
    disturbed = np.zeros(rows.shape, dtype=bool)
    for place in places:
        columns = rng.choice([2, 3, 4, 5], rng.integers(1, 3), replace=False)
        rows[place, columns] *= np.exp(rng.uniform(2.5, 4, len(columns)))
        disturbed[place, columns] = True
    return rows, disturbed
