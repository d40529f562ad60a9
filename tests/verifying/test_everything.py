"""What `verify` says: nothing about what is sound, and everything about what is not."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import s3fs

import mrot_scale
from mrot_scale.errors import DamagedDataError, DataError, MissingInputError
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import Entry, Manifest
from mrot_scale.verifying.everything import verify
from mrot_scale.verifying.findings import Problem, Verified
from tests.running.jobs import SETTINGS, make_table
from tests.servers import s3_server
from tests.test_bad_input import command

GOLDEN = Path(__file__).parent.parent / "golden"
CONFIG: dict[str, Any] = SETTINGS | {
    "cluster": {"kind": "inline"},
    "run": {"keep_stages": True},
    "label_rows": 400,
    "batch_rows": 64,
    "views": [{"scaling": "robust"}],
}
KINDS = {
    "store": "store",
    "model": "model",
    "scores": "scores",
    "scores.parquet": "score table",
    "model.run": "run",
    "scores.run": "run",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store, a model, scores in both forms, and the runs that made them."""
    base = tmp_path_factory.mktemp("made")
    table = make_table(base / "table.parquet")
    mrot_scale.ingest(table, base / "store", id="reading", config=CONFIG)
    mrot_scale.fit(base / "store", base / "model", CONFIG)
    mrot_scale.score(
        base / "model", base / "store", base / "scores", CONFIG, parquet=base / "scores.parquet"
    )
    return base


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Give a copy of something made, without links to the original, that a test may damage."""

    def copy(name: str) -> Path:
        return Path(shutil.copytree(made / name, tmp_path / name))

    return copy


def told(place: Path | Location) -> list[tuple[str, str]]:
    """Kind and file, below the place, of every problem found there."""
    found = verify(place)
    with pytest.raises(DamagedDataError, match=f"has {len(found.problems)} problem") as error:
        found.check()
    assert error.value.exit_code == 74
    assert str(found.problems[0]) in str(error.value)
    root = f"{place}/"
    return [(p.kind, p.file.removeprefix(root)) for p in found.problems]


def relisted(place: Path, **changed: Any) -> None:
    """Write the list of files anew for what is there, as only someone at work on it would."""
    [path] = place.glob("*MANIFEST.json")
    found = json.loads(path.read_text()) | changed
    files = {
        str(p.relative_to(place)): Entry.of(p.read_bytes())
        for p in place.rglob("*")
        if p.is_file() and p != path
    }
    written = Manifest(found["format"], found["format_version"], files, found.get("facts", {}))
    path.write_bytes(written.to_bytes())


def flip(path: Path, position: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", KINDS)
def test_what_is_sound_is_counted_in_one_line(made: Path, name: str) -> None:
    found = verify(made / name)
    found.check()
    assert (found.kind, found.problems, found.n_left_over) == (KINDS[name], (), 0)
    files = [p for p in (made / name).resolve().rglob("*") if p.is_file()]
    kept_for_people = {"config.yaml", "plan.json", "log.jsonl", "report.json"}
    read = [p for p in files if p.name not in kept_for_people]
    assert (found.n_files, found.n_bytes) == (len(read), sum(p.stat().st_size for p in read))
    assert "\n" not in found.text()
    assert f"is sound: {found.n_files:,} files, {found.n_bytes:,} bytes" in found.text()


@pytest.mark.parametrize("name", ["store-v1", "model-v1"])
def test_what_earlier_versions_wrote_is_sound(name: str) -> None:
    verify(GOLDEN / name).check()


def test_a_finished_run_without_stages_is_sound(made: Path) -> None:
    found = verify(made / "store.run")
    found.check()
    assert found.n_files == 2


def test_every_problem_is_told_and_not_only_the_first(copied: Callable[[str], Path]) -> None:
    store = copied("store")
    flip(store / "features/c/0/0")
    (store / "features/c/1/0").unlink()
    (store / "ids/part-000001.parquet").write_bytes(b"PAR1")
    (store / "notes.txt").write_text("mine")
    (store / "features/c/9").mkdir()
    (store / "features/c/9/0").symlink_to("../0/0")
    (store / "elsewhere").symlink_to("/tmp")
    assert told(store) == [
        ("damaged", "features/c/0/0"),
        ("missing", "features/c/1/0"),
        ("damaged", "ids/part-000001.parquet"),
        ("unexpected", "elsewhere"),
        ("unexpected", "features/c/9/0"),
        ("unexpected", "notes.txt"),
    ]
    found = verify(store)
    assert found.text().count("\n") == 5
    assert json.loads(json.dumps(found.to_json()))["problems"][0]["kind"] == "damaged"
    assert all(p.what.endswith(".") for p in found.problems)


def test_a_listed_file_behind_a_link_is_not_read(copied: Callable[[str], Path]) -> None:
    model = copied("model")
    (model / "fill.npy").rename(model.parent / "fill.npy")
    (model / "fill.npy").symlink_to(model.parent / "fill.npy")
    assert told(model) == [("unexpected", "fill.npy")]
    (model / "MANIFEST.json").rename(model.parent / "list")
    (model / "MANIFEST.json").symlink_to(model.parent / "list")
    assert told(model) == [("missing", "MANIFEST.json")]


@pytest.mark.parametrize("name", KINDS)
def test_a_folder_without_the_file_it_is_known_by_is_known_by_its_others(
    made: Path, tmp_path: Path, name: str
) -> None:
    place = tmp_path / "_gen" / "out" / "one"  # where Parquet files are ours and no one else's
    shutil.copytree(made / name, place)
    known_by = next(
        n for n in ("MANIFEST.json", "_MANIFEST.json", "run.json") if (place / n).exists()
    )
    (place / known_by).unlink()
    assert told(place) == [("missing", known_by)]


def test_a_broken_seal_is_found_where_no_file_tells(copied: Callable[[str], Path]) -> None:
    scores = copied("scores")
    path = scores / "MANIFEST.json"
    facts = json.loads(path.read_text())["facts"]
    text = path.read_text()
    other = facts["model"][:-1] + ("0" if facts["model"][-1] != "0" else "1")
    path.write_text(text.replace(facts["model"], other))
    assert told(scores) == [("damaged", "MANIFEST.json")]
    path.write_text(text.replace('"seal"', '"saal"'))
    assert told(scores) == [("damaged", "MANIFEST.json")]
    path.write_text(text.replace("\n", "\n ", 1))
    assert told(scores) == [("damaged", "MANIFEST.json")]
    path.write_text(text)
    verify(scores).check()


@pytest.mark.parametrize("name", ["store", "model", "scores", "scores.parquet"])
def test_a_list_that_cannot_be_read_is_named(copied: Callable[[str], Path], name: str) -> None:
    place = copied(name)
    [path] = place.glob("*MANIFEST.json")
    text = path.read_text()
    for content, kind in (
        (text.replace('"format_version": 1', '"format_version": 99'), "mismatch"),
        (text.replace('"format": "mrot', '"format": "mr0t'), "damaged"),
        (text[: len(text) // 2], "damaged"),
        ("", "damaged"),
    ):
        path.write_text(content)
        assert told(place) == [(kind, path.name)]


def test_files_that_agree_with_the_list_but_not_with_each_other(
    copied: Callable[[str], Path],
) -> None:
    store = copied("store")
    schema = json.loads((store / "schema.json").read_text())
    (store / "schema.json").write_text(json.dumps(schema | {"n_rows": 1_999}))
    relisted(store)
    assert ("mismatch", "features/zarr.json") in told(store)
    (store / "schema.json").write_text(json.dumps(schema | {"n_rows": "many"}))
    relisted(store)
    assert told(store)[0] == ("mismatch", "schema.json")


def test_chunks_that_do_not_decode_and_identifiers_that_lost_rows(
    copied: Callable[[str], Path],
) -> None:
    store = copied("store")
    flip(store / "features/c/0/0")
    shutil.copy(store / "ids/part-000003.parquet", store / "ids/part-000000.parquet")
    ids = pq.read_table(store / "ids/part-000001.parquet")
    pq.write_table(ids.slice(1), store / "ids/part-000001.parquet")
    (store / "ids/part-000002.parquet").write_bytes(b"PAR1 and so on PAR1")
    group = json.loads((store / "zarr.json").read_text())
    group["attributes"]["features"][0] = "another"
    (store / "zarr.json").write_text(json.dumps(group))
    relisted(store)
    assert told(store) == [
        ("mismatch", "zarr.json"),
        ("mismatch", "features/c/0/0"),
        ("mismatch", "ids/part-000001.parquet"),
        ("mismatch", "ids/part-000002.parquet"),
    ]


def test_a_chunk_that_is_not_listed_and_one_too_many(copied: Callable[[str], Path]) -> None:
    store = copied("store")
    (store / "features/c/1/0").rename(store / "features/c/1/1")
    relisted(store)
    assert told(store) == [("mismatch", "features/c/1/0"), ("mismatch", "features/c/1/1")]


def test_facts_that_scores_do_not_bear_out(copied: Callable[[str], Path]) -> None:
    scores, table = copied("scores"), copied("scores.parquet")
    facts = json.loads((scores / "MANIFEST.json").read_text())["facts"]
    assert facts["flagged"] > 0
    for name in ("flagged", "missing"):
        relisted(scores, facts=facts | {name: facts[name] + 1})
        assert told(scores) == [("mismatch", "MANIFEST.json")]
    for name in ("rows", "missing"):
        relisted(table, facts=facts | {name: facts[name] + 1})
        assert told(table) == [("mismatch", "_MANIFEST.json")]
    relisted(scores, facts=facts | {"rows": 1})
    found = [("mismatch", f"{name}/zarr.json") for name in ("flag", "percentile", "score")]
    assert told(scores)[:3] == found


def test_a_table_of_other_columns_among_the_scores(copied: Callable[[str], Path]) -> None:
    table = copied("scores.parquet")
    part = sorted(table.glob("*.parquet"))[1]
    pq.write_table(pq.read_table(part).rename_columns(["a", "b", "c", "d"]), part)
    relisted(table)
    assert told(table) == [("mismatch", part.name)]


@pytest.mark.parametrize("name", ["booster.txt", "model.json", "last.model.knots.npy"])
def test_a_model_whose_parts_do_not_fit_never_reaches_the_library(
    copied: Callable[[str], Path], name: str
) -> None:
    model = copied("model")
    content = (model / name).read_bytes()
    (model / name).write_bytes(content[: len(content) // 2])
    assert told(model) == [("damaged", name)]
    relisted(model)
    [problem] = verify(model).problems
    assert (problem.kind, problem.file) == ("mismatch", str(model))
    assert "\n" not in str(problem)


# Generations


@pytest.fixture
def published(made: Path, tmp_path: Path) -> Path:
    """Scores with two generations."""
    for name in ("model", "store"):
        shutil.copytree(made / name, tmp_path / name)
    out = tmp_path / "scores"
    for share in (0.01, 0.02):
        config = CONFIG | {"scoring": {"contamination": share}}
        mrot_scale.score(tmp_path / "model", tmp_path / "store", out, config, new_run=True)
    verify(out).check()
    return out


def test_every_generation_is_read(published: Path) -> None:
    generations = sorted((published.parent / "_gen/scores").glob("[0-9a-f]*"))
    [earlier] = [g for g in generations if g != published.resolve()]
    flip(earlier / "score/c/0")
    assert told(published) == [("damaged", str(earlier / "score/c/0"))]
    shutil.rmtree(earlier)
    assert told(published) == [("missing", str(earlier))]


def test_what_never_became_visible_is_named(published: Path) -> None:
    below = published.parent / "_gen/scores"
    shutil.copytree(published.resolve(), below / ".a.tmp")
    assert told(published) == [("unexpected", str(below / ".a.tmp"))]


def test_a_name_that_leads_nowhere_is_damage(published: Path) -> None:
    target = published.resolve()
    shutil.rmtree(target)
    assert told(published) == [("missing", str(target))]
    (published.parent / "_gen/scores/HISTORY.json").write_text("{")
    published.unlink()
    published.symlink_to("nowhere")
    with pytest.raises(MissingInputError):
        verify(published)


def test_a_damaged_history_is_named(published: Path) -> None:
    path = published.parent / "_gen/scores/HISTORY.json"
    path.write_text("{")
    assert told(published) == [("damaged", str(path))]


# Runs


def first_object(run: Path) -> Path:
    return next(p for p in sorted((run / "stages").rglob("*")) if p.is_file())


def test_objects_that_records_name_are_read(copied: Callable[[str], Path]) -> None:
    run = copied("scores.run")
    place = first_object(run)
    name = str(place.relative_to(run))
    flip(place)
    assert told(run) == [("damaged", name)]
    place.rename(place.with_name("of-nobody"))
    assert told(run) == [("missing", name)]
    assert verify(run).n_left_over == 1


def test_what_a_second_attempt_left_is_counted_and_no_problem(
    copied: Callable[[str], Path],
) -> None:
    run = copied("scores.run")
    shutil.copy(first_object(run), first_object(run).with_name("score.second"))
    found = verify(run)
    found.check()
    assert found.n_left_over == 1
    assert found.text().endswith(", 1 left over")


def test_a_damaged_line_of_a_journal_is_named(copied: Callable[[str], Path]) -> None:
    run = copied("scores.run")
    journal = run / "journal.jsonl"
    content = journal.read_bytes()
    flip(journal, 40)
    assert told(run)[0] == ("damaged", "journal.jsonl")
    journal.write_bytes(content[:-3])
    assert told(run) == [("damaged", "journal.jsonl")]
    assert "repeats that task" in str(verify(run).problems[0])
    journal.unlink()
    assert told(run) == [("missing", "journal.jsonl")]


@pytest.mark.parametrize("line", [b"[]", b'{"objects": 3}', b'{"objects": {"a": []}}', b"{"])
def test_a_line_that_is_none_of_ours_is_named(copied: Callable[[str], Path], line: bytes) -> None:
    from zlib import crc32

    run = copied("scores.run")
    with (run / "journal.jsonl").open("ab") as file:
        file.write(b"%08x %s\n" % (crc32(line), line))
    assert told(run) == [("damaged", "journal.jsonl")]


def test_strange_files_in_a_run_folder_are_named(copied: Callable[[str], Path]) -> None:
    run = copied("scores.run")
    (run / ".run.json.abc.tmp").write_text("")
    (run / "run.json").write_text("{}")
    assert told(run) == [("damaged", "run.json"), ("unexpected", ".run.json.abc.tmp")]


def test_an_unfinished_run_that_lost_its_stages_is_damaged(copied: Callable[[str], Path]) -> None:
    run = copied("scores.run")
    lines = (run / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (run / "journal.jsonl").write_bytes(b"".join(lines[:2]))
    found = verify(run)
    found.check()
    assert found.n_left_over > 0
    shutil.rmtree(run / "stages")
    assert {kind for kind, _ in told(run)} == {"missing"}


# Object stores


def uploaded(folder: Path, place: Location) -> Location:
    for name in Location(folder).files_below():
        (place / name).write((folder / name).read_bytes())
    return place


@pytest.fixture
def remote(tmp_path: Path) -> Any:
    place = Location(f"memory://verify-{tmp_path.name}")
    yield place
    place.remove()


@pytest.mark.parametrize("name", ["store", "model", "scores", "scores.parquet"])
def test_object_stores_are_read_the_same_way(made: Path, remote: Location, name: str) -> None:
    place = uploaded(made / name, remote / name)
    found = verify(place)
    found.check()
    assert found.n_files == verify(made / name).n_files
    damaged = next(n for n in sorted(place.files_below()) if "MANIFEST" not in n)
    (place / damaged).write(b"x")
    (place / "extra").write(b"")
    assert told(place) == [("damaged", damaged), ("unexpected", "extra")]


def test_a_pointer_leads_to_all_generations(made: Path, remote: Location) -> None:
    for name in ("one", "two"):
        uploaded(made / "scores", remote / "_gen" / name)
    pointer = remote / "CURRENT"
    pointer.write(b'{"generation": "two", "history": ["one", "two"]}')
    verify(remote).check()
    (remote / "_gen/one/score/c/0").remove()
    assert told(remote) == [("missing", "_gen/one/score/c/0")]
    pointer.write(b'{"generation": "three"}')
    assert told(remote) == [("damaged", "CURRENT")]
    pointer.write(b"{")
    assert told(remote) == [("damaged", "CURRENT")]


def test_parts_of_a_journal_that_are_gone_are_named(made: Path, remote: Location) -> None:
    lines = (made / "scores.run/journal.jsonl").read_bytes().splitlines(keepends=True)
    place = uploaded(made / "scores.run", remote)
    (place / "journal.jsonl").remove()
    for number, line in enumerate(lines):
        (place / f"journal/{number:08d}.json").write(line)
    verify(place).check()
    (place / "journal/00000001.json").remove()
    assert told(place) == [("missing", "journal/00000001.json")]


@pytest.mark.slow
def test_a_real_object_store_is_read_the_same_way(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with s3_server() as server:
        s3fs.S3FileSystem.clear_instance_cache()
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        bucket = Location("s3://verified")
        bucket.filesystem.mkdir(bucket.address)
        for name in ("store", "model", "scores", "scores.parquet"):
            place = uploaded(made / name, bucket / name)
            verify(place).check()
            last = max(n for n in place.files_below() if "MANIFEST" not in n)
            (place / last).remove()
            assert told(place) == [("missing", last)]
        s3fs.S3FileSystem.clear_instance_cache()


# What is not ours, and the command


def test_what_is_not_ours_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError):
        verify(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    buffer = io.BytesIO()
    pq.write_table(pa.table({"x": [1]}), buffer)
    (tmp_path / "part-000000.parquet").write_bytes(buffer.getvalue())
    for place in (tmp_path, tmp_path / "file"):
        with pytest.raises(DataError, match="no store, model"):
            verify(place)


def test_the_command_says_how_much_is_sound(made: Path) -> None:
    ended = command("verify", made / "scores")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count("\n") == 1
    assert "is sound: 17 files" in ended.out


def test_the_command_names_every_problem_and_ends_with_74(copied: Callable[[str], Path]) -> None:
    store = copied("store")
    flip(store / "features/c/0/0")
    (store / "schema.json").unlink()
    ended = command("verify", store)
    assert ended.code == 74
    assert len(ended.out.splitlines()) == 2
    assert f"missing: {store}/schema.json: " in ended.out
    assert "has 2 problems, the first is missing: " in ended.message
    ended = command("verify", store, "--output", "json")
    assert ended.code == 74
    found = json.loads(ended.out)
    assert {p["kind"] for p in found["problems"]} == {"missing", "damaged"}
    assert ended.message


def test_the_command_refuses_what_is_not_ours(tmp_path: Path) -> None:
    assert command("verify", tmp_path / "nowhere").code == 66
    assert command("verify", tmp_path).code == 65


def test_one_problem_is_told_in_the_singular() -> None:
    found = Verified("a", "store", 1, 1, 0, (Problem("missing", "a/b", "It is gone."),))
    with pytest.raises(DamagedDataError, match=r"^a has 1 problem, the first is missing: a/b: It"):
        found.check()
