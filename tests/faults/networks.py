"""Machines that share a disk and nothing else: network namespaces joined by a switch.

Nothing of this is seen by the machine itself or by its network.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psutil  # type: ignore[import-untyped]
import pytest

_PREFIX = "mrot-test"
_SWITCH = "switch"


@dataclass(frozen=True)
class Network:
    """Machines by name; the first holds the switch that the cables of the others end in."""

    names: tuple[str, ...]

    def address(self, name: str) -> str:
        return f"10.213.0.{self.names.index(name) + 1}"

    def on(self, name: str, command: Sequence[str]) -> list[str]:
        """Return a command that runs on a machine."""
        return ["nsenter", f"--net=/run/netns/{_namespace(name)}", *command]

    def cut(self, name: str) -> None:
        """Pull the cable of a machine out."""
        self._cable(name, "down")

    def mend(self, name: str) -> None:
        """Put the cable back in."""
        self._cable(name, "up")

    def _cable(self, name: str, state: str) -> None:
        _ip("-n", _namespace(self.names[0]), "link", "set", name, state)


@contextmanager
def network(*names: str) -> Iterator[Network]:
    """Build machines that reach each other; at the end, none of them is left."""
    _remove_left_over()
    made = Network(names)
    try:
        for name in names:
            _start_machine(name)
        _build_switch(made)
        for name in names[1:]:
            _plug_in(made, name)
        yield made
    finally:
        for name in names:
            _ip("netns", "delete", _namespace(name), check=False)


def _start_machine(name: str) -> None:
    if shutil.which("ip") is None or _ip("netns", "add", _namespace(name), check=False):
        pytest.skip("needs iproute2 and the right to make network namespaces")
    _ip("-n", _namespace(name), "link", "set", "lo", "up")


def _build_switch(made: Network) -> None:
    hub = _namespace(made.names[0])
    _ip("-n", hub, "link", "add", _SWITCH, "type", "bridge")
    _ip("-n", hub, "address", "add", f"{made.address(made.names[0])}/24", "dev", _SWITCH)
    _ip("-n", hub, "link", "set", _SWITCH, "up")
    # It leads nowhere, but by it a process finds the address that others know it by.
    _ip("-n", hub, "route", "add", "default", "dev", _SWITCH)


def _plug_in(made: Network, name: str) -> None:
    hub, machine = _namespace(made.names[0]), _namespace(name)
    other_end = ("peer", "name", "eth0", "netns", machine)
    _ip("-n", hub, "link", "add", name, "type", "veth", *other_end)
    _ip("-n", hub, "link", "set", name, "master", _SWITCH, "up")
    _ip("-n", machine, "address", "add", f"{made.address(name)}/24", "dev", "eth0")
    _ip("-n", machine, "link", "set", "eth0", "up")


def _namespace(name: str) -> str:
    return f"{_PREFIX}-{os.getpid()}-{name}"


def _ip(*words: str, check: bool = True) -> int:
    done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
    assert not check or done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"
    return done.returncode


def _remove_left_over() -> None:
    """Remove the machines of tests that were killed, and what still runs on them."""
    if shutil.which("ip") is None:
        return
    listed = subprocess.run(["ip", "netns", "list"], check=False, capture_output=True, text=True)
    for name, maker in re.findall(rf"^({_PREFIX}-(\d+)-\S+)", listed.stdout, re.MULTILINE):
        if not psutil.pid_exists(int(maker)):
            found = subprocess.run(["ip", "netns", "pids", name], check=False, capture_output=True)
            for pid in found.stdout.split():
                with suppress(psutil.NoSuchProcess):  # ended with its parent
                    psutil.Process(int(pid)).kill()
            _ip("netns", "delete", name, check=False)
