"""Rows that keep company share their rarity.

The effort of a single row is a noisy witness of how thin the region is that it lies in. Its
neighbours in the sample bear witness to the same region, so their rarities are averaged with its
own. A neighbour counts fully where the row lies within that neighbour's own reach, and ever less
the farther away it is: a row that stands alone keeps the rarity it has.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mrot_scale.method.loneliness import Loneliness, Units, fit_loneliness, units_of
from mrot_scale.method.nearest import Found, NearestRows

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

_ALWAYS_ROWS = 20_000
"""Rows of the sample that company is found among however many columns they have."""

_MOST_VALUES = 2_000_000
"""Coordinates of more rows than that: the model keeps them, 16 MB, and searches read many."""

_ROWS_PER_NEIGHBOUR = 4
"""Fewest rows for each neighbour that counts: if all of them were, all rows would be alike."""


@dataclass(frozen=True)
class Company:
    """Rows of the sample in the coordinates of one view, with how rare they are in all views."""

    rows: Floats
    """(m, q)."""

    rarity: Floats
    """As rows never seen would have it, (m, views)."""

    reach: Floats
    """Squared distance of each to the last of its own neighbours, (m,)."""

    view: int
    """Number of that view."""

    wanted: int
    """Neighbours that a row is averaged with, where there are rows enough."""

    loneliness: Loneliness | None = None
    """What rows get for lying apart from them; None where that counts for nothing, and in models
    of before."""

    @property
    def count(self) -> int:
        """Neighbours that a row is averaged with."""
        return company_count(len(self.rows), self.wanted)

    @cached_property
    def _nearest(self) -> NearestRows:
        return NearestRows(self.rows)

    @cached_property
    def _units(self) -> Units:
        return units_of(self.reach)

    def shared(self, points: Floats, rarity: Floats, *, threads: int = 1) -> Floats:
        """Return the rarity of points never seen, (n, views), averaged with that of neighbours."""
        return self.averaged(rarity, self._nearest.search(points, self.count, threads=threads))

    def averaged(self, rarity: Floats, found: Found) -> Floats:
        """Return rarities averaged with those of the neighbours found, and more for being alone."""
        ids, squared = found
        total, weights = rarity.copy(), np.ones(len(rarity))
        for place, apart in zip(ids.T, squared.T, strict=True):  # one by one: the same bits always
            weight = weight_of(self.reach[place], apart)
            total += weight[:, None] * self.rarity[place]
            weights += weight
        shared = total / weights[:, None]
        if self.loneliness is None:
            return shared
        return np.asarray(shared + self.loneliness.added(found, self._units)[:, None])


def most_company_rows(n_columns: int, label_rows: int) -> int:
    """Return how many rows with so many coordinates company is found among at most.

    More than always only where that many labels are asked for: every row scored is searched for.
    """
    return max(_ALWAYS_ROWS, min(label_rows, _MOST_VALUES // n_columns))


def company_count(n_rows: int, wanted: int) -> int:
    """Return how many neighbours count among so many rows."""
    return max(1, min(wanted, n_rows // _ROWS_PER_NEIGHBOUR))


def weight_of(reach: Floats, squared: Floats) -> Floats:
    """Return how much neighbours count: 1 within their reach, beyond it (reach / distance)^4."""
    ratio = np.divide(reach, squared, out=np.ones_like(squared), where=squared > reach)
    return np.asarray(np.square(ratio))


def without(places: Ids, found: Found) -> Found:
    """Return the neighbours without the row of its own place, or without the last."""
    ids, squared = found
    own = ids == places[:, None]
    own[:, -1] |= ~own.any(axis=1)
    kept = (len(ids), ids.shape[1] - 1)
    return ids[~own].reshape(kept), squared[~own].reshape(kept)


@dataclass(frozen=True)
class Shared:
    """The company that a sample keeps, and the rarities of its rows once shared, (n, views)."""

    company: Company
    seen: Floats
    """As scoring the sample again gives them: a row finds itself."""

    unseen: Floats
    """As rows never seen would get them: a row is left out of its own company."""


def share_in_sample(
    points: Floats,
    drawn: Ids,
    rarities: tuple[Floats, Floats],
    *,
    view: int,
    wanted: int,
    loneliness: float = 0.0,
    threads: int = 1,
) -> Shared:
    """Return the company that the rows drawn from a sample make, and what all its rows share.

    `drawn` are row numbers of the sample, ascending; `rarities` are those of all its rows, seen and
    unseen; `loneliness` is what lying apart counts. One search serves all.
    """
    seen, unseen = rarities
    count = company_count(len(drawn), wanted)
    ids, squared = NearestRows(points[drawn]).search(points, count + 1, threads=threads)
    places = np.full(len(points), -1)
    places[drawn] = np.arange(len(drawn))
    others = without(places, (ids, squared))
    reach = np.minimum(others[1][drawn, -1], np.finfo(np.float64).max)  # files hold no infinity
    company = Company(points[drawn], unseen[drawn], reach, view, wanted)
    if loneliness > 0:
        company = replace(company, loneliness=fit_loneliness(others, units_of(reach), loneliness))
    again = company.averaged(seen, (ids[:, :-1], squared[:, :-1]))
    return Shared(company, again, company.averaged(unseen, others))
