"""A terminal of a given width, with a process in it."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Shown:
    """What a process wrote to its terminal, and what went elsewhere."""

    exit_code: int
    written: str
    out: str

    @property
    def lines(self) -> list[str]:
        """Return every line that was ever drawn, without escape codes."""
        plain = _ESCAPE.sub("", self.written)
        return [line for line in re.split(r"[\r\n]+", plain) if line.strip()]

    @property
    def has_colours(self) -> bool:
        return _COLOUR.search(self.written) is not None


def shown(words: Sequence[str], columns: int = 80, **environment: str) -> Shown:
    """Run a Python process whose standard error is a terminal; its output goes to a pipe."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    inherited = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        cwd=ROOT,
        env=inherited | {"TERM": "xterm-256color", "PYTHONUTF8": "1"} | environment,
    )
    os.close(theirs)
    with process:
        written = _read_all(ours)
        assert process.stdout is not None
        out = process.stdout.read().decode()
    return Shown(process.returncode, written.decode(), out)


def _read_all(terminal: int) -> bytes:
    found = b""
    try:
        while part := os.read(terminal, 65_536):
            found += part
    except OSError:  # how Linux says that nobody is at the other end
        pass
    finally:
        os.close(terminal)
    return found
