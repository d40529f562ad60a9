"""Cells become means of each value of each factor, and what it gains over the default."""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

from benchmarks.ablation_factors import FACTORS, Variant
from benchmarks.quality_cells import Cell
from benchmarks.quality_tables import METRICS, markdown, mean_of, number

Points = dict[str, float]
"""Mean over seeds of each set."""


def factor_rows(cells: Iterable[Cell], variants: Sequence[Variant]) -> list[Cell]:
    """Return a row for each cell and each value it stands for: many factors share the default."""
    found: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell["changes"], cell["method"]), []).append(cell)
    return [
        {"dataset": cell["dataset"], "factor": variant.factor, "value": variant.value, **cell}
        for variant in variants
        for cell in sorted(found.get((variant.changes, variant.method), []), key=_place)
    ]


def _place(cell: Cell) -> tuple[str, int]:
    return cell["dataset"].lower(), cell["seed"]


def shown_factors(rows: Sequence[Cell]) -> dict[str, list[str]]:
    """Return the values that have rows, of each factor in which there is something to compare."""
    found: dict[str, list[str]] = {}
    for row in rows:
        values = found.setdefault(row["factor"], [])
        if row["value"] not in values:
            values.append(row["value"])
    return {factor: values for factor, values in found.items() if len(values) > 1}


def base_values(variants: Sequence[Variant]) -> dict[str, str]:
    """Return the value of each factor that the others are compared with."""
    return {variant.factor: variant.value for variant in variants if variant.is_base}


def points(rows: Iterable[Cell], factor: str, value: str, metric: str) -> Points:
    """Return the mean over seeds of each set on which the value worked."""
    by_set: dict[str, list[float]] = {}
    for row in rows:
        if (row["factor"], row["value"]) == (factor, value) and metric in row:
            by_set.setdefault(row["dataset"], []).append(row[metric])
    return {name: fmean(values) for name, values in by_set.items()}


def differences(mine: Points, base: Points) -> list[float]:
    """Return what is gained over the base on each set that both worked on."""
    return [value - base[name] for name, value in mine.items() if name in base]


def value_records(rows: Sequence[Cell], bases: dict[str, str]) -> list[dict[str, Any]]:
    """Return the means of each value, and what it gains over the base."""
    return [
        {"factor": factor, "value": value, "is_base": bases[factor] == value}
        | _record([row for row in rows if row["factor"] == factor], factor, value, bases[factor])
        for factor, values in shown_factors(rows).items()
        for value in values
    ]


def _record(rows: Sequence[Cell], factor: str, value: str, base: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for metric in METRICS:
        mine, other = (points(rows, factor, v, metric) for v in (value, base))
        gained = differences(mine, other)
        found[metric] = mean_of(mine.values())
        found[f"{metric}_gain"] = mean_of(gained)
        found[f"{metric}_better"] = sum(gain > 0 for gain in gained)
        found[f"{metric}_worse"] = sum(gain < 0 for gain in gained)
        found["n_sets"] = len(mine)
    cells = [row for row in rows if row["value"] == value]
    for part in ("fit_s", "score_s"):
        found[part] = mean_of(row[part] for row in cells if part in row)
    return found | {"n_failed": sum("error" in row for row in cells)}


def factor_tables(rows: Sequence[Cell], bases: dict[str, str]) -> str:
    """Return a table in Markdown for each factor."""
    records = value_records(rows, bases)
    parts = []
    for factor in shown_factors(rows):
        mine = [record for record in records if record["factor"] == factor]
        parts += [f"## {FACTORS[factor].title} (`{factor}`)", _table(mine)]
    return "\n\n".join(parts)


def _table(records: Sequence[dict[str, Any]]) -> str:
    heads = ["value", "ROC", "gain", "better / worse", "PR", "gain", "better / worse"]
    return markdown(
        [*heads, "fit s", "score s", "sets", "failed cells"],
        [_line(record) for record in records],
    )


def _line(record: dict[str, Any]) -> list[str]:
    cells = [f"**{record['value']}**" if record["is_base"] else record["value"]]
    for metric in METRICS:
        cells += [number(record[metric]), number(record[f"{metric}_gain"], signed=True)]
        cells.append(f"{record[f'{metric}_better']} / {record[f'{metric}_worse']}")
    cells += [number(record["fit_s"]), number(record["score_s"])]
    return [*cells, str(record["n_sets"]), str(record["n_failed"])]


def failed_rows(rows: Iterable[Cell]) -> str:
    """Return what failed and why, one line for each value, set and reason."""
    seeds: dict[tuple[str, str, str, str], list[str]] = {}
    for row in rows:
        if "error" in row:
            key = (row["factor"], row["value"], row["dataset"], row["error"])
            seeds.setdefault(key, []).append(str(row["seed"]))
    lines = [
        f"- {factor} {value} on {dataset}, seed {', '.join(numbers)}: {error}"
        for (factor, value, dataset, error), numbers in seeds.items()
    ]
    return "\n".join(lines) if lines else "None."
