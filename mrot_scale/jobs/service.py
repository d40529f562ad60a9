"""A few rows at a time, for services, and published scores for programs."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs
from numpy.typing import NDArray

from mrot_scale.config.scoring import Method
from mrot_scale.encoding import Decoder
from mrot_scale.errors import DataError
from mrot_scale.jobs.score_tasks import open_model
from mrot_scale.model.persist import model_schema
from mrot_scale.precision import to_stored
from mrot_scale.reading.sources import open_source
from mrot_scale.rows import check_values
from mrot_scale.running import publish
from mrot_scale.running.lock import locked
from mrot_scale.running.publish import resolve
from mrot_scale.scoring import FittedModel
from mrot_scale.storing.columns import ColumnEncoder
from mrot_scale.storing.ingestion import choose_columns, column_type
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import MANIFEST, Entry
from mrot_scale.storing.schema import Schema
from mrot_scale.threads import one_native_thread

_UNLIMITED = 2**31


def score_rows(model: str | Path, rows: Any, *, method: Method = "model") -> NDArray[np.float32]:
    """Return the score of a few rows: a table object, or a list of dicts.

    The model is loaded once per process and again only when it was replaced.
    """
    place = resolve(Location(model))
    fitted = open_model(place.address, Entry.of((place / MANIFEST).read()).sha256)
    if isinstance(rows, list) and not rows:
        raise DataError("There are 0 rows to score.")
    table = pa.Table.from_pylist(rows) if isinstance(rows, list) else rows
    encoded, _ = encoded_rows(fitted, table)
    check_values(encoded, model_schema(fitted).features, fitted.config.non_finite)
    with one_native_thread():
        return fitted.score_by_policy(encoded, method)


def encoded_rows(model: FittedModel, table: Any) -> tuple[NDArray[np.float64], Schema]:
    """Return rows as the model would see them after an ingest like it, and their columns."""
    schema = model_schema(model)
    stream = open_source(_with_vectors(table, schema))
    choice = choose_columns(stream.schema, like=schema, keep=())
    batches = list(stream.read(choice.features))
    if not batches:
        raise DataError("There are 0 rows to score.")
    known = {c.name: c for c in schema.columns}
    encoders = [
        ColumnEncoder(n, column_type(stream.schema, n, known), known[n], _UNLIMITED)
        for n in choice.features
    ]
    rows = np.concatenate(
        [
            np.column_stack(
                [f for e, n in zip(encoders, choice.features, strict=True) for f in e.encode(b[n])]
            )
            for b in batches
        ]
    )
    found = Schema(tuple(e.column for e in encoders), schema.origin, len(rows), "row")
    return Decoder(schema, found).rows(to_stored(rows, schema.origins)), found


def _with_vectors(table: Any, schema: Schema) -> Any:
    """Return a table whose lists, as JSON has them, are vectors where the model knows vectors."""
    if not isinstance(table, pa.Table):
        return table
    for column in schema.columns:
        position = table.schema.get_field_index(column.name)
        if column.kind == "vector" and position >= 0:
            vectors = table.column(position).cast(pa.list_(pa.float64(), column.width))
            table = table.set_column(position, column.name, vectors)
    return table


def open_scores(parquet: str | Path, *, above: float | None = None) -> Any:
    """Return published Parquet scores as a pyarrow dataset, wherever they are.

    Those of `nightly`, a folder of partitions, are one dataset. `above` keeps only rows that score
    above it, such as `mrot_scale.threshold(model)`.
    """
    found = _open_scores(parquet)
    if above is None:
        return found
    return found.filter(pc.field("score") > pa.scalar(np.float32(above), pa.float32()))


def _open_scores(parquet: str | Path) -> Any:
    visible = Location(parquet)
    if visible.is_local:  # Arrow's own file system follows links, fsspec's does not
        return ds.dataset(resolve(visible).address, partitioning="hive")
    place = resolve(visible)
    handler = pafs.PyFileSystem(pafs.FSSpecHandler(place.filesystem))
    path = place.filesystem._strip_protocol(place.address)
    if place == visible:  # names do not lead anywhere there: pointers do
        files = [file for name in place.names() if "=" in name for file in _files_of(place / name)]
        return ds.dataset(files, filesystem=handler, partitioning="hive", partition_base_dir=path)
    return ds.dataset(path, filesystem=handler, partitioning="hive")


def _files_of(partition: Location) -> list[str]:
    """Return the files of the published generation of one partition."""
    place = resolve(partition)
    root = place.filesystem._strip_protocol(place.address)
    return [f"{root}/{n}" for n in place.files_below() if n.endswith(".parquet") and n[0] != "_"]


def rollback(
    scores: str | Path, to: str | None = None, *, dry_run: bool = False
) -> tuple[str, str]:
    """Let published scores be an earlier generation again; return which it was and which it is."""
    place = Location(scores)
    with locked(place):
        return publish.rollback(place, to, dry_run=dry_run)
