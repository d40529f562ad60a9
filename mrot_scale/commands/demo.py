"""`demo`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mrot_scale.demo import DemoResult


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
