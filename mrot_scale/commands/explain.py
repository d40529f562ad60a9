"""`explain`: why one row is scored as it is."""

from typing import Annotated, Literal

import typer

from mrot_scale.commands.options import IdColumn, OutputForm
from mrot_scale.commands.printing import print_json


def explain(
    model: Annotated[str, typer.Argument(help="Model directory.")],
    store: Annotated[str, typer.Option(help="Store, or table, the row is in.")],
    row: Annotated[str | None, typer.Option(help="Identifier of the row.", metavar="ID")] = None,
    number: Annotated[
        int | None, typer.Option(help="Number of the row, from 0 on, instead.", metavar="N")
    ] = None,
    id: IdColumn = None,
    method: Annotated[
        Literal["model", "effort"] | None, typer.Option(help="Which score; the model's own.")
    ] = None,
    picture: Annotated[
        str | None, typer.Option(help="Draw it as well.", metavar="FILE.svg|png")
    ] = None,
    output: OutputForm = "text",
) -> None:
    """Show why one row is scored as it is: columns, normal rows like it, where its mass goes."""
    from mrot_scale.explanation_text import explanation_text
    from mrot_scale.jobs.explain_job import explain as explained
    from mrot_scale.plots_explanation import check_picture, save_picture

    if picture is not None:
        check_picture(picture)
    found = explained(model, store, row, number=number, id=id, method=method)
    if picture is not None:
        save_picture(found, picture)
    if output == "json":
        print_json(found.to_json())
    else:
        typer.echo(explanation_text(found))
