"""`runs list`, `runs show` and `rollback`."""

from typing import Annotated

import typer

from mrot_scale.commands.options import JustShow, OutputForm
from mrot_scale.commands.printing import print_json

runs_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Show what runs are doing, or how they ended."
)


@runs_app.command("list", epilog="Example: mrot-scale runs list /data/nightly")
def list_them(
    folder: Annotated[str, typer.Argument(help="Folder with run folders in it.")] = ".",
    output: OutputForm = "text",
) -> None:
    """List the runs in a folder: running, finished, failed or unfinished."""
    from mrot_scale.runs import list_runs, runs_text

    found = list_runs(folder)
    if output == "json":
        print_json([run.to_json() for run in found])
    else:
        typer.echo(runs_text(found))


@runs_app.command("show", epilog="Example: mrot-scale runs show pumps.model")
def show(
    path: Annotated[str, typer.Argument(help="Run folder, or the output it is for.")],
    output: OutputForm = "text",
) -> None:
    """Show one run: its state, its tasks, its last error and the end of its log."""
    from mrot_scale.runs import details_text, show_run

    found = show_run(path)
    if output == "json":
        print_json(found.to_json())
    else:
        typer.echo(details_text(found))


def rollback(
    paths: Annotated[list[str], typer.Argument(help="Scores: Zarr, Parquet, or both.")],
    to: Annotated[
        str | None, typer.Option(help="Generation to go to; the one before, when omitted.")
    ] = None,
    dry_run: JustShow = False,
    output: OutputForm = "text",
) -> None:
    """Let published scores be again what they were before; nothing is computed or removed."""
    from mrot_scale.jobs.service import rollback as roll_back

    found = []
    try:
        for path in paths:
            was, now = roll_back(path, to, dry_run=dry_run)
            found.append({"path": path, "was": was, "now": now})
            if output == "text":
                typer.echo(f"{path}: generation {was} -> {now}")
    finally:  # those before one that fails have gone back
        if output == "json":
            print_json(found)
