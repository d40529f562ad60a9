"""The look at a machine: it finds what is wrong, never raises, and ends."""

import importlib.metadata
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mrot_scale import (
    doctor,
    doctor_checks,
    doctor_disks,
    doctor_libraries,
    doctor_machine,
    doctor_storage,
    doctor_workers,
)
from mrot_scale.config.cluster import ClusterConfig
from mrot_scale.doctor import checks, doctor_text
from mrot_scale.doctor_checks import Check
from mrot_scale.doctor_disks import file_system
from mrot_scale.doctor_machine import cpu_quota, memory_limit
from mrot_scale.running.worker_checks import DECIDING_LIBRARIES
from mrot_scale.storing.location import Location

INLINE = ClusterConfig(kind="inline")


def by_name(found: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in found}


def looked(look: Any) -> dict[str, Check]:
    return by_name(list(look()))


def test_a_sound_machine_passes(tmp_path: Path) -> None:
    found = checks([str(tmp_path)], INLINE)
    assert [c for c in found if c.status == "fail"] == []
    names = {c.name for c in found}
    assert names >= {"python", *DECIDING_LIBRARIES, "fsspec", "s3fs", "memory", "threads"}
    assert names >= {"lightgbm loads", "thread pools", "temporary files", "workers"}
    there = f"storage {tmp_path}"
    parts = ("create once", "links", "locks", "file system")
    assert names >= {there, *(f"{there}: {part}" for part in parts)}
    assert list(tmp_path.iterdir()) == []


def test_a_local_worker_is_started_and_asked(tmp_path: Path) -> None:
    look = doctor_workers.workers_look(None, [str(tmp_path)])
    found = doctor_checks.looked("workers", look, 120)
    assert [c.status for c in found] == ["ok"], found
    assert "1 answered" in found[0].found
    assert "reached the storage" in found[0].found
    assert list(tmp_path.iterdir()) == []


def test_a_scheduler_that_is_not_there_is_told_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_workers, "_WORKER_TIMEOUT_S", 1.0)
    start = time.monotonic()
    (found,) = doctor_checks.looked(
        "workers", doctor_workers.workers_look("tcp://127.0.0.1:1", []), 60
    )
    assert found.status == "fail"
    assert "No scheduler answers" in found.found
    assert time.monotonic() - start < 30


@pytest.mark.parametrize(
    ("address", "reason"), [("bogus", "must look like"), ("tcp://10.0.0.1:8786", "unencrypted")]
)
def test_an_address_that_is_refused_is_told(address: str, reason: str) -> None:
    (found,) = doctor_checks.looked("workers", doctor_workers.workers_look(address, []), 60)
    assert found.status == "fail"
    assert reason in found.found


def test_what_hangs_and_what_fails_are_findings() -> None:
    def hangs() -> Iterator[Check]:
        yield Check("first", "ok", "seen")
        time.sleep(30)

    def fails() -> Iterator[Check]:
        yield Check("first", "ok", "seen")
        raise ZeroDivisionError("by zero")

    def lacks() -> Iterator[Check]:
        import no_such_library_anywhere  # type: ignore[import-not-found]  # noqa: F401

        yield Check("never", "ok", "")

    first, late = doctor_checks.looked("slow", hangs, 0.1)
    assert (first.found, late.status, late.name) == ("seen", "fail", "slow")
    assert "no answer within 0.1 s" in late.found
    _, broken = doctor_checks.looked("broken", fails, 5)
    assert (broken.status, broken.found) == ("fail", "ZeroDivisionError: by zero")
    (missing,) = doctor_checks.looked("lacks", lacks, 5)
    assert missing.status == "fail"
    assert "no_such_library_anywhere" in missing.found


def test_one_broken_storage_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "native_libraries", lambda: iter(()))
    (tmp_path / "file").write_text("x")
    bad = "nosuchprotocol://bucket/x"
    found = by_name(checks([bad, str(tmp_path / "file"), "memory://doctor/x"], INLINE))
    assert found[f"storage {bad}"].status == "fail"
    assert found[f"storage {tmp_path / 'file'}"].found.endswith(f"(in {tmp_path})")
    assert found["storage memory://doctor/x: create once"].status == "ok"
    assert found["workers"].status == "ok"
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_folder_yet_to_be_made_is_not_made(tmp_path: Path) -> None:
    found = looked(doctor_storage.storage_look(str(tmp_path / "a" / "b")))
    assert found[f"storage {tmp_path / 'a' / 'b'}"].status == "ok"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Location, content: bytes) -> None:
        raise PermissionError("read only")

    monkeypatch.setattr(Location, "write", refuse)
    found = doctor_checks.looked("storage", doctor_storage.storage_look(str(tmp_path)), 5)
    assert found == [Check("storage", "fail", "PermissionError: read only")]


def test_storage_that_lets_two_create_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overwrite(self: Location, content: bytes) -> bool:
        self.write(content)
        return True

    monkeypatch.setattr(Location, "write_new", overwrite)
    found = doctor_storage._create_check(Location(tmp_path), "storage")
    assert (found.status, found.found) == ("fail", "a second writer overwrites the first")
    assert "If-None-Match" in found.advice


def test_storage_without_conditional_writes_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Location, content: bytes) -> bool:
        raise NotImplementedError("mode create")

    monkeypatch.setattr(Location, "write_new", refuse)
    found = doctor_storage._create_check(Location(tmp_path), "storage")
    assert found.status == "fail"
    assert "NotImplementedError" in found.found


def test_forgetful_storage_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Location, "read", lambda self: b"first")
    monkeypatch.setattr(Location, "remove", lambda self: None)
    found = doctor_storage._objects_check(Location(tmp_path), "storage", "")
    assert found.status == "fail"
    assert "something else" in found.found
    assert "keeps what was removed" in found.found


def test_disks_without_symbolic_links_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: str) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    found = doctor_disks.links_check(tmp_path, "storage")
    assert (found.status, "Operation not permitted" in found.found) == ("fail", True)


@pytest.mark.parametrize("answer", ["free", ""])
def test_locks_nobody_sees_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    done = subprocess.CompletedProcess([], 0, stdout=answer, stderr="")
    monkeypatch.setattr(doctor_disks, "child", lambda *_: done)
    found = doctor_disks.locks_check(tmp_path, "storage")
    assert (found.status, "not seen" in found.found) == ("fail", True)


def test_locks_that_cannot_be_taken_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def refuse(*_: Any) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    found = doctor_disks.locks_check(tmp_path, "storage")
    assert (found.status, found.found) == ("fail", "flock fails: No locks available")


MOUNTS = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:25 / /tmp/some\040where rw - tmpfs tmpfs rw
31 22 0:26 / /mnt/shared rw shared:3 master:1 - nfs4 server:/x rw,vers=4.2
32 22 0:27 / /mnt rw - xfs /dev/vdb rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/x", "ext4"),
        ("/tmp/some where/deep", "tmpfs"),
        ("/mnt/shared", "nfs4"),
        ("/mnt/sharedness", "xfs"),
    ],
)
def test_file_systems_are_found_by_mount(tmp_path: Path, path: str, kind: str) -> None:
    (tmp_path / "mounts").write_text(MOUNTS)
    assert file_system(Path(path), tmp_path / "mounts") == kind
    assert file_system(Path(path), tmp_path / "none") is None


@pytest.mark.parametrize(
    ("kind", "free", "status"),
    [
        ("ext4", 2**40, "ok"),
        (None, 2**40, "ok"),
        ("nfs4", 2**40, "warn"),
        ("tmpfs", 2**40, "warn"),
        ("ext4", 2**20, "warn"),
    ],
)
def test_file_systems_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str | None, free: int, status: str
) -> None:
    monkeypatch.setattr(doctor_disks, "file_system", lambda _: kind)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: _Usage(free))
    found = doctor_disks.file_system_check(tmp_path, "storage")
    assert (found.status, bool(found.advice)) == (status, status != "ok")


class _Usage:
    def __init__(self, free: int) -> None:
        self.free = free


def groups(root: Path, lines: str, files: dict[str, str]) -> Path:
    for name, text in {"proc/self/cgroup": lines, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_limits_of_second_version_groups(tmp_path: Path) -> None:
    files = {
        "sys/fs/cgroup/job/step/memory.max": "max\n",
        "sys/fs/cgroup/job/memory.max": "4294967296\n",
        "sys/fs/cgroup/job/step/cpu.max": "150000 100000\n",
        "sys/fs/cgroup/job/cpu.max": "max 100000\n",
    }
    root = groups(tmp_path, "0::/job/step\n", files)
    assert memory_limit(root) == 4 * 2**30
    assert cpu_quota(root) == 1.5


def test_limits_of_first_version_groups(tmp_path: Path) -> None:
    files = {
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n",
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "50000\n",
        "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    }
    root = groups(tmp_path, "4:memory:/job\n3:cpu,cpuacct:/job\n0::/\n", files)
    assert memory_limit(root) == 2**30
    assert cpu_quota(root) == 0.5


def test_no_groups_no_limits(tmp_path: Path) -> None:
    assert memory_limit(tmp_path) is None
    assert cpu_quota(tmp_path) is None


def test_little_memory_and_few_cores_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_machine, "memory_limit", lambda: 2**30)
    monkeypatch.setattr(doctor_machine, "cpu_quota", lambda: 0.5)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    memory, threads = (
        looked(doctor_machine.memory)["memory"],
        looked(doctor_machine.threads)["threads"],
    )
    assert (memory.status, "1.0 GiB" in memory.found) == ("warn", True)
    assert threads.status == "warn"
    assert "OMP_NUM_THREADS=7" in threads.found
    assert "cluster.workers to 1" in threads.advice


def test_temporary_files_in_memory_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_disks, "file_system", lambda _: "tmpfs")
    found = looked(doctor_disks.temporary_files)["temporary files"]
    assert (found.status, "TMPDIR" in found.advice) == ("warn", True)


@pytest.mark.parametrize(
    ("found", "floor", "status"),
    [
        ("2.4.6", "1.26", "ok"),
        ("1.26", "1.26", "ok"),
        ("1.25.9", "1.26", "fail"),
        ("1.9", "1.10", "fail"),
        ("3.0rc1", "3", "ok"),
        ("0.9.7.post1", "0.9.6", "ok"),
        ("2.0", "", "ok"),
    ],
)
def test_versions_are_held_against_floors(found: str, floor: str, status: str) -> None:
    assert doctor_libraries._version_check("numpy", found, floor).status == status


def test_floors_come_from_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor_libraries._floors()["scikit-learn"]
    wanted = ["A_b.C >=1.2", "dask[array]>=2025.1; extra == 'x'", "plain", "old (>=3)"]
    monkeypatch.setattr(doctor_libraries, "requires", lambda _: wanted)
    assert doctor_libraries._floors() == {"a-b-c": "1.2", "dask": "2025.1", "old": "3"}


def test_missing_libraries_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    for name in ("version", "requires", "metadata"):
        monkeypatch.setattr(doctor_libraries, name, unknown)
    monkeypatch.setattr(doctor_libraries, "find_spec", lambda name: name == "faiss" or None)
    found = looked(doctor_libraries.libraries)
    assert found["faiss-cpu"] == Check("faiss-cpu", "ok", "installed, version unknown")
    assert (found["numpy"].status, found["numpy"].advice) == ("fail", "pip install numpy")
    assert found["s3fs"].status == "ok"
    assert looked(doctor_libraries.python)["python"].status == "warn"


@pytest.mark.parametrize(
    ("code", "stdout", "stderr", "status"),
    [
        (0, '{"lightgbm": "cannot load libgomp.so.1", "pools": []}', "", "fail"),
        (-11, "", "", "fail"),
        (1, "", "Traceback\nImportError: broken", "fail"),
        (0, 'noise\n{"lightgbm": "", "pools": [{"name": "libgomp"}]}', "", "ok"),
    ],
)
def test_native_libraries_that_do_not_load(
    monkeypatch: pytest.MonkeyPatch, code: int, stdout: str, stderr: str, status: str
) -> None:
    done = subprocess.CompletedProcess([], code, stdout=stdout, stderr=stderr)
    monkeypatch.setattr(doctor_libraries, "child", lambda *_: done)
    first = next(doctor_libraries.native_libraries())
    assert first.status == status
    assert ("libgomp1" in first.advice) == ("libgomp.so" in stdout)


def test_mixed_runtimes_are_warned_of() -> None:
    assert doctor_libraries._pools_check(["libgomp", "libgomp", "libopenblas"]).status == "ok"
    assert "2 x libgomp" in doctor_libraries._pools_check(["libgomp", "libgomp"]).found
    assert doctor_libraries._pools_check(["libgomp", "libiomp"]).status == "warn"


def test_text_is_aligned_and_safe() -> None:
    found = [
        Check("a", "ok", "fine"),
        Check("longer", "fail", "bad\nnews \x1b[2J", "do this"),
    ]
    assert doctor_text(found) == "\n".join(
        [
            "ok    a       fine",
            "fail  longer  bad news [2J",
            "              -> do this",
            "",
            "1 ok, 0 warn, 1 fail",
        ]
    )
    assert found[0].to_json() == {"name": "a", "status": "ok", "found": "fine", "advice": ""}


def test_the_module_needs_nothing_to_be_imported() -> None:
    code = (
        "import sys, mrot_scale.doctor\n"
        "heavy = {'numpy', 'pydantic', 'zarr', 'dask', 'fsspec', 'pyarrow', 'threadpoolctl'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]"
