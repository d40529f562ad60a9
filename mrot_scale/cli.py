"""The command line: thin wiring over the package, with its errors as exit codes.

Nothing numerical is imported until a command needs it, so that `--help` answers at once.
"""

import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Annotated, Any

import typer

from mrot_scale import __version__
from mrot_scale.allocation import keep_freed_memory
from mrot_scale.commands import jobs, tools
from mrot_scale.commands.certificates import certificates
from mrot_scale.commands.demo import demo
from mrot_scale.commands.explain import explain
from mrot_scale.commands.nightly import backfill, gc, history, models_app, nightly
from mrot_scale.commands.runs import rollback, runs_app
from mrot_scale.commands.thresholds import flagged, threshold
from mrot_scale.errors import MrotError
from mrot_scale.faults import check_allowed
from mrot_scale.progress import is_logging_events, write_event
from mrot_scale.terminal_text import coloured
from mrot_scale.threads import start_native_libraries_small

app = typer.Typer(
    name="mrot-scale",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Anomaly scores by Mass Repulsing Optimal Transport, for tables of any size.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mrot-scale {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and end."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks of errors; may stand anywhere.")
    ] = False,
) -> None:
    """Options before the command."""


app.command(epilog="Example: mrot-scale ingest readings.parquet readings.store --id reading")(
    jobs.ingest
)
app.command(epilog="Example: mrot-scale fit readings.store pumps.model --workers 4")(jobs.fit)
app.command(
    epilog="Example: mrot-scale score pumps.model tonight.store scores --parquet scores.parquet"
)(jobs.score)
app.command(epilog="Example: mrot-scale explain pumps.model --store tonight.store --row 4711")(
    explain
)
app.command(epilog="Example: mrot-scale threshold pumps.model --set share=0.005")(threshold)
app.command(epilog="Example: mrot-scale flagged scores.parquet --model pumps.model --limit 50")(
    flagged
)
app.command(epilog="Example: mrot-scale inspect readings.store")(tools.inspect)
app.command(epilog="Example: mrot-scale digest scores")(tools.digest)
app.command(epilog="Example: mrot-scale verify /backup/readings.store")(tools.verify)
app.command(epilog="Example: mrot-scale doctor --storage s3://bucket/folder")(tools.doctor)
app.add_typer(tools.config_app, name="config")
app.command(epilog="Example: mrot-scale certificates tls --host scheduler.example")(certificates)
app.command(epilog="Example: mrot-scale nightly /data/lake /data/out --date 2026-11-14")(nightly)
app.command(
    epilog="Example: mrot-scale backfill /data/lake /data/out --start 2026-11-01 --end 2026-11-14"
)(backfill)
app.command(epilog="Example: mrot-scale history /data/out")(history)
app.command(epilog="Example: mrot-scale gc /data/out --keep-days 90 --dry-run")(gc)
app.add_typer(models_app, name="models")
app.add_typer(runs_app, name="runs")
app.command(epilog="Example: mrot-scale rollback /data/scores /data/scores.parquet")(rollback)
app.command(epilog="Example: mrot-scale demo --out /tmp/pumps --rows 100000")(demo)


def _fail(code: int, message: str) -> None:
    if "--debug" in sys.argv:
        traceback.print_exc()
    head = coloured(f"mrot-scale: error[{code}]:", "red", sys.stderr)
    typer.echo(f"{head} {message}", err=True)
    sys.exit(code)


def _print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    if is_logging_events():
        write_event("warning", message=str(message))
    else:
        head = coloured("mrot-scale: warning:", "yellow", sys.stderr)
        typer.echo(f"{head} {message}", err=True)


class _Stopped(BaseException):
    """A signal arrived: clean up and go. No `Exception`, so that nothing on the way keeps it."""

    def __init__(self, number: int) -> None:
        self.number = number


_GRACE_S = 8.0
"""Seconds from a signal to the end at the latest: what a run has done is safe at any moment."""


def _on_signal(number: int, _: Any) -> None:
    raise _Stopped(number)


def _say_stopped(number: int) -> int:
    """Tell that a signal ended the command; return its exit code."""
    word = "interrupted" if number == signal.SIGINT else "terminated"
    typer.echo(f"mrot-scale: {word}. The same command again goes on.", err=True)
    return 128 + number


def _end_soon(arrived: int) -> None:
    """Wait for a signal, and end this process if it has not ended itself some seconds later.

    It may hang in native code, which lets no handler run, or wait for storage that is away.
    """
    for number in iter(lambda: os.read(arrived, 1), b""):
        if number[0] in (signal.SIGINT, signal.SIGTERM):
            time.sleep(_GRACE_S)
            os._exit(_say_stopped(number[0]))
    os.close(arrived)


@contextmanager
def _signals_caught() -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into an exception; typer would swallow KeyboardInterrupt."""
    before = {n: signal.signal(n, _on_signal) for n in (signal.SIGINT, signal.SIGTERM)}
    arrived, arrival = os.pipe()
    os.set_blocking(arrival, False)
    signal.set_wakeup_fd(arrival, warn_on_full_buffer=False)
    Thread(target=_end_soon, args=[arrived], daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(-1)
        os.close(arrival)
        for number, handler in before.items():
            signal.signal(number, handler)


def main() -> None:
    """Run the command line; every failure is one line and a documented exit code."""
    start_native_libraries_small()
    keep_freed_memory()
    warnings.showwarning = _print_warning
    try:
        check_allowed()
        with _signals_caught():
            app(args=[word for word in sys.argv[1:] if word != "--debug"])
    except MrotError as error:
        _fail(error.exit_code, " ".join([str(error), *_places(error)]))
    except Exception as error:
        place = " ".join(_places(error))
        _fail(1, f"unexpected {type(error).__name__}: {error} {place}(--debug shows where).")
    except _Stopped as stopped:
        sys.exit(_say_stopped(stopped.number))


def _places(error: BaseException) -> list[str]:
    """Return where it happened, as noted on the way."""
    return [f"({note})" for note in getattr(error, "__notes__", [])]
