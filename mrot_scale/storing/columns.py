"""From Arrow columns to features: numbers as they are, times in cycles, categories as codes."""

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mrot_scale.errors import DataError
from mrot_scale.storing.schema import LARGEST_WIDTH, MISSING_CODE, OTHER_CODE, Column, Kind

Floats = NDArray[np.float64]

_SECONDS_PER_DAY = 86_400
_SECONDS_PER_WEEK = 7 * _SECONDS_PER_DAY
_MICROSECONDS = 1_000_000
_LARGEST_WHOLE = 2**53
_LARGEST_LOSS = 0.01


@lru_cache(256)
def kind_of(arrow_type: Any) -> Kind | None:
    """Return what a column of this type becomes; None where nothing sensible."""
    types = pa.types
    if types.is_dictionary(arrow_type):
        return kind_of(arrow_type.value_type)
    if types.is_boolean(arrow_type):
        return "boolean"
    if types.is_timestamp(arrow_type):
        return "datetime"
    if types.is_date(arrow_type):
        return "date"
    if types.is_time(arrow_type):
        return "time"
    if _is_number(arrow_type):
        return "number"
    if types.is_string(arrow_type) or types.is_large_string(arrow_type):
        return "category"
    if types.is_fixed_size_list(arrow_type) and _is_number(arrow_type.value_type):
        return "vector" if 0 < arrow_type.list_size <= LARGEST_WIDTH else None
    return "category" if types.is_string_view(arrow_type) else None


def _is_number(arrow_type: Any) -> bool:
    types = pa.types
    return bool(
        types.is_integer(arrow_type)
        or types.is_floating(arrow_type)
        or types.is_decimal(arrow_type)
        or types.is_duration(arrow_type)
    )


class ColumnEncoder:
    """Turns one column, batch after batch, into its features."""

    def __init__(self, name: str, arrow_type: Any, like: Column | None, vocabulary: int) -> None:
        kind = kind_of(arrow_type)
        if kind is None:
            raise DataError(f"Column {name!r} of type {arrow_type} cannot become a feature.")
        alike = like is not None and {kind, like.kind} == {"number", "boolean"}
        self.kind: Kind = like.kind if like is not None and alike else kind
        self._name, self._type = name, arrow_type
        self._width = arrow_type.list_size if kind == "vector" else 1
        self._codes = Codes(like.vocabulary if like else (), vocabulary)

    @property
    def column(self) -> Column:
        """The column as the schema describes it, after the batches so far."""
        if self.kind != "category":
            return Column(self._name, self.kind, width=self._width)
        return Column(
            self._name,
            self.kind,
            vocabulary=tuple(self._codes.values),
            counts=tuple(self._codes.counts),
            n_missing=self._codes.n_missing,
            n_other=self._codes.n_other,
        )

    def encode(self, values: Any) -> list[Floats]:
        """Return the features of a batch of this column."""
        try:
            return self._features(values)
        except pa.ArrowInvalid as error:
            raise DataError(f"Column {self._name!r} cannot be converted: {error}.") from None

    def _check_told_apart(self, values: Any) -> None:
        """Refuse whole numbers so large that different ones would become the same."""
        if not _has_wide_integers(values):
            return
        n_before = pc.count_distinct(values).as_py()
        n_after = len(np.unique(_as_floats(values.drop_null())))
        if n_after < (1 - _LARGEST_LOSS) * n_before:
            raise DataError(
                f"Column {self._name!r} holds whole numbers beyond 2^53, of which "
                f"{n_before - n_after} of {n_before} different ones fall together as float64. "
                "Exclude it, or make it text or a time."
            )

    def _features(self, values: Any) -> list[Floats]:
        if pa.types.is_null(values.type):
            values = pc.cast(values, self._type)
        if pa.types.is_dictionary(values.type) and self.kind != "category":
            values = values.dictionary_decode()
        if self.kind in ("number", "boolean"):
            self._check_told_apart(values)
            return [_as_floats(values)]
        if self.kind == "category":
            return [self._codes.encode(values)]
        if self.kind == "vector":
            return list(_vectors(values, self._width).T)
        if self.kind == "time":
            return _cycle(_microseconds(_truncated(values, pa.time64("us"))), _SECONDS_PER_DAY)
        moments = _microseconds(
            _truncated(values, pa.timestamp("us", getattr(values.type, "tz", None)))
        )
        cycles = _cycle(moments, _SECONDS_PER_WEEK)
        if self.kind == "datetime":
            cycles = _cycle(moments, _SECONDS_PER_DAY) + cycles
        return [moments / (_SECONDS_PER_DAY * _MICROSECONDS), *cycles]  # in days


def _has_wide_integers(values: Any) -> bool:
    """Tell whether some are whole numbers that float64 rounds."""
    if not pa.types.is_integer(values.type) or values.type.bit_width < 64:
        return False
    found = pc.min_max(values).as_py()
    return found["min"] is not None and max(-found["min"], found["max"]) > _LARGEST_WHOLE


def _as_floats(values: Any) -> Floats:
    if pa.types.is_duration(values.type):
        seconds = pc.cast(_truncated(values, pa.duration("us")), pa.int64())
        return _as_floats(seconds) / _MICROSECONDS
    if pa.types.is_boolean(values.type):
        values = pc.cast(values, pa.uint8())
    floats = pc.cast(values, pa.float64(), safe=False)
    return np.asarray(floats.to_numpy(zero_copy_only=False), dtype=np.float64)


def _truncated(values: Any, target: Any) -> Any:
    """Return times in a coarser unit, what is finer cut off; out of range is still refused."""
    return pc.cast(values, options=pc.CastOptions(target, allow_time_truncate=True))


def _microseconds(moments: Any) -> Floats:
    """Return whole microseconds since 1970, or since midnight; NaN where missing."""
    return _as_floats(pc.cast(moments, pa.int64()))


def _cycle(microseconds: Floats, seconds: int) -> list[Floats]:
    """Return sine and cosine of where in the cycle each moment lies."""
    period = seconds * _MICROSECONDS
    phase = 2 * np.pi * (np.mod(microseconds, period) / period)
    return [np.sin(phase), np.cos(phase)]


def _vectors(values: Any, width: int) -> Floats:
    flat = _as_floats(values.values.slice(values.offset * width, len(values) * width))
    rows = np.array(flat.reshape(len(values), width))
    rows[values.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return rows


class Codes:
    """A vocabulary that grows in order of first appearance, up to a limit."""

    def __init__(self, values: tuple[str, ...], limit: int) -> None:
        self.values = list(values)
        self.counts = [0] * len(values)
        self.n_missing = 0
        self.n_other = 0
        self._code_of = {value: code for code, value in enumerate(values)}
        self._limit = max(limit, len(values))

    def encode(self, values: Any) -> Floats:
        """Return the code of each value, new ones getting the next codes."""
        encoded = values if pa.types.is_dictionary(values.type) else pc.dictionary_encode(values)
        positions = np.asarray(
            encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        )
        words = encoded.dictionary.to_pylist()
        first_seen = _in_order_of_appearance(positions)
        table = np.full(len(words) + 1, MISSING_CODE, dtype=np.int64)  # the last answers for -1
        for position in first_seen:
            word = words[position]
            table[position] = MISSING_CODE if word is None else self._code(str(word))
        codes = table[positions]
        self._count(codes)
        return np.asarray(codes, dtype=np.float64)

    def _code(self, word: str) -> int:
        code = self._code_of.get(word)
        if code is None:
            if len(self.values) >= self._limit:
                return OTHER_CODE
            code = self._code_of[word] = len(self.values)
            self.values.append(word)
            self.counts.append(0)
        return code

    def _count(self, codes: NDArray[np.int64]) -> None:
        found, counts = np.unique(codes, return_counts=True)
        for code, count in zip(found.tolist(), counts.tolist(), strict=True):
            if code == MISSING_CODE:
                self.n_missing += count
            elif code == OTHER_CODE:
                self.n_other += count
            else:
                self.counts[code] += count


def _in_order_of_appearance(positions: NDArray[Any]) -> list[int]:
    """Return the distinct positions as they first appear: a dictionary may be in any order."""
    distinct, first = np.unique(positions, return_index=True)
    return [int(p) for p in distinct[np.argsort(first)] if p >= 0]
