"""Faults that tests order by environment variable; refused anywhere else.

`MROT_FAULT=point:number:action`, several separated by commas, with `MROT_TEST=1`. A point is a
name below, or a pattern such as `begin score/*`; the number says at which time it is reached, `*`
each time. Actions: `kill` and `stop` this process, `enospc`, `eio`, `raise`, `sleepSECONDS`.

`MROT_CARELESS=1` leaves out what makes results last and damage be found (syncing, digests of whole
files), for the benchmark that tells what these cost.
"""

import errno
import os
import signal
import time
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from mrot_scale.errors import ConfigError

FAULT, CARELESS, ALLOWED = "MROT_FAULT", "MROT_CARELESS", "MROT_TEST"
_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
_ERRORS = {"enospc": errno.ENOSPC, "eio": errno.EIO}

hits: Counter[str] = Counter()
"""How often each point was reached, and each pattern met, by this process while testing."""


@dataclass(frozen=True)
class Order:
    """A fault to happen at a point."""

    pattern: str
    number: int | None
    """At which time; None for each time."""

    action: str

    def carry_out(self, point: str) -> None:
        if self.action in _SIGNALS:
            os.kill(os.getpid(), _SIGNALS[self.action])
        elif self.action in _ERRORS:
            number = _ERRORS[self.action]
            raise OSError(number, os.strerror(number), point)
        elif self.action.startswith("sleep"):
            time.sleep(float(self.action.removeprefix("sleep")))
        else:
            raise RuntimeError(f"ordered at {point!r}")


def reach(point: str) -> None:
    """Let happen what was ordered for this point."""
    testing, text = os.environ.get(ALLOWED), os.environ.get(FAULT)
    if not testing and not text:
        return
    check_allowed()
    hits[point] += 1
    for order in _orders(text or ""):
        if fnmatchcase(point, order.pattern):
            hits[order.pattern] += order.pattern != point
            if order.number in (None, hits[order.pattern]):
                order.carry_out(point)


def check_allowed() -> None:
    """Refuse ordered faults outside tests."""
    for name in (FAULT, CARELESS):
        if os.environ.get(name) and os.environ.get(ALLOWED) != "1":
            raise ConfigError(f"{name} is for tests of mrot-scale itself. Unset it.")


@cache
def is_careless() -> bool:
    """Tell whether this process is to leave out what makes it safe."""
    check_allowed()
    return bool(os.environ.get(CARELESS))


@cache
def _orders(text: str) -> tuple[Order, ...]:
    return tuple(_order(part) for part in text.split(",") if part)


def _order(text: str) -> Order:
    pattern, number, action = ["", "", *text.rsplit(":", 2)][-3:]
    known = action in (*_SIGNALS, *_ERRORS, "raise") or action.startswith("sleep")
    if not pattern or not known or not (number == "*" or number.isdigit()):
        raise ConfigError(f"{FAULT} takes point:number:action, got {text!r}.")
    return Order(pattern, None if number == "*" else int(number), action)
