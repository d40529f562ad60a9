"""Which rows meet in one transport problem.

The plan is data: a function of the number of rows, the settings and the seed, never of storage or
scheduling. Each repeat permutes all rows and cuts them into batches of exactly `batch_rows`; the
last batch is filled with rows drawn again, whose efforts are not kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mrot_scale.errors import DataError
from mrot_scale.seeds import generator

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """One transport problem: its rows in ascending order and which of them it answers for."""

    repeat: int
    number: int
    rows: Rows
    own: NDArray[np.bool_]

    def __str__(self) -> str:
        return f"repeat {self.repeat}, batch {self.number}"


@dataclass(frozen=True)
class BatchPlan:
    """All batches over `n_rows` rows, each row in exactly `repeats` of them."""

    n_rows: int
    batch_rows: int
    repeats: int
    seed: int
    part: int = 0
    """Which part of a larger table these rows are: parts are drawn independently."""

    def __post_init__(self) -> None:
        if not 1 <= self.batch_rows <= self.n_rows:
            raise DataError(f"{self.n_rows} rows cannot fill batches of {self.batch_rows}.")

    @property
    def batches_per_repeat(self) -> int:
        return -(-self.n_rows // self.batch_rows)

    @property
    def n_batches(self) -> int:
        return self.repeats * self.batches_per_repeat

    def repeat_batches(self, repeat: int) -> Iterator[Batch]:
        """Yield the batches of one repeat, in order."""
        counters = (repeat, self.part) if self.part else (repeat,)
        rng = generator(self.seed, "batches", *counters)
        order = rng.permutation(self.n_rows)
        for number, start in enumerate(range(0, self.n_rows, self.batch_rows)):
            own = order[start : start + self.batch_rows]
            missing = self.batch_rows - len(own)
            filler = rng.choice(order[:start], missing, replace=False) if missing else own[:0]
            rows = np.concatenate([own, filler])
            ascending = np.argsort(rows)
            yield Batch(repeat, number, rows[ascending], ascending < len(own))

    def __iter__(self) -> Iterator[Batch]:
        for repeat in range(self.repeats):
            yield from self.repeat_batches(repeat)


def zone_count(batch_rows: int, alpha: float, k: int | None) -> int:
    """Return how many other rows a zone of mass `alpha` (or of `k` rows) holds in one batch."""
    return k if k is not None else max(2, round(alpha * batch_rows))


def fitting_batch_rows(n_rows: int, wanted: int | None, alpha: float, k: int | None) -> int:
    """Return the batch size to use: the wanted one, half of a small table, or the whole of it.

    `None` asks for one batch holding all rows. A batch must keep one row outside the zone.
    """
    half = n_rows // 2
    size = n_rows if wanted is None else min(wanted, half)
    if size < zone_count(size, alpha, k) + 2:
        size = n_rows
    needed = zone_count(size, alpha, k) + 2
    if n_rows < needed:
        raise DataError(
            f"Found {n_rows} row(s), but a zone of {needed - 2} other rows needs at least {needed} "
            "(minimum of row, zone and one row outside). Give more rows or a smaller zone."
        )
    return size
