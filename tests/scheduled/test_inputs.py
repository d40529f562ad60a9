"""Inputs: files are the same as long as their content is, however often they are written."""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrot_scale.errors import DamagedDataError
from mrot_scale.reading.parts import Part, parts_below
from mrot_scale.scheduled.inputs import InputFile, are_same, digested, listed
from mrot_scale.storing.location import Location
from tests.places import KINDS, fresh_place
from tests.strategies import examples

CONTENTS = {"a.parquet": b"first", "deep/b.parquet": b"second", "c.parquet": b""}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in CONTENTS.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(content)
    return tmp_path / "in"


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    with fresh_place(request.param, tmp_path) as found:
        for name, content in CONTENTS.items():
            (found / name).write(content)
        yield found


def parts(folder: Path) -> list[Part]:
    return parts_below(Location(folder))


def touch(path: Path) -> None:
    """Let a file look as if it had been written at another time."""
    now = path.stat().st_mtime_ns
    os.utime(path, ns=(now, now + 10**9))


def test_files_are_listed_by_name_size_and_stamp_without_being_read(folder: Path) -> None:
    found = listed(parts(folder))
    assert [(f.name, f.size) for f in found] == sorted((n, len(c)) for n, c in CONTENTS.items())
    assert [f.stamp for f in found] == [(folder / f.name).stat().st_mtime_ns for f in found]
    assert {f.digest for f in found} == {None}


def test_digests_of_local_files_are_those_of_their_content(folder: Path) -> None:
    large = os.urandom(2**22 + 17)  # more than is read at a time
    (folder / "large.parquet").write_bytes(large)
    expected = {
        n: hashlib.sha256(c).hexdigest() for n, c in (CONTENTS | {"large.parquet": large}).items()
    }
    assert {f.name: f.digest for f in digested(parts(folder))} == expected


def test_objects_have_stamps_and_are_not_read_again(place: Location) -> None:
    found = digested(parts_below(place))
    assert all((f.digest is None) == (not place.is_local) for f in found)
    assert all(f.stamp for f in found)
    assert are_same(found, parts_below(place))


def test_files_nobody_touched_are_the_same(folder: Path) -> None:
    assert are_same(digested(parts(folder)), parts(folder))
    assert are_same(listed(parts(folder)), parts(folder)), "digests are not needed for that"


def test_a_file_written_again_with_the_same_content_is_the_same(folder: Path) -> None:
    known = digested(parts(folder))
    for name in CONTENTS:
        touch(folder / name)
    assert listed(parts(folder)) != listed_of(known)
    assert are_same(known, parts(folder))


def listed_of(known: list[InputFile]) -> list[InputFile]:
    return [InputFile(f.name, f.size, f.stamp) for f in known]


def test_a_touched_file_of_unknown_content_is_another(folder: Path) -> None:
    known = listed(parts(folder))
    touch(folder / "a.parquet")
    assert not are_same(known, parts(folder))


def test_other_content_of_the_same_length_is_seen(folder: Path) -> None:
    known = digested(parts(folder))
    (folder / "a.parquet").write_bytes(b"FIRST")
    touch(folder / "a.parquet")
    assert not are_same(known, parts(folder))


@pytest.mark.parametrize("what", ["longer", "renamed", "removed", "added", "swapped"])
def test_every_other_change_is_seen(what: str, folder: Path) -> None:
    known = digested(parts(folder))
    path = folder / "a.parquet"
    if what == "longer":
        path.write_bytes(b"first and more")
    elif what == "renamed":
        path.rename(folder / "z.parquet")
    elif what == "removed":
        path.unlink()
    elif what == "added":
        (folder / "late.parquet").write_bytes(b"")
    else:
        (folder / "d.parquet").write_bytes(b"third")
        known = digested(parts(folder))
        path.write_bytes(b"third")
        (folder / "d.parquet").write_bytes(b"first")
        for name in ("a.parquet", "d.parquet"):
            touch(folder / name)
    assert not are_same(known, parts(folder))


def test_another_size_is_seen_even_where_the_stamp_is_the_same(folder: Path) -> None:
    path = folder / "a.parquet"
    known, stamp = digested(parts(folder)), path.stat().st_mtime_ns
    path.write_bytes(b"first and more")
    os.utime(path, ns=(stamp, stamp))
    assert not are_same(known, parts(folder))


def test_an_object_written_again_is_seen(place: Location) -> None:
    known = digested(parts_below(place))
    (place / "a.parquet").write(b"FIRST")
    if place.is_local:
        touch((place / "a.parquet").path)
    assert not are_same(known, parts_below(place))


def test_no_files_are_the_same_as_no_files(folder: Path) -> None:
    assert are_same([], [])
    assert not are_same([], parts(folder))
    assert not are_same(digested(parts(folder)), [])


@examples(40)
@given(
    st.builds(
        InputFile,
        st.text(max_size=9),
        st.integers(0, 2**60),
        st.integers(0, 2**62) | st.text(max_size=9),
        st.none() | st.text("0123456789abcdef", min_size=64, max_size=64),
    )
)
def test_a_file_survives_json(file: InputFile) -> None:
    assert InputFile.from_json(json.loads(json.dumps(file.to_json()))) == file


@pytest.mark.parametrize("found", [None, [], "a", {}, {"name": "a", "size": 1, "stamp": 2}, 7])
def test_what_describes_no_file_is_refused(found: Any) -> None:
    with pytest.raises(DamagedDataError, match="no input file") as caught:
        InputFile.from_json(found)
    assert caught.value.exit_code == 74
