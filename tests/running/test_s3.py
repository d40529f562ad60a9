"""Storage that speaks S3: every verb against a real server, and what is said when it fails."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
import s3fs

import mrot_scale
from mrot_scale.errors import MissingInputError, OutputError, StorageError
from mrot_scale.running.commit import Journal
from mrot_scale.storing.location import Location
from tests.running.faults import Fault, faulty_server
from tests.running.jobs import (
    SETTINGS,
    Results,
    assert_same_files,
    contents,
    job_in_process,
)
from tests.servers import S3, free_port, s3_environment, s3_server

VERBS = {
    "exists": lambda place: place.exists(),
    "is_folder": lambda place: place.is_folder(),
    "size": lambda place: place.size(),
    "names": lambda place: place.names(),
    "files_below": lambda place: place.files_below(),
    "read": lambda place: place.read(),
    "open": lambda place: place.open(),
    "write": lambda place: place.write(b"x"),
    "write_new": lambda place: place.write_new(b"x"),
    "copy_to": lambda place: place.copy_to(place.sibling("copy")),
    "remove": lambda place: place.remove(),
}


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Clients made in this test find the endpoint it sets, and nobody later does."""
    s3fs.S3FileSystem.clear_instance_cache()
    yield monkeypatch
    s3fs.S3FileSystem.clear_instance_cache()


def lead_to(port: int, environment: pytest.MonkeyPatch) -> Location:
    for name, value in s3_environment(port).items():
        environment.setenv(name, value)
    return Location("s3://bucket/folder")


def test_what_was_written_is_read_listed_and_removed(bucket: Location) -> None:
    folder = bucket / "folder"
    (folder / "b/deep").write(b"old")
    (folder / "b/deep").write(b"deeper")
    (folder / "a").write(b"")
    assert (folder / "b/deep").read() == b"deeper"
    assert (folder / "a").read() == b""
    assert (folder / "b/deep").size() == 6
    assert folder.names() == ["a", "b"]
    assert bucket.names() == ["folder"]
    assert folder.files_below() == {"a": 0, "b/deep": 6}
    assert [p.is_folder() for p in (bucket, folder, folder / "a", folder / "c")] == [1, 1, 0, 0]
    assert [p.exists() for p in (folder, folder / "a", folder / "c")] == [1, 1, 0]
    (folder / "a").remove()
    (folder / "a").remove()
    assert folder.names() == ["b"]
    folder.remove()
    assert not folder.exists()
    assert (bucket / "folder").files_below() == {}


def test_a_file_is_opened_at_any_position(bucket: Location) -> None:
    (bucket / "file").write(bytes(range(200)))
    with (bucket / "file").open() as file:
        file.seek(100)
        assert file.read(3) == bytes([100, 101, 102])


@pytest.mark.parametrize("name", ["day=2026-01-01/a b.parquet", "ü%20+#?&", "a=b/..hidden"])
def test_names_may_hold_any_character(name: str, bucket: Location) -> None:
    (bucket / name).write(b"x")
    assert (bucket / name).read() == b"x"
    assert bucket.files_below() == {name: 1}


def test_a_listing_shows_what_others_wrote_meanwhile(bucket: Location) -> None:
    (bucket / "folder/a").write(b"x")
    assert (bucket / "folder").names() == ["a"]
    other = s3fs.S3FileSystem(skip_instance_cache=True)
    other.pipe_file((bucket / "folder/b").address, b"y")
    assert (bucket / "folder").names() == ["a", "b"]
    assert (bucket / "folder/b").exists()


@pytest.mark.slow
def test_a_listing_is_whole_beyond_the_thousand_names_of_one_answer(bucket: Location) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: (bucket / f"many/{n:05d}").write(b""), range(1_005)))
    assert len((bucket / "many").names()) == 1_005
    assert len(bucket.files_below()) == 1_005
    (bucket / "many").remove()
    assert not (bucket / "many").exists()


def test_a_new_file_is_written_once(bucket: Location) -> None:
    assert (bucket / "lease").write_new(b"first")
    assert not (bucket / "lease").write_new(b"second")
    assert (bucket / "lease").read() == b"first"
    assert (bucket / "empty").write_new(b"")
    assert not (bucket / "empty").write_new(b"x")


def test_of_many_writers_of_a_new_file_one_wins(bucket: Location) -> None:
    for round_ in range(5):
        place = bucket / f"lease-{round_}"
        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(lambda n: place.write_new(b"%d" % n), range(8)))  # noqa: B023
        assert sum(won) == 1
        assert place.read() == b"%d" % won.index(True)


def test_a_second_driver_on_a_run_folder_is_stopped_at_its_first_line(bucket: Location) -> None:
    first, second = Journal(bucket / "run"), Journal(bucket / "run")
    first.append({"n": 0})
    with pytest.raises(Exception, match="written by another run"):
        second.append({"n": 1})
    assert list(Journal(bucket / "run").values()) == [{"n": 0}]


def test_copies_stay_within_the_store_or_cross_its_border(bucket: Location, tmp_path: Path) -> None:
    (bucket / "a").write(b"content")
    (bucket / "a").copy_to(bucket / "folder/b")
    (bucket / "folder/b").copy_to(Location(tmp_path) / "down/c")
    (Location(tmp_path) / "down/c").copy_to(bucket / "d")
    assert (bucket / "d").read() == b"content"
    assert bucket.files_below() == {"a": 7, "d": 7, "folder/b": 7}


@pytest.mark.slow
def test_an_object_too_large_for_one_request_is_written_read_and_copied(bucket: Location) -> None:
    content = os.urandom(2**20) * 120
    (bucket / "large").write(content)
    assert (bucket / "large").read() == content
    (bucket / "large").copy_to(bucket / "copy")
    assert (bucket / "copy").size() == len(content)
    assert not (bucket / "large").write_new(content[:-1])
    assert (bucket / "large").size() == len(content)


def test_a_missing_bucket_is_told_by_readers_and_by_writers(s3: S3) -> None:
    place = Location("s3://nobody-made-this/file")
    assert not place.exists()
    with pytest.raises(MissingInputError, match="Nothing at s3://nobody-made-this/file"):
        place.read()
    for write in (place.write, place.write_new):
        with pytest.raises(OutputError, match="bucket does not exist") as caught:
            write(b"x")
        assert caught.value.exit_code == 73


def test_wrong_credentials_are_refused_and_told(elsewhere: pytest.MonkeyPatch) -> None:
    with s3_server(INITIAL_NO_AUTH_ACTION_COUNT="0") as server:
        place = lead_to(server.port, elsewhere)
        for verb, kind in (("write", OutputError), ("read", MissingInputError)):
            with pytest.raises(kind, match=rf"Cannot {verb} .*(Access Key|Forbidden)") as caught:
                VERBS[verb](place)
            assert len(str(caught.value).splitlines()) == 1


def test_absent_credentials_are_told(elsewhere: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place = lead_to(free_port(), elsewhere)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        elsewhere.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        elsewhere.setenv(name, str(tmp_path / "none"))
    with pytest.raises(StorageError, match=r"Unable to locate credentials.*endpoint and"):
        place.read()


def test_a_store_that_is_down_is_told_within_seconds(elsewhere: pytest.MonkeyPatch) -> None:
    expect_down("exists", elsewhere)


@pytest.mark.long
@pytest.mark.parametrize("verb", VERBS)
def test_a_store_that_is_down_is_told_by_every_verb(
    verb: str, elsewhere: pytest.MonkeyPatch
) -> None:
    expect_down(verb, elsewhere)


def expect_down(verb: str, elsewhere: pytest.MonkeyPatch) -> None:
    place = lead_to(free_port(), elsewhere)
    start = time.monotonic()
    with pytest.raises(StorageError, match="Could not connect") as caught:
        VERBS[verb](place)
    assert caught.value.exit_code == 75
    assert time.monotonic() - start < 30


@pytest.mark.long
@pytest.mark.parametrize("verb", ["read", "write"])
def test_a_store_that_never_answers_is_given_up_after_two_minutes(
    verb: str, elsewhere: pytest.MonkeyPatch
) -> None:
    with s3_server() as server:
        place = lead_to(server.port, elsewhere)
        server.process.send(signal.SIGSTOP)
        start = time.monotonic()
        with pytest.raises(StorageError, match=r"(?i)timeout") as caught:
            VERBS[verb](place)
        assert caught.value.exit_code == 75
        assert time.monotonic() - start < 150


@pytest.mark.parametrize("fault", ["500", "503", "reset"])
def test_a_store_that_fails_for_a_moment_is_asked_again(
    fault: Fault, s3: S3, elsewhere: pytest.MonkeyPatch, bucket: Location
) -> None:
    (bucket / "file").write(b"content")
    with faulty_server(s3.port, [fault, fault]) as port:
        lead_to(port, elsewhere)
        s3fs.S3FileSystem.clear_instance_cache()
        assert Location(bucket / "file").read() == b"content"


def test_a_body_cut_short_is_read_again(
    s3: S3, elsewhere: pytest.MonkeyPatch, bucket: Location
) -> None:
    (bucket / "file").write(b"content" * 1_000)
    with faulty_server(s3.port, ["cut"]) as port:
        lead_to(port, elsewhere)
        s3fs.S3FileSystem.clear_instance_cache()
        assert Location(bucket / "file").read() == b"content" * 1_000


def test_a_store_that_goes_on_failing_is_temporary(
    s3: S3, elsewhere: pytest.MonkeyPatch, bucket: Location
) -> None:
    with faulty_server(s3.port, ["500"] * 100) as port:
        lead_to(port, elsewhere)
        s3fs.S3FileSystem.clear_instance_cache()
        with pytest.raises(StorageError) as caught:
            Location(bucket / "file").write(b"x")
        assert caught.value.exit_code == 75


def test_a_new_file_whose_answer_was_lost_is_still_ones_own(
    s3: S3, elsewhere: pytest.MonkeyPatch, bucket: Location
) -> None:
    with faulty_server(s3.port, ["deaf"]) as port:
        lead_to(port, elsewhere)
        s3fs.S3FileSystem.clear_instance_cache()
        assert Location(bucket / "lease").write_new(b"mine")
        assert not Location(bucket / "lease").write_new(b"theirs")
    with faulty_server(s3.port, ["deaf"]) as port:
        lead_to(port, elsewhere)
        s3fs.S3FileSystem.clear_instance_cache()
        Journal(Location(bucket / "run")).append({"n": 0})


def test_a_table_on_s3_becomes_the_same_store_on_s3_as_on_disk(
    bucket: Location, table: Path, tmp_path: Path
) -> None:
    Location(table).copy_to(bucket / "readings.parquet")
    for source, store in ((bucket / "readings.parquet", bucket), (Location(table), tmp_path)):
        place = str(Location(store) / "store")
        mrot_scale.ingest(source.address, place, id="reading", config=SETTINGS)
        assert mrot_scale.ingest(source.address, place, id="reading", config=SETTINGS).was_done
    assert_same_files(contents(bucket / "store"), contents(Location(tmp_path) / "store"))
    assert bucket.names() == ["readings.parquet", "store", "store.run"]


@pytest.mark.slow
def test_a_job_on_s3_gives_the_same_bytes_as_on_disk(
    bucket: Location, table: Path, expected: Results
) -> None:
    Location(table).copy_to(bucket / "readings.parquet")
    found = job_in_process(bucket / "readings.parquet", bucket / "work")
    found.assert_same(expected)
    opened = mrot_scale.open_scores((bucket / "work/scores.parquet").address).to_table()
    assert opened.sort_by("reading").equals(pa.table(expected.table).sort_by("reading"))
    assert (bucket / "work").names() == [
        *("model", "model.report.html", "model.run"),
        *("scores", "scores.parquet", "scores.report.html", "scores.run", "store", "store.run"),
    ]
