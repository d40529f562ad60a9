"""Alerts: told by command and webhook, late or never without harm, and no secret on the way."""

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Event, Thread
from typing import Any

import pytest

from mrot_scale.config.nightly import NightlyConfig
from mrot_scale.errors import UnwrittenReportWarning
from mrot_scale.scheduled.alerts import WEBHOOK, Alert, AlertWarning, event_of, send
from mrot_scale.scheduled.layout import Layout
from mrot_scale.scheduled.partitions import Partition
from mrot_scale.scheduled.state import PartitionState, Status, read_state, write_state
from mrot_scale.scheduled.telling import Ending, UntoldWarning
from mrot_scale.storing.location import Location
from tests.servers import LOOPBACK, free_port

SECRET = "T0KEN-b1946ac9"
ALERT = Alert(
    event="fail",
    job="/data/pumps",
    partition="date=2026-11-14",
    reason='psi: "temperature" has PSI 1.2, für alle',
    report="/data/pumps/reports/date=2026-11-14.html",
    run_id="20261114T020000Z-2026-11-14-abcdef",
    exit_code=3,
)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have a webhook, and a proxy that loopback is not to go through."""
    monkeypatch.delenv(WEBHOOK, raising=False)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, LOOPBACK)


def failing(settings: NightlyConfig) -> list[str]:
    """Send the alert; return the warnings, which are all that may come of what goes wrong."""
    with pytest.warns(AlertWarning) as caught:
        problems = send(ALERT, settings)
    told = [str(warning.message) for warning in caught]
    assert told == problems
    assert all(SECRET not in text and "\n" not in text and len(text) < 300 for text in told)
    return told


# --- what is told


def test_an_alert_is_one_line_and_json_with_all_there_is_to_know() -> None:
    found = json.loads(ALERT.to_bytes())
    assert found.pop("text") == ALERT.text
    assert found == asdict(ALERT)
    assert ALERT.text.startswith("mrot-scale fail: date=2026-11-14 of /data/pumps: psi: ")


@pytest.mark.parametrize(
    ("level", "was_fine", "expected"),
    [
        ("ok", True, None),
        ("ok", False, "recovery"),
        ("warn", True, "warn"),
        ("warn", False, "warn"),
        ("fail", True, "fail"),
        ("fail", False, "fail"),
    ],
)
def test_what_there_is_to_tell(level: str, was_fine: bool, expected: str | None) -> None:
    assert event_of(level, was_fine) == expected


def test_nobody_is_told_where_nobody_is_named() -> None:
    assert send(ALERT, NightlyConfig()) == []


# --- commands


def python(folder: Path, text: str) -> tuple[str, ...]:
    """A command that runs a script."""
    script = folder / "script.py"
    script.write_text(text)
    return (sys.executable, "-S", "-E", str(script), str(folder / "told"))


WRITES = "import sys; open(sys.argv[1], 'ab').write(sys.stdin.buffer.read())"


def by(command: tuple[str, ...], seconds: float = 20.0) -> NightlyConfig:
    return NightlyConfig(alert_command=command, alert_seconds=seconds)


def test_a_command_reads_the_alert(tmp_path: Path) -> None:
    assert send(ALERT, by(python(tmp_path, WRITES))) == []
    assert json.loads((tmp_path / "told").read_bytes()) == {"text": ALERT.text, **asdict(ALERT)}


def test_words_of_a_command_are_no_shells(tmp_path: Path) -> None:
    told = tmp_path / "told; touch evil $(touch evil) *"
    command = (*python(tmp_path, WRITES)[:-1], str(told))
    assert send(ALERT, by(command)) == []
    assert told.exists()
    assert not list(tmp_path.rglob("evil"))


def test_a_command_that_reads_nothing_and_says_much_is_fine(tmp_path: Path) -> None:
    chatty = "import sys; sys.stdout.write('x' * 10**6); sys.stderr.write('y' * 10**6)"
    long = Alert(**(asdict(ALERT) | {"reason": "x" * 10**6}))
    assert send(long, by(python(tmp_path, chatty))) == []


def test_a_command_that_fails_is_a_warning(tmp_path: Path) -> None:
    fails = f"import sys; print('{SECRET}', file=sys.stderr); sys.exit(7)"
    command = python(tmp_path, fails)
    assert failing(by((*command, SECRET))) == [f"Alert command {command[0]} ended with 7."]


@pytest.mark.parametrize("how", ["unknown", "no program", "a folder", "nul", "empty"])
def test_a_command_that_cannot_be_run_is_a_warning(how: str, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("not executable")
    name = {
        "unknown": "no-such-command-at-all",
        "no program": str(tmp_path / "plain"),
        "a folder": str(tmp_path),
        "nul": "a\0b",
        "empty": "",
    }[how]
    (told,) = failing(by((name, SECRET)))
    assert told.startswith("Alert command ")
    assert "failed: " in told


@pytest.mark.parametrize(
    "hangs",
    [
        "import time; time.sleep(60)",
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)",
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; "
        "time.sleep(60)'])",
    ],
    ids=["sleeps", "ignores signals", "waits for another"],
)
def test_a_command_that_hangs_is_given_up(hangs: str, tmp_path: Path) -> None:
    begun = time.monotonic()
    (told,) = failing(by(python(tmp_path, hangs), seconds=0.4))
    assert "TimeoutExpired" in told
    assert time.monotonic() - begun < 30  # a hang, not a speed


# --- webhooks


@dataclass
class Posted:
    """A server on loopback, and what was posted to it."""

    port: int
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)

    def address(self, path: str = f"/hooks/{SECRET}") -> str:
        return f"http://{LOOPBACK}:{self.port}{path}"


Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def serving(answer: Answer) -> Iterator[Posted]:
    """Serve HTTP until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            posted.requests.append((self.command, self.path, dict(self.headers), body))
            answer(self)

        do_POST = do_GET = answer  # noqa: N815 - as http.server wants them

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer((LOOPBACK, 0), Handler) as server:
        posted = Posted(server.server_port)
        with _in_thread(server):
            yield posted


@contextmanager
def _in_thread(server: Any) -> Iterator[None]:
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join(10)


@contextmanager
def raw(answer: Callable[[Any], None]) -> Iterator[str]:
    """Answer whatever comes with bytes of our own; yield the address."""

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65_536)
            with suppress(OSError):  # whoever asked has left
                answer(self.request)

    with ThreadingTCPServer((LOOPBACK, 0), Handler) as server, _in_thread(server):
        yield f"http://{LOOPBACK}:{server.server_address[1]}/{SECRET}"


def status(code: int, **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


SOON = NightlyConfig(alert_seconds=5.0)


@pytest.mark.parametrize("code", [200, 201, 204])
def test_a_webhook_is_posted_the_alert(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(status(code)) as server:
        monkeypatch.setenv(WEBHOOK, f" {server.address()}\n")  # as read from a file of secrets
        assert send(ALERT, SOON) == []
    ((method, path, headers, body),) = server.requests
    assert (method, path) == ("POST", f"/hooks/{SECRET}")
    assert headers["Content-Type"] == "application/json"
    assert json.loads(body) == {"text": ALERT.text, **asdict(ALERT)}


@pytest.mark.parametrize("code", [400, 404, 429, 500, 503])
def test_a_webhook_that_refuses_is_a_warning(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(status(code)) as server:
        monkeypatch.setenv(WEBHOOK, server.address())
        assert failing(SOON) == [f"Alert to {LOOPBACK} failed: {code}."]
    assert len(server.requests) == 1


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_webhook_that_sends_elsewhere_is_followed_with_the_alert_or_told(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A redirect turned into a GET delivers nothing: nobody may take that for delivered."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        moved = handler.path == "/moved"
        status(200 if moved else code, Location="/moved")(handler)

    with serving(answer) as server:
        monkeypatch.setenv(WEBHOOK, server.address())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AlertWarning)
            problems = send(ALERT, SOON)
    delivered = [method for method, path, _, body in server.requests if path == "/moved" and body]
    assert problems or delivered == ["POST"]


def test_a_webhook_nobody_listens_at_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WEBHOOK, f"http://{LOOPBACK}:{free_port()}/{SECRET}")
    (told,) = failing(SOON)
    assert told.startswith(f"Alert to {LOOPBACK} failed: ")


@pytest.mark.parametrize("scheme", ["https", "http"])
def test_a_webhook_that_speaks_something_else_is_a_warning(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with raw(lambda request: request.sendall(b"220 mail.example.com ESMTP\r\n")) as address:
        monkeypatch.setenv(WEBHOOK, address.replace("http", scheme, 1))
        (told,) = failing(SOON)
    assert told.startswith(f"Alert to {LOOPBACK} failed: ")


def test_a_webhook_that_hangs_up_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    with raw(lambda request: request.close()) as address:
        monkeypatch.setenv(WEBHOOK, address)
        (told,) = failing(SOON)
    assert told.startswith(f"Alert to {LOOPBACK} failed: ")


def test_a_webhook_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    over = Event()

    def wait(request: Any) -> None:
        over.wait(30)

    with raw(wait) as address:
        monkeypatch.setenv(WEBHOOK, address)
        begun = time.monotonic()
        (told,) = failing(NightlyConfig(alert_seconds=0.3))
        assert time.monotonic() - begun < 20  # a hang, not a speed
        over.set()
    assert told.startswith(f"Alert to {LOOPBACK} failed: ")


def test_a_webhook_that_answers_byte_by_byte_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    over = Event()

    def trickle(request: Any) -> None:
        for letter in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300:
            request.sendall(bytes([letter]))
            if over.wait(0.1):
                return

    with raw(trickle) as address:
        monkeypatch.setenv(WEBHOOK, address)
        begun = time.monotonic()
        failing(NightlyConfig(alert_seconds=0.4))
        seconds = time.monotonic() - begun
        over.set()
    assert seconds < 15, "alert_seconds is for all of it, not for every byte"


@pytest.mark.parametrize(
    "address",
    [
        f"ftp://{LOOPBACK}/{SECRET}",
        f"file:///etc/{SECRET}",
        f"{LOOPBACK}/{SECRET}",
        f"//{LOOPBACK}/{SECRET}",
        f"data:,{SECRET}",
        SECRET,
        f"http:{SECRET}",
        f"http:///{SECRET}",
        f"http://[::1/{SECRET}",
        f"http://{LOOPBACK}:{SECRET}/",
        f"http://{LOOPBACK}:99999/{SECRET}",
        f"http://user:{SECRET}@{LOOPBACK}:1/",
        f"http://{LOOPBACK}:1/{SECRET} and more",
        f"http://{LOOPBACK}:1/{SECRET}\x7f",
        f"http://{LOOPBACK}:1/{SECRET}/é",
        f"http://a\u2100/{SECRET}",
        f"http://{'a' * 70}/{SECRET}",
    ],
    ids=range(17),
)
def test_an_address_that_is_none_is_a_warning_without_it(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WEBHOOK, address)
    (told,) = failing(NightlyConfig(alert_seconds=2.0))
    assert "lert" in told


def test_files_are_never_opened_as_webhooks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")  # whoever opens it waits forever
    monkeypatch.setenv(WEBHOOK, f"file://{tmp_path}/pipe")
    assert failing(SOON) == [f"{WEBHOOK} is no http(s) address: no alert was posted."]


def test_who_cannot_be_told_keeps_nobody_else_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(status(200)) as server:
        monkeypatch.setenv(WEBHOOK, server.address())
        assert len(failing(by(("no-such-command-at-all",)))) == 1
    assert len(server.requests) == 1
    monkeypatch.setenv(WEBHOOK, f"ftp://{SECRET}")
    assert len(failing(by(python(tmp_path, WRITES)))) == 1
    assert (tmp_path / "told").exists()


# --- which runs are told of


class Job:
    """A job whose runs end as the test says, and whose command writes down each alert."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        command = python(folder, WRITES.replace("read())", "read() + b'\\n')"))
        self.settings = NightlyConfig(alert_command=command, **settings)
        self.layout, self._folder = Layout(Location(folder / "out")), folder

    def end(
        self, value: str, level: str = "ok", status: Status = "published", **facts: Any
    ) -> list[str]:
        """End a run; return the events that were told of it."""
        code = {"gated": 3, "failed": 75}.get(status, 0)
        partition = Partition("date", value)
        before = read_state(self.layout, partition)
        state = PartitionState(value, status, "r", 1, "fail" if code else level, code, "")
        write_state(self.layout, partition, state)
        found = {
            "partition": {"key": "date", "value": value},
            "run_id": "r",
            "status": status,
            "exit_code": code,
            "reason": "broken" if code else "",
            "started": "2026-11-14T02:00:00+00:00",
            "seconds": 1.0,
            "attempts": 1,
            "stages": {},
            "gates": [{"gate": "psi", "level": level, "message": "moved"}],
        }
        (self._folder / "told").unlink(missing_ok=True)
        Ending(self.layout, partition, self.settings, before).tell(found | facts, None)
        told = self._folder / "told"
        self.alerts = (
            [json.loads(x) for x in told.read_text().splitlines()] if told.exists() else []
        )
        return [alert["event"] for alert in self.alerts]


def test_a_night_that_is_fine_after_one_that_was_is_told_to_nobody(tmp_path: Path) -> None:
    job = Job(tmp_path)
    assert job.end("2026-11-13") == []
    assert job.end("2026-11-14") == []


def test_every_warning_and_failure_is_told_with_its_reason(tmp_path: Path) -> None:
    job = Job(tmp_path)
    assert job.end("2026-11-13", "warn") == ["warn"]
    assert job.alerts[0]["reason"] == "psi: moved"
    assert job.alerts[0]["partition"] == "date=2026-11-13"
    assert job.end("2026-11-14", "fail", "gated") == ["fail"]
    assert job.alerts[0]["reason"] == "broken"
    assert job.alerts[0]["exit_code"] == 3
    assert job.alerts[0]["report"].endswith("reports/date=2026-11-14.html")
    assert job.end("2026-11-14", "ok", "failed") == ["fail"]


def test_a_recovery_is_told_once(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.end("2026-11-13", "fail", "gated")
    assert job.end("2026-11-14") == ["recovery"], "the night after one that failed"
    assert job.end("2026-11-15") == []
    assert job.end("2026-11-13") == ["recovery"], "the same night again"
    assert job.end("2026-11-13") == []


def test_a_run_with_nothing_to_do_is_told_to_nobody(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.end("2026-11-13", "warn")
    assert job.end("2026-11-13", "warn", skipped=True) == []


def test_an_alert_goes_out_where_metrics_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    job = Job(tmp_path, metrics=str(tmp_path / "file/metrics"))
    with pytest.warns(UntoldWarning, match="metrics"):
        assert job.end("2026-11-14", "fail", "gated") == ["fail"]


def test_an_alert_goes_out_where_the_report_cannot_be_written(tmp_path: Path) -> None:
    job = Job(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/reports").write_bytes(b"")
    with pytest.warns(UnwrittenReportWarning, match="There is no report: Cannot write"):
        assert job.end("2026-11-14", "fail", "gated") == ["fail"]
