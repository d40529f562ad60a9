"""Results as text for people and as JSON for programs."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from mrot_scale.commands.options import Output

if TYPE_CHECKING:
    from mrot_scale.jobs.plan_text import Plan


def print_json(value: Any) -> None:
    """Print a value as one JSON document."""
    typer.echo(json.dumps(value, indent=1, sort_keys=True, default=str))


def print_plan(plan: "Plan", output: Output) -> None:
    """Print what a job would do; refuse after that what would not fit."""
    from mrot_scale.jobs.plan_text import plan_text

    if output == "json":
        print_json(plan.to_json())
    else:
        typer.echo(plan_text(plan))
    plan.check()


def print_result(result: Any, output: Output) -> None:
    """Print what a job made."""
    if output == "json":
        print_json(_without_schema(asdict(result)))
    else:
        typer.echo(_TEXT_OF[type(result).__name__](result))


def _without_schema(found: dict[str, Any]) -> dict[str, Any]:
    found.pop("schema", None)
    return found


def _ingested(result: Any) -> str:
    schema = result.schema
    lines = [
        f"{_head(result)}{result.n_rows:,} rows, {len(schema.features)} features in {result.store}"
    ]
    if schema.left_out:
        left = ", ".join(f"{name!r} ({why})" for name, why in schema.left_out)
        lines.append(f"  not used: {left}")
    lines.append(f"  next: mrot-scale fit {result.store} MODEL")
    return "\n".join(lines)


def _fitted(result: Any) -> str:
    found = result.validation
    lines = [
        f"{_head(result)}model {result.model} from {result.labelled_rows:,} labelled of "
        f"{result.n_rows:,} rows, {result.seconds:.1f} s"
    ]
    if found["held_out_rows"]:
        lines.append(
            f"  on {found['held_out_rows']:,} rows not seen: {found['share_above_99_model']:.2%} "
            f"score above .99, model and efforts rank alike by "
            f"{found['distillation_rank_correlation'] or 0:.3f}"
        )
    lines.append(f"  next: mrot-scale score {result.model} STORE OUT")
    return "\n".join(lines)


def _scored(result: Any) -> str:
    rate = result.n_rows / max(result.seconds, 1e-9)
    lines = [
        f"{_head(result)}{result.n_rows:,} rows scored, {result.n_flagged:,} flagged "
        f"(score above {result.threshold:.5f}), {result.seconds:.1f} s, {rate:,.0f} rows/s"
    ]
    if result.n_missing:
        lines.append(f"  {result.n_missing:,} rows have no score: a value is missing")
    lines.append(f"  {result.out}")
    if result.parquet:
        lines.append(f"  {result.parquet}")
    return "\n".join(lines)


def _head(result: Any) -> str:
    return "already done: " if result.was_done else ""


_TEXT_OF = {"Ingested": _ingested, "Fitted": _fitted, "Scored": _scored}
