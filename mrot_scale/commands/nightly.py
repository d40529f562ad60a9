"""`nightly`, `backfill`, `history`, `gc` and `models`."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, Literal

import typer

from mrot_scale.commands.options import (
    AllowClass,
    Cluster,
    ConfigFile,
    Insecure,
    JustShow,
    OutputForm,
    Quiet,
    Settings,
    Workers,
    cluster_overrides,
    merged,
    set_overrides,
)
from mrot_scale.commands.printing import print_json, stage_lines
from mrot_scale.progress import TimedStages, logged_progress

NOTHING_TO_DO = 99
"""What schedulers such as Airflow take for 'skipped'."""

Lake = Annotated[str, typer.Argument(help="Folder of date=2026-11-14/ folders.")]
Target = Annotated[
    str, typer.Argument(metavar="OUTPUT", help="Folder for scores, models, runs and reports.")
]
Job = Annotated[str, typer.Argument(metavar="OUTPUT", help="Output of nightly.")]


def nightly(
    input: Lake,
    output_folder: Target,
    date: Annotated[
        str | None, typer.Option(metavar="YYYY-MM-DD", help="Day to score, UTC.")
    ] = None,
    partition: Annotated[
        str | None, typer.Option(metavar="KEY=VALUE", help="Partition to score, if not by date.")
    ] = None,
    config: ConfigFile = None,
    model: Annotated[
        str | None, typer.Option(help="Model to score with: an id, latest, or a path.")
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="A model for each value of this column.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Score it again even if nothing has changed.")
    ] = False,
    workers: Workers = None,
    set: Settings = None,
    cluster: Cluster = None,
    insecure: Insecure = False,
    allow_class: AllowClass = False,
    skip_exit_code: Annotated[
        bool, typer.Option("--skip-exit-code", help=f"Exit {NOTHING_TO_DO} if nothing was to do.")
    ] = False,
    dry_run: JustShow = False,
    quiet: Quiet = False,
    output: OutputForm = "text",
) -> None:
    """Score one partition of a lake, check the result, and publish it if all is well."""
    from mrot_scale.scheduled.night import nightly as run_nightly
    from mrot_scale.scheduled.night_plan import plan_night

    settings = _settings(config, set, cluster, workers, insecure, allow_class, by)
    given: dict[str, Any] = {"date": date, "partition": partition, "model": model, "again": again}
    if dry_run:
        _print(plan_night(input, output_folder, config=settings, **given), output, _plan_text)
        return
    with logged_progress(quiet=quiet) as report:
        timed = TimedStages(report)
        night = run_nightly(input, output_folder, config=settings, progress=timed, **given)
    _print(night, output, lambda night: _night_text(night, timed.seconds))
    if skip_exit_code and night.status != "done":
        raise typer.Exit(NOTHING_TO_DO)


def backfill(
    input: Lake,
    output_folder: Target,
    start: Annotated[str | None, typer.Option(help="First partition; the first there is.")] = None,
    end: Annotated[str | None, typer.Option(help="Last partition, included.")] = None,
    reprocess: Annotated[
        Literal["none", "failed", "all"],
        typer.Option(help="none: new and changed ones. failed: also those that failed. all."),
    ] = "none",
    missing: Annotated[
        bool, typer.Option("--missing", help="Only what was never published; names gaps.")
    ] = False,
    lookback: Annotated[
        int, typer.Option(min=0, help="Partitions before the first to look at for late rows.")
    ] = 0,
    max_active: Annotated[int, typer.Option(min=1, help="Partitions at the same time.")] = 1,
    config: ConfigFile = None,
    by: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="A model for each value of this column.")
    ] = None,
    workers: Workers = None,
    set: Settings = None,
    cluster: Cluster = None,
    insecure: Insecure = False,
    allow_class: AllowClass = False,
    skip_exit_code: Annotated[
        bool, typer.Option("--skip-exit-code", help=f"Exit {NOTHING_TO_DO} if nothing was to do.")
    ] = False,
    dry_run: JustShow = False,
    quiet: Quiet = False,
    output: OutputForm = "text",
) -> None:
    """Run all partitions of a range that have not run yet, or that have changed since."""
    from mrot_scale.scheduled.backfill import backfill as run_backfill

    settings = _settings(config, set, cluster, workers, insecure, allow_class, by)
    with logged_progress(quiet=quiet) as report:
        done = run_backfill(
            input,
            output_folder,
            start=start,
            end=end,
            reprocess=reprocess,
            missing=missing,
            lookback=lookback,
            max_active=max_active,
            dry_run=dry_run,
            config=settings,
            progress=report,
        )
    _print(done, output, _backfill_text)
    if done.exit_code:
        raise typer.Exit(done.exit_code)
    if skip_exit_code and all(o.status in ("skipped", "missing", "empty") for o in done.outcomes):
        raise typer.Exit(NOTHING_TO_DO)


def gc(
    output_folder: Job,
    keep_runs: Annotated[int, typer.Option(min=0, help="Runs to keep, the latest.")] = 14,
    keep_days: Annotated[int, typer.Option(min=0, help="Days to keep everything for.")] = 30,
    dry_run: JustShow = False,
    output: OutputForm = "text",
) -> None:
    """Remove what is neither published, nor referenced, nor recent."""
    from mrot_scale.scheduled.retention import gc as collect

    found = collect(output_folder, keep_runs=keep_runs, keep_days=keep_days, dry_run=dry_run)
    _print(found, output, _gc_text)


def history(
    output_folder: Job,
    key: Annotated[str, typer.Option(help="Key of the partitions.")] = "date",
    dry_run: JustShow = False,
    output: OutputForm = "text",
) -> None:
    """Write the page over all nights again, from what their runs left."""
    from mrot_scale.scheduled.history import history as write_page

    found = write_page(output_folder, key=key, dry_run=dry_run)
    _print(found, output, _history_text)


models_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="The models of a scheduled job."
)


@models_app.command("list", epilog="Example: mrot-scale models list /data/out")
def list_models(
    output_folder: Job,
    output: OutputForm = "text",
) -> None:
    """List models with the partitions they were fitted on, and which are promoted."""
    from mrot_scale.scheduled.registry import listed_models

    found = listed_models(output_folder)
    if output == "json":
        print_json(found)
        return
    for entry in found:
        groups = f", {len(entry['groups'])} groups" if entry["groups"] else ""
        chosen = f", promoted from {', '.join(entry['promoted'])}" if entry["promoted"] else ""
        typer.echo(f"{entry['id']}  {entry['rows']:,} rows{groups}, fitted {entry['at']}{chosen}")
    if not found:
        typer.echo("no models")


@models_app.command(
    "promote", epilog="Example: mrot-scale models promote /data/out latest --from 2026-11-20"
)
def promote(
    output_folder: Job,
    model: Annotated[str, typer.Argument(help="Id of a model, or latest.")],
    start: Annotated[str, typer.Option("--from", help="First partition it is to score.")],
    key: Annotated[str, typer.Option(help="Key of the partitions.")] = "date",
    dry_run: JustShow = False,
    output: OutputForm = "text",
) -> None:
    """Score partitions from one on with a certain model, until a later fit."""
    from mrot_scale.scheduled.registry import promote_model

    found = promote_model(output_folder, model, start, key, dry_run=dry_run)
    _print_line(found, f"{found['model']} scores {key}={start} and later", output)


@models_app.command(
    "compare",
    epilog="Example: mrot-scale models compare /data/out ID latest /data/lake/date=2026-11-14",
)
def compare(
    output_folder: Job,
    first: Annotated[str, typer.Argument(help="Id of a model, latest, or a path.")],
    second: Annotated[str, typer.Argument(help="Another.")],
    rows: Annotated[str, typer.Argument(help="Table both are to score.")],
    config: ConfigFile = None,
    output: OutputForm = "text",
) -> None:
    """Score the same rows with two models: rank correlation, flagged overlap, drift."""
    from mrot_scale.config.layers import load_config
    from mrot_scale.scheduled.comparison import compare_models

    found = compare_models(output_folder, first, second, rows, load_config(config))
    _print(found, output, _compared_text)


def _settings(
    config: str | None,
    pairs: list[str] | None,
    cluster: str | None,
    workers: int | None,
    insecure: bool,
    allow_class: bool,
    by: str | None,
) -> Any:
    from mrot_scale.config.layers import load_config

    flags = {"cluster": cluster_overrides(cluster, workers, insecure, allow_class)}
    return load_config(
        config, overrides=merged(set_overrides(pairs), flags, {"nightly": {"by": by}})
    )


def _print(result: Any, output: str, text: Callable[[Any], str]) -> None:
    if output == "json":
        print_json(asdict(result))
    else:
        typer.echo(text(result))


def _print_line(found: Any, text: str, output: str) -> None:
    if output == "json":
        print_json(found)
    else:
        typer.echo(text)


def _plan_text(plan: Any) -> str:
    rows = "rows not known" if plan.n_rows is None else f"{plan.n_rows:,} rows"
    return (
        f"{plan.partition}: {plan.action}\n"
        f"  input: {plan.files} file(s), {plan.bytes:,} bytes, {rows}\n"
        f"  model: {plan.model}\n"
        f"  scores: {plan.scores}"
    )


def _night_text(night: Any, stages: dict[str, float]) -> str:
    if night.status == "empty":
        return f"{night.partition}: no rows, nothing published"
    head = "already done: " if night.status == "skipped" else ""
    lines = [
        f"{head}{night.partition}: {night.n_rows:,} rows scored, {night.n_flagged:,} flagged "
        f"({night.flagged_share:.2%}) by model {night.model}, {night.seconds:.1f} s"
    ]
    lines += [f"  warning: {warning}" for warning in night.warnings]
    lines += stage_lines(stages)
    lines.append(f"  scores: {night.scores}")
    lines += [f"  report: {night.report}"] if night.report else []
    lines.append(f"  run: {night.manifest}")
    return "\n".join(lines)


def _backfill_text(done: Any) -> str:
    lines = []
    for o in done.outcomes:
        told = f"{o.n_rows:,} rows, {o.n_flagged:,} flagged, {o.model}" if o.n_rows else o.reason
        code = f" [{o.exit_code}]" if o.exit_code else ""
        lines.append(f"{o.status + code:<12} {o.partition}  ({o.why})  {told}".rstrip())
    return "\n".join(lines) or "no partitions"


def _history_text(found: Any) -> str:
    verb = "would write" if found.is_dry else "wrote"
    return f"{verb} {found.page}: {len(found.nights):,} nights"


def _gc_text(found: Any) -> str:
    verb = "would remove" if found.is_dry else "removed"
    lines = [f"{verb} {r.kind}: {r.place} ({r.why})" for r in found.removals]
    return "\n".join(lines) or "nothing to remove"


def _compared_text(found: Any) -> str:
    rank = "none" if found.rank_correlation is None else f"{found.rank_correlation:.4f}"
    return (
        f"{found.n_rows:,} rows, {found.first} and {found.second}\n"
        f"  rank correlation {rank}, largest difference of scores {found.largest_difference:.4f}\n"
        f"  flagged: {found.flagged_first:,} and {found.flagged_second:,}, both "
        f"{found.flagged_both:,} (overlap {found.flagged_overlap:.1%})\n"
        f"  drift of the score: PSI {found.score_psi:.4f}, KS {found.score_ks:.4f}"
    )
