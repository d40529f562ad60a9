"""Results as text for people and as JSON for programs."""

import json
import shlex
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from mrot_scale.commands.options import Output
from mrot_scale.pace import seconds_text
from mrot_scale.terminal_text import printable

if TYPE_CHECKING:
    from mrot_scale.jobs.plan_text import Plan


_TIGHT = "\u00a0"
"""A space at which no line is broken."""


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


def print_result(
    result: Any, output: Output, stages: dict[str, float], source: str | None = None
) -> None:
    """Print what a job made, where, how long each stage took, and what may be done next."""
    if output == "json":
        print_json(_without_schema(asdict(result)) | {"stages": stages})
        return
    told, commands = _TEXT_OF[type(result).__name__](result, source)
    typer.echo("\n".join([*told, *closing_lines(result, stages, commands)]))


def closing_lines(
    result: Any, stages: dict[str, float], commands: Sequence[Sequence[str]]
) -> list[str]:
    """Return the end of what is told: the time of each stage, a report to look at, what is next."""
    report = getattr(result, "report", None)
    lines = stage_lines(stages)
    lines += [f"  report: {printable(report)}"] if report else []
    return lines + [f"  next: {command_text(words)}" for words in commands]


def stage_lines(stages: dict[str, float]) -> list[str]:
    """Return the seconds of each stage, and of all where there are several."""
    if not stages:
        return []
    took = [f"{name} {seconds_text(spent)}" for name, spent in stages.items()]
    if len(stages) > 1:
        took.append(f"{seconds_text(sum(stages.values()))} in all stages")
    told = ", ".join(took).replace(" ", _TIGHT).replace(f",{_TIGHT}", ", ")
    lines = textwrap.wrap(told, 98, initial_indent="  time: ", subsequent_indent="    ")
    return [line.replace(_TIGHT, " ") for line in lines]


def command_text(words: Sequence[str]) -> str:
    """Return a command to copy; words in capitals are to be filled in."""
    return printable(shlex.join(["mrot-scale", *words]))


def _without_schema(found: dict[str, Any]) -> dict[str, Any]:
    found.pop("schema", None)
    return found


Told = tuple[list[str], list[list[str]]]
"""Lines about a result, and commands that may come next."""


def _ingested(result: Any, _: str | None) -> Told:
    schema = result.schema
    lines = [
        f"{_head(result)}{result.n_rows:,} rows, {len(schema.features)} features in {result.store}"
    ]
    if schema.left_out:
        left = ", ".join(f"{name!r} ({why})" for name, why in schema.left_out)
        lines.append(f"  not used: {left}")
    return lines, [["fit", result.store, "MODEL"]]


def _fitted(result: Any, source: str | None) -> Told:
    found = result.validation
    lines = [
        f"{_head(result)}model {result.model} from {result.labelled_rows:,} labelled of "
        f"{result.n_rows:,} rows, {seconds_text(result.seconds)}"
    ]
    if found["held_out_rows"]:
        lines.append(
            f"  on {found['held_out_rows']:,} rows not seen: {found['share_above_99_model']:.2%} "
            f"score above .99, model and efforts rank alike by "
            f"{found['distillation_rank_correlation'] or 0:.3f}"
        )
    return lines, [["score", result.model, source or "STORE", "OUT"]]


def _scored(result: Any, _: str | None) -> Told:
    rate = result.n_rows / max(result.seconds, 1e-9)
    speed = "" if result.was_done else f", {rate:,.0f} rows/s"
    lines = [
        f"{_head(result)}{result.n_rows:,} rows scored, {result.n_flagged:,} flagged "
        f"(score above {result.threshold:.5f}), {seconds_text(result.seconds)}{speed}"
    ]
    if result.n_missing:
        lines.append(f"  {result.n_missing:,} rows have no score: a value is missing")
    lines += [f"  scores: {place}" for place in (result.out, result.parquet) if place]
    return lines, [["inspect", result.out]]


def _head(result: Any) -> str:
    return "already done: " if result.was_done else ""


_TEXT_OF = {"Ingested": _ingested, "Fitted": _fitted, "Scored": _scored}
