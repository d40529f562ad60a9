"""Somebody is told: a command of the user's, and a webhook, on warn, fail and recovery.

Whatever goes wrong here is a warning; a job never fails because nobody could be told about it.
"""

import json
import os
import subprocess
import urllib.request
import warnings
from dataclasses import asdict, dataclass
from threading import Thread
from typing import Any, Literal
from urllib.parse import urlsplit

from mrot_scale.config.nightly import NightlyConfig

Event = Literal["warn", "fail", "recovery"]

WEBHOOK = "MROT_WEBHOOK"
"""Address to post alerts to; it may hold a token, so it is read from the environment alone."""


class AlertWarning(UserWarning):
    """An alert could not be delivered."""


@dataclass(frozen=True)
class Alert:
    """What happened, in one line, and where to read more."""

    event: Event
    job: str
    partition: str
    reason: str
    report: str
    run_id: str
    exit_code: int

    @property
    def text(self) -> str:
        return f"mrot-scale {self.event}: {self.partition} of {self.job}: {self.reason}"

    def to_bytes(self) -> bytes:
        """Return it as JSON; `text` is what chat services show."""
        return json.dumps({"text": self.text, **asdict(self)}).encode()


def event_of(level: str, was_fine: bool) -> Event | None:
    """Return what there is to tell of a night, None for nothing."""
    if level in ("warn", "fail"):
        return "fail" if level == "fail" else "warn"
    return None if was_fine else "recovery"


def send(alert: Alert, settings: NightlyConfig) -> list[str]:
    """Tell whoever is to be told; return what went wrong."""
    problems = []
    if settings.alert_command:
        problems += _run(alert, settings)
    if address := os.environ.get(WEBHOOK, "").strip():
        problems += _post(alert, address, settings.alert_seconds)
    for problem in problems:
        warnings.warn(problem, AlertWarning, stacklevel=2)
    return problems


def _run(alert: Alert, settings: NightlyConfig) -> list[str]:
    name = settings.alert_command[0]
    try:
        done = subprocess.run(  # noqa: S603 - the user's own command, from the user's own file
            list(settings.alert_command),
            input=alert.to_bytes(),
            capture_output=True,
            timeout=settings.alert_seconds,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return [f"Alert command {name} failed: {type(error).__name__}."]
    return [f"Alert command {name} ended with {done.returncode}."] if done.returncode else []


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Lets an alert go where it was sent: elsewhere it would arrive without what it says."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _post(alert: Alert, address: str, seconds: float) -> list[str]:
    """Post an alert; a server that answers byte by byte is not waited for longer either."""
    if not address.startswith(("http://", "https://")):
        return [f"{WEBHOOK} is no http(s) address: no alert was posted."]
    problems = [f"Alert to {_host(address)} failed: no answer within {seconds:g} s."]

    def deliver() -> None:
        problems[:] = _delivered(alert, address, seconds)

    delivering = Thread(target=deliver, daemon=True)
    delivering.start()
    delivering.join(seconds)
    return list(problems)


def _delivered(alert: Alert, address: str, seconds: float) -> list[str]:
    try:
        request = urllib.request.Request(  # noqa: S310 - the scheme was checked
            address, alert.to_bytes(), {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=seconds) as answer:
            answer.read(1)
    except Exception as error:  # whatever it is, and its text may hold the address
        reason = getattr(error, "code", None) or type(error).__name__
        return [f"Alert to {_host(address)} failed: {reason}."]
    return []


def _host(address: str) -> str:
    """Return what of an address may be shown: the rest may be a secret."""
    try:
        return urlsplit(address).hostname or "?"
    except ValueError:
        return "?"
