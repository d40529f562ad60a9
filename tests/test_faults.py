"""Faults that tests order: where, when, and never outside tests."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from mrot_scale import faults
from mrot_scale.errors import ConfigError, StorageError
from mrot_scale.storing.location import Location


@pytest.fixture(autouse=True)
def testing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MROT_TEST", "1")
    monkeypatch.setattr(faults, "hits", type(faults.hits)())


def order(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("MROT_FAULT", text)


def test_without_an_order_a_point_is_only_counted() -> None:
    faults.reach("here")
    faults.reach("here")
    assert faults.hits["here"] == 2


def test_an_ordered_fault_is_refused_outside_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MROT_TEST")
    faults.reach("here")
    assert not faults.hits
    order(monkeypatch, "here:1:kill")
    with pytest.raises(ConfigError, match="MROT_FAULT is for tests") as caught:
        faults.reach("elsewhere")
    assert caught.value.exit_code == 78


def test_the_command_refuses_ordered_faults_outside_tests() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from mrot_scale.cli import main; main()", "--version"],
        env={"MROT_FAULT": "write.begin:1:kill", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 78
    assert done.stderr.startswith("mrot-scale: error[78]: MROT_FAULT is for tests")


@pytest.mark.parametrize("text", ["here", "here:1", ":1:kill", "here:x:kill", "here:1:dance"])
def test_an_order_that_makes_no_sense_is_refused(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    order(monkeypatch, text)
    with pytest.raises(ConfigError, match="point:number:action"):
        faults.reach("here")


def test_a_fault_happens_at_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    order(monkeypatch, "here:2:raise")
    faults.reach("here")
    with pytest.raises(RuntimeError, match="ordered at 'here'"):
        faults.reach("here")
    faults.reach("here")


def test_a_fault_may_happen_each_time_and_at_many_points(monkeypatch: pytest.MonkeyPatch) -> None:
    order(monkeypatch, "begin score/*:*:raise,other:1:raise")
    faults.reach("begin fit/00001")
    for number in range(2):
        with pytest.raises(RuntimeError):
            faults.reach(f"begin score/{number}")
    with pytest.raises(RuntimeError):
        faults.reach("other")


def test_the_number_of_a_pattern_counts_all_its_points(monkeypatch: pytest.MonkeyPatch) -> None:
    order(monkeypatch, "begin *:2:raise")
    faults.reach("begin a")
    with pytest.raises(RuntimeError):
        faults.reach("begin b")


@pytest.mark.parametrize(("action", "number"), [("enospc", errno.ENOSPC), ("eio", errno.EIO)])
def test_storage_may_fail_by_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, action: str, number: int
) -> None:
    order(monkeypatch, f"write.synced:1:{action}")
    with pytest.raises(StorageError) as caught:
        (Location(tmp_path) / "file").write(b"x")
    assert caught.value.exit_code == 75
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == number
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_ends_at_the_point(tmp_path: Path) -> None:
    code = (
        "from mrot_scale.storing.location import Location; from pathlib import Path;"
        f"(Location({str(tmp_path)!r}) / 'file').write(b'x')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"MROT_TEST": "1", "MROT_FAULT": "write.synced:1:kill", "PATH": ""},
        check=False,
        timeout=60,
    )
    assert done.returncode == -9
    assert [p.suffix for p in tmp_path.iterdir()] == [".tmp"]


def test_safety_cannot_be_left_out_outside_tests() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from mrot_scale.cli import main; main()", "--version"],
        env={"MROT_CARELESS": "1", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 78
    assert "MROT_CARELESS is for tests" in done.stderr
