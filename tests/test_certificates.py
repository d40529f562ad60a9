"""Certificates that work, kept from other eyes, written whole or not at all."""

import os
import ssl
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mrot_scale.certificates import Certificates, make_certificates
from mrot_scale.errors import ConfigError, OutputError
from tests.servers import PROJECT, mrot

FILES = ["ca-key.pem", "ca.pem", "node-key.pem", "node.pem"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    hosts = ["scheduler.example", "10.0.0.5", "fd00::5"]
    return make_certificates(tmp_path_factory.mktemp("tls") / "made", hosts, days=30)


def command(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*words[:-1], *mrot("certificates", words[-1])],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **environment},
    )


def side(made: Certificates, purpose: ssl.Purpose) -> ssl.SSLContext:
    """Return one side of a connection, as strict as Python can be."""
    context = ssl.create_default_context(purpose, cafile=made.ca_file)
    context.load_cert_chain(made.cert, made.key)
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


def shake_hands(made: Certificates, name: str) -> None:
    """Let a client that compares names meet a server, both with the same certificate."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = side(made, ssl.Purpose.SERVER_AUTH).wrap_bio(
        to_client, to_server, server_hostname=name
    )
    server = side(made, ssl.Purpose.CLIENT_AUTH).wrap_bio(to_server, to_client, server_side=True)
    waiting = [client, server]
    while waiting:
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                continue


def test_nobody_else_can_read_what_is_written(made: Certificates) -> None:
    assert sorted(p.name for p in made.folder.iterdir()) == FILES
    assert made.folder.stat().st_mode & 0o777 == 0o700
    assert {p.stat().st_mode & 0o777 for p in made.folder.iterdir()} == {0o600}


@pytest.mark.parametrize("name", ["scheduler.example", "10.0.0.5", "fd00::5"])
def test_the_certificate_serves_both_sides_under_each_name(made: Certificates, name: str) -> None:
    shake_hands(made, name)


def test_another_name_is_not_in_it(made: Certificates) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake_hands(made, "elsewhere.example")


def test_it_expires_when_told(made: Certificates) -> None:
    days = (made.until - datetime.now(UTC)).total_seconds() / 86_400
    assert 29.9 < days <= 30
    found = ssl._ssl._test_decode_cert(str(made.cert))  # type: ignore[attr-defined]
    assert ssl.cert_time_to_seconds(found["notAfter"]) == made.until.timestamp()


@pytest.mark.parametrize("host", ["", "tls://there", "there:8786", "a b", "-x", "x" * 254, "ä"])
def test_what_is_no_host_is_refused(host: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="neither a host name nor an IP address"):
        make_certificates(tmp_path / "tls", [host])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_exists_is_never_overwritten(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "tls"
    if kind == "folder":
        place.mkdir()
    elif kind == "file":
        place.write_text("mine")
    else:
        place.symlink_to(tmp_path / "nowhere")
    with pytest.raises(OutputError, match="exists already"):
        make_certificates(place, ["localhost"])
    assert [p.name for p in tmp_path.iterdir()] == ["tls"]
    assert kind != "file" or place.read_text() == "mine"


def test_a_folder_that_exists_is_exit_73(made: Certificates) -> None:
    before = made.key.read_bytes()
    done = command(str(made.folder))
    assert done.returncode == 73
    assert len(done.stderr.splitlines()) == 1
    assert made.key.read_bytes() == before


def test_a_disk_that_takes_no_more_leaves_nothing_behind(tmp_path: Path) -> None:
    done = command("prlimit", "--fsize=300", str(tmp_path / "tls"))
    assert done.returncode == 73, done.stderr
    assert "File too large" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_place_where_no_folder_can_be_is_exit_73(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    done = command(str(tmp_path / "file" / "tls"))
    assert done.returncode == 73
    assert "Cannot write" in done.stderr


def test_a_kill_on_the_way_leaves_no_folder_of_that_name(tmp_path: Path) -> None:
    code = "import os; os.fsync = lambda _: os.kill(os.getpid(), 9)\n"
    (tmp_path / "sitecustomize.py").write_text(code)
    done = command(str(tmp_path / "tls"), PYTHONPATH=str(tmp_path))
    assert done.returncode == -9
    assert not (tmp_path / "tls").exists()


def test_a_missing_library_is_told_with_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['cryptography'] = None\n")
    done = command(str(tmp_path / "tls"), PYTHONPATH=str(tmp_path))
    assert done.returncode == 78
    assert len(done.stderr.splitlines()) == 1
    assert "pip install 'mrot-scale[tls]'" in done.stderr


def test_what_is_printed_names_every_file_once_it_is_there(tmp_path: Path) -> None:
    done = command(str(tmp_path / "tls"))
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in (tmp_path / "tls").iterdir()) == FILES
    assert all(f"  {name} " in done.stdout for name in FILES)
    assert {"dask scheduler", "dask worker", "cluster:"} <= {
        " ".join(line.split()[:2]) if "dask" in line else line.strip()
        for line in done.stdout.splitlines()
    }


def test_the_documentation_shows_what_is_printed(tmp_path: Path) -> None:
    words = [*mrot("certificates", str(tmp_path / "tls")), "--host", "scheduler.example"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    printed = done.stdout.replace(str(tmp_path / "tls"), "/etc/mrot/tls").splitlines()
    documented = [line.strip() for line in (PROJECT / "docs/security.md").read_text().splitlines()]
    shown = [line.strip() for line in printed if line.strip().startswith(("dask", "tls_", "addr"))]
    assert len(shown) == 6
    assert [line for line in shown if line not in documented] == []


def test_days_and_usage_are_checked(tmp_path: Path) -> None:
    done = subprocess.run(
        [*mrot("certificates", str(tmp_path / "tls")), "--days", "0"],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert list(tmp_path.iterdir()) == []
