"""`threshold` and `flagged`: what is flagged, decided apart from the scores."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mrot_scale.commands.options import JustShow, OutputForm
from mrot_scale.commands.printing import print_json
from mrot_scale.errors import ConfigError

if TYPE_CHECKING:
    from mrot_scale.flagging import Options


def threshold(
    model: Annotated[str, typer.Argument(help="Model directory.")],
    set: Annotated[
        str | None,
        typer.Option(
            "--set",
            help="Keep a choice: share=0.005, count=50, score=0.999, elbow or evt=1e-4.",
            metavar="CHOICE",
        ),
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Forget the choice.")] = False,
    rows_per_night: Annotated[
        int | None, typer.Option(min=1, help="Rows to expect a night.", metavar="N")
    ] = None,
    scores: Annotated[
        str | None, typer.Option(help="Published scores to count on as well.", metavar="SCORES")
    ] = None,
    method: Annotated[
        Literal["model", "effort"] | None, typer.Option(help="Which scores; the model's own.")
    ] = None,
    dry_run: JustShow = False,
    output: OutputForm = "text",
) -> None:
    """Show how many rows each threshold would flag; choose one, without scoring again."""
    from mrot_scale.flagging import threshold_options
    from mrot_scale.thresholds import set_threshold

    if set is not None and clear:
        raise ConfigError("--set and --clear cannot both be meant.")
    more = [set] if set is not None else []
    if dry_run or not (more or clear):
        found = threshold_options(
            model, method=method, rows_per_night=rows_per_night, scores=scores, more=more
        )
    else:
        set_threshold(model, set, rows_per_night=rows_per_night)
        found = threshold_options(
            model, method=method, rows_per_night=rows_per_night, scores=scores
        )
    if output == "json":
        print_json(asdict(found))
    else:
        typer.echo(_options_text(found))


def _options_text(found: "Options") -> str:
    from mrot_scale.terminal_text import table_lines

    head = ["choice", "score above", "training rows"]
    head += ["a night"] if found.options[0].per_night is not None else []
    head += [f"of {found.rows:,} scored"] if found.rows is not None else []
    rows = [
        [
            f"{option.choice} *" if option.choice == found.chosen else option.choice,
            f"{option.score:.7f}",
            f"{option.training_share:.3%}",
            *([] if option.per_night is None else [f"{option.per_night:,.0f}"]),
            *([] if option.flagged is None else [f"{option.flagged:,}"]),
        ]
        for option in found.options
    ]
    chosen = f"chosen: {found.chosen}" if found.chosen else "no choice is stored"
    first = (
        f"{found.model}, scores by {found.method}: flagged above {found.in_force:.7f} ({chosen})"
    )
    return "\n".join([first, *table_lines(head, rows)])


def flagged(
    scores: Annotated[str, typer.Argument(help="Published scores, Zarr or Parquet.")],
    model: Annotated[
        str | None, typer.Option(help="Model whose threshold holds now.", metavar="MODEL")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Score above which rows are listed.", min=0, max=1)
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most rows listed.")] = 20,
    output: OutputForm = "text",
) -> None:
    """List the rows of published scores above a threshold, highest first."""
    from mrot_scale.flagging import count_above, flag_level
    from mrot_scale.flagging import flagged as rows_above

    level = flag_level(scores, threshold, model)
    n_rows, (n_above,) = count_above(scores, [level])
    found = rows_above(scores, level, limit=limit).to_pylist()
    if output == "json":
        print_json({"threshold": level, "rows": n_rows, "flagged": n_above, "listed": found})
    else:
        typer.echo(_flagged_text(level, n_rows, n_above, found))


def _flagged_text(level: float, n_rows: int, n_above: int, found: list[dict[str, Any]]) -> str:
    from mrot_scale.terminal_text import number_text, table_lines

    first = f"{n_above:,} of {n_rows:,} rows score above {level:.7f}"
    first += f", the highest {len(found)}:" if len(found) < n_above else ""
    if not found:
        return first
    names = [name for name in found[0] if name != "flag"]
    rows = [[_cell(name, row[name], number_text) for name in names] for row in found]
    return "\n".join([first, *table_lines(names, rows)])


def _cell(name: str, value: Any, number_text: Any) -> str:
    return f"{value:.7f}" if name == "score" and value is not None else str(number_text(value))
