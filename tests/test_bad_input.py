"""Bad input is refused in one line with a documented exit code, and nothing is half-written."""

import io
import json
import shutil
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

from mrot_scale import fit, ingest
from mrot_scale.cli import main
from tests.jobs.made import TINY, listing, write_parts


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def message(self) -> str:
        """The line that says what is wrong; nothing may follow it, and there is no other."""
        lines = self.err.splitlines()
        told = [line for line in lines if line.startswith(f"mrot-scale: error[{self.code}]: ")]
        assert len(told) == 1, self.err
        assert lines[-1] == told[0], self.err
        assert "Traceback" not in self.err
        return told[0]


def command(*words: str | Path) -> Outcome:
    """Run the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    handler = signal.getsignal(signal.SIGTERM)
    code = 0
    with (
        patch.object(sys, "argv", ["mrot-scale", *map(str, words)]),
        warnings.catch_warnings(),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        warnings.simplefilter("always")
        try:
            main()
        except SystemExit as done:
            code = done.code if isinstance(done.code, int) else 0
        finally:
            signal.signal(signal.SIGTERM, handler)
    return Outcome(code, out.getvalue(), err.getvalue())


def numbers(n_rows: int = 300, *, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "key": np.arange(n_rows),
            "load": rng.normal(size=n_rows),
            "heat": rng.normal(size=n_rows),
            "kind": pa.array(["ab"[i] for i in rng.integers(0, 2, n_rows)]),
        }
    )


@dataclass(frozen=True)
class Place:
    """A folder of good input: a table, a store of it and a model of that."""

    folder: Path

    def __truediv__(self, name: str) -> Path:
        return self.folder / name


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("good")
    pq.write_table(numbers(), folder / "table.parquet")
    config = TINY | {"store": {"chunk_bytes": 100 * 12}}
    ingest(folder / "table.parquet", folder / "store", id="key", config=config)
    fit(folder / "store", folder / "model", config)
    return Place(folder)


@dataclass(frozen=True)
class Source:
    """A table that cannot be ingested."""

    name: str
    write: Callable[[Path], None]
    code: int
    words: tuple[str, ...]
    options: tuple[str, ...] = ()


def parquet(table: pa.Table) -> Callable[[Path], None]:
    return lambda path: pq.write_table(table, path)


def text(content: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_text(content)

    return write


def cut_short(path: Path) -> None:
    pq.write_table(numbers(), path)
    path.write_bytes(path.read_bytes()[:-40])


def overwritten_inside(path: Path) -> None:
    pq.write_table(numbers(20_000), path, compression="zstd")
    content = bytearray(path.read_bytes())
    noise = np.random.default_rng(0).integers(0, 256, 100_000, dtype=np.uint8)
    content[1_000:101_000] = noise.tobytes()
    path.write_bytes(content)


def flipped_inside(path: Path) -> None:
    """One bit of one number, in a file that has checksums to notice it by."""
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(numbers(20_000), path, **options)
    content = bytearray(path.read_bytes())
    content[240_000] ^= 1
    path.write_bytes(content)


def parts(*tables: pa.Table) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.mkdir()
        for number, table in enumerate(tables):
            pq.write_table(table, path / f"{number}.parquet")

    return write


def changed(name: str, values: pa.Array) -> pa.Table:
    table = numbers()
    return table.set_column(table.column_names.index(name), name, values)


def key_with(value: int | None) -> pa.Table:
    keys: list[int | None] = list(range(300))
    keys[207] = value
    return changed("key", pa.array(keys))


DUPLICATED = pa.table([pa.array([1.0, 2.0]), pa.array([3.0, 4.0])], names=["load", "load"])
NO_NUMBERS = pa.table({"blob": pa.array([[1], [2]], pa.list_(pa.int64()))})

SOURCES = [
    Source("nothing.parquet", lambda path: None, 66, ("Nothing at", "nothing.parquet")),
    Source("cut.parquet", cut_short, 65, ("cut.parquet", "cannot be read as Parquet")),
    Source("inside.parquet", overwritten_inside, 65, ("inside.parquet", "cannot be read")),
    Source("flipped.parquet", flipped_inside, 65, ("flipped.parquet", "cannot be read")),
    Source("words.parquet", text("hello"), 65, ("words.parquet", "cannot be read as Parquet")),
    Source("empty.parquet", text(""), 65, ("empty.parquet",)),
    Source("rows.parquet", parquet(numbers(0)), 65, ("rows.parquet", "0 rows")),
    Source("rows.csv", text("load,heat\n"), 65, ("rows.csv", "0 rows")),
    Source("header.csv", text(""), 65, ("header.csv",)),
    Source("table.xyz", text("1"), 65, ("table.xyz", "unknown kind", ".parquet")),
    Source("folder", lambda path: path.mkdir(), 66, ("No table files below", "folder")),
    Source(
        "types",
        parts(numbers(), changed("load", pa.array(["x"] * 300))),
        65,
        ("1.parquet", "'load'", "string", "expected double"),
    ),
    Source(
        "fewer",
        parts(numbers(), numbers().drop_columns(["heat"])),
        65,
        ("1.parquet", "'heat'", "missing"),
    ),
    Source(
        "more",
        parts(numbers(), numbers().append_column("extra", pa.array(range(300)))),
        65,
        ("1.parquet", "'extra'"),
    ),
    Source(
        "mixed.csv",
        text("load,heat\n" + "1.5,2\n" * 2_000 + "high,2\n"),
        65,
        ("mixed.csv", "'load'", "mixed types", "high", "row 2002"),
    ),
    Source("twice.parquet", parquet(DUPLICATED), 65, ("twice.parquet", "'load'", "more than once")),
    Source("twice.csv", text("a,b,a\n1,2,3\n"), 65, ("twice.csv", "'a'", "more than once")),
    Source(
        "repeats.parquet",
        parquet(key_with(41)),
        65,
        ("'key'", "repeat", "row 207 (as row 41)"),
        ("--id", "key"),
    ),
    Source(
        "gap.parquet",
        parquet(key_with(None)),
        65,
        ("missing value in row 207",),
        ("--id", "key"),
    ),
    Source("blobs.parquet", parquet(NO_NUMBERS), 65, ("No column is left", "'blob'")),
    Source("id.parquet", parquet(numbers()), 78, ("'kye'", "mean 'key'"), ("--id", "kye")),
    Source(
        "in.parquet", parquet(numbers()), 78, ("'laod'", "mean 'load'"), ("--include", "laod,heat")
    ),
    Source("ex.parquet", parquet(numbers()), 78, ("'heta'", "mean 'heat'"), ("--exclude", "heta")),
    Source("keep.parquet", parquet(numbers()), 78, ("'knid'", "mean 'kind'"), ("--keep", "knid")),
    Source("none.parquet", parquet(numbers()), 78, ("No column is named",), ("--keep", " , ")),
    Source(
        "set.parquet",
        parquet(numbers()),
        78,
        ("chunk_bites", "chunk_bytes"),
        ("--set", "store.chunk_bites=1MiB"),
    ),
    Source("noset.parquet", parquet(numbers()), 78, ("name=value",), ("--set", "chunk_bytes")),
    Source("config.parquet", parquet(numbers()), 66, ("none.yaml",), ("-c", "none.yaml")),
]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_a_source_that_cannot_be_ingested_is_refused(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mrot_scale.reading.csv_files._BLOCK_BYTES", 4_096)
    source.write(tmp_path / source.name)
    before = listing(tmp_path)
    ended = command("ingest", tmp_path / source.name, tmp_path / "store", *source.options)
    assert ended.code == source.code, ended.err
    for words in source.words:
        assert words in ended.message
    assert listing(tmp_path) == before
    assert not (tmp_path / "store").exists()


def test_one_word_in_a_column_of_numbers_does_not_pass_unnoticed(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("load,heat\n" + "1.5,2\n2.5,3\n" * 200 + "high,2\n")
    ended = command("ingest", tmp_path / "t.csv", tmp_path / "store")
    assert "load" in ended.err  # refused, or told of
    assert "high" in ended.err or "categor" in ended.err


def test_a_new_ingest_is_not_said_to_have_been_done_before(tmp_path: Path) -> None:
    pq.write_table(numbers(), tmp_path / "t.parquet")
    assert "done before" not in command("ingest", tmp_path / "t.parquet", tmp_path / "s").err


def test_a_part_that_misses_one_column_throughout_is_fine(tmp_path: Path) -> None:
    for number, gone in enumerate([pa.nulls(300), pa.nulls(300, pa.float64())]):
        write = parts(numbers(), changed("load", gone), numbers())
        write(tmp_path / f"source{number}")
        ended = command("ingest", tmp_path / f"source{number}", tmp_path / f"store{number}")
        assert ended.code == 0, ended.err
    first = parts(changed("load", pa.nulls(300)), numbers())
    first(tmp_path / "first")
    assert command("ingest", tmp_path / "first", tmp_path / "store").code == 0


def with_gaps(folder: Path) -> Path:
    values = np.random.default_rng(0).normal(size=300)
    values[[7, 31, 32]], values[250] = np.nan, np.inf
    pq.write_table(changed("load", pa.array(values)), folder / "gaps.parquet")
    assert command("ingest", folder / "gaps.parquet", folder / "gaps", "--id", "key").code == 0
    return folder / "gaps"


SMALL_FIT = (
    "--cluster",
    "inline",
    "--set",
    "label_rows=200",
    "--set",
    "repeats=1",
    "--set",
    "anchor_sets=1",
    "--set",
    "batch_rows=64",
    "--set",
    "folds=2",
    "--set",
    "views=[{scaling: robust}]",
)


def test_missing_numbers_are_refused_with_counts_and_rows_or_dealt_with(
    good: Place, tmp_path: Path
) -> None:
    store = with_gaps(tmp_path)
    before = listing(tmp_path)
    refusals = [
        command("fit", store, tmp_path / "model", "--cluster", "inline"),
        command(
            *("score", good / "model", store, tmp_path / "out", "--cluster", "inline"),
            *("--set", "non_finite=reject"),
        ),
    ]
    for ended in refusals:
        assert ended.code == 65, ended.err
        for words in ("'load': 3 NaN, 1 inf", "rows 7, 31, 32, 250", "impute", "score-nan"):
            assert words in ended.message
    assert listing(tmp_path) == before
    for policy in ("impute", "score-nan"):
        settings = (*SMALL_FIT, "--set", f"non_finite={policy}")
        assert command("fit", store, tmp_path / f"by-{policy}", *settings).code == 0
        ended = command(
            "score",
            tmp_path / f"by-{policy}",
            store,
            tmp_path / f"out-{policy}",
            "--cluster",
            "inline",
            "--output",
            "json",
        )
        assert ended.code == 0, ended.err
        assert json.loads(ended.out)["n_missing"] == (0 if policy == "impute" else 4)


def test_a_table_refused_by_fit_leaves_no_store_behind(tmp_path: Path) -> None:
    with_gaps(tmp_path)
    before = set(tmp_path.iterdir())
    ended = command("fit", tmp_path / "gaps.parquet", tmp_path / "model", "--cluster", "inline")
    assert ended.code == 65
    made = {path.name for path in set(tmp_path.iterdir()) - before}
    assert {name for name in made if not name.endswith(".run")} == set()


def copied(store: Path, folder: Path) -> Path:
    return Path(shutil.copytree(store, folder / "copy"))


def flip_a_byte(store: Path) -> None:
    chunk = store / "features/c/1/0"
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes(content)


def edit_the_schema(store: Path) -> None:
    (store / "schema.json").write_text("{}")


def cut_a_chunk(store: Path) -> None:
    (store / "features/c/0/0").write_bytes(b"x")


def drop_the_manifest(store: Path) -> None:
    (store / "MANIFEST.json").unlink()


def write_a_newer_format(store: Path) -> None:
    place = store / "MANIFEST.json"
    found = json.loads(place.read_text())
    place.write_text(json.dumps(found | {"format_version": 99}))


DAMAGE: dict[str, tuple[Callable[[Path], None], int, tuple[str, ...]]] = {
    "a chunk with a flipped bit": (flip_a_byte, 74, ("features/c/1/0", "not what was written")),
    "a chunk gone": (
        lambda store: (store / "features/c/2/0").unlink(),
        74,
        ("features/c/2/0", "missing"),
    ),
    "the schema gone": (lambda store: (store / "schema.json").unlink(), 74, ("schema.json",)),
    "the schema edited": (
        edit_the_schema,
        74,
        ("schema.json", "not what was written"),
    ),
    "a chunk cut short": (
        cut_a_chunk,
        74,
        ("features/c/0/0",),
    ),
    "a newer format": (write_a_newer_format, 78, ("99", "Install the version")),
}


@pytest.mark.parametrize("harm", DAMAGE)
def test_a_damaged_store_is_refused(good: Place, tmp_path: Path, harm: str) -> None:
    damage, code, words = DAMAGE[harm]
    store = copied(good / "store", tmp_path)
    damage(store)
    before = listing(tmp_path)
    jobs = [
        command("fit", store, tmp_path / "model", *SMALL_FIT),
        command("score", good / "model", store, tmp_path / "out", "--cluster", "inline"),
    ]
    for ended in jobs:
        assert ended.code == code, ended.err
        for told in words:
            assert told in ended.message
    assert listing(tmp_path) == before


def test_identifiers_that_were_damaged_are_refused_when_they_are_needed(
    good: Place, tmp_path: Path
) -> None:
    store = copied(good / "store", tmp_path)
    (store / "ids/part-000001.parquet").write_bytes(b"PAR1")
    words = ("score", good / "model", store, tmp_path / "out", "--cluster", "inline")
    ended = command(*words, "--parquet", tmp_path / "table")
    assert ended.code == 74
    assert "ids/part-000001.parquet" in ended.message
    assert not (tmp_path / "table").exists()
    assert not (tmp_path / "out").exists()


def a_zarr_group(path: Path) -> None:
    group = zarr.open_group(str(path), mode="w")
    group.create_array("features", data=np.zeros((10, 2), dtype=np.float32))


def a_listed_folder(path: Path) -> None:
    path.mkdir()
    (path / "MANIFEST.json").write_text('{"format": "other-store", "files": {}}')


FOREIGN: dict[str, Callable[[Path], None]] = {
    "a Zarr group": a_zarr_group,
    "a folder with a list of its own": a_listed_folder,
    "a store without its list": drop_the_manifest,
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_store_that_something_else_wrote_is_refused(
    good: Place, tmp_path: Path, kind: str
) -> None:
    store = tmp_path / "copy"
    if kind == "a store without its list":
        copied(good / "store", tmp_path)
    FOREIGN[kind](store)
    before = listing(tmp_path)
    for ended in (
        command("fit", store, tmp_path / "model", *SMALL_FIT),
        command("score", good / "model", store, tmp_path / "out", "--cluster", "inline"),
    ):
        assert ended.code == 65, ended.err
        assert str(store) in ended.message
    assert listing(tmp_path) == before


def test_a_model_given_as_a_store_and_a_store_as_a_model_are_named(
    good: Place, tmp_path: Path
) -> None:
    ended = command("fit", good / "model", tmp_path / "model", "--cluster", "inline")
    assert ended.code == 65
    assert "model" in ended.message
    ended = command("score", good / "store", good / "store", tmp_path / "o", "--cluster", "inline")
    assert ended.code == 74
    assert "mrot-scale-store" in ended.message
    ended = command("score", good / "none", good / "store", tmp_path / "o", "--cluster", "inline")
    assert ended.code == 66
    assert "No model at" in ended.message
    ended = command("score", good / "model", good / "none", tmp_path / "o", "--cluster", "inline")
    assert ended.code == 66
    assert list(tmp_path.iterdir()) == []


def test_a_configuration_with_a_typing_error_is_told_the_nearest_name(
    good: Place, tmp_path: Path
) -> None:
    (tmp_path / "c.yaml").write_text("labl_rows: 100\n")
    ended = command("fit", good / "store", tmp_path / "model", "-c", tmp_path / "c.yaml")
    assert ended.code == 78
    for words in ("c.yaml", "labl_rows is not a setting", "mean label_rows"):
        assert words in ended.message
    (tmp_path / "c.yaml").write_text("label_rows: many\n")
    ended = command("fit", good / "store", tmp_path / "model", "-c", tmp_path / "c.yaml")
    assert ended.code == 78
    assert "'many'" in ended.message
    assert [path.name for path in tmp_path.iterdir()] == ["c.yaml"]


MISFITS: dict[str, tuple[pa.Table, tuple[str, ...]]] = {
    "a column too few": (numbers().drop_columns(["heat"]), ("missing 'heat' (number)",)),
    "a column too many": (
        numbers().append_column("wind", pa.array(np.zeros(300))),
        ("not in the model 'wind' (number)",),
    ),
    "another kind": (
        changed("kind", pa.array(np.zeros(300))),
        ("missing 'kind' (category)", "not in the model 'kind' (number)"),
    ),
    "another order": (numbers().select(["key", "heat", "load", "kind"]), ("another order",)),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_a_store_that_does_not_fit_the_model_is_refused_by_column(
    good: Place, tmp_path: Path, misfit: str
) -> None:
    table, words = MISFITS[misfit]
    ingest(table, tmp_path / "store", id="key")
    before = listing(tmp_path)
    ended = command(
        "score", good / "model", tmp_path / "store", tmp_path / "out", "--cluster", "inline"
    )
    assert ended.code == 78
    for told in (*words, "--like"):
        assert told in ended.message
    assert listing(tmp_path) == before


def test_a_table_that_does_not_fit_the_model_is_refused_by_column(
    good: Place, tmp_path: Path
) -> None:
    pq.write_table(MISFITS["a column too few"][0], tmp_path / "few.parquet")
    pq.write_table(MISFITS["another kind"][0], tmp_path / "kind.parquet")
    before = listing(tmp_path)
    for name, words in (("few", "'heat' is missing"), ("kind", "'kind' is a number, not a categ")):
        table = tmp_path / f"{name}.parquet"
        ended = command("score", good / "model", table, tmp_path / "o", "--cluster", "inline")
        assert ended.code == 78
        assert words in ended.message
        ended = command("ingest", table, tmp_path / "store", "--like", good / "model")
        assert ended.code == 78
        assert words in ended.message
    assert listing(tmp_path) == before


def jobs_into(good: Place, out: Path) -> dict[str, tuple[str | Path, ...]]:
    return {
        "ingest": ("ingest", good / "table.parquet", out),
        "fit": ("fit", good / "store", out, *SMALL_FIT),
        "score": ("score", good / "model", good / "store", out, "--cluster", "inline"),
        "fit of a table": ("fit", good / "table.parquet", out, *SMALL_FIT),
        "score of a table": (
            *("score", good / "model", good / "table.parquet", out, "--cluster", "inline"),
        ),
    }


@pytest.mark.parametrize("job", ["ingest", "fit", "score", "fit of a table", "score of a table"])
def test_an_output_that_exists_is_refused(good: Place, tmp_path: Path, job: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine.txt").write_text("keep")
    ended = command(*jobs_into(good, tmp_path / "out")[job])
    assert ended.code == 73
    assert "exists already" in ended.message
    assert set(listing(tmp_path)) == {"out/mine.txt"}


@pytest.mark.parametrize("job", ["ingest", "fit", "score"])
def test_an_output_that_exists_is_refused_before_anything_is_written(
    good: Place, tmp_path: Path, job: str
) -> None:
    (tmp_path / "out").write_text("keep")
    assert command(*jobs_into(good, tmp_path / "out")[job]).code == 73
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("job", ["ingest", "fit", "score"])
def test_an_output_below_a_file_is_refused(good: Place, tmp_path: Path, job: str) -> None:
    (tmp_path / "file").write_text("in the way")
    ended = command(*jobs_into(good, tmp_path / "file" / "out")[job])
    assert ended.code == 73, ended.err
    assert "Cannot write" in ended.message
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_parquet_folder_that_exists_is_refused(good: Place, tmp_path: Path) -> None:
    write_parts(numbers(), tmp_path / "table")
    before = listing(tmp_path)
    ended = command(
        *jobs_into(good, tmp_path / "out")["score"], "--parquet", str(tmp_path / "table")
    )
    assert ended.code == 73
    assert "table exists already" in ended.message
    assert listing(tmp_path) == before


CONDITIONS: dict[str, tuple[int, tuple[str, ...]]] = {
    "laod > 1": (78, ("laod", "load")),
    "load >": (78, ("load >",)),
    "load > 'a'": (78, ("load",)),
    "load < 100": (65, ("row(s) are left",)),
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_that_cannot_work_is_refused(
    good: Place, tmp_path: Path, condition: str
) -> None:
    code, words = CONDITIONS[condition]
    ended = command(
        "fit", good / "store", tmp_path / "model", *SMALL_FIT, "--exclude-where", condition
    )
    assert ended.code == code, ended.err
    for told in words:
        assert told in ended.message
    assert listing(tmp_path) == {}


def test_columns_to_keep_that_are_not_there_are_refused_with_the_nearest_name(
    good: Place, tmp_path: Path
) -> None:
    words = jobs_into(good, tmp_path / "out")["score"]
    ended = command(*words, "--parquet", tmp_path / "t", "--keep", "knid")
    assert ended.code == 78
    assert "'knid'" in ended.message
    assert "'kind'" in ended.message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("ingest",),
        ("ingest", "a"),
        ("fit", "a", "b", "--workers", "none"),
        ("fit", "a", "b", "--workers", "0"),
        ("score", "a", "b", "c", "--method", "magic"),
        ("scor", "a", "b", "c"),
        ("fit", "a", "b", "--no-such-option"),
        ("ingest", "a", "b", "--output", "xml"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_2(tmp_path: Path, words: tuple[str, ...]) -> None:
    ended = command(*words)
    assert ended.code == 2
    assert ended.out == ""
    assert "Traceback" not in ended.err
