"""How a partition's rows are spread, as a model sees them, without scoring all of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mrot_scale.config.job import Config
from mrot_scale.errors import MrotError
from mrot_scale.jobs.score_choices import score_options
from mrot_scale.jobs.score_models import model_identity
from mrot_scale.jobs.score_tasks import ScoreOptions, open_model
from mrot_scale.jobs.service import encoded_rows
from mrot_scale.model.persist import load_model, model_schema
from mrot_scale.profiles import (
    Profile,
    category_profiles,
    count_scores,
    count_values,
    sampled_rows,
)
from mrot_scale.reading.sources import TableStream, open_source
from mrot_scale.scheduled.partitions import Lake, Partition
from mrot_scale.scheduled.registry import ModelEntry
from mrot_scale.scoring import FittedModel
from mrot_scale.storing.location import Location
from mrot_scale.storing.schema import Schema
from mrot_scale.thresholds import stored_choice


@dataclass(frozen=True)
class OpenedModel:
    """A model of the registry, loaded."""

    entry: ModelEntry
    fitted: FittedModel
    saved: dict[str, Any]

    @property
    def schema(self) -> Schema:
        return model_schema(self.fitted)

    def options(self, config: Config) -> ScoreOptions:
        stored = stored_choice(self.entry.location)
        return score_options(self.fitted, self.saved, config, False, (), stored)

    def method(self, config: Config) -> str:
        return self.options(config).method


def opened_model(entry: ModelEntry) -> OpenedModel:
    fitted, saved = load_model(entry.location)
    return OpenedModel(entry, fitted, saved)


def night_profile(
    model: OpenedModel,
    lake: Lake,
    partition: Partition,
    config: Config,
    *,
    with_scores: bool = True,
) -> Profile | None:
    """Return the profile of a partition's rows; None where it has none that the model knows."""
    try:
        stream = open_source(lake.folder(partition), id_column=config.nightly.id)
        n_rows, sample = _sample(stream, _columns(model, stream))
        if sample is None:
            return None
        rows, seen = encoded_rows(model.fitted, sample.select(_known(model)))
    except MrotError:
        return None
    bins = model.fitted.bins
    values = count_values(bins.edges, rows) if bins is not None else np.zeros((0, 0), int)
    scores = _scores(model, rows, sample, config) if with_scores else np.zeros(0, np.float32)
    categories = category_profiles(model.schema, seen)
    return Profile(n_rows, values, count_scores(scores), categories)


def scored_sample(model: OpenedModel, rows: Any, config: Config) -> NDArray[np.float32] | None:
    """Return the scores of rows at even distances of a table; None where it has no rows."""
    stream = open_source(rows, id_column=config.nightly.id)
    _, sample = _sample(stream, _columns(model, stream))
    if sample is None:
        return None
    encoded, _ = encoded_rows(model.fitted, sample.select(_known(model)))
    return _scores(model, encoded, sample, config)


def _known(model: OpenedModel) -> list[str]:
    return [column.name for column in model.schema.columns]


def _columns(model: OpenedModel, stream: TableStream) -> list[str]:
    by = model.entry.by
    return [*_known(model), *([by] if by is not None and by in stream.schema.names else [])]


def _sample(stream: TableStream, columns: list[str]) -> tuple[int, Any]:
    """Return how many rows a table has, and those that a profile looks at."""
    n_rows = stream.n_rows
    if n_rows is None:
        n_rows = sum(batch.num_rows for batch in stream.read(columns[:1]))
    start, pieces = 0, []
    for batch in stream.read(columns):
        some = sampled_rows(start, start + batch.num_rows, n_rows)
        pieces.append(batch.take(pa.array(some)))
        start += batch.num_rows
    return n_rows, pa.Table.from_batches(pieces) if start else None


def _scores(
    model: OpenedModel, rows: NDArray[np.float64], sample: Any, config: Config
) -> NDArray[np.float32]:
    """Return scores of the sample, each row by the model of its group."""
    options = model.options(config)
    scores = model.fitted.score_by_policy(rows, options.method, policy=options.non_finite)
    by = model.entry.by
    if by is None or by not in sample.column_names:
        return scores
    column = sample[by].combine_chunks()
    for value, place in model.entry.groups():
        mine = pc.fill_null(pc.equal(column, pa.scalar(value, column.type)), False)
        members = mine.to_numpy(zero_copy_only=False)
        if members.any():
            own = group_model(place)
            seen, _ = encoded_rows(own, sample.filter(mine).select(_known(model)))
            scores[members] = own.score_by_policy(seen, options.method, policy=options.non_finite)
    return scores


def group_model(place: Location) -> FittedModel:
    return open_model(place.address, model_identity(place))
