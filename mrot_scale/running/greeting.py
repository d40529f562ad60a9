"""What a scheduler's port says first, heard before Dask connects to it.

Dask takes a wrong protocol or certificate for a network that is slow: it tries again, or fails with
an error about its own insides. Schedulers speak first, so listening for a moment tells what is
there.
"""

import socket
import ssl
import time
from urllib.parse import urlsplit

from mrot_scale.errors import ConfigError, TemporaryError

_SOON_S = 2.0
"""Seconds after which a silent port is asked whether it waits for TLS."""


def check_greeting(address: str, context: ssl.SSLContext | None, timeout_s: float) -> None:
    """Refuse what listens at an address if it cannot be talked to as configured.

    `context` is for tls:// addresses. Where nobody listens yet, Dask is left to wait for it.
    """
    give_up = time.monotonic() + timeout_s
    try:
        with _called(address, timeout_s) as connection:
            if context is not None:
                _expect_tls(address, connection, context)
            elif not _speaks(connection, min(_SOON_S, timeout_s)):
                _refuse_tls(address, timeout_s)
                connection.settimeout(max(give_up - time.monotonic(), 0.1))
                connection.recv(1)
    except TimeoutError:
        raise TemporaryError(
            f"{address} takes connections, but says nothing for {timeout_s:g} s. Look whether its "
            "scheduler is well, and run the same command again."
        ) from None
    except OSError:  # not there, or gone again: perhaps it is just starting
        return


def _called(address: str, timeout_s: float) -> socket.socket:
    parts = urlsplit(address)
    try:
        return socket.create_connection((parts.hostname, parts.port), timeout_s)
    except TimeoutError as error:  # nobody took the connection, which is not silence
        raise OSError(str(error)) from None


def _speaks(connection: socket.socket, timeout_s: float) -> bool:
    connection.settimeout(timeout_s)
    try:
        connection.recv(1)
    except TimeoutError:
        return False
    return True


def _refuse_tls(address: str, timeout_s: float) -> None:
    """Refuse a port that answers a TLS greeting, whatever its certificate."""
    anything = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anything.check_hostname, anything.verify_mode = False, ssl.CERT_NONE
    try:
        with _called(address, timeout_s) as connection:
            connection.settimeout(min(_SOON_S, timeout_s))
            anything.wrap_socket(connection).close()
    except OSError as error:
        if "ALERT" not in (getattr(error, "reason", None) or ""):  # an alert is TLS, too
            return
    raise ConfigError(
        f"The scheduler at {address} expects TLS: write tls:// in its address, and set "
        "cluster.tls_ca_file, tls_cert and tls_key."
    )


def _expect_tls(address: str, connection: socket.socket, context: ssl.SSLContext) -> None:
    try:
        with context.wrap_socket(connection) as encrypted:
            _expect_welcome(address, encrypted)
    except ssl.SSLCertVerificationError as error:
        raise ConfigError(
            f"The certificate of the scheduler at {address} is refused: {error.verify_message}. "
            "Use certificates of one authority everywhere (cluster.tls_ca_file), and make new ones "
            "when they expire."
        ) from None
    except ssl.SSLEOFError:  # closed without a word
        return
    except ssl.SSLError as error:
        raise ConfigError(
            f"The scheduler at {address} does not speak TLS ({_reason(error)}): start it with "
            "--protocol tls and certificates, or write tcp:// in its address."
        ) from None


def _expect_welcome(address: str, encrypted: ssl.SSLSocket) -> None:
    """Wait for the scheduler's first word: only with it has TLS 1.3 taken our certificate."""
    try:
        encrypted.recv(1)
    except ssl.SSLEOFError:
        return
    except ssl.SSLError as error:
        raise ConfigError(
            f"The scheduler at {address} refuses the certificate of this side "
            f"({_reason(error)}): cluster.tls_cert must be valid, and signed by the authority that "
            "the scheduler was given."
        ) from None


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).replace("_", " ").lower()
