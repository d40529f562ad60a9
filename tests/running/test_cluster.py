"""Workers of all kinds: what is checked at the door, what is survived, what is given up on."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import LocalCluster, Status

import mrot_scale
from mrot_scale import load_config
from mrot_scale.config.cluster import ClusterConfig
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


def test_storage_a_worker_has_of_its_own_under_the_same_name_is_refused(
    lonely: Scheduler, tmp_path: Path
) -> None:
    with worker(lonely.address, hidden=[tmp_path]):
        error = refused(settings(lonely.address), tmp_path)
    assert error.exit_code == 78
    assert f"{tmp_path} has no .probe-" in str(error)
    assert "need storage they share" in str(error)
    assert list(tmp_path.iterdir()) == []


def test_looking_at_the_storage_leaves_nothing_behind(lonely: Scheduler, tmp_path: Path) -> None:
    (tmp_path / "input").mkdir()
    (tmp_path / "run").mkdir()
    storage = [Location(tmp_path / "run"), Location(tmp_path / "input")]
    with worker(lonely.address), open_workers(settings(lonely.address), storage) as workers:
        assert workers.count == 1
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["input", "run"]


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
    with open_workers(ClusterConfig(workers=1)) as workers:
        yield workers


def test_a_local_cluster_and_its_dashboard_listen_on_loopback_only(local: Any) -> None:
    found = listening_hosts(os.getpid())
    assert len(found) >= 3, "scheduler, dashboard and workers"
    assert set(found) == {LOOPBACK}


def test_a_dashboard_is_told_where_there_is_one(
    lonely: Scheduler, local: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scheduler of this project has pages to look at only where bokeh can draw them."""
    config, client = ClusterConfig(), local._client
    for library, told in ((None, False), (object(), True)):
        monkeypatch.setattr(cluster, "find_spec", lambda _, found=library: found)
        address = cluster._dashboard(client, config)
        assert (address is not None) == told
    assert address is not None
    assert address.startswith(f"http://{LOOPBACK}:")
    with worker(lonely.address), open_workers(settings(lonely.address)) as workers:
        assert workers.dashboard is not None
        assert workers.dashboard.startswith(f"http://{LOOPBACK}:")


def test_a_dashboard_that_nobody_can_name_is_not_told(local: Any) -> None:
    with dask.config.set({"distributed.dashboard.link": "{NOT_IN_THE_ENVIRONMENT}/status"}):
        assert cluster._dashboard(local._client, settings("tcp://127.0.0.1:1")) is None


def test_a_dashboard_listens_where_it_is_told_to() -> None:
    port = free_port()
    with open_workers(ClusterConfig(workers=1, dashboard_port=port)) as workers:
        assert isinstance(workers, cluster.DaskWorkers)
        assert workers._client.scheduler_info()["services"]["dashboard"] == port


def test_a_local_cluster_starts_its_workers_afresh(local: Any) -> None:
    """Forked processes would share locks and threads of native libraries."""
    kinds = local._client.run(_start_method)
    assert set(kinds.values()) == {"SpawnProcess"}


def test_a_task_has_one_native_thread(local: Any, tmp_path: Path) -> None:
    """Before it, in it and after it: what libraries do is counted in threads of the process."""
    for found in local._client.run(_threads_in_task, str(tmp_path)).values():
        assert found["pools"], "libraries are loaded"
        assert all(pool["threads"] == 1 for pool in found["pools"]), found["pools"]
        assert found["faiss"] == 1
        assert found["born"] == 0


def _start_method() -> str:
    import multiprocessing

    return type(multiprocessing.current_process()).__name__


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
    train_lightgbm(rows.astype(np.float64), (rows[:, 0] > 0).astype(np.float64), seed=0)
    born = len(os.listdir("/proc/self/task")) - before  # noqa: PTH208
    record: Record = work.attempt.record(
        pools=native_pools(), faiss=faiss.omp_get_max_threads(), born=born
    )
    return record


@pytest.mark.slow
def test_a_cluster_class_is_started_with_its_arguments(
    table: Path, expected: Results, tmp_path: Path
) -> None:
    work = Location(tmp_path)
    arguments = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "processes": False,
        "dashboard_address": f"{LOOPBACK}:0",
    }
    config = SETTINGS | {
        "cluster": {"kind": "distributed:LocalCluster", "workers": 1, "arguments": arguments}
    }
    mrot_scale.fit(table, str(work / "model"), config, id="reading")
    assert_same_files(contents(work / "model"), expected.model)


class Careless(LocalCluster):
    """A cluster that loses count of its workers as it closes."""

    async def _close(self) -> None:
        await super()._close()
        self.status = Status.closing
        raise KeyError("inproc://somebody")


def test_a_cluster_that_cannot_close_does_not_undo_the_work() -> None:
    arguments = {"n_workers": 1, "processes": False, "dashboard_address": f"{LOOPBACK}:0"}
    config = ClusterConfig(
        kind=f"{__name__}:Careless", workers=1, arguments=arguments, allow_class=True
    )
    with open_workers(config) as workers:
        assert workers.count == 1


# On many machines ----------------------------------------------------------------------------


@pytest.fixture
def machines(s3: S3, tmp_path: Path) -> Iterator[tuple[Scheduler, list[Process]]]:
    """A scheduler and two workers that share no folder with each other or with the driver."""
    with ExitStack() as stack:
        found = stack.enter_context(scheduler())
        workers = [
            stack.enter_context(worker(found.address, s3.environment, hidden=[tmp_path]))
            for _ in range(2)
        ]
        yield found, workers


def n_committed(place: Location) -> int:
    """Return how many records a run has committed."""
    folder = place / "journal"
    return len(folder.names()) if folder.exists() else 0


@pytest.mark.slow
def test_machines_without_a_common_disk_give_the_same_bytes_and_survive_a_killed_driver(
    machines: tuple[Scheduler, list[Process]],
    s3: S3,
    bucket: Location,
    table: Path,
    expected: Results,
    tmp_path: Path,
) -> None:
    found, workers = machines
    pids = [os.getpid(), *(process.pid for process in workers)]
    spaces = {Path(f"/proc/{pid}/ns/mnt").readlink() for pid in pids}
    assert len(spaces) == 3, "each process has a file system of its own"
    work, options = bucket / "work", ("--cluster", found.address, "--workers", "2")
    Location(table).copy_to(bucket / "readings.parquet")

    def driver(*arguments: str) -> list[str]:
        return private(mrot(*arguments), tmp_path)

    done = run(driver(*ingest_command(bucket / "readings.parquet", work)), s3.environment)
    assert done.returncode == 0, done.stderr
    with started(driver(*fit_command(work, *options)), s3.environment) as first:
        wait_until(lambda: n_committed(work / "model.run") > 10, "ten tasks are committed")
        first.send(signal.SIGKILL)
        assert first.wait(10) == -signal.SIGKILL
    committed = n_committed(work / "model.run")
    assert not (work / "model").exists()
    for command in (fit_command(work, *options), score_command(work, *options)):
        done = run(driver(*command), s3.environment)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
    assert 10 < committed < n_committed(work / "model.run")
    Results.of(work).assert_same(expected)
    assert not (work / "model.run/stages").exists()


@pytest.fixture
def fitting(table: Path, tmp_path: Path) -> Location:
    """A folder with a store to fit."""
    work = Location(tmp_path)
    mrot_scale.ingest(table, str(work / "store"), id="reading", config=SETTINGS)
    return work


def n_lines(work: Location) -> int:
    """Return how many records a fit on disk has committed."""
    place = work / "model.run/journal.jsonl"
    return place.read().count(b"\n") if place.exists() else 0


@pytest.mark.slow
def test_a_worker_killed_during_a_run_changes_nothing(fitting: Location, expected: Results) -> None:
    with scheduler() as found, worker(found.address) as victim, worker(found.address):
        command = mrot(*fit_command(fitting, "--cluster", found.address, "--workers", "2"))
        with started(command) as driver:
            wait_until(lambda: n_lines(fitting) > 5, "tasks are committed", step_s=0.01)
            victim.kill()
            assert driver.wait(120) == 0, driver.errors
            assert "Traceback" not in driver.errors
    assert_same_files(contents(fitting / "model"), expected.model)


@pytest.mark.slow
def test_a_scheduler_killed_during_a_run_is_told_and_the_run_goes_on_elsewhere(
    fitting: Location, expected: Results
) -> None:
    with scheduler() as found, worker(found.address), worker(found.address):
        command = mrot(*fit_command(fitting, "--cluster", found.address, "--workers", "2"))
        with started(command) as driver:
            wait_until(lambda: n_lines(fitting) > 5, "tasks are committed", step_s=0.01)
            found.process.kill()
            assert driver.wait(120) == 75, driver.errors
            told = driver.errors
    assert "run the same command again" in told.splitlines()[-1]
    assert "Traceback" not in told
    before = n_lines(fitting)
    mrot_scale.fit(
        str(fitting / "store"),
        str(fitting / "model"),
        SETTINGS | {"cluster": {"kind": "inline"}},
    )
    assert before < n_lines(fitting)
    assert_same_files(contents(fitting / "model"), expected.model)


class Unanswered:
    """A future whose result never comes."""

    def __init__(self, status: str) -> None:
        self.status = status

    def result(self, timeout: float) -> None:
        raise TimeoutError(f"nothing within {timeout:g} s")


def test_a_record_that_went_away_with_its_worker_is_waited_for_again() -> None:
    task = Task("stage/0", "module:function", {})
    assert cluster._result(Unanswered("pending"), task) is None
    with pytest.raises(TimeoutError, match="nothing within"):
        cluster._result(Unanswered("error"), task)


@pytest.mark.slow
def test_a_run_gives_up_when_all_workers_stay_away(
    fitting: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_PATIENCE_S", 3.0)
    with scheduler() as found, worker(found.address) as only:

        def end_the_only_worker() -> None:
            wait_until(lambda: n_lines(fitting) > 5, "tasks are committed", step_s=0.01)
            only.kill()

        ender = threading.Thread(target=end_the_only_worker)
        ender.start()
        config = SETTINGS | {"cluster": {"address": found.address}}
        start = time.monotonic()
        with pytest.raises(TemporaryError, match="run the same command again") as caught:
            mrot_scale.fit(str(fitting / "store"), str(fitting / "model"), config)
        ender.join()
    assert caught.value.exit_code == 75
    assert time.monotonic() - start < 60
    assert 5 < n_lines(fitting) == len(list(Journal(fitting / "model.run").values()))
