"""Stores: what was ingested is read back, chunk by chunk, and damage anywhere is noticed."""

import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mrot_scale.errors import (
    ConfigError,
    DamagedDataError,
    DataError,
    MissingInputError,
    ModelMismatchError,
    MrotError,
)
from mrot_scale.storing.arrays import METADATA, ArraySpec
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import MANIFEST, Entry
from mrot_scale.storing.store import FEATURES, SCHEMA, FeatureStore, ids_name, is_store
from tests.storing.building import Built, built, write_listed, write_store
from tests.storing.test_ingestion import a_table

CHUNK_ROWS = 4


def a_store(place: Location, n_rows: int = 10) -> tuple[FeatureStore, Built]:
    options: dict[str, Any] = {"id_column": "key", "keep": ["word", "at"]}
    made = built(a_table(0, n_rows), chunk_rows=CHUNK_ROWS, allow_lost_values=True, **options)
    return write_store(place, made, CHUNK_ROWS), made


def files_of(place: Location) -> dict[str, bytes]:
    return {name: (place / name).read() for name in place.files_below() if name != MANIFEST}


def test_a_store_gives_back_what_was_ingested(place: Location) -> None:
    store, made = a_store(place)
    assert is_store(place)
    assert store.n_rows == 10
    assert [store.chunks.chunk_to_rows(c) for c in store.chunks] == [(0, 4), (4, 8), (8, 10)]
    for chunk in store.chunks:
        assert store.read_chunk(chunk).tobytes() == made.chunks[chunk].features.tobytes()
        assert store.read_ids(chunk).equals(made.chunks[chunk].ids)
        assert store.read_ids(chunk, ["word"]).column_names == ["word"]
    assert repr(store.schema) == repr(made.schema)
    features = [n for n in place.files_below() if n.startswith(FEATURES)]
    assert store.stored_bytes == sum((place / n).size() for n in features)
    assert store.identity() == Entry.of((place / MANIFEST).read()).sha256


def test_a_chunk_that_is_not_there_is_refused(place: Location) -> None:
    store, _ = a_store(place)
    with pytest.raises(IndexError):
        store.read_chunk(3)


def test_nothing_there_is_missing_input(place: Location) -> None:
    with pytest.raises(MissingInputError, match="No store at"):
        FeatureStore.open(place)
    assert not is_store(place)


def test_what_is_no_store_says_to_ingest_first(place: Location) -> None:
    (place / "folder/file").write(b"x")
    for other in (place / "folder", place / "folder/file"):
        assert not is_store(other)
        with pytest.raises(DataError, match=r"not a store that mrot-scale wrote\. Ingest it first"):
            FeatureStore.open(other)


def test_a_store_of_another_version_is_refused(place: Location) -> None:
    a_store(place)
    found = json.loads((place / MANIFEST).read()) | {"format_version": 99}
    (place / MANIFEST).write(json.dumps(found).encode())
    with pytest.raises(ModelMismatchError, match="store format 99"):
        FeatureStore.open(place)


def read_all(place: Location) -> None:
    store = FeatureStore.open(place)
    for chunk in store.chunks:
        store.read_chunk(chunk)
        store.read_ids(chunk)


def test_damage_in_any_file_is_noticed_and_named(place: Location) -> None:
    a_store(place)
    read_all(place)
    for name, content in files_of(place).items():
        changed = bytes([content[0] ^ 1]) + content[1:]
        for damaged in (changed, content[:-1], content + b"\0", b""):
            (place / name).write(damaged)
            with pytest.raises(DamagedDataError, match=f"{name} is not what was written"):
                read_all(place)
        (place / name).remove()
        with pytest.raises(DamagedDataError, match=f"{name} is missing"):
            read_all(place)
        (place / name).write(content)
    read_all(place)


def test_chunks_that_changed_places_are_noticed(place: Location) -> None:
    store, _ = a_store(place)
    one, other = (place / f"{FEATURES}/c/{c}/0" for c in (0, 1))
    first, second = one.read(), other.read()
    one.write(second)
    other.write(first)
    with pytest.raises(DamagedDataError, match="c/0/0 is not what was written"):
        store.read_chunk(0)


def test_a_file_that_is_not_listed_is_not_believed(place: Location) -> None:
    a_store(place)
    found = json.loads((place / MANIFEST).read())
    del found["files"][f"{FEATURES}/c/1/0"]
    (place / MANIFEST).write(json.dumps(found).encode())
    with pytest.raises(DamagedDataError, match="c/1/0 is not in the list"):
        FeatureStore.open(place).read_chunk(1)


def relisted_schema(place: Location, **changed: Any) -> None:
    files = files_of(place)
    files[SCHEMA] = json.dumps(json.loads(files[SCHEMA]) | changed).encode()
    write_listed(place, files)


def test_a_store_that_says_nothing_about_its_features_is_refused(place: Location) -> None:
    a_store(place)
    relisted_schema(place, statistics=[])
    with pytest.raises(DamagedDataError, match="does not describe every feature"):
        FeatureStore.open(place)


def test_more_chunks_than_files_are_refused_before_they_are_counted(place: Location) -> None:
    store, _ = a_store(place)
    files = files_of(place)
    spec = ArraySpec((2**40, store.spec.shape[1]), store.spec.chunk_shape, "float32")
    files[f"{FEATURES}/{METADATA}"] = spec.metadata()
    write_listed(place, files)
    relisted_schema(place, n_rows=2**40)
    with pytest.raises(DamagedDataError, match="more chunks than files"):
        FeatureStore.open(place)


def test_identifiers_that_cannot_be_read_are_told_in_one_line(place: Location) -> None:
    a_store(place)
    files = files_of(place)
    content = files[ids_name(0)]
    told = set()
    for position in range(4, len(content) - 8, 7):  # Arrow raises errors of several kinds
        write_listed(place, files | {ids_name(0): content[:position] + content[position + 3 :]})
        try:
            FeatureStore.open(place).read_ids(0)
        except DamagedDataError as error:
            told.add(str(error))
    assert len(told) > 3
    assert all("part-000000.parquet" in text and "\n" not in text for text in told)


def test_many_rows_in_a_small_file_are_refused_before_they_are_read(place: Location) -> None:
    a_store(place)
    buffer = io.BytesIO()
    pq.write_table(pa.table({"key": np.zeros(2**24, dtype=np.int64)}), buffer)
    write_listed(place, files_of(place) | {ids_name(0): buffer.getvalue()})
    store, before = FeatureStore.open(place), pa.total_allocated_bytes()
    with pytest.raises(DamagedDataError, match=r"part-000000\.parquet has lost rows"):
        store.read_ids(0)
    assert pa.total_allocated_bytes() - before < 2**24


def test_identifiers_that_lost_rows_are_noticed(place: Location) -> None:
    a_store(place)
    files = files_of(place)
    files[ids_name(0)] = files[ids_name(2)]
    write_listed(place, files)
    with pytest.raises(DamagedDataError, match=r"part-000000\.parquet has lost rows"):
        FeatureStore.open(place).read_ids(0)


def metadata(n_rows: int, n_columns: int, chunk: tuple[int, int], dtype: str = "float32") -> bytes:
    return ArraySpec((n_rows, n_columns), chunk, dtype).metadata()


WRONG: dict[str, Callable[[int], tuple[str, bytes]]] = {
    "more rows": lambda d: (f"{FEATURES}/{METADATA}", metadata(11, d, (4, d))),
    "more columns": lambda d: (f"{FEATURES}/{METADATA}", metadata(10, d + 1, (4, d + 1))),
    "another type": lambda d: (f"{FEATURES}/{METADATA}", metadata(10, d, (4, d), "float64")),
    "columns in chunks": lambda d: (f"{FEATURES}/{METADATA}", metadata(10, d, (4, 1))),
    "no schema": lambda _: (SCHEMA, b"{}"),
    "no JSON": lambda _: (SCHEMA, b"{"),
    "bytes": lambda _: (SCHEMA, b"\xff\xfe"),
}


@pytest.mark.parametrize("what", WRONG)
def test_parts_that_do_not_fit_together_are_refused(place: Location, what: str) -> None:
    store, _ = a_store(place)
    name, content = WRONG[what](len(store.schema.features))
    write_listed(place, files_of(place) | {name: content})
    with pytest.raises(DamagedDataError):
        FeatureStore.open(place)


def test_numbers_truths_and_categories_are_decoded_again(place: Location) -> None:
    store, _ = a_store(place)
    table = a_table(0, 10)
    for chunk in store.chunks:
        start, stop = store.chunks.chunk_to_rows(chunk)
        stored = store.read_chunk(chunk)
        part = table.slice(start, stop - start)
        for name in ("on", "word", "coded"):
            found = store.decoded_column(stored, name)
            assert found.to_pylist() == part[name].to_pylist(), name
        assert store.decoded_column(stored, "b").to_pylist() == part["b"].to_pylist()
        expected = part["a"].to_pandas().to_numpy()
        np.testing.assert_allclose(store.decoded_column(stored, "a").to_numpy(False), expected)
        assert store.decoded_column(stored, "a").null_count == part["a"].null_count


def test_categories_beyond_the_vocabulary_are_decoded_as_missing(place: Location) -> None:
    made = built(pa.table({"c": ["x", "y", "z", None, "x"]}), chunk_rows=5, vocabulary=2)
    store = write_store(place, made, 5)
    found = store.decoded_column(store.read_chunk(0), "c")
    assert found.to_pylist() == ["x", "y", None, None, "x"]


def test_a_column_named_like_a_part_of_another_is_decoded_as_itself(place: Location) -> None:
    vectors = pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float64(), 2))
    made = built(pa.table({"v": vectors, "v[0]": [7.0, 8.0]}), chunk_rows=2)
    store = write_store(place, made, 2)
    assert store.decoded_column(store.read_chunk(0), "v[0]").to_pylist() == [7.0, 8.0]


@pytest.mark.parametrize("name", ["at", "day", "time", "v", "at.day_sin", "unknown"])
def test_columns_that_features_no_longer_tell_are_refused(place: Location, name: str) -> None:
    store, _ = a_store(place)
    with pytest.raises(ConfigError, match=f"'{name}' is not kept .* --keep {name}"):
        store.decoded_column(store.read_chunk(0), name)


def test_columns_to_keep_are_checked_before_work_begins(place: Location) -> None:
    store, _ = a_store(place)
    store.check_columns_kept(["key", "at", "word", "a", "on"])
    for name in ("day", "unknown"):
        with pytest.raises(MrotError, match=f"'{name}' is not kept"):
            store.check_columns_kept(["a", name])


@pytest.mark.parametrize(
    ("chunk", "name"),
    [(0, "ids/part-000000.parquet"), (12, "ids/part-000012.parquet"), (10**6, None)],
)
def test_files_of_identifiers_sort_like_their_chunks(chunk: int, name: str | None) -> None:
    assert ids_name(chunk) == (name or "ids/part-1000000.parquet")
