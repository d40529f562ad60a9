"""Published scores by another threshold: rows above it are counted and listed, none is scored."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mrot_scale.config.scoring import Method
from mrot_scale.digests import array_chunks, scores_manifest, table_manifest
from mrot_scale.errors import (
    ConfigError,
    DamagedDataError,
    MissingInputError,
    ModelMismatchError,
)
from mrot_scale.jobs.score_models import model_identity
from mrot_scale.jobs.score_outputs import SCORES_FORMAT
from mrot_scale.jobs.service import open_scores
from mrot_scale.model.persist import load_model
from mrot_scale.running.publish import resolve
from mrot_scale.scoring import FittedModel
from mrot_scale.storing.arrays import METADATA, ArraySpec
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import MANIFEST, read_format
from mrot_scale.thresholds import Choice, stored_choice, threshold

_BATCH_ROWS = 262_144
SHARES = (0.05, 0.01, 0.005, 0.001)
COUNTS = (10, 100, 1_000)
RISKS = (1e-3, 1e-4)
"""Choices that are shown: shares, rows a night, and what one in so many exceeds."""


@dataclass(frozen=True)
class Option:
    """One way to choose a threshold, and what it would flag."""

    choice: str
    score: float
    training_share: float
    """Share of the training rows above it."""

    per_night: float | None
    """Rows a night, if nights are like the training rows."""

    flagged: int | None
    """Rows above it among published scores."""


@dataclass(frozen=True)
class Options:
    """What may be chosen, and what is."""

    model: str
    method: Method
    chosen: str | None
    """The choice stored beside the model."""

    in_force: float
    rows: int | None
    """Rows of the published scores that were counted."""

    options: tuple[Option, ...]


def threshold_options(
    model: str | Path,
    *,
    method: Method | None = None,
    rows_per_night: int | None = None,
    scores: str | Path | None = None,
    more: Sequence[str] = (),
) -> Options:
    """Return how many rows each choice of a threshold flags; `more` are choices to show as well."""
    place = Location(model)
    fitted, saved = load_model(place)
    used: Method = method or saved.get("method", "model")
    if scores is not None:
        _check_made_by(scores, place)
        used = _facts(scores).get("method", used)
    stored = stored_choice(place)
    choices = _choices(rows_per_night, more, stored)
    levels = {choice: choice.score(fitted.training_scores[used]) for choice in choices}
    n_rows: int | None = None
    counts: Sequence[int | None] = [None] * len(levels)
    if scores is not None:
        n_rows, counts = count_above(scores, list(levels.values()))
    return Options(
        str(model),
        used,
        None if stored is None else stored.text,
        threshold(model, used),
        n_rows,
        tuple(
            _option(fitted, used, choice, level, rows_per_night, count)
            for (choice, level), count in zip(levels.items(), counts, strict=True)
        ),
    )


def _choices(
    rows_per_night: int | None, more: Sequence[str], stored: Choice | None
) -> dict[Choice, None]:
    """Return the choices to show, each once."""
    found = [Choice("share", share) for share in SHARES]
    if rows_per_night is not None:
        fit = [n for n in COUNTS if n <= rows_per_night / 2]
        found += [Choice("count", float(n), rows_per_night) for n in fit]
    found += [Choice("elbow"), *(Choice("evt", risk) for risk in RISKS)]
    found += [Choice.parse(text, rows_per_night) for text in more]
    return dict.fromkeys([*found, *([stored] if stored else [])])


def _option(
    model: FittedModel,
    method: Method,
    choice: Choice,
    level: float,
    rows_per_night: int | None,
    flagged: int | None,
) -> Option:
    share = float(np.mean(model.training_scores[method] > np.float32(level)))
    per_night = None if rows_per_night is None else rows_per_night * share
    return Option(choice.text, level, share, per_night, flagged)


def count_above(scores: str | Path, levels: Sequence[float]) -> tuple[int, list[int]]:
    """Return how many rows have published scores, and how many are above each level."""
    n_rows, counts = 0, np.zeros(len(levels), dtype=np.int64)
    for table in _score_tables(scores):
        values = table["score"].to_numpy()
        values = np.sort(values[~np.isnan(values)])
        n_rows += len(values)
        counts += len(values) - np.searchsorted(
            values, np.asarray(levels, np.float32), side="right"
        )
    return n_rows, counts.tolist()


def flagged(
    scores: str | Path,
    threshold: float | None = None,
    *,
    model: str | Path | None = None,
    limit: int | None = None,
) -> Any:
    """Return the rows of published scores above a threshold as a pyarrow table, highest first.

    Parameters
    ----------
    scores
        Zarr scores (rows by number) or Parquet scores (rows with all their columns), those of
        `nightly` too.
    threshold
        Without one, the threshold in force for `model`; without that, the one scored with.
    limit
        Most rows to return; all when omitted.
    """
    level = np.float32(flag_level(scores, threshold, model))
    kept: Any = None
    for table in _score_tables(scores):
        above = table.filter(pc.greater(table["score"], pa.scalar(level, pa.float32())))
        kept = above if kept is None else pa.concat_tables([kept, above])
        if limit is not None and kept.num_rows > limit:
            kept = _highest(kept, limit)
    return _highest(kept, limit)


def _highest(table: Any, limit: int | None) -> Any:
    order = np.argsort(-table["score"].to_numpy(), kind="stable")[:limit]
    return table.take(pa.array(order))


def flag_level(
    scores: str | Path, given: float | None = None, model: str | Path | None = None
) -> float:
    """Return the threshold given, else the model's, else the one that scores were made with."""
    facts = _facts(scores)
    if given is not None:
        return given
    if model is not None:
        _check_made_by(scores, Location(model))
        return threshold(model, facts.get("method"))
    if not isinstance(facts.get("threshold"), float):
        raise ConfigError(f"{scores} has no threshold of its own. Give --model or --threshold.")
    return float(facts["threshold"])


def _check_made_by(scores: str | Path, model: Location) -> None:
    known = _facts(scores).get("model")
    if isinstance(known, str) and known != model_identity(model):
        raise ModelMismatchError(
            f"{scores} was not scored by {model} as it is now. Give the model it was scored by, or "
            "a threshold."
        )


def _facts(scores: str | Path) -> dict[str, Any]:
    """Return what is known of published scores; nothing of a folder of partitions."""
    place = resolve(Location(scores))
    if not place.exists():
        raise MissingInputError(f"No scores at {place}.")
    if read_format(place) == SCORES_FORMAT:
        return scores_manifest(place).facts
    return table_manifest(place).facts if (place / f"_{MANIFEST}").exists() else {}


def _score_tables(scores: str | Path) -> Iterator[Any]:
    """Yield published scores part by part, with at least a column `score`."""
    place = resolve(Location(scores))
    if read_format(place) != SCORES_FORMAT:
        yield from _parquet_tables(scores)
        return
    manifest, start = scores_manifest(place), 0
    listed = f"score/{METADATA}"
    spec = ArraySpec.from_metadata((place / listed).read(), str(place / listed))
    for values in array_chunks(place, manifest, "score", spec):
        rows = np.arange(start, start + len(values))
        start += len(values)
        yield pa.table({"row": rows, "score": pa.array(values)})


def _parquet_tables(scores: str | Path) -> Iterator[Any]:
    dataset = open_scores(scores)
    if "score" not in dataset.schema.names:
        raise DamagedDataError(f"{scores} holds no scores.")
    empty = True
    for batch in dataset.to_batches(batch_size=_BATCH_ROWS):
        empty = False
        table = pa.Table.from_batches([batch])
        position = table.schema.get_field_index("score")
        filled = pc.cast(pc.fill_null(table["score"], np.float32(np.nan)), pa.float32())
        yield table.set_column(position, "score", filled)
    if empty:
        yield dataset.schema.empty_table()
