"""`demo`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mrot_scale.commands.options import JustShow, Workers

if TYPE_CHECKING:
    from mrot_scale.demo import DemoResult


def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything the demo makes.")] = Path(
        "mrot-demo"
    ),
    rows: Annotated[int, typer.Option(min=1_000, help="Rows of the table.")] = 1_000_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of table and method.")] = 0,
    workers: Workers = None,
    dry_run: JustShow = False,
) -> None:
    """Make a table of pump readings with planted anomalies, ingest, fit, score, and compare."""
    from mrot_scale.demo import run_demo
    from mrot_scale.progress import shown_progress

    if dry_run:
        typer.echo(f"would make a table of {rows:,} readings, a store, a model and scores in {out}")
        return
    with shown_progress() as report:
        result = run_demo(out, n_rows=rows, seed=seed, workers=workers, report=report)
    typer.echo(_demo_text(result))


def _demo_text(result: "DemoResult") -> str:
    parts = [
        [f"{result.n_rows:,} readings scored, {result.n_flagged:,} flagged."],
        _auc_lines(result.auc),
        ["Most anomalous readings, with the columns that made them so:", *_finding_lines(result)],
        ["Made, and what to look at next:", *_path_lines(result.out)],
        [_time_line(result.seconds)],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts)


def _auc_lines(auc: dict[str, dict[str, float]]) -> list[str]:
    kinds = list(auc["model"])
    lines = ["AUC against the planted truth".ljust(38) + "".join(f"{k:>10}" for k in kinds)]
    told = {"model": "method model", "effort": "method effort, up to 10,000 readings"}
    for method, found in auc.items():
        lines.append(f"  {told[method]:<36}" + "".join(f"{found[k]:>10.3f}" for k in kinds))
    return lines


def _finding_lines(result: "DemoResult") -> list[str]:
    return [
        f"  reading {f.reading:>7}  {f.score:.5f}  planted: {f.kind:<9}  "
        + ", ".join(f"{name} = {_shown(value)}" for name, value in f.columns)
        for f in result.findings
    ]


def _shown(value: Any) -> str:
    if value is None:
        return "missing"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _path_lines(out: Path) -> list[str]:
    from mrot_scale.demo import MODEL, SCORES, SCORES_TABLE, STORE, TABLE

    lines = [f"  {out / TABLE}", f"  {out / SCORES_TABLE}"]
    return lines + [f"  mrot-scale inspect {out / name}" for name in (STORE, MODEL, SCORES)]


def _time_line(seconds: dict[str, float]) -> str:
    took = ", ".join(f"{step} {spent:.1f} s" for step, spent in seconds.items())
    return f"Time: {took}; {sum(seconds.values()):.1f} s in all."
