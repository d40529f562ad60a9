"""`ingest`, `fit` and `score`."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer

from mrot_scale.commands.options import (
    AllowClass,
    Cluster,
    ConfigFile,
    DryRun,
    IdColumn,
    Insecure,
    Keep,
    NewRun,
    Output,
    OutputForm,
    Quiet,
    RunFolder,
    Settings,
    Workers,
    cluster_overrides,
    column_list,
    merged,
    set_overrides,
)
from mrot_scale.commands.printing import print_plan, print_result
from mrot_scale.progress import Report, TimedStages, shown_progress


def ingest(
    source: Annotated[str, typer.Argument(help="Table: Parquet, CSV, Arrow, npy, npz, Zarr.")],
    store: Annotated[str, typer.Argument(help="New store.")],
    id: IdColumn = None,
    include: Annotated[
        str | None, typer.Option(help="Columns to use, separated by commas.", metavar="COLUMNS")
    ] = None,
    exclude: Annotated[
        str | None, typer.Option(help="Columns not to use as features.", metavar="COLUMNS")
    ] = None,
    keep: Keep = None,
    like: Annotated[
        str | None, typer.Option(help="Model or store whose columns to follow.", metavar="PATH")
    ] = None,
    config: ConfigFile = None,
    set: Settings = None,
    run_folder: RunFolder = None,
    new_run: NewRun = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    output: OutputForm = "text",
) -> None:
    """Read a table into a store: Zarr features, Parquet identifiers, a schema with statistics."""
    from mrot_scale.config.layers import load_config
    from mrot_scale.jobs.ingest_job import ingest as run_ingest

    overrides = merged(set_overrides(set), {"run": {"folder": run_folder}})
    arguments: dict[str, Any] = {
        "id": id,
        "include": column_list(include),
        "exclude": column_list(exclude) or (),
        "keep": column_list(keep),
        "like": like,
        "config": load_config(config, overrides=overrides),
    }
    if dry_run:
        from mrot_scale.jobs.dry_run import ingest_plan

        print_plan(ingest_plan(source, store, **arguments), output)
        return
    arguments["new_run"] = new_run
    _shown(lambda report: run_ingest(source, store, **arguments, progress=report), quiet, output)


def fit(
    store: Annotated[str, typer.Argument(help="Store, or a table to ingest first.")],
    model: Annotated[str, typer.Argument(help="New model directory.")],
    config: ConfigFile = None,
    workers: Workers = None,
    exclude_where: Annotated[
        str | None,
        typer.Option(help='Rows not to learn from, as "label == 1".', metavar="EXPR"),
    ] = None,
    id: IdColumn = None,
    set: Settings = None,
    cluster: Cluster = None,
    insecure: Insecure = False,
    allow_class: AllowClass = False,
    run_folder: RunFolder = None,
    new_run: NewRun = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    output: OutputForm = "text",
) -> None:
    """Learn a model from a store."""
    from mrot_scale.config.layers import load_config
    from mrot_scale.jobs.fit_job import fit as run_fit

    settings = load_config(
        config,
        overrides=merged(
            set_overrides(set),
            {"cluster": cluster_overrides(cluster, workers, insecure, allow_class)},
            {"run": {"folder": run_folder}},
        ),
    )
    if dry_run:
        from mrot_scale.jobs.dry_run import fit_plan

        print_plan(fit_plan(store, model, settings, exclude_where=exclude_where), output)
        return
    arguments: dict[str, Any] = {"exclude_where": exclude_where, "id": id, "new_run": new_run}
    _shown(
        lambda report: run_fit(store, model, settings, **arguments, progress=report),
        quiet,
        output,
        source=store,
    )


def score(
    model: Annotated[str, typer.Argument(help="Model directory.")],
    store: Annotated[str, typer.Argument(help="Store, or a table to ingest first.")],
    out: Annotated[str, typer.Argument(help="New Zarr folder of scores.")],
    config: ConfigFile = None,
    workers: Workers = None,
    method: Annotated[
        Literal["model", "effort"] | None,
        typer.Option(help="model: trees, fast. effort: against anchors, slower."),
    ] = None,
    parquet: Annotated[
        str | None, typer.Option(help="Folder for the scores as Parquet too.", metavar="DIR")
    ] = None,
    keep: Keep = None,
    id: IdColumn = None,
    set: Settings = None,
    cluster: Cluster = None,
    insecure: Insecure = False,
    allow_class: AllowClass = False,
    run_folder: RunFolder = None,
    new_run: NewRun = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    output: OutputForm = "text",
) -> None:
    """Give every row of a store its score."""
    from mrot_scale.config.layers import load_config
    from mrot_scale.jobs.score_job import score as run_score

    settings = load_config(
        config,
        overrides=merged(
            set_overrides(set),
            {"cluster": cluster_overrides(cluster, workers, insecure, allow_class)},
            {"run": {"folder": run_folder}, "scoring": {"method": method}},
        ),
    )
    kept = column_list(keep) or ()
    if dry_run:
        from mrot_scale.jobs.dry_run import score_plan

        print_plan(score_plan(model, store, out, settings, parquet=parquet, keep=kept), output)
        return
    arguments: dict[str, Any] = {"parquet": parquet, "keep": kept, "id": id, "new_run": new_run}
    _shown(
        lambda report: run_score(model, store, out, settings, **arguments, progress=report),
        quiet,
        output,
    )


def _shown(
    job: Callable[[Report], Any], quiet: bool, output: Output, *, source: str | None = None
) -> None:
    """Run a job while showing how it gets on, then print what it made."""
    with shown_progress(quiet=quiet) as report:
        timed = TimedStages(report)
        result = job(timed)
    print_result(result, output, timed.seconds, source)
