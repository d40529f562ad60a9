"""The command as users run it: a process with output, errors and exit codes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mrot_scale import __version__
from mrot_scale.cli import app
from tests.terminals import shown


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from mrot_scale.cli import main; main()", *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        env={**os.environ, **environment},
    )


def test_tracebacks_are_shown_only_on_request(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    shown = run("--debug", "demo", "--out", str(tmp_path))
    assert shown.returncode == 73
    assert "Traceback" in shown.stderr


def test_wrong_usage_is_exit_2() -> None:
    assert run("demo", "--rows", "many").returncode == 2
    assert run("dmo").returncode == 2


@pytest.mark.parametrize(
    ("words", "meant"), [(["dmo"], "'demo'"), (["runs", "lst"], "'list'"), (["scor"], "'score'")]
)
def test_an_unknown_command_is_answered_with_the_nearest(words: list[str], meant: str) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert f"Did you mean {meant}" in done.stderr.splitlines()[-1]


def test_errors_have_a_colour_on_terminals_that_show_one() -> None:
    words = ["-m", "mrot_scale", "inspect", "no/such/store"]
    red = shown(words)
    assert red.exit_code == 66
    assert red.written.startswith("\x1b[1;31mmrot-scale: error[66]:\x1b[0m ")
    assert len(red.lines) == 1
    for plain in (shown(words, NO_COLOR="1"), shown(words, TERM="dumb")):
        assert "\x1b" not in plain.written
        assert plain.lines == red.lines
    assert run(*words[2:]).stderr.splitlines() == red.lines


def test_help_has_an_example_and_version_answers() -> None:
    assert "Example: mrot-scale demo" in run("demo", "--help").stdout
    assert run("--version").stdout.strip() == f"mrot-scale {__version__}"


def commands(group: Any, *before: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in getattr(group, "commands", {}).items():
        if hasattr(command, "commands"):
            yield from commands(command, *before, name)
        else:
            yield (*before, name), command


WRITERS = {
    ("ingest",),
    ("fit",),
    ("score",),
    ("nightly",),
    ("backfill",),
    ("gc",),
    ("history",),
    ("models", "promote"),
    ("rollback",),
    ("threshold",),
    ("certificates",),
    ("config", "init"),
    ("demo",),
}


def test_every_command_has_an_example_and_each_that_writes_a_dry_run() -> None:
    from typer.main import get_command

    found = dict(commands(get_command(app)))
    assert set(found) >= WRITERS
    for words, command in found.items():
        assert (command.epilog or "").startswith("Example: mrot-scale"), words
        options = {option for parameter in command.params for option in parameter.opts}
        assert ("--dry-run" in options) == (words in WRITERS), words


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete_commands(shell: str) -> None:
    name = {"_MROT_SCALE_COMPLETE": f"source_{shell}", "SHELL": f"/bin/{shell}"}
    done = subprocess.run(
        [Path(sys.executable).with_name("mrot-scale")],
        env={**os.environ, **name},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "_MROT_SCALE_COMPLETE" in done.stdout, done.stderr


def test_a_missing_libgomp_is_named_in_one_line(tmp_path: Path) -> None:
    """LightGBM's wheel needs the system's OpenMP runtime; here it is hidden for one process."""
    library = _system_libgomp()
    probe = subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True)
    if library is None or probe.returncode != 0:
        pytest.skip("needs a system libgomp and the right to make mount namespaces")
    inner = (
        f"mount --bind /dev/null {library} && exec {sys.executable} -c "
        f"'from mrot_scale.cli import main; main()' demo --out {tmp_path / 'out'}"
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", inner],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 78, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "libgomp1" in done.stderr


def _system_libgomp() -> str | None:
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False)
    paths = [
        line.split("=>")[1].strip() for line in listed.stdout.splitlines() if "libgomp" in line
    ]
    return str(Path(paths[0]).resolve()) if paths else None
