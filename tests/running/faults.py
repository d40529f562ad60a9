"""A server between a client and an object store that fails in the ways networks do."""

import http.client
import re
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Literal, get_args

from tests.servers import LOOPBACK

Fault = Literal["500", "503", "412", "reset", "half", "cut", "short", "deaf", "slow"]
"""An answer that is an error; a closed connection, before or in the middle of the request; half an
answer, the connection reset or closed after it; a request carried out but never answered, or only
when the client has given up."""

FAULTS: tuple[Fault, ...] = get_args(Fault)

SLOW_S = 12.0
"""Longer than a client of ours waits for an answer."""

_ERROR = b"<Error><Code>%s</Code><Message>Try again.</Message></Error>"
_CODES = {"500": b"InternalError", "503": b"ServiceUnavailable", "412": b"PreconditionFailed"}
_TAGS = {"x-amz-copy-source": "copy", "If-Match": "if-match", "If-None-Match": "if-none-match"}


class Faults:
    """The faults to come, by what requests look like, and what was asked so far."""

    def __init__(self, faults: Mapping[str, Sequence[Fault | None]]) -> None:
        """Take for each pattern how the requests that it finds fail, None for those that do not."""
        self.left = {pattern: list(those) for pattern, those in faults.items()}
        self.seen: list[str] = []
        """Requests, such as `PUT /bucket/key if-match`."""

        self._lock = Lock()

    def of(self, request: str) -> Fault | None:
        """Return how a request is to fail; the first pattern that finds it decides."""
        with self._lock:
            self.seen.append(request)
            for pattern, those in self.left.items():
                if those and re.search(pattern, request):
                    return those.pop(0)
        return None


class _Between(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    target: int
    faults: Faults

    def _pass_on(self) -> None:
        tags = [tag for name, tag in _TAGS.items() if self.headers.get(name)]
        fault = self.faults.of(" ".join([self.command, self.path, *tags]))
        n_bytes = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(n_bytes // 2 if fault == "half" else n_bytes)
        if fault in _CODES:
            self._answer(int(fault), {}, _ERROR % _CODES[fault])
        elif fault in ("reset", "half"):
            self._hang_up()
        else:
            self._carry_out(body, fault)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _pass_on  # noqa: N815

    def _carry_out(self, body: bytes, fault: Fault | None) -> None:
        connection = http.client.HTTPConnection(LOOPBACK, self.target)
        connection.request(self.command, self.path, body, dict(self.headers.items()))
        with connection.getresponse() as found:
            content, headers = found.read(), dict(found.getheaders())
        connection.close()
        if fault in ("deaf", "slow"):
            time.sleep(SLOW_S if fault == "slow" else 0)
            self._hang_up()
            return
        self._answer(found.status, headers, content, part=fault in ("cut", "short"))
        if fault == "cut":
            self._hang_up()

    def _answer(
        self, status: int, headers: dict[str, str], content: bytes, *, part: bool = False
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(content)))
        elif "Content-Length" in headers:
            self.send_header("Content-Length", headers["Content-Length"])
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[: len(content) // 2] if part else content)
        self.close_connection = self.close_connection or part

    def _hang_up(self) -> None:
        """Close without a word, as a machine does that has gone."""
        self.wfile.flush()
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def faulty_server(target: int, faults: Sequence[Fault] | Faults) -> Iterator[int]:
    """Yield the port of a server that passes requests on, some of them with these faults."""
    found = faults if isinstance(faults, Faults) else Faults({"": faults})
    handler = type("Handler", (_Between,), {"target": target, "faults": found})
    with ThreadingHTTPServer((LOOPBACK, 0), handler) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()
