"""Workers of all kinds: what is checked at the door, what is survived, what is given up on."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import mrot_scale
from mrot_scale import load_config
from mrot_scale.config import ClusterConfig
from mrot_scale.errors import ConfigError, MrotError, TemporaryError
from mrot_scale.running import cluster
from mrot_scale.running.cluster import open_workers
from mrot_scale.running.commit import Journal, Record
from mrot_scale.running.tasks import Task, run_task
from mrot_scale.storing.location import Location
from tests.running.jobs import (
    SETTINGS,
    Results,
    assert_same_files,
    contents,
    fit_command,
    ingest_command,
    score_command,
)
from tests.servers import (
    LOOPBACK,
    S3,
    Process,
    Scheduler,
    free_port,
    listening_hosts,
    mrot,
    private,
    run,
    scheduler,
    started,
    wait_until,
    worker,
)

PROBE = Task("probe/00000", "mrot_scale.jobs.probe_for_tests:probe")


def settings(address: str, **more: Any) -> ClusterConfig:
    return ClusterConfig(**{"address": address, "timeout_s": 20.0, **more})


def refused(config: ClusterConfig, *storage: Path) -> MrotError:
    """Return why workers were not taken."""
    with pytest.raises(MrotError) as caught, open_workers(config, [Location(p) for p in storage]):
        pytest.fail("workers were taken")
    assert len(str(caught.value).splitlines()) == 1
    return caught.value


# At the door ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lonely() -> Iterator[Scheduler]:
    """A scheduler with the workers a test brings."""
    with scheduler() as found:
        yield found


def shim(folder: Path, code: str) -> dict[str, str]:
    """Return an environment in which Python runs some code first."""
    (folder / "sitecustomize.py").write_text(code)
    return {"PYTHONPATH": str(folder)}


def test_where_no_scheduler_answers_the_run_is_to_be_tried_again() -> None:
    address = f"tcp://{LOOPBACK}:{free_port()}"
    start = time.monotonic()
    error = refused(settings(address, timeout_s=2.0))
    assert error.exit_code == 75
    assert address in str(error)
    assert time.monotonic() - start < 20


def test_too_few_workers_are_counted_and_told(lonely: Scheduler) -> None:
    with worker(lonely.address):
        error = refused(settings(lonely.address, workers=2, timeout_s=2.0))
    assert error.exit_code == 75
    assert "1 of 2 worker(s) answered within 2 s" in str(error)


def test_a_worker_with_another_library_version_is_refused(
    lonely: Scheduler, tmp_path: Path
) -> None:
    code = (
        "import importlib.metadata as m; real = m.version\n"
        "m.version = lambda name: '0.0.1' if name == 'lightgbm' else real(name)\n"
    )
    with worker(lonely.address, shim(tmp_path, code)):
        error = refused(settings(lonely.address))
    assert error.exit_code == 78
    assert "lightgbm 0.0.1 (here " in str(error)


def test_a_worker_with_another_version_of_ours_is_refused(
    lonely: Scheduler, tmp_path: Path
) -> None:
    code = "import mrot_scale; mrot_scale.__version__ = '0.0.0'\n"
    with worker(lonely.address, shim(tmp_path, code)):
        error = refused(settings(lonely.address))
    assert error.exit_code == 78
    assert f"mrot-scale 0.0.0 (here {mrot_scale.__version__})" in str(error)


def test_a_worker_without_our_package_is_refused(lonely: Scheduler, tmp_path: Path) -> None:
    code = "import sys; sys.modules['mrot_scale'] = None\n"
    with worker(lonely.address, shim(tmp_path, code)):
        error = refused(settings(lonely.address))
    assert error.exit_code == 78
    assert "mrot_scale" in str(error)
    assert "Install" in str(error)


def test_storage_a_worker_does_not_see_is_refused(lonely: Scheduler, tmp_path: Path) -> None:
    with worker(lonely.address, hidden=[tmp_path]):
        error = refused(settings(lonely.address), tmp_path)
    assert error.exit_code == 78
    assert str(tmp_path) in str(error)
    assert "share" in str(error)


def test_storage_a_worker_cannot_write_is_refused(lonely: Scheduler, tmp_path: Path) -> None:
    with worker(lonely.address):
        assert refused(settings(lonely.address), tmp_path / "missing").exit_code == 78
        with open_workers(settings(lonely.address), [Location(tmp_path)]) as workers:
            assert workers.count == 1
    assert list(tmp_path.iterdir()) == []


def test_an_unencrypted_scheduler_elsewhere_needs_permission() -> None:
    address = "tcp://scheduler.example:8786"
    with pytest.raises(ConfigError, match="--insecure") as caught:
        load_config(overrides={"cluster": {"address": address}})
    assert caught.value.exit_code == 78
    assert load_config(overrides={"cluster": {"address": address, "insecure": True}})


def test_a_class_of_an_unknown_package_needs_permission(tmp_path: Path) -> None:
    overrides: dict[str, Any] = {"cluster": {"kind": "elsewhere.things:Cluster"}}
    with pytest.raises(ConfigError, match="--allow-class") as caught:
        load_config(overrides=overrides)
    assert caught.value.exit_code == 78
    overrides["cluster"]["allow_class"] = True
    assert refused(load_config(overrides=overrides).cluster).exit_code == 78


# On this machine -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def local() -> Iterator[Any]:
    """The default: worker processes on this machine."""
    with open_workers(ClusterConfig(workers=2)) as workers:
        yield workers


def test_a_local_cluster_and_its_dashboard_listen_on_loopback_only(local: Any) -> None:
    found = listening_hosts(os.getpid())
    assert len(found) >= 3, "scheduler, dashboard and workers"
    assert set(found) == {LOOPBACK}


def test_a_local_cluster_starts_its_workers_afresh(local: Any) -> None:
    """Forked processes would share locks and threads of native libraries."""
    kinds = local._client.run(_start_method)
    assert set(kinds.values()) == {"spawn"}


def test_a_task_has_one_native_thread(local: Any, tmp_path: Path) -> None:
    """Before it, in it and after it: what libraries do is counted in threads of the process."""
    for found in local._client.run(_threads_in_task, str(tmp_path)).values():
        assert found["pools"], "libraries are loaded"
        assert all(pool["threads"] == 1 for pool in found["pools"]), found["pools"]
        assert found["faiss"] == 1
        assert found["born"] == 0


def _start_method() -> str:
    import multiprocessing

    return type(multiprocessing.current_process()).__module__.rpartition("_")[2]


def _threads_in_task(run_folder: str) -> dict[str, Any]:
    """Run a task that asks native libraries for work, and tell how many threads they took."""
    import sys
    import types

    module = types.ModuleType("mrot_scale.jobs.probe_for_tests")
    module.probe = _probe  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    facts: dict[str, Any] = Record.from_json(run_task(run_folder, PROBE)).facts
    return facts


def _probe(work: Any) -> Record:
    import faiss
    import numpy as np

    from mrot_scale.method.neighbours import ReferenceIndex  # noqa: F401
    from mrot_scale.model.lightgbm_model import train_lightgbm
    from mrot_scale.threads import native_pools

    rows = np.random.default_rng(0).normal(size=(2_000, 16)).astype(np.float32)
    before = len(os.listdir("/proc/self/task"))  # noqa: PTH208
    index = faiss.IndexFlatL2(16)
    index.add(rows)
    index.search(rows, 10)
    train_lightgbm(rows.astype(np.float64), rows[:, 0].astype(np.float64), seed=0)
    born = len(os.listdir("/proc/self/task")) - before  # noqa: PTH208
    record: Record = work.attempt.record(
        pools=native_pools(), faiss=faiss.omp_get_max_threads(), born=born
    )
    return record
