"""Somebody is told: a command of the user's, and a webhook, on warn, fail and recovery.

Whatever goes wrong here is a warning; a job never fails because nobody could be told about it.
"""

import json
import os
import subprocess
import urllib.request
import warnings
from dataclasses import asdict, dataclass
from typing import Literal
from urllib.parse import urlsplit

from mrot_scale.config_nightly import NightlyConfig

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


def _post(alert: Alert, address: str, seconds: float) -> list[str]:
    host = urlsplit(address).hostname or "?"  # the rest may be a secret
    if urlsplit(address).scheme not in ("http", "https"):
        return [f"{WEBHOOK} is no http(s) address: no alert was posted."]
    request = urllib.request.Request(  # noqa: S310 - the scheme was checked
        address, alert.to_bytes(), {"Content-Type": "application/json"}, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=seconds):  # noqa: S310
            return []
    except (OSError, ValueError) as error:
        reason = getattr(error, "code", None) or type(error).__name__
        return [f"Alert to {host} failed: {reason}."]
