"""Encrypted clusters: who is let in, who is refused, and what each is told."""

import socket
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dask
import distributed  # noqa: F401 - brings Dask's own defaults, which must come before ours
import psutil  # type: ignore[import-untyped]
import pytest
import yaml

import mrot_scale
from mrot_scale.certificates import Certificates, make_certificates
from mrot_scale.config.cluster import ClusterConfig
from mrot_scale.errors import ConfigError, MrotError
from mrot_scale.running.cluster import open_workers
from mrot_scale.running.greeting import check_greeting
from mrot_scale.storing.location import Location
from tests.encrypted import Encrypted, encrypted_scheduler, encrypted_worker, settings
from tests.running.jobs import SETTINGS, Results, assert_same_files, contents, fit_command
from tests.servers import LOOPBACK, Scheduler, free_port, mrot, run, scheduler, worker

SOON_S = 15.0
"""Far less than the time a scheduler is waited for, far more than a refusal needs."""


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("ours") / "tls", [LOOPBACK])


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("foreign") / "tls", [LOOPBACK])


@pytest.fixture(scope="module")
def encrypted(ours: Certificates) -> Iterator[Encrypted]:
    with encrypted_scheduler(ours) as found:
        yield found


@pytest.fixture(scope="module")
def plain() -> Iterator[Scheduler]:
    with scheduler() as found:
        yield found


@pytest.fixture
def no_certificates_of_dask() -> Iterator[None]:
    """Dask's own configuration on a machine where nobody wrote one."""
    with dask.config.set({"distributed.comm.tls.ca-file": None}):
        yield


def refused(config: ClusterConfig) -> MrotError:
    """Return why workers were not taken, which nobody had to wait for."""
    start = time.monotonic()
    with pytest.raises(MrotError) as caught, open_workers(config):
        pytest.fail("workers were taken")
    assert time.monotonic() - start < SOON_S
    assert len(str(caught.value).splitlines()) == 1
    return caught.value


# Who belongs to it ---------------------------------------------------------------------------


@pytest.mark.slow
def test_an_encrypted_cluster_gives_the_same_bytes(
    encrypted: Encrypted, table: Path, expected: Results, tmp_path: Path
) -> None:
    work = Location(tmp_path)
    mrot_scale.ingest(table, str(work / "store"), id="reading", config=SETTINGS)
    file = tmp_path / "cluster.yaml"
    cluster = {"address": encrypted.address, **settings(encrypted.certificates)}
    file.write_text(yaml.safe_dump({"cluster": cluster}))
    with encrypted_worker(encrypted) as only:
        done = run(mrot(*fit_command(work, "-c", str(file))))
        ports = talking_ports(encrypted.process.pid) | talking_ports(only.pid)
        for port in ports:
            with pytest.raises(ConfigError, match="expects TLS"):
                check_greeting(f"tcp://{LOOPBACK}:{port}", None, SOON_S)
    assert done.returncode == 0, done.stderr
    assert len(ports) == 2, "that of the scheduler and that of the worker"
    assert_same_files(contents(work / "model"), expected.model)


def talking_ports(pid: int) -> set[int]:
    """Return the ports of a process that serve Dask's messages, not its dashboard's pages."""
    listening = {
        connection.laddr.port
        for connection in psutil.Process(pid).net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }
    return {port for port in listening if not _serves_pages(port)}


def _serves_pages(port: int) -> bool:
    with socket.create_connection((LOOPBACK, port), timeout=SOON_S) as connection:
        connection.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        try:
            return connection.recv(5) == b"HTTP/"
        except ConnectionResetError:
            return False


def test_certificates_may_be_those_of_dasks_own_configuration(encrypted: Encrypted) -> None:
    ours = encrypted.certificates
    known = {
        "distributed.comm.tls.ca-file": str(ours.ca_file),
        "distributed.comm.tls.client.cert": str(ours.cert),
        "distributed.comm.tls.client.key": str(ours.key),
    }
    config = ClusterConfig(address=encrypted.address, timeout_s=20.0)
    with encrypted_worker(encrypted), dask.config.set(known), open_workers(config) as workers:
        assert workers.count == 1


def test_a_function_that_dasks_configuration_names_is_not_asked(plain: Scheduler) -> None:
    """The environment can write Dask's configuration, and code does not come from there."""
    named = {"distributed.client.security-loader": "no.such.module:function"}
    config = ClusterConfig(address=plain.address, timeout_s=20.0)
    with worker(plain.address), dask.config.set(named), open_workers(config) as workers:
        assert workers.count == 1


# Who does not --------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_certificates_of_dask")
def test_without_certificates_one_is_told_which_settings_name_them(encrypted: Encrypted) -> None:
    error = refused(ClusterConfig(address=encrypted.address))
    assert error.exit_code == 78
    assert f"{encrypted.address} needs certificates" in str(error)
    assert "cluster.tls_ca_file, tls_cert and tls_key" in str(error)
    assert "Dask's own configuration" in str(error)


@pytest.mark.usefixtures("no_certificates_of_dask")
def test_the_command_says_so_in_one_line(encrypted: Encrypted, table: Path, tmp_path: Path) -> None:
    command = ["fit", str(table), str(tmp_path / "model"), "--cluster", encrypted.address]
    done = run(mrot(*command), {"DASK_CONFIG": str(tmp_path / "none")})
    assert done.returncode == 78
    told = [line for line in done.stderr.splitlines() if "error" in line]
    assert len(told) == 1
    assert "needs certificates" in told[0]
    assert "Traceback" not in done.stderr


def test_the_scheduler_itself_refuses_who_shows_no_certificate(encrypted: Encrypted) -> None:
    bare = ssl.create_default_context(cafile=encrypted.certificates.ca_file)
    bare.check_hostname = False
    with pytest.raises(ConfigError, match="certificate required"):
        check_greeting(encrypted.address, bare, SOON_S)


def test_a_scheduler_of_a_foreign_authority_is_refused(
    encrypted: Encrypted, foreign: Certificates
) -> None:
    error = refused(encrypted.config(**settings(foreign)))
    assert error.exit_code == 78
    assert f"certificate of the scheduler at {encrypted.address} is refused" in str(error)
    assert "tls_ca_file" in str(error)


def test_a_certificate_of_a_foreign_authority_is_refused_by_the_scheduler(
    encrypted: Encrypted, foreign: Certificates
) -> None:
    shown = {"tls_cert": str(foreign.cert), "tls_key": str(foreign.key)}
    error = refused(encrypted.config(**shown))
    assert error.exit_code == 78
    assert f"{encrypted.address} refuses the certificate of this side" in str(error)
    assert "unknown ca" in str(error)


def test_expired_certificates_are_refused(tmp_path: Path) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=40)
    old = make_certificates(tmp_path / "tls", [LOOPBACK], days=30, start=long_ago)
    with encrypted_scheduler(old) as found:
        error = refused(found.config())
    assert error.exit_code == 78
    assert "certificate has expired" in str(error)
    assert "make new ones" in str(error)


# What does not speak the same ----------------------------------------------------------------


def test_tcp_to_an_encrypted_scheduler_is_told_to_use_tls(encrypted: Encrypted) -> None:
    error = refused(ClusterConfig(address=f"tcp://{LOOPBACK}:{encrypted.port}"))
    assert error.exit_code == 78
    assert "expects TLS: write tls://" in str(error)


def test_tls_to_a_plain_scheduler_is_told_that_it_is_plain(
    plain: Scheduler, ours: Certificates
) -> None:
    address = f"tls://{LOOPBACK}:{plain.port}"
    error = refused(ClusterConfig(address=address, **settings(ours)))
    assert error.exit_code == 78
    assert f"{address} does not speak TLS" in str(error)
    assert "--protocol tls" in str(error)


def test_after_such_a_mistake_the_plain_scheduler_still_answers(
    plain: Scheduler, ours: Certificates
) -> None:
    refused(ClusterConfig(address=f"tls://{LOOPBACK}:{plain.port}", **settings(ours)))
    check_greeting(plain.address, None, SOON_S)


def test_plain_tcp_is_refused_where_dasks_configuration_asks_for_encryption(
    plain: Scheduler,
) -> None:
    with dask.config.set({"distributed.comm.require-encryption": True}):
        error = refused(ClusterConfig(address=plain.address))
    assert error.exit_code == 78
    assert "require-encryption" in str(error)


@pytest.mark.parametrize("scheme", ["tcp", "tls"])
def test_a_port_that_says_nothing_is_given_up_on(scheme: str, ours: Certificates) -> None:
    with socket.create_server((LOOPBACK, 0)) as silent:
        address = f"{scheme}://{LOOPBACK}:{silent.getsockname()[1]}"
        files = settings(ours) if scheme == "tls" else {}
        error = refused(ClusterConfig(address=address, timeout_s=1.0, **files))
    assert error.exit_code == 75
    assert f"{address} takes connections, but says nothing for 1 s" in str(error)


def test_where_nobody_listens_the_run_is_to_be_tried_again(ours: Certificates) -> None:
    address = f"tls://{LOOPBACK}:{free_port()}"
    error = refused(ClusterConfig(address=address, timeout_s=2.0, **settings(ours)))
    assert error.exit_code == 75
    assert f"No scheduler answers at {address}" in str(error)


# Files that are not what they should be ------------------------------------------------------


@pytest.mark.parametrize("name", ["tls_ca_file", "tls_cert", "tls_key"])
def test_a_missing_file_is_named(encrypted: Encrypted, name: str, tmp_path: Path) -> None:
    error = refused(encrypted.config(**{name: str(tmp_path / "none.pem")}))
    assert error.exit_code == 78
    assert f"cluster.{name}: cannot read {tmp_path / 'none.pem'}" in str(error)


@pytest.mark.parametrize("name", ["tls_ca_file", "tls_cert", "tls_key"])
def test_a_file_that_is_no_certificate_or_key_is_told(
    encrypted: Encrypted, name: str, tmp_path: Path
) -> None:
    (tmp_path / "wrong.pem").write_text("wrong")
    error = refused(encrypted.config(**{name: str(tmp_path / "wrong.pem")}))
    assert error.exit_code == 78
    assert "certificates cannot be used" in str(error)


def test_a_key_of_another_certificate_is_told(encrypted: Encrypted, foreign: Certificates) -> None:
    error = refused(encrypted.config(tls_key=str(foreign.key)))
    assert error.exit_code == 78
    assert "certificates cannot be used" in str(error)
    assert "mismatch" in str(error).lower()


# Settings ------------------------------------------------------------------------------------

FILES = {"tls_ca_file": "ca.pem", "tls_cert": "node.pem", "tls_key": "node-key.pem"}


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ({"address": "tls://there:1", "tls_cert": "node.pem"}, "set tls_ca_file"),
        ({"address": "tls://there:1", **FILES, "tls_key": None}, "set tls_key"),
        ({"address": "tcp://127.0.0.1:1", **FILES}, "tcp://127.0.0.1:1 is no tls:// address"),
        ({"kind": "dask_jobqueue:SLURMCluster", **FILES}, "a class takes security as arguments"),
        ({"address": "tls://there:65536"}, "a port from 1 to 65535"),
    ],
)
def test_certificates_that_would_not_be_used_are_refused(
    cluster: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        mrot_scale.load_config(overrides={"cluster": cluster}, environment={})
    assert message in str(caught.value)


def test_certificates_stay_with_another_address_and_go_with_another_kind(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump({"cluster": {"address": "tls://there:1", **FILES}}))
    elsewhere = {"cluster": {"address": "tls://elsewhere:1"}}
    found = mrot_scale.load_config(file, overrides=elsewhere, environment={}).cluster
    assert (found.address, found.tls_files) == ("tls://elsewhere:1", FILES)
    for kind in ("local", "dask_jobqueue:SLURMCluster"):
        found = mrot_scale.load_config(
            file, overrides={"cluster": {"kind": kind}}, environment={}
        ).cluster
        assert (found.kind, found.tls_files) == (kind, {})


def test_certificates_may_be_named_by_the_environment() -> None:
    """They are files, no code."""
    named = {f"MROT_CLUSTER__{name.upper()}": path for name, path in FILES.items()}
    found = mrot_scale.load_config(
        environment={**named, "MROT_CLUSTER__ADDRESS": "tls://there:1"}
    ).cluster
    assert found.tls_files == FILES
