"""What one chunk of scores leaves for the report: counts, its highest rows, and a few for the map.

Rows travel as they rest, so that the driver need not read the store again.
"""

import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.config.job import ReportConfig
from mrot_scale.running.commit import Record
from mrot_scale.running.tasks import Work
from mrot_scale.storing.location import Location
from mrot_scale.storing.store import FeatureStore

Stored = NDArray[np.float32]
Ids = NDArray[np.int64]

SCORE_CELLS = 1_000
"""Cells of equal width in which all scores are counted."""

_PART = "report"
_MOST_BYTES = 2**18
"""Of the highest rows of one chunk: of a wide table, fewer of them are kept."""

_CHUNK_BYTES, _BIN_BYTES = 16_384, 192
"""Of the counts of one chunk: of its scores, and of each column's values."""


@dataclass(frozen=True)
class ShownRows:
    """Some rows of a store, as they rest, with their scores."""

    rows: Ids
    scores: NDArray[np.float32]
    groups: Ids
    """Which of the models scored each."""

    stored: Stored

    @classmethod
    def of(cls, found: dict[str, NDArray[Any]], name: str) -> "ShownRows":
        return cls(*(found[f"{name}.{part}"] for part in ("rows", "scores", "groups", "stored")))

    @classmethod
    def none(cls, n_features: int) -> "ShownRows":
        ids = np.zeros(0, dtype=np.int64)
        return cls(ids, ids.astype(np.float32), ids, np.zeros((0, n_features), np.float32))

    def highest(self, most: int) -> "ShownRows":
        """Return the rows with the highest scores, highest first, the earlier of equals first."""
        return self.take(np.lexsort((self.rows, -self.scores))[:most])

    def take(self, places: Ids) -> "ShownRows":
        return ShownRows(
            self.rows[places], self.scores[places], self.groups[places], self.stored[places]
        )


@dataclass(frozen=True)
class ScoreParts:
    """What all chunks left for a report."""

    counts: dict[str, Ids]
    """Rows in each cell of the score (`cells`), and of a sample what a profile is made of."""

    top: ShownRows
    points: ShownRows
    is_whole: bool
    """Whether every chunk left something: not where a run was gone on with other settings."""


def wanted_parts(config: ReportConfig) -> dict[str, int] | None:
    """Return what tasks are to leave, None for nothing."""
    return {"rows": config.rows, "points": config.points} if config.enabled else None


def parts_bytes(config: ReportConfig, n_chunks: int, n_rows: int, n_features: int) -> int:
    """Return what all tasks leave for the report, at most."""
    if not config.enabled:
        return 0
    n_top = min(config.rows, _MOST_BYTES // (4 * n_features) + 1)
    shown = min(n_chunks * n_top, n_rows) + min(2 * config.points, n_rows)
    return n_chunks * (_CHUNK_BYTES + _BIN_BYTES * n_features) + shown * (4 * n_features + 64)


def put_parts(
    work: Work,
    store: FeatureStore,
    chunk: int,
    stored: Stored,
    found: dict[str, NDArray[Any]],
    members: list[Ids],
    counts: dict[str, Ids],
    wanted: dict[str, int],
) -> None:
    """Leave what the report needs of a chunk, as one object: many small ones are slow to write."""
    start, stop = store.chunks.chunk_to_rows(chunk)
    most = min(wanted["rows"], _MOST_BYTES // (4 * stored.shape[1]) + 1)
    places = {
        "top": _highest(found["score"], np.flatnonzero(found["flag"]), most),
        "points": _even(start, stop, store.n_rows, wanted["points"]),
    }
    arrays: dict[str, NDArray[Any]] = {"cells": count_cells(found["score"]), **counts}
    for name, some in places.items():
        arrays[f"{name}.rows"] = some + start
        arrays[f"{name}.scores"] = found["score"][some]
        arrays[f"{name}.groups"] = _groups(some, members)
        arrays[f"{name}.stored"] = stored[some]
    work.attempt.put(_PART, packed(arrays))


def packed(arrays: dict[str, NDArray[Any]]) -> bytes:
    """Return arrays as one file: a line that says what they are, then their bytes, compressed.

    A Zarr chunk for each would take longer than all the counting.
    """
    head = {name: [a.dtype.str, list(a.shape)] for name, a in arrays.items()}
    content = b"".join(np.ascontiguousarray(a).tobytes() for a in arrays.values())
    return json.dumps(head).encode() + b"\n" + zlib.compress(content, 1)


def unpacked(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file that `packed` made."""
    line, _, rest = content.partition(b"\n")
    values, found, start = zlib.decompress(rest), {}, 0
    for name, (dtype, shape) in json.loads(line).items():
        count = prod(shape)
        found[name] = np.frombuffer(values, dtype, count, start).reshape(shape)
        start += found[name].nbytes
    return found


def count_cells(scores: NDArray[np.float32]) -> Ids:
    """Return how many scores are in each cell; rows without one are in none."""
    missing = np.isnan(scores)
    known = scores[~missing] if missing.any() else scores
    cells = np.minimum((known * np.float32(SCORE_CELLS)).astype(np.int32), SCORE_CELLS - 1)
    return np.bincount(cells, minlength=SCORE_CELLS).astype(np.int64)


def _highest(scores: NDArray[np.float32], flagged: Ids, most: int) -> Ids:
    return flagged[np.lexsort((flagged, -scores[flagged]))[:most]]


def _even(start: int, stop: int, n_rows: int, points: int) -> Ids:
    """Return rows at even distances over the whole table, from start on."""
    if points == 0:
        return np.zeros(0, dtype=np.int64)
    step = max(n_rows // points, 1)
    return np.arange(-(-start // step) * step, stop, step) - start


def _groups(places: Ids, members: list[Ids]) -> Ids:
    """Return which of the models scored each row."""
    groups = np.zeros(len(places), dtype=np.int64)
    for number, rows in enumerate(members[1:], start=1):
        groups[np.isin(places, rows)] = number
    return groups


def read_parts(records: Iterable[Record], run: Location, n_features: int, most: int) -> ScoreParts:
    """Return what all chunks left, of the highest rows only so many as are wanted."""
    counts: dict[str, Ids] = {}
    top = points = ShownRows.none(n_features)
    is_whole = True
    for record in records:
        if _PART not in record.objects:
            is_whole = False
            continue
        found = unpacked(record.objects[_PART].read(run))
        for name in (n for n in found if "." not in n):
            counts[name] = counts.get(name, 0) + found[name]
        top = _joined(top, ShownRows.of(found, "top")).highest(most)
        points = _joined(points, ShownRows.of(found, "points"))
    return ScoreParts(counts, top, points, is_whole)


def _joined(first: ShownRows, second: ShownRows) -> ShownRows:
    return ShownRows(
        np.concatenate([first.rows, second.rows]),
        np.concatenate([first.scores, second.scores]),
        np.concatenate([first.groups, second.groups]),
        np.concatenate([first.stored, second.stored]),
    )
