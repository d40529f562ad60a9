"""`demo`."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mrot_scale.commands.options import JustShow, Output, OutputForm, Quiet, Workers
from mrot_scale.commands.printing import command_text, print_json
from mrot_scale.pace import seconds_text
from mrot_scale.terminal_text import pair_lines, printable

if TYPE_CHECKING:
    from mrot_scale.demo import DemoResult
    from mrot_scale.demo_findings import Caught, Detection

HIGH = 0.95
"""What is told of scores above it."""

KIND_TEXT = {
    "isolated": "a sensor reads far out",
    "clustered": "a pump runs dry: a group of such readings",
    "local": "ordinary values, but not together",
    "stray": "a pump that hardly ever reports here",
}
"""The kinds of anomaly in words."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything the demo makes.")] = Path(
        "mrot-demo"
    ),
    rows: Annotated[int, typer.Option(min=1_000, help="Rows of the table.")] = 1_000_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of table and method.")] = 0,
    workers: Workers = None,
    dry_run: JustShow = False,
    quiet: Quiet = False,
    output: OutputForm = "text",
) -> None:
    """Make a table of pump readings with planted anomalies, ingest, fit, score, and compare."""
    from mrot_scale.demo import run_demo
    from mrot_scale.progress import shown_progress

    if dry_run:
        _print_plan(out, rows, seed, output)
        return
    with shown_progress(quiet=quiet) as report:
        result = run_demo(out, n_rows=rows, seed=seed, workers=workers, report=report)
    if output == "json":
        print_json(asdict(result))
    else:
        typer.echo(_demo_text(result))


def _print_plan(out: Path, rows: int, seed: int, output: Output) -> None:
    if output == "json":
        print_json({"out": out, "rows": rows, "seed": seed})
    else:
        typer.echo(f"would make a table of {rows:,} readings, a store, a model and scores in {out}")


def _demo_text(result: "DemoResult") -> str:
    parts = [
        _told_lines(result),
        _kind_lines(result.detection),
        ["Most anomalous readings:", *_finding_lines(result)],
        _auc_lines(result.auc),
        ["Made:", *_path_lines(result)],
        ["What to look at next:", *_next_lines(result)],
        [_time_line(result.seconds)],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts)


def _told_lines(result: "DemoResult") -> list[str]:
    found = result.detection
    share = f"{found.planted / result.n_rows:.1%}"
    return [
        f"{result.n_rows:,} readings scored. {found.planted:,} anomalies ({share}) were planted "
        "in them; the method was not told which.",
        f"  Of the {found.n_highest:,} highest scores, {found.highest_planted:,} were planted.",
        f"  Of the {found.planted:,} planted anomalies, {found.flagged_planted:,} are among the "
        f"{found.n_flagged:,} readings flagged,",
        f"  and {found.high_planted:,} among the {found.n_high:,} that score above {HIGH}.",
    ]


def _kind_lines(found: "Detection") -> list[str]:
    head = f"{'By kind':<58}{'planted':>9}{'flagged':>14}{f'above {HIGH}':>16}"
    return [head, *(_kind_line(name, kind) for name, kind in found.kinds.items())]


def _kind_line(name: str, kind: "Caught") -> str:
    caught = [f"{n:>9,}{_share(n, kind.planted):>6}" for n in (kind.flagged, kind.high)]
    return f"  {name:<11}{KIND_TEXT[name]:<45}{kind.planted:>9,}{''.join(caught)}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "-"


def _auc_lines(auc: dict[str, dict[str, float]]) -> list[str]:
    kinds = list(auc["model"])
    lines = [
        "AUC: how often a planted one scores above an ordinary one (0.5 is guessing, 1 is always)",
        " " * 38 + "".join(f"{k:>10}" for k in kinds),
    ]
    told = {"model": "method model", "effort": "method effort, up to 10,000 readings"}
    for method, found in auc.items():
        lines.append(f"  {told[method]:<36}" + "".join(f"{found[k]:>10.3f}" for k in kinds))
    return lines


def _finding_lines(result: "DemoResult") -> list[str]:
    head = f"  {'reading':>9}  {'score':<7}  {'planted':<9}  columns that made it so"
    return [head] + [
        f"  {f.reading:>9}  {f.score:.5f}  {_kind(f.kind):<9}  "
        + ", ".join(f"{name} = {_shown(value)}" for name, value in f.columns)
        for f in result.findings
    ]


def _kind(name: str) -> str:
    return "-" if name == "normal" else name


def _shown(value: Any) -> str:
    if value is None:
        return "missing"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _path_lines(result: "DemoResult") -> list[str]:
    from mrot_scale.demo import SCORES_TABLE, TABLE

    made = {"readings": result.out / TABLE, "scores": result.out / SCORES_TABLE}
    return pair_lines(
        [(name, printable(place)) for name, place in made.items()]
        + [("report", printable(result.report or ""))]
    )


def _next_lines(result: "DemoResult") -> list[str]:
    """Return commands to copy."""
    from mrot_scale.demo import MODEL, SCORES, STORE

    store, model = str(result.out / STORE), str(result.out / MODEL)
    why = [["explain", model, "--store", store, "--row", str(f.reading)] for f in result.findings]
    other = str(result.out.with_name(f"{result.out.name}-effort"))
    commands = [
        *why[:1],
        ["threshold", model, "--scores", str(result.out / SCORES)],
        ["inspect", model],
        ["score", model, store, other, "--method", "effort"],
    ]
    return [f"  {command_text(words)}" for words in commands]


def _time_line(seconds: dict[str, float]) -> str:
    took = ", ".join(f"{step} {seconds_text(spent)}" for step, spent in seconds.items())
    return f"Time: {took}; {seconds_text(sum(seconds.values()))} in all."
