"""What every worker is asked before the first task."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import pytest

from mrot_scale import __version__
from mrot_scale.running import worker_checks
from mrot_scale.running.worker_checks import (
    DECIDING_LIBRARIES,
    check_storage,
    probe_file,
    worker_versions,
)
from mrot_scale.storing.location import Location
from tests.places import KINDS, fresh_place


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    with fresh_place(request.param, tmp_path) as found:
        yield found


def test_versions_of_all_that_decides_are_told() -> None:
    found = worker_versions()
    assert set(found) == {"python", "mrot-scale", *DECIDING_LIBRARIES}
    assert found["mrot-scale"] == __version__
    assert found["python"] == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert found["numpy"] == version("numpy")
    assert "unknown" not in found.values()


def test_a_library_under_another_name_is_unknown_not_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_checks, "DECIDING_LIBRARIES", ("numpy", "no-such-distribution"))
    assert worker_versions()["no-such-distribution"] == "unknown"


def test_storage_that_can_be_reached_has_no_complaint_and_no_trace(place: Location) -> None:
    for name in ("run/run.json", "store/file"):
        (place / name).write(b"x")
    folders = [(place / name).address for name in ("run", "store")]
    assert check_storage(folders) == ""
    assert place.files_below() == {"run/run.json": 1, "store/file": 1}
    assert check_storage([]) == ""


def test_a_folder_a_worker_does_not_see_is_named(place: Location) -> None:
    (place / "run/run.json").write(b"x")
    folders = [(place / name).address for name in ("run", "store")]
    complaint = check_storage(folders)
    assert complaint == f"nothing at {folders[1]}; workers of a cluster need storage they share."


def test_a_folder_of_the_same_name_on_another_disk_will_not_do(place: Location) -> None:
    folders = [(place / name).address for name in ("run", "store")]
    for folder in folders:
        (Location(folder) / "file").write(b"x")
    assert check_storage(folders, {folders[0]: ["file"], folders[1]: ["file"]}) == ""
    complaint = check_storage(folders, {folders[1]: ["file", "z", "features"]})
    assert complaint.startswith(f"{folders[1]} has no features there; workers of a cluster need")


def test_a_probe_is_there_as_long_as_it_is_looked_for(place: Location) -> None:
    with suppress(ZeroDivisionError), probe_file(place):
        assert [name[:7] for name in place.names()] == [".probe-"]
        raise ZeroDivisionError
    assert not place.exists() or place.names() == []


def test_a_run_folder_that_cannot_be_written_is_a_complaint(tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(b"a file")
    assert "Cannot" in check_storage([str(tmp_path / "run")])


def test_storage_that_no_library_opens_is_a_complaint() -> None:
    assert "nowhere://x" in check_storage(["nowhere://x"])
