"""Record batches become chunks: encoded, shifted, measured and cut, in one pass and bounded memory.

Statistics, vocabularies and origins depend on the rows and their order alone, never on how the
source was cut into batches or the store into chunks.
"""

import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mrot_scale.errors import ConfigError, DataError, ModelMismatchError
from mrot_scale.precision import HEAD_ROWS, column_origins, to_stored
from mrot_scale.storing.columns import ColumnEncoder, kind_of
from mrot_scale.storing.identifiers import RepeatFinder
from mrot_scale.storing.schema import Column, Schema
from mrot_scale.storing.statistics import ColumnStatistics

Floats = NDArray[np.float64]

LARGEST_LOSS = 0.01
"""Share of a column's distinct values that may fall together in float32."""

_EXCLUDED, _NOT_INCLUDED = "excluded", "not included"
_PARTITION_KEY, _CARRIED = "partition key", "carried along"
ASKED_FOR = (_EXCLUDED, _NOT_INCLUDED, _PARTITION_KEY, _CARRIED)
"""Reasons to leave a column out that come from the user, who need not be told."""

_SAMPLED_VALUES = 2**22
_RUNNING_NUMBER = "row"
_ALIKE = {"number": "number", "boolean": "number"}


@dataclass(frozen=True)
class ColumnChoice:
    """Which columns of a source become features, which are carried, and which are not used."""

    features: tuple[str, ...]
    id_column: str | None
    carried: tuple[str, ...]
    partition_keys: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]

    @property
    def read(self) -> list[str]:
        """Columns to read, each once."""
        wanted = [*self.features, *self.carried, *([self.id_column] if self.id_column else [])]
        return list(dict.fromkeys(wanted))


def choose_columns(
    schema: Any,
    *,
    partition_keys: Sequence[str] = (),
    id_column: str | None = None,
    include: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    keep: Sequence[str] | None = None,
    like: Schema | None = None,
) -> ColumnChoice:
    """Return what happens to each column of an Arrow schema.

    Unless `keep` names columns to carry, those are carried that features could not give back.
    """
    named = [*(include or ()), *exclude, *(keep or ()), *([id_column] if id_column else [])]
    _check_known(named, schema.names)
    if like is not None and (include or exclude):
        raise ConfigError("like decides the columns: leave include and exclude away.")
    reasons: dict[str, str] = dict.fromkeys(partition_keys, _PARTITION_KEY)
    reasons |= dict.fromkeys(exclude, _EXCLUDED)
    if id_column:
        reasons[id_column] = "row identifier"
    if like is not None:
        features = _columns_like(like, schema)
        unknown = [n for n in schema.names if n not in features and n not in reasons]
        reasons |= dict.fromkeys(unknown, "not among the columns asked for")
        reasons |= {n: _CARRIED for n in keep or () if n in unknown}
    else:
        features = list(dict.fromkeys(include or schema.names))
        reasons |= _unusable(schema, features)
        if include is not None:
            reasons |= {n: _NOT_INCLUDED for n in schema.names if n not in include}
        features = [name for name in features if name not in reasons]
    if not features:
        raise DataError("No column is left to become a feature: " + _listed_reasons(reasons))
    if keep is None:
        keep = [
            n for n in schema.names if n != id_column and _is_worth_carrying(schema, n, reasons)
        ]
    carried = tuple(dict.fromkeys([*keep, *partition_keys]))
    left_out = tuple(
        (n, reasons[n]) for n in schema.names if n in reasons and n not in (id_column, *features)
    )
    return ColumnChoice(tuple(features), id_column, carried, tuple(partition_keys), left_out)


def _is_worth_carrying(schema: Any, name: str, reasons: Mapping[str, str]) -> bool:
    """Tell whether a column is small, and lost unless it is carried along."""
    found = schema.field(name).type
    kind = kind_of(found)
    if kind in ("datetime", "date", "time"):
        return True
    return name in reasons and kind not in (None, "vector")


def n_features(schema: Any, choice: ColumnChoice) -> int:
    """Return how many features the chosen columns become."""
    encoders = [ColumnEncoder(n, column_type(schema, n, {}), None, 1) for n in choice.features]
    return sum(len(e.column.features) for e in encoders)


def _check_known(named: Sequence[str], known: Sequence[str]) -> None:
    for name in named:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ConfigError(f"The source has no column {name!r}.{hint}")


def _unusable(schema: Any, names: Sequence[str]) -> dict[str, str]:
    """Return why some columns cannot be features."""
    reasons = {}
    for name in names:
        found = schema.field(name).type
        if pa.types.is_null(found):
            reasons[name] = "every value is missing"
        elif kind_of(found) is None:
            reasons[name] = f"type {found} has no numbers"
    return reasons


def _listed_reasons(reasons: Mapping[str, str]) -> str:
    return "; ".join(f"{name!r}: {why}" for name, why in reasons.items()) + "."


def _columns_like(like: Schema, schema: Any) -> list[str]:
    """Return the columns a model or store knows, after checking that they are here."""
    problems, there = [], set(schema.names)
    for column in like.columns:
        if column.name not in there:
            problems.append(f"column {column.name!r} is missing")
            continue
        found = schema.field(column.name).type
        kind = kind_of(found)
        if not _is_alike(kind, column.kind) and not pa.types.is_null(found):
            problems.append(f"column {column.name!r} is a {kind or found}, not a {column.kind}")
        elif column.kind == "vector" and kind and found.list_size != column.width:
            problems.append(
                f"column {column.name!r} has vectors of {found.list_size}, not {column.width}"
            )
    if problems:
        raise ModelMismatchError(f"The source does not fit: {'; '.join(problems)}.")
    return [column.name for column in like.columns]


def _is_alike(found: str | None, expected: str) -> bool:
    return found is not None and _ALIKE.get(found, found) == _ALIKE.get(expected, expected)


@dataclass(frozen=True)
class ChunkContent:
    """The rows of one chunk, ready to be written."""

    number: int
    features: NDArray[np.float32]
    ids: Any
    """Arrow table of identifiers and carried columns."""

    def digest(self) -> str:
        """Return a digest of the decoded content."""
        found = hashlib.sha256(np.ascontiguousarray(self.features).data)
        found.update(self.ids_bytes)
        return found.hexdigest()

    @cached_property
    def ids_bytes(self) -> bytes:
        """Return the identifiers as a Parquet file."""
        buffer = io.BytesIO()
        pq.write_table(self.ids, buffer, compression="zstd", row_group_size=max(len(self.ids), 1))
        return buffer.getvalue()


class StoreBuilder:
    """Takes record batches in order and gives chunks, then the schema."""

    def __init__(
        self,
        choice: ColumnChoice,
        source_schema: Any,
        *,
        scratch: Path,
        vocabulary: int,
        like: Schema | None = None,
    ) -> None:
        self._choice, self._like = choice, like
        known = {c.name: c for c in like.columns} if like else {}
        self._encoders = [
            ColumnEncoder(
                name, column_type(source_schema, name, known), known.get(name), vocabulary
            )
            for name in choice.features
        ]
        self._repeats = RepeatFinder(scratch) if choice.id_column else None
        self._source_schema = source_schema
        sampled = max(500, min(10_000, _SAMPLED_VALUES // self.n_features))
        self._statistics = ColumnStatistics(self.n_features, sample_rows=sampled)
        self._origin: Floats | None = np.array(like.origin) if like else None
        self._n_rows = 0

    @property
    def n_features(self) -> int:
        return sum(len(e.column.features) for e in self._encoders)

    @property
    def id_name(self) -> str:
        if self._choice.id_column:
            return self._choice.id_column
        name = _RUNNING_NUMBER
        while name in self._choice.carried:
            name += "_number"
        return name

    def chunks(self, batches: Iterable[Any], chunk_rows: int) -> Iterator[ChunkContent]:
        """Yield the chunks of the stream; a chunk is given out as soon as it is full."""
        filling = np.empty((chunk_rows, self.n_features), dtype=np.float32)
        ids: list[Any] = []
        number = filled = 0
        for stored, names in self._stored(batches):
            while len(stored):
                room = min(chunk_rows - filled, len(stored))
                filling[filled : filled + room] = stored[:room]
                ids.append(names.slice(0, room))
                stored, names, filled = stored[room:], names.slice(room), filled + room
                if filled == chunk_rows:
                    yield ChunkContent(number, filling.copy(), _joined(ids))
                    ids, number, filled = [], number + 1, 0
        if filled:
            yield ChunkContent(number, filling[:filled].copy(), _joined(ids))

    def _stored(self, batches: Iterable[Any]) -> Iterator[tuple[NDArray[np.float32], Any]]:
        """Yield batches of rows as they will rest, with their identifiers."""
        for rows, names in self._with_origin(self._encoded(batches)):
            assert self._origin is not None  # set by the head
            try:
                stored = to_stored(rows, self._origin, first_row=self._n_rows)
            except DataError as error:
                raise DataError(f"{error} Columns: {', '.join(self._choice.features)}.") from None
            self._statistics.add(rows, stored)
            self._n_rows += len(rows)
            yield stored, names

    def _with_origin(self, encoded: Iterator[tuple[Floats, Any]]) -> Iterator[tuple[Floats, Any]]:
        """Hold back the head of the table until it has decided the origins."""
        held: list[tuple[Floats, Any]] = []
        for rows, names in encoded:
            held.append((rows, names))
            if self._origin is not None or sum(len(r) for r, _ in held) >= HEAD_ROWS:
                self._decide_origin(held)
                yield from held
                held = []
        self._decide_origin(held)
        yield from held

    def _decide_origin(self, held: list[tuple[Floats, Any]]) -> None:
        if self._origin is None and held:
            origin = column_origins(np.concatenate([rows for rows, _ in held])[:HEAD_ROWS])
            self._origin = np.where(self._is_code(), 0.0, origin)

    def _is_code(self) -> NDArray[np.bool_]:
        kinds = [e.kind for e in self._encoders for _ in e.column.features]
        return np.array([kind == "category" for kind in kinds])

    def _encoded(self, batches: Iterable[Any]) -> Iterator[tuple[Floats, Any]]:
        n_before = 0
        for batch in batches:
            if batch.num_rows == 0:
                continue
            features = [f for e, n in self._named_encoders() for f in e.encode(batch.column(n))]
            yield np.column_stack(features), self._identifiers(batch, n_before)
            n_before += batch.num_rows

    def _named_encoders(self) -> Iterator[tuple[ColumnEncoder, str]]:
        return zip(self._encoders, self._choice.features, strict=True)

    def _identifiers(self, batch: Any, n_before: int) -> Any:
        if self._choice.id_column:
            keys = batch.column(self._choice.id_column)
            if self._repeats:
                self._repeats.add(keys)
        else:
            keys = pa.array(np.arange(n_before, n_before + batch.num_rows))
        columns = {self.id_name: keys}
        columns |= {n: batch.column(n) for n in self._choice.carried if n != self.id_name}
        return pa.table(columns)

    def finish(self, *, allow_lost_values: bool) -> Schema:
        """Return the schema of all rows seen, or why they make no store."""
        if self._n_rows == 0 or self._origin is None:
            raise DataError("The source has 0 rows.")
        self._check_identifiers()
        schema = Schema(
            columns=tuple(e.column for e in self._encoders),
            origin=tuple(float(v) for v in self._origin),
            n_rows=self._n_rows,
            id_column=self.id_name,
            carried=tuple(n for n in self._choice.carried if n != self.id_name),
            partition_keys=self._choice.partition_keys,
            left_out=self._choice.left_out,
            statistics=tuple(self._statistics.finish()),
        )
        if not allow_lost_values:
            _check_losses(schema)
        return schema

    def _check_identifiers(self) -> None:
        found = self._repeats.repeats() if self._repeats else None
        if found is not None:
            earlier, later = found.first[0]
            raise DataError(
                f"Row identifiers in column {self._choice.id_column!r} repeat: {found.n_repeated} "
                f"row(s) have one seen before, first row {later} (as row {earlier}). Use a column "
                "that names each row once, or none."
            )


def column_type(schema: Any, name: str, known: Mapping[str, Column]) -> Any:
    """Return a column's type; one that is missing throughout has the type it is known to have."""
    found = schema.field(name).type
    if not pa.types.is_null(found):
        return found
    by_kind = {"category": pa.string(), "datetime": pa.timestamp("us"), "date": pa.date32()}
    by_kind |= {"time": pa.time64("us"), "boolean": pa.bool_()}
    if name in known and known[name].kind == "vector":
        return pa.list_(pa.float64(), known[name].width)
    return by_kind.get(known[name].kind if name in known else "number", pa.float64())


def _joined(tables: list[Any]) -> Any:
    return pa.concat_tables(tables).combine_chunks()


def _check_losses(schema: Schema) -> None:
    """Refuse columns whose values fall together; the parts of a time are told apart together."""
    statistics = iter(schema.statistics)
    for column in schema.columns:
        lost = max(next(statistics).lost_share for _ in column.features)
        if lost > LARGEST_LOSS and column.kind not in ("datetime", "date", "time"):
            raise DataError(
                f"Column {column.name!r} loses {lost:.1%} of its distinct values in float32 (limit "
                f"{LARGEST_LOSS:.0%}). Scale or split it, exclude it, or set "
                "store.allow_lost_values: true."
            )
