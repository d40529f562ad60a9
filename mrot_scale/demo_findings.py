"""The demo's scores beside the planted truth: what was found, and what was not."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from mrot_scale.jobs.service import open_scores, score_rows
from mrot_scale.synthetic import LOG_KINDS

ID, TRUTH = "reading", "planted"
TOP_COLUMNS = 3
HIGH = 0.95
"""What one in twenty ordinary readings scores above."""

N_HIGHEST = 100
"""The highest scores: as many as somebody may look at."""

_TOP_ROWS = 10
_EFFORT_ROWS = 10_000
"""Readings also scored by effort: seconds instead of minutes, and enough to compare."""


@dataclass(frozen=True)
class Finding:
    """One of the most anomalous readings, with the columns that made it so."""

    reading: int
    kind: str
    score: float
    columns: tuple[tuple[str, Any], ...]
    """Name and value, the strongest first."""


@dataclass(frozen=True)
class Caught:
    """How many anomalies of a kind were planted, and how many of them the scores point at."""

    planted: int
    flagged: int
    high: int
    """Those that score above `HIGH`."""


@dataclass(frozen=True)
class Detection:
    """The flags and the highest scores beside the truth."""

    kinds: dict[str, Caught]
    n_flagged: int
    n_high: int
    n_highest: int
    highest_planted: int
    """Planted ones among the `n_highest` highest scores."""

    @property
    def high_planted(self) -> int:
        """Planted ones among those that score above `HIGH`."""
        return sum(kind.high for kind in self.kinds.values())

    @property
    def planted(self) -> int:
        return sum(kind.planted for kind in self.kinds.values())

    @property
    def flagged_planted(self) -> int:
        """Planted ones among those flagged."""
        return sum(kind.flagged for kind in self.kinds.values())


def detection(table: Path) -> Detection:
    """Return how many of the planted anomalies the scores of a table point at."""
    found = open_scores(table).to_table(columns=[ID, TRUTH, "score", "flag"])
    kind, flag = found[TRUTH].to_numpy(), found["flag"].to_numpy().astype(bool)
    high = found["score"].to_numpy() > HIGH
    highest = kind[_highest(found, N_HIGHEST)]
    kinds = {
        name: Caught(*(int((rows & (kind == name)).sum()) for rows in (kind != "", flag, high)))
        for name in LOG_KINDS
    }
    return Detection(
        kinds,
        int(flag.sum()),
        int(high.sum()),
        len(highest),
        int((highest != "normal").sum()),
    )


def _highest(scores: pa.Table, count: int) -> NDArray[np.int64]:
    """Return where the highest scores are, the highest first; of equal ones the first reading."""
    order = [("score", "descending"), (ID, "ascending")]
    rows: NDArray[np.int64] = pc.select_k_unstable(scores, k=count, sort_keys=order).to_numpy()
    return rows


def auc_per_kind(kind: NDArray[np.object_], scores: NDArray[np.float32]) -> dict[str, float]:
    """Return the AUC of each planted kind, and of all of them, against the normal readings."""
    normal = kind == "normal"
    found = {"all": float(roc_auc_score(~normal, scores))}
    for name in LOG_KINDS:
        chosen = normal | (kind == name)
        found[name] = float(roc_auc_score(kind[chosen] == name, scores[chosen]))
    return found


def auc_of_scores(table: Path) -> dict[str, float]:
    """Return it for all readings, by the scores that were published."""
    found = open_scores(table).to_table(columns=[TRUTH, "score"])
    return auc_per_kind(found[TRUTH].to_numpy(), found["score"].to_numpy())


def auc_of_efforts(readings: Path, model: Path) -> dict[str, float]:
    """Return the same for the first readings, scored against anchors as a service would."""
    batch = next(pq.ParquetFile(readings).iter_batches(_EFFORT_ROWS))
    some = pa.Table.from_batches([batch])
    return auc_per_kind(some[TRUTH].to_numpy(), score_rows(model, some, method="effort"))


def most_anomalous(readings: Path, table: Path) -> tuple[Finding, ...]:
    """Return the readings with the highest scores, and what raised them."""
    scores = open_scores(table)
    ranked = scores.to_table(columns=[ID, "score"])
    ids = ranked[ID].take(_highest(ranked, _TOP_ROWS)).to_pylist()
    chosen = pc.field(ID).isin(ids)
    values = {row[ID]: row for row in pq.read_table(readings, filters=chosen).to_pylist()}
    scored = {row[ID]: row for row in scores.to_table(filter=chosen).to_pylist()}
    return tuple(_finding(scored[reading], values[reading]) for reading in ids)


def _finding(scored: dict[str, Any], values: dict[str, Any]) -> Finding:
    features = [scored[f"top_{place + 1}"] for place in range(TOP_COLUMNS)]
    columns = [feature.partition(".")[0] for feature in features if feature]
    return Finding(
        scored[ID],
        scored[TRUTH],
        scored["score"],
        tuple((name, values[name]) for name in dict.fromkeys(columns)),
    )
