"""Lists of files: read back as written, and nothing else is believed."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mrot_scale.errors import DamagedDataError, ModelMismatchError
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import (
    MANIFEST,
    Entry,
    Manifest,
    read_format,
    read_manifest,
    safe_name,
)

names = st.from_regex(r"[^\x00/\\.][^\x00/\\]{0,8}(/[^\x00/\\.][^\x00/\\]{0,8})?", fullmatch=True)
contents = st.dictionaries(names, st.binary(max_size=20), max_size=4)
facts = st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.booleans()), max_size=3)

EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def a_manifest(files: dict[str, bytes] | None = None, **more: Any) -> Manifest:
    listed = {name: Entry.of(content) for name, content in (files or {"a": b"x"}).items()}
    return Manifest("a-thing", 3, listed, **more)


def read(place: Location) -> Manifest:
    return read_manifest(place, "a-thing", 3, "thing")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=contents, more=facts)
def test_a_list_is_read_back_as_written(
    place: Location, files: dict[str, bytes], more: dict[str, Any]
) -> None:
    manifest = Manifest("a-thing", 3, {n: Entry.of(c) for n, c in files.items()}, more)
    (place / MANIFEST).write(manifest.to_bytes())
    assert read(place) == manifest
    assert read(place).to_bytes() == manifest.to_bytes()
    assert read_format(place) == "a-thing"


def test_the_bytes_do_not_depend_on_the_order_of_the_files() -> None:
    one, other = {"a": b"1", "b": b"2"}, {"b": b"2", "a": b"1"}
    assert a_manifest(one).to_bytes() == a_manifest(other).to_bytes()


def test_facts_json_does_not_know_are_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        a_manifest(facts={"x": float("nan")}).to_bytes()


def test_an_entry_knows_its_content() -> None:
    assert Entry.of(b"") == Entry(0, EMPTY_SHA256)
    assert Entry.of(b"abc").check(b"abc", "file") == b"abc"


@pytest.mark.parametrize("found", [b"abd", b"ab", b"abcd", b"", b"cba"])
def test_other_content_is_refused_by_name(found: bytes) -> None:
    with pytest.raises(DamagedDataError, match=r"store/c/0 is not what was written.*make it again"):
        Entry.of(b"abc").check(found, "store/c/0")


def test_a_folder_without_a_list_is_unfinished(place: Location) -> None:
    (place / "file").write(b"x")
    with pytest.raises(DamagedDataError, match=r"not a finished thing: it has no MANIFEST\.json"):
        read(place)
    assert read_format(place) is None
    assert read_format(place / "missing") is None


def test_another_format_is_named(place: Location) -> None:
    (place / MANIFEST).write(a_manifest().to_bytes())
    with pytest.raises(DamagedDataError, match="holds a 'a-thing', not a store"):
        read_manifest(place, "another", 3, "store")


@pytest.mark.parametrize("version", [2, 4, "3", None])
def test_another_version_says_which_one_is_read(place: Location, version: Any) -> None:
    found = json.loads(a_manifest().to_bytes()) | {"format_version": version}
    (place / MANIFEST).write(json.dumps(found).encode())
    with pytest.raises(ModelMismatchError, match=rf"thing format {version!r}, .* reads 3\."):
        read(place)


def test_every_list_cut_short_is_refused(place: Location) -> None:
    content = a_manifest().to_bytes()
    for length in range(len(content) - 2):
        (place / MANIFEST).write(content[:length])
        with pytest.raises(DamagedDataError, match=r"MANIFEST\.json is damaged or foreign"):
            read(place)
        assert read_format(place) is None


GOOD = {"bytes": 1, "sha256": "ab"}


@pytest.mark.parametrize(
    "change",
    [
        {"files": None},
        {"files": ["a"]},
        {"files": {"a": None}},
        {"files": {"a": {"bytes": 1}}},
        {"files": {"a": {"sha256": "ab"}}},
        {"files": {"a": GOOD | {"bytes": "many"}}},
        {"files": {"a": GOOD | {"bytes": float("inf")}}},
        {"files": {"a": GOOD | {"bytes": float("nan")}}},
        {"facts": 3},
        {"facts": None},
        {"facts": ["a"]},
    ],
    ids=str,
)
def test_a_list_that_does_not_list_files_is_refused(
    place: Location, change: dict[str, Any]
) -> None:
    found = json.loads(a_manifest().to_bytes()) | change
    (place / MANIFEST).write(json.dumps(found).encode())
    with pytest.raises(DamagedDataError, match="damaged or foreign"):
        read(place)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"3", b"null", b"\xff\xfe", b"[" * 100_000, b'{"format": "a-thing"}']
)
def test_what_is_no_list_is_refused(place: Location, content: bytes) -> None:
    (place / MANIFEST).write(content)
    with pytest.raises(DamagedDataError, match="damaged or foreign"):
        read(place)


def test_a_list_knows_whether_it_is_as_it_was_written() -> None:
    manifest = a_manifest(facts={"rows": 3, "ä": [1.5]})
    content = manifest.to_bytes()
    assert manifest.is_written_as(content)
    seal = json.loads(content)["seal"]
    unsealed = content.replace(f',\n "seal": "{seal}"'.encode(), b"")
    assert json.loads(unsealed).keys() == {"facts", "files", "format", "format_version"}
    assert manifest.is_written_as(unsealed)  # as earlier versions wrote it
    for position in range(len(content)):
        flipped = bytearray(content)
        flipped[position] ^= 1
        assert not manifest.is_written_as(bytes(flipped))
    assert not a_manifest(facts={"x": float("nan")}).is_written_as(content)


def test_another_fact_is_another_seal() -> None:
    seals = {json.loads(a_manifest(facts={"rows": n}).to_bytes())["seal"] for n in range(3)}
    assert len(seals) == 3


@pytest.mark.parametrize("depth", [900, 950, 980])
def test_a_version_as_deep_as_python_reads_is_refused(place: Location, depth: int) -> None:
    text = a_manifest().to_bytes().decode()
    deep = text.replace('"format_version": 3', f'"format_version": {"[" * depth}{"]" * depth}')
    (place / MANIFEST).write(deep.encode())
    with pytest.raises((ModelMismatchError, DamagedDataError)) as refused:
        read(place)
    assert len(str(refused.value)) < 1_000


@pytest.mark.parametrize("name", ["a/\ud800", "x" * 256, "a/" * 3_000 + "b"])
def test_names_that_no_disk_can_have_are_refused(name: str) -> None:
    with pytest.raises(DamagedDataError, match="not the name of a file"):
        safe_name(name)


@pytest.mark.parametrize("name", ["", "/etc/x", "../x", "a/../../x", "a//b", "./a", "a\\b", "a\0b"])
def test_names_that_lead_out_of_the_folder_are_refused(name: str) -> None:
    with pytest.raises(DamagedDataError, match="not the name of a file"):
        safe_name(name)
