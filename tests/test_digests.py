"""The digest of what something holds: equal for equal content, whatever its chunks and files."""

import datetime
import io
import json
import shutil
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrot_scale.digests import _Columns, _Total, committed_run, digest, recognised
from mrot_scale.errors import DamagedDataError, DataError, LeftOutWarning, MissingInputError
from mrot_scale.jobs.fit_job import fit
from mrot_scale.jobs.ingest_job import ingest
from mrot_scale.jobs.score_job import score
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import Entry

N_ROWS = 600
CONFIG: dict[str, Any] = {
    "cluster": {"kind": "inline"},
    "label_rows": 400,
    "repeats": 2,
    "anchor_sets": 2,
    "batch_rows": 32,
    "run": {"keep_stages": True},
}
SMALL = {**CONFIG, "store": {"chunk_bytes": 1_024}}
SCORING = {"scoring": {"percentile": True, "top_columns": 2}}


def table(n_rows: int = N_ROWS) -> Any:
    rng = np.random.default_rng(0)
    days = [datetime.date(2024, 1, 1 + i % 3).isoformat() for i in range(n_rows)]
    notes = [None if i % 7 == 0 else f"note {i}" for i in range(n_rows)]
    amount = rng.normal(size=n_rows)
    return pa.table(
        {
            "key": [f"row-{i}" for i in range(n_rows)],
            "amount": amount,
            "late": 1e9 + rng.normal(size=n_rows),
            "city": rng.choice(["Ulm", "Bonn", "Köln"], size=n_rows),
            "note": pa.array(notes).dictionary_encode(),
            "day": days,
        }
    )


def changed(rows: Any, column: str, row: int, value: Any) -> Any:
    values = rows[column].to_pylist()
    values[row] = value
    return rows.set_column(rows.schema.get_field_index(column), column, pa.array(values))


def stored(rows: Any, place: Path, config: dict[str, Any] = SMALL) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)
        ingest(rows, place, id="key", exclude=["note", "day"], keep=["note"], config=config)
    return place


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store, a model, scores in both forms, and the runs that made them."""
    base = tmp_path_factory.mktemp("made")
    store = stored(table(), base / "store")
    fit(store, base / "model", SMALL)
    score(base / "model", store, base / "scores", SMALL | SCORING, parquet=base / "table")
    return base


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Give a copy of something made that a test may damage."""

    def copy(name: str) -> Path:
        shutil.copytree(made / name, tmp_path / name)
        return tmp_path / name

    return copy


@pytest.mark.parametrize("chunk_bytes", [64, 5_000, "16MiB"])
def test_a_store_has_one_digest_whatever_its_chunks(
    made: Path, tmp_path: Path, chunk_bytes: int | str
) -> None:
    other = stored(table(), tmp_path / "store", {**CONFIG, "store": {"chunk_bytes": chunk_bytes}})
    assert digest(other) == digest(made / "store")


def test_scores_have_one_digest_whatever_their_chunks(made: Path, tmp_path: Path) -> None:
    store = stored(table(), tmp_path / "store", {**CONFIG, "store": {"chunk_bytes": 5_000}})
    outs = tmp_path / "scores", tmp_path / "table"
    score(made / "model", store, outs[0], CONFIG | SCORING, parquet=outs[1])
    assert digest(outs[0]) == digest(made / "scores")
    assert digest(outs[1]) == digest(made / "table")


def test_partitions_are_told_apart_and_cut_anyhow(made: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    pq.write_to_dataset(table().drop_columns(["note"]), source, partition_cols=["day"])
    found = []
    for number, chunk_bytes in enumerate((1_024, 3_000)):
        config = {**CONFIG, "store": {"chunk_bytes": chunk_bytes}}
        store, out = tmp_path / f"store{number}", tmp_path / f"table{number}"
        ingest(source, store, id="key", like=made / "model", config=config)
        score(made / "model", store, tmp_path / f"scores{number}", config, parquet=out)
        assert len(list(out.glob("day=*"))) == 3
        found.append(digest(out))
    assert found[0] == found[1]
    assert found[0] != digest(made / "table")


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: changed(rows, "amount", 300, 0.25),
        lambda rows: changed(rows, "key", 300, "row-300b"),
        lambda rows: changed(rows, "note", 300, "another"),
        lambda rows: changed(rows, "note", 300, None),
        lambda rows: changed(rows, "city", 300, "Trier"),
        lambda rows: rows.rename_columns(["key", "amount", "late", "town", "note", "day"]),
        lambda rows: rows.take([*range(1, N_ROWS), 0]),
        lambda rows: rows.slice(0, N_ROWS - 1),
    ],
    ids=["value", "id", "carried", "missing", "category", "name", "order", "rows"],
)
def test_any_change_of_the_rows_is_another_digest(
    made: Path, tmp_path: Path, change: Callable[[Any], Any]
) -> None:
    assert digest(stored(change(table()), tmp_path / "store")) != digest(made / "store")


def test_models_and_runs_are_what_was_committed(made: Path, tmp_path: Path) -> None:
    fit(made / "store", tmp_path / "model", CONFIG)
    assert digest(tmp_path / "model") == digest(made / "model")
    assert digest(tmp_path / "model.run") == digest(made / "model.run")
    fit(made / "store", tmp_path / "other", {**CONFIG, "seed": 1})
    assert digest(tmp_path / "other") != digest(made / "model")


def test_a_run_without_stages_is_refused(made: Path) -> None:
    with pytest.raises(DataError, match="keeps no stages"):
        digest(made / "store.run")


def test_everything_has_a_digest_of_its_own(made: Path) -> None:
    names = ["store", "model", "scores", "table", "model.run", "scores.run"]
    assert len({digest(made / name) for name in names}) == len(names)
    assert all(len(digest(made / name)) == 64 for name in names)


@pytest.mark.parametrize("name", ["store", "model", "scores", "table"])
def test_a_flipped_byte_in_any_file_is_damage(copied: Callable[[str], Path], name: str) -> None:
    place = copied(name)
    files = sorted(p for p in place.rglob("*") if p.is_file())
    for file in files[:: max(1, len(files) // 12)] + [f for f in files if f.suffix == ".json"]:
        content = file.read_bytes()
        for position in {0, len(content) // 2, len(content) - 2}:
            if file.name.endswith("MANIFEST.json") and content[position : position + 1].isdigit():
                continue  # may be a fact that is nowhere else
            flipped = bytearray(content)
            flipped[position] ^= 0x10
            file.write_bytes(flipped)
            with pytest.raises(DamagedDataError):
                digest(place)
        file.write_bytes(content)
    digest(place)


def test_a_flipped_byte_in_a_stage_is_damage(copied: Callable[[str], Path]) -> None:
    run = copied("scores.run")
    file = next(p for p in sorted((run / "stages").rglob("*")) if p.is_file())
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(DamagedDataError, match="not what was written"):
        digest(run)
    file.unlink()
    with pytest.raises(DamagedDataError, match="missing"):
        digest(run)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("store", "features/c/0/0"),
        ("store", "ids/part-000001.parquet"),
        ("scores", "score/c/2"),
        ("table", "part-000001-*.parquet"),
        ("model", "booster.txt"),
    ],
)
def test_a_missing_file_is_damage(copied: Callable[[str], Path], name: str, file: str) -> None:
    place = copied(name)
    next(place.glob(file)).unlink()
    with pytest.raises(DamagedDataError, match="missing"):
        digest(place)


def test_a_table_that_ends_too_early_is_damage_in_one_line(copied: Callable[[str], Path]) -> None:
    place = copied("table")
    part = min(place.glob("*.parquet"))
    content = part.read_bytes()
    listed = json.loads((place / "_MANIFEST.json").read_text())
    for cut in range(100, len(content) - 100, 400):  # Arrow raises errors of several kinds
        part.write_bytes(content[:cut] + content[cut + 3 :])
        entry = Entry.of(part.read_bytes())
        listed["files"][part.name] = {"bytes": entry.n_bytes, "sha256": entry.sha256}
        (place / "_MANIFEST.json").write_text(json.dumps(listed))
        with pytest.raises(DamagedDataError) as damage:
            digest(place)
        assert "\n" not in str(damage.value)


def test_a_list_of_files_cannot_lead_elsewhere(copied: Callable[[str], Path]) -> None:
    place = copied("table")
    listed = json.loads((place / "_MANIFEST.json").read_text())
    listed["files"]["../../secret"] = {"bytes": 0, "sha256": ""}
    (place / "_MANIFEST.json").write_text(json.dumps(listed))
    with pytest.raises(DamagedDataError, match="not the name of a file"):
        digest(place)


def test_what_is_not_ours_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="Nothing at") as missing:
        digest(tmp_path / "nowhere")
    assert missing.value.exit_code == 66
    (tmp_path / "file").write_text("hello")
    (tmp_path / "gone").symlink_to("nowhere")
    with pytest.raises(MissingInputError, match="link"):
        digest(tmp_path / "gone")
    for place in (tmp_path, tmp_path / "file"):
        with pytest.raises(DataError, match="no store, model, score output") as foreign:
            digest(place)
        assert foreign.value.exit_code == 65
    (tmp_path / "MANIFEST.json").write_text("{}")
    with pytest.raises(DamagedDataError, match="damaged or foreign"):
        digest(tmp_path)


def test_a_generation_behind_a_pointer_is_found(made: Path) -> None:
    visible = Location("memory://digests/scores")
    for name, _ in Location(made / "scores").files_below().items():
        (visible / "_gen/one" / name).write((made / "scores" / name).read_bytes())
    (visible / "CURRENT").write(b'{"generation": "one"}')
    assert recognised(visible).folder == visible / "_gen/one"
    assert digest(visible) == digest(made / "scores")
    (visible / "CURRENT").write(b'{"generation": "two"}')
    with pytest.raises(DamagedDataError, match="points to"):
        digest(visible)


def test_reading_a_run_leaves_a_torn_journal_alone(copied: Callable[[str], Path]) -> None:
    run = copied("scores.run")
    before = digest(run)
    with (run / "journal.jsonl").open("ab") as file:
        file.write(b"0000 cut sho")
    torn = (run / "journal.jsonl").read_bytes()
    assert digest(run) == before
    assert (run / "journal.jsonl").read_bytes() == torn


def test_a_damaged_run_file_is_damage(copied: Callable[[str], Path]) -> None:
    run = copied("scores.run")
    (run / "run.json").write_text("{")
    with pytest.raises(DamagedDataError, match="is damaged"):
        committed_run(Location(run))


# Columns by value


def columns_digest(pieces: list[Any]) -> str:
    columns, total = _Columns(), _Total("run")
    for piece in pieces:
        columns.add(piece)
    columns.finish(total, "columns")
    return total.hex()


def through_parquet(rows: Any, **options: Any) -> Any:
    buffer = io.BytesIO()
    pq.write_table(rows, buffer, **options)
    return pq.read_table(io.BytesIO(buffer.getvalue()))


ARRAYS = {
    "string": pa.array(["a", None, "", "äö"]),
    "dictionary": pa.array(["a", None, "b", "a"]).dictionary_encode(),
    "binary": pa.array([b"a", None, b"", b"\0\1"]),
    "fixed binary": pa.array([b"ab", None, b"cd", b"ef"], pa.binary(2)),
    "boolean": pa.array([True, None, False, True]),
    "small": pa.array([1, None, 2, -3], pa.int8()),
    "large": pa.array([1, None, 2, 2**64 - 1], pa.uint64()),
    "float": pa.array([1.5, None, float("nan"), -0.0]),
    "half": pa.array(np.array([1, 2, np.nan, 3], np.float16)),
    "decimal": pa.array([Decimal("1.10"), None, Decimal(2), Decimal(3)]),
    "date": pa.array(
        [datetime.date(2020, 1, 1), None, datetime.date(1, 1, 1), datetime.date(1999, 1, 1)]
    ),
    "moment": pa.array([1, None, 3, 4], pa.timestamp("us", "UTC")),
    "time": pa.array([1, None, 3, 4], pa.time32("ms")),
    "duration": pa.array([1, None, 3, 4], pa.duration("us")),
    "list": pa.array([["x"], None, [], ["yy", None]]),
    "vector": pa.array([[1, 2], None, [3, 4], [5, None]], pa.list_(pa.int32(), 2)),
    "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": None}, {"a": 2, "b": ""}]),
    "map": pa.array([[("a", 1)], None, [], [("b", None)]], pa.map_(pa.string(), pa.int64())),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_every_type_is_told_by_value(name: str) -> None:
    rows = pa.table({"column": ARRAYS[name]})
    whole = columns_digest([rows])
    for cut in range(len(rows) + 1):
        assert columns_digest([rows.slice(0, cut), rows.slice(cut)]) == whole
    assert columns_digest([through_parquet(rows)]) == whole
    assert columns_digest([through_parquet(rows, use_dictionary=False, row_group_size=1)]) == whole
    assert columns_digest([rows.take([0, 3, 2, 1])]) != whole


def test_equal_strings_are_equal_in_every_encoding() -> None:
    words = pa.array(["a", None, "bc"])
    forms = [words, words.dictionary_encode(), words.cast(pa.large_string())]
    assert len({columns_digest([pa.table({"w": form})]) for form in forms}) == 1


def test_every_nan_is_the_same() -> None:
    odd = np.array([0x7FC00001, 0xFFC00000], dtype=np.uint32).view(np.float32)
    plain = np.full(2, np.nan, dtype=np.float32)
    assert columns_digest([pa.table({"x": odd})]) == columns_digest([pa.table({"x": plain})])


@st.composite
def cuts(draw: st.DrawFn) -> Iterator[tuple[list[str | None], list[int]]]:
    words = draw(st.lists(st.none() | st.text(max_size=4), max_size=12))
    places = draw(st.lists(st.integers(0, len(words)), max_size=4))
    return words, sorted(places)  # type: ignore[return-value]


@given(cuts())
def test_cuts_leave_no_trace(example: tuple[list[str | None], list[int]]) -> None:
    words, places = example
    rows = pa.table({"w": pa.array(words, pa.string())})
    bounds = [0, *places, len(words)]
    pieces = [rows.slice(a, b - a) for a, b in pairwise(bounds)]
    assert columns_digest(pieces) == columns_digest([rows])


@given(st.lists(st.none() | st.text(max_size=3), max_size=5).map(tuple), st.data())
def test_different_columns_differ(words: tuple[str | None, ...], data: st.DataObject) -> None:
    others = data.draw(st.lists(st.none() | st.text(max_size=3), max_size=5).map(tuple))
    first, second = (
        columns_digest([pa.table({"w": pa.array(list(w), pa.string())})]) for w in (words, others)
    )
    assert (first == second) == (words == others)
