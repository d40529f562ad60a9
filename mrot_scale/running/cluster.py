"""Workers, wherever they are. The only importer of Dask.

What goes through the scheduler is tasks (names and small values) and records. Nothing is waited for
"for ever": how long a task may take to answer is set where tasks are underway.
"""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import resource_tracker
from typing import Any

from mrot_scale.config.cluster import ClusterConfig
from mrot_scale.errors import ConfigError, MrotError, TemporaryError
from mrot_scale.running.commit import Record
from mrot_scale.running.greeting import check_greeting
from mrot_scale.running.run_log import Note, unnoted
from mrot_scale.running.tasks import Task
from mrot_scale.running.underway import Underway, asked
from mrot_scale.running.worker_checks import check_storage, probe_file, worker_versions
from mrot_scale.running.workers import InlineWorkers, OnRecord, OpenedWorkers
from mrot_scale.storing.location import Location
from mrot_scale.threads import available_cores

_FUTURES_PER_WORKER = 4
_LOOK_S = 5.0
"""Seconds after which a run that waits looks at what it waits for."""

_FETCH_S = 10.0
"""Seconds that a small record of a finished task is waited for: its worker may be gone."""

_PATIENCE_S = 60.0
"""Seconds without any worker after which a run gives up."""

_CLOSING_S = 8.0
"""Seconds that a cluster of ours is given to end."""

_LOGGERS = ("distributed", "distributed.client", "tornado.application")

_TLS_ADVICE = (
    "Set cluster.tls_ca_file, tls_cert and tls_key (mrot-scale certificates makes such files), or "
    "distributed.comm.tls in Dask's own configuration."
)

_DASK_SETTINGS = {
    "distributed.scheduler.allowed-failures": 3,
    "distributed.scheduler.worker-ttl": "60s",
    "distributed.scheduler.work-stealing": True,
    "distributed.comm.timeouts.connect": "30s",
    "distributed.comm.timeouts.tcp": "30s",
    "distributed.admin.tick.limit": "60s",
    "distributed.worker.multiprocessing-method": "spawn",
    # Tasks hold no results between them, so there is nothing to spill and no reason to pause early.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": 0.9,
    "distributed.worker.memory.terminate": 0.98,
}


class DaskWorkers:
    """The workers of a Dask cluster, with a bounded number of tasks on their way."""

    def __init__(
        self, client: Any, count: int, silence_s: float, dashboard: str | None = None
    ) -> None:
        self._client, self.count, self._silence_s = client, count, silence_s
        self.dashboard = dashboard

    def run(
        self, run: str, tasks: Sequence[Task], on_record: OnRecord, note: Note = unnoted
    ) -> None:
        waiting = iter(tasks)
        underway = Underway(self._client, run, note)
        try:
            while underway.fill(waiting, _FUTURES_PER_WORKER * self.count):
                for future in self._finished(underway):
                    record = _result(future, underway.task(future))
                    if record is not None:
                        underway.take(future)
                        on_record(record)
        finally:
            underway.cancel()

    def _finished(self, underway: Underway) -> list[Any]:
        """Wait until some are done; give up where nothing is to be hoped for."""
        from distributed import wait

        began = last_seen = time.monotonic()
        while True:
            try:
                with self._client.as_current():
                    found = wait(underway.futures, timeout=_LOOK_S, return_when="FIRST_COMPLETED")
                return underway.in_order(found.done)
            except TimeoutError:
                has_workers = self._has_workers()
                last_seen = time.monotonic() if has_workers else last_seen
                if time.monotonic() - last_seen > _PATIENCE_S:
                    raise _all_lost() from None
                if time.monotonic() - began > self._silence_s:
                    raise underway.stuck(self._silence_s) from None
                if has_workers:
                    underway.double_slow_ones()
            except (OSError, CancelledError, asyncio.CancelledError) as error:
                raise _all_lost() from error

    def _has_workers(self) -> bool:
        try:
            return bool(asked(self._client, "identity", n_workers=-1)["workers"])
        except Exception:
            return False


def _all_lost() -> TemporaryError:
    return TemporaryError(
        "Scheduler or workers were lost. What is done is kept: run the same command again."
    )


def _result(future: Any, task: Task) -> Record | None:
    """Return the record of a finished task, or its error as ours.

    None where its worker went away before it told: the task is then done again, if by anyone.
    """
    from distributed.scheduler import KilledWorker

    try:
        return Record.from_json(future.result(timeout=_FETCH_S))
    except MrotError:
        raise
    except TimeoutError:
        if future.status == "error":  # the task's own
            raise
        return None
    except KilledWorker:
        raise MrotError(
            f"Task {task.key} ended every worker it ran on: out of memory, or a crash in a native "
            "library. Give workers more memory (cluster.memory_limit) or lower batch_rows."
        ) from None
    except Exception as error:
        if isinstance(error, CancelledError) or type(error).__name__ == "CommClosedError":
            raise _all_lost() from error
        raise


@contextmanager
def open_workers(
    config: ClusterConfig,
    storage: Sequence[Location] = (),
    prepare: Callable[[], None] | None = None,
) -> Iterator[OpenedWorkers]:
    """Yield workers as configured, after checking that they can do the job.

    `prepare` is called on each of them, side by side: what it loads need not be waited for later.
    """
    if config.kind == "inline":
        yield InlineWorkers()
        return
    import dask
    from distributed import Client  # brings Dask's own defaults: must come before ours

    with (
        _silenced_logs(),
        dask.config.set(_DASK_SETTINGS),
        _cluster(config) as address,
        _connected(Client, address, config) as client,
    ):
        count = _wait_for_workers(client, config)
        _check_versions(client)
        _check_storage(client, storage)
        if prepare is not None:
            _answers(client, prepare)
        yield DaskWorkers(client, count, config.silence_s, _dashboard(client, config))


@contextmanager
def _silenced_logs() -> Iterator[None]:
    """Keep Dask's log, tracebacks and all, off the user's terminal: what matters we tell.

    After a signal it stays so: what had half started then is closed at exit, with complaints.
    """
    levels = {name: logging.getLogger(name).level for name in _LOGGERS}
    _set_levels(dict.fromkeys(_LOGGERS, logging.CRITICAL))
    try:
        yield
    except Exception:
        _set_levels(levels)
        raise
    _set_levels(levels)


def _set_levels(levels: dict[str, int]) -> None:
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def local_workers(config: ClusterConfig) -> int:
    """Return how many processes a local cluster has."""
    return config.workers or available_cores()


@contextmanager
def _cluster(config: ClusterConfig) -> Iterator[Any]:
    """Yield what a client connects to."""
    if config.kind == "address":
        yield config.address
        return
    if config.kind == "local":
        from distributed import LocalCluster

        with _interrupts_held():
            made = LocalCluster(
                n_workers=local_workers(config),
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address=f"127.0.0.1:{config.dashboard_port}",
                worker_dashboard_address="127.0.0.1:0",
                memory_limit=config.memory_limit or "auto",
                silence_logs="CRITICAL",
            )
    else:
        cluster_class = _cluster_class(config.kind)
        with _interrupts_held():
            made = cluster_class(**config.arguments)
        if config.workers and hasattr(made, "scale"):
            made.scale(config.workers)
    try:
        yield made
    finally:
        _close(made)


def _close(made: Any) -> None:
    """End a cluster that was started here; whether that goes well is no longer the run's affair.

    Dask loses count of workers that leave while it looks at them, and then cannot close.
    """
    from distributed import Status

    try:
        made.close(timeout=_CLOSING_S)
    except Exception as error:
        logging.getLogger(__name__).debug("a cluster did not close: %s", error)
        made.status = Status.closed  # or it complains when it is collected


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let Ctrl-C wait until a cluster has started, and never reach its workers.

    A terminal sends it to them as well. What is held here they and the threads that start them
    inherit; ending them is the driver's business.
    """
    resource_tracker.ensure_running()  # when it starts later, it lets go of what is held
    held = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def _cluster_class(path: str) -> Any:
    module, _, name = path.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"cluster.kind {path!r} cannot be loaded: {error}.") from None


@contextmanager
def _connected(client_class: Any, address: Any, config: ClusterConfig) -> Iterator[Any]:
    security = _security(config)
    if config.address is not None:
        context = security.get_connection_args("client")["ssl_context"] if config.is_tls else None
        check_greeting(config.address, context, config.timeout_s)
    try:
        client = client_class(
            address, timeout=config.timeout_s, set_as_default=False, security=security
        )
    except (OSError, TimeoutError) as error:
        raise TemporaryError(f"No scheduler answers at {address}: {error}.") from None
    try:
        yield client
    finally:
        client.close(timeout=5)


def _security(config: ClusterConfig) -> Any:
    """Return what is shown to a scheduler and asked of it; None where a cluster has its own.

    Never left to Dask, which may ask a function that its configuration or the environment names.
    """
    if config.address is None:
        return None
    from distributed import Security

    if not config.is_tls:
        found = Security()
        if found.require_encryption:
            raise ConfigError(
                f"{config.address} is not encrypted, and Dask's own configuration asks for that "
                "(distributed.comm.require-encryption). Use a tls:// address."
            )
        return found
    found = Security(require_encryption=True, **_tls_files(config))
    try:
        context = found.get_connection_args("client")["ssl_context"]
    except OSError as error:
        raise ConfigError(f"The certificates cannot be used: {error}. {_TLS_ADVICE}") from None
    if context is None:
        raise ConfigError(f"{config.address} needs certificates. {_TLS_ADVICE}")
    return found


def _tls_files(config: ClusterConfig) -> dict[str, str]:
    """Return the files of our own settings by Dask's names; none where Dask is to know them."""
    for name, path in config.tls_files.items():
        if not os.access(path, os.R_OK):
            raise ConfigError(f"cluster.{name}: cannot read {path}. {_TLS_ADVICE}")
    names = {"tls_cert": "tls_client_cert", "tls_key": "tls_client_key"}
    return {names.get(name, name): path for name, path in config.tls_files.items()}


def _dashboard(client: Any, config: ClusterConfig) -> str | None:
    """Return the address of the scheduler's pages; here they need bokeh, elsewhere nobody knows."""
    if config.kind == "local" and find_spec("bokeh") is None:
        return None
    try:
        return str(client.dashboard_link or "") or None
    except (LookupError, ValueError, OSError):  # none, or a link that names nothing here
        return None


def _wait_for_workers(client: Any, config: ClusterConfig) -> int:
    wanted = local_workers(config) if config.kind == "local" else config.workers or 1
    try:
        client.wait_for_workers(wanted, timeout=config.timeout_s)
    except TimeoutError:
        found = len(client.scheduler_info(n_workers=-1)["workers"])
        raise TemporaryError(
            f"{found} of {wanted} worker(s) answered within {config.timeout_s:g} s. Start more, "
            "lower cluster.workers, or raise cluster.timeout_s."
        ) from None
    return len(client.scheduler_info(n_workers=-1)["workers"])


def _answers(client: Any, question: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """Return what each worker says to a question of ours."""
    try:
        answers: dict[str, Any] = client.run(question, *arguments)
    except OSError as error:
        raise _all_lost() from error
    except Exception as error:  # Dask has only its text: our package is not there, or too old
        raise ConfigError(
            f"A worker cannot answer ({' '.join(str(error).split())}). "
            f"Install mrot-scale {worker_versions()['mrot-scale']} on all workers."
        ) from error
    return answers


def _check_versions(client: Any) -> None:
    ours = worker_versions()
    for worker, theirs in _answers(client, worker_versions).items():
        different = [n for n in ours if ours[n] != theirs.get(n)]
        if different:
            shown = ", ".join(f"{n} {theirs.get(n)} (here {ours[n]})" for n in different)
            raise ConfigError(f"Worker {worker} has other versions: {shown}. Install the same.")


def _check_storage(client: Any, storage: Sequence[Location]) -> None:
    """Let every worker find what is here, and write where all write: into the first folder."""
    if not storage:
        return
    with probe_file(storage[0]):
        seen = {place.address: place.names() for place in storage}
        for worker, complaint in _answers(client, check_storage, list(seen), seen).items():
            if complaint:
                raise ConfigError(f"Worker {worker} cannot use the storage: {complaint}")
