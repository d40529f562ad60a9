"""The command line: thin wiring over the package, with its errors as exit codes.

Nothing numerical is imported until a command needs it, so that `--help` answers at once.
"""

import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrot_scale import __version__
from mrot_scale.errors import MrotError

if TYPE_CHECKING:
    from mrot_scale.demo import DemoResult

app = typer.Typer(
    name="mrot-scale",
    no_args_is_help=True,
    add_completion=False,
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
        bool, typer.Option("--version", callback=_print_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
) -> None:
    """Options before the command."""


@app.command(
    epilog="Example: mrot-scale demo --out /tmp/pumps --rows 5000",
)
def demo(
    out: Annotated[Path, typer.Option(help="Folder for table, model and scores.")] = Path(
        "mrot-demo"
    ),
    rows: Annotated[int, typer.Option(min=1_000, help="Rows of the table.")] = 20_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of table and method.")] = 0,
    jobs: Annotated[int, typer.Option(help="Threads; -1 uses all cores.")] = -1,
) -> None:
    """Make a table of pump readings with planted anomalies, fit, score, and show what was found."""
    from mrot_scale.demo import run_demo
    from mrot_scale.progress import shown_progress

    with shown_progress() as report:
        result = run_demo(out, n_rows=rows, seed=seed, n_jobs=jobs, report=report)
    typer.echo(_demo_text(result))


def _demo_text(result: "DemoResult") -> str:
    lines = [f"{result.n_rows:,} readings scored, {result.n_flagged} flagged.", ""]
    kinds = list(result.auc["model"])
    lines.append("AUC against the planted truth".ljust(34) + "".join(f"{k:>11}" for k in kinds))
    for method, found in result.auc.items():
        row = "".join(f"{found[k]:>11.3f}" for k in kinds)
        lines.append(f"  method {method}".ljust(34) + row)
    lines += ["", "Most anomalous readings, with the columns that made them so:"]
    for f in result.findings:
        why = ", ".join(f"{name} = {value:.4g}" for name, value in f.columns)
        lines.append(f"  reading {f.row:>7}  {f.score:.5f}  planted: {f.kind:<9}  {why}")
    lines += ["", f"Files in {result.out}:"]
    lines += [f"  {name}" for name in ("readings.parquet", "scores.parquet", "model/")]
    took = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in result.seconds.items())
    return "\n".join([*lines, "", f"Time: {took}."])


def _fail(code: int, message: str) -> None:
    if "--debug" in sys.argv:
        traceback.print_exc()
    typer.echo(f"mrot-scale: error[{code}]: {message}", err=True)
    sys.exit(code)


def main() -> None:
    """Run the command line; every failure is one line and a documented exit code."""
    try:
        app()
    except MrotError as error:
        _fail(error.exit_code, str(error))
    except Exception as error:
        _fail(1, f"unexpected {type(error).__name__}: {error} (--debug shows where).")
    except KeyboardInterrupt:
        typer.echo("mrot-scale: interrupted.", err=True)
        sys.exit(130)
