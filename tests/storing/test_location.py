"""Locations: the same few verbs on disk and elsewhere, and errors that say what to do."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from mrot_scale.errors import (
    ConfigError,
    MissingInputError,
    MissingLibraryError,
    OutputError,
    StorageError,
)
from mrot_scale.storing.location import Location, sync_folder
from tests.places import fresh_place


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = Location("a/b.zarr")
    assert found.address == str(tmp_path / "a/b.zarr")
    monkeypatch.chdir("/")
    assert found.path == tmp_path / "a/b.zarr"


@pytest.mark.parametrize("given", ["/data/x", "/data/x/", "file:///data/x", Path("/data/x")])
def test_all_ways_to_write_a_local_path_are_one_location(given: Any) -> None:
    assert Location(given) == Location("/data/x")
    assert hash(Location(given)) == hash(Location("/data/x"))
    assert Location(given).is_local


def test_an_address_elsewhere_keeps_its_protocol() -> None:
    found = Location("s3://bucket/a/b/")
    assert (found.protocol, found.address) == ("s3", "s3://bucket/a/b")
    assert not found.is_local
    assert Location(found) == found
    assert found != Location("gs://bucket/a/b")
    assert found != "s3://bucket/a/b"


@pytest.mark.parametrize("address", ["/data/in.Parquet", "s3://bucket/in.Parquet"])
def test_names_are_taken_from_the_end_of_the_address(address: str) -> None:
    found = Location(address)
    assert (found.name, found.suffix, found.real_name()) == ("in.Parquet", ".parquet", "in.Parquet")
    assert found.sibling("other").name == "other"
    assert found.sibling("other") == Location(address.replace("in.Parquet", "other"))
    assert (found / "a/b").address == f"{address}/a/b"
    assert (str(found), repr(found)) == (address, f"Location({address!r})")


def test_what_lies_below_the_root_of_a_storage_is_in_that_storage() -> None:
    below = Location("memory://") / "x"
    assert (below.protocol, below.address) == ("memory", "memory://x")
    assert Location("/") / "x" == Location("/x")


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(ConfigError, match="empty path"):
        Location("")


def test_an_unknown_protocol_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="nowhere://x"):
        Location("nowhere://x").exists()


@pytest.mark.parametrize(("protocol", "extra"), [("s3", "s3"), ("gcs", "gs"), ("abfs", "az")])
def test_a_missing_library_is_named_with_what_to_install(
    protocol: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ImportError("no such library")

    monkeypatch.setattr("fsspec.filesystem", fail)
    with pytest.raises(MissingLibraryError, match=rf"mrot-scale\[{extra}\]"):
        Location(f"{protocol}://bucket/x").read()


def test_what_was_written_is_read(place: Location) -> None:
    content = bytes(range(256)) * 3
    file = place / "below/deeper/file.bin"
    assert not file.exists()
    file.write(content)
    assert file.read() == content
    assert file.size() == 768
    assert file.exists()
    assert not file.is_folder()
    assert (place / "below").is_folder()
    with file.open() as opened:
        opened.seek(250)
        assert opened.read(10) == content[250:260]


def test_an_empty_file_can_be_written(place: Location) -> None:
    (place / "empty").write(b"")
    assert (place / "empty").read() == b""
    assert (place / "empty").size() == 0


def test_names_and_files_are_listed_sorted(place: Location) -> None:
    for name in ("b", "a/2", "a/10", "c/x/y"):
        (place / name).write(name.encode())
    assert place.names() == ["a", "b", "c"]
    assert (place / "a").names() == ["10", "2"]
    assert list(place.files_below().items()) == [("a/10", 4), ("a/2", 3), ("b", 1), ("c/x/y", 5)]
    assert (place / "c").files_below() == {"x/y": 5}


def test_listings_show_what_others_wrote_meanwhile(place: Location) -> None:
    (place / "a").write(b"1")
    assert place.names() == ["a"]
    (Location(place.address) / "b").write(b"2")
    assert place.names() == ["a", "b"]


def test_writing_again_replaces_the_whole_file_and_leaves_nothing_else(place: Location) -> None:
    (place / "file").write(b"a long first version")
    (place / "file").write(b"short")
    assert (place / "file").read() == b"short"
    assert place.files_below() == {"file": 5}


def test_a_write_that_fails_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Location(tmp_path) / "file"
    file.write(b"old")

    def disk_full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(StorageError, match="No space left on device") as caught:
        file.write(b"new")
    assert caught.value.exit_code == 75
    assert str(file) in str(caught.value)
    with pytest.raises(StorageError):
        (Location(tmp_path) / "other").write_new(b"new")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"file": b"old"}


def test_a_new_file_is_written_once(place: Location) -> None:
    file = place / "a/new"
    assert file.write_new(b"first")
    assert not file.write_new(b"second")
    assert file.read() == b"first"
    assert place.files_below() == {"a/new": 5}


def test_of_many_writers_of_a_new_file_one_wins(tmp_path: Path) -> None:
    n_writers, n_rounds = 8, 20
    together = Barrier(n_writers)

    def write_all(writer: int) -> list[bool]:
        won = []
        for number in range(n_rounds):
            together.wait()
            won.append((Location(tmp_path) / f"{number}").write_new(b"%d" % writer))
        return won

    with ThreadPoolExecutor(n_writers) as pool:
        won = list(pool.map(write_all, range(n_writers)))
    for number in range(n_rounds):
        winners = [writer for writer in range(n_writers) if won[writer][number]]
        assert [(tmp_path / f"{number}").read_bytes()] == [b"%d" % writer for writer in winners]
    assert len(list(tmp_path.iterdir())) == n_rounds


def test_readers_see_one_whole_version_while_a_file_is_replaced(tmp_path: Path) -> None:
    file = Location(tmp_path) / "file"
    versions = [b"%d" % number * 5_000 for number in range(10)]
    file.write(versions[0])

    def write_all() -> None:
        for version in versions * 5:
            file.write(version)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write_all)
        while not writing.done():
            assert file.read() in versions
        writing.result()


def test_lines_are_added_at_the_end(tmp_path: Path) -> None:
    file = Location(tmp_path) / "below/lines"
    file.append_line(b"one\n")
    file.append_line(b"two\n")
    assert file.read() == b"one\ntwo\n"


def test_removing_takes_a_file_or_all_below_and_nothing_is_fine(place: Location) -> None:
    for name in ("kept", "gone/a", "gone/b/c"):
        (place / name).write(b"x")
    (place / "gone").remove()
    (place / "gone").remove()
    (place / "never").remove()
    assert place.files_below() == {"kept": 1}
    (place / "kept").remove()
    assert not (place / "kept").exists()


def test_removing_a_link_leaves_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("folder")
    link = Location(tmp_path / "link")
    assert link.is_folder()
    assert link.real_name() == "folder"
    link.remove()
    assert not link.exists()
    assert (tmp_path / "folder/file").read_bytes() == b"x"


def test_a_link_that_leads_nowhere_is_still_something(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    link = Location(tmp_path / "link")
    assert link.exists()
    assert not link.is_folder()
    assert not link.write_new(b"x")
    with pytest.raises(MissingInputError):
        link.read()


@pytest.mark.parametrize("source_kind", ["disk", "memory"])
def test_a_copy_has_the_same_bytes_anywhere(
    source_kind: str, place: Location, tmp_path: Path
) -> None:
    with fresh_place(source_kind, tmp_path / "source") as source:
        (source / "a").write(b"content")
        (source / "a").copy_to(place / "deep/b")
        (source / "a").copy_to(place / "deep/b")  # what a run that died has copied already
        (source / "a").write(b"changed later")
        assert (place / "deep/b").read() == b"content"


def test_a_disk_without_hard_links_gets_a_plain_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    (Location(tmp_path) / "a").write(b"content")
    (Location(tmp_path) / "a").copy_to(Location(tmp_path) / "below/b")
    assert (tmp_path / "below/b").read_bytes() == b"content"
    assert (tmp_path / "below/b").stat().st_ino != (tmp_path / "a").stat().st_ino


@pytest.mark.parametrize("verb", ["read", "open", "size"])
def test_a_missing_file_is_named(verb: str, place: Location) -> None:
    missing = place / "missing"
    with pytest.raises(MissingInputError, match="Nothing at") as caught:
        getattr(missing, verb)()
    assert str(missing) in str(caught.value)
    assert caught.value.exit_code == 66
    assert isinstance(caught.value, FileNotFoundError)


def test_a_missing_file_cannot_be_copied(place: Location) -> None:
    with pytest.raises(MissingInputError, match="missing"):
        (place / "missing").copy_to(place / "copy")
    assert not (place / "copy").exists()


def test_nothing_is_written_below_a_file(tmp_path: Path) -> None:
    file = Location(tmp_path) / "file"
    file.write(b"x")
    for write in ((file / "below").write, (file / "below").write_new, (file / "a/b").append_line):
        with pytest.raises(OutputError, match="Cannot write") as caught:
            write(b"y")
        assert caught.value.exit_code == 73
        assert str(file) in str(caught.value)


def test_a_folder_is_not_overwritten_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match=r"Cannot write .*folder"):
        (Location(tmp_path) / "folder").write(b"x")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_a_copy_that_cannot_be_written_is_an_output_error_between_storages_too(
    tmp_path: Path,
) -> None:
    (Location(tmp_path) / "file").write(b"x")
    with fresh_place("memory", tmp_path) as source:
        (source / "a").write(b"y")
        with pytest.raises(OutputError) as caught:
            (source / "a").copy_to(Location(tmp_path) / "file/below")
    assert str(tmp_path / "file/below") in str(caught.value)


def test_what_an_object_store_raises_says_to_check_endpoint_and_credentials() -> None:
    class ClientError(Exception):
        pass

    ClientError.__module__ = "botocore.exceptions"

    class Refusing:
        def cat_file(self, _: str) -> bytes:
            raise ClientError("SignatureDoesNotMatch")

    place = Location("s3://bucket/x")
    place.__dict__["filesystem"] = Refusing()
    with pytest.raises(StorageError, match=r"SignatureDoesNotMatch.*endpoint and credentials"):
        place.read()


def test_mistakes_of_our_own_are_not_taken_for_storage_trouble() -> None:
    place = Location("s3://bucket/x")
    place.__dict__["filesystem"] = None
    with pytest.raises(AttributeError):
        place.read()


def test_a_folder_can_be_synced(tmp_path: Path) -> None:
    sync_folder(tmp_path)
    with pytest.raises(FileNotFoundError):
        sync_folder(tmp_path / "missing")
