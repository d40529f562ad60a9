"""A server between a client and an object store that fails in the ways networks do."""

import http.client
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Literal

from tests.servers import LOOPBACK

Fault = Literal["500", "503", "reset", "cut", "deaf"]
"""An error, a closed connection, half a body, or a request carried out but never answered."""

_ERROR = b"<Error><Code>%s</Code><Message>Try again.</Message></Error>"
_CODES = {"500": b"InternalError", "503": b"ServiceUnavailable"}


class _Between(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    target: int
    faults: list[Fault]

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.faults.pop(0) if self.faults else None
        if fault in _CODES:
            self._answer(int(fault), {}, _ERROR % _CODES[fault])
            return
        if fault == "reset":
            self._hang_up()
            return
        connection = http.client.HTTPConnection(LOOPBACK, self.target)
        connection.request(self.command, self.path, body, dict(self.headers.items()))
        with connection.getresponse() as found:
            content, headers = found.read(), dict(found.getheaders())
        connection.close()
        if fault == "deaf":
            self._hang_up()
            return
        self._answer(found.status, headers, content, cut=fault == "cut")

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _pass_on  # noqa: N815

    def _answer(
        self, status: int, headers: dict[str, str], content: bytes, *, cut: bool = False
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
            self.wfile.write(content[: len(content) // 2] if cut else content)
        if cut:
            self._hang_up()

    def _hang_up(self) -> None:
        """Close without a word, as a machine does that has gone."""
        self.wfile.flush()
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def faulty_server(target: int, faults: Sequence[Fault]) -> Iterator[int]:
    """Yield the port of a server that passes requests on, the first of them with these faults."""
    handler = type("Handler", (_Between,), {"target": target, "faults": list(faults)})
    with ThreadingHTTPServer((LOOPBACK, 0), handler) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield int(server.server_address[1])
        server.shutdown()
        thread.join()
