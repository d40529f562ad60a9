"""Scenarios become areas under the ROC curve of every side, seed by seed."""

from collections.abc import Iterator, Sequence
from statistics import fmean, stdev
from typing import Any

import numpy as np
from scipy.stats import skew
from sklearn.metrics import roc_auc_score

from benchmarks import transport_weights as weights
from benchmarks.transport_scenarios import SCENARIOS, Floats, Ints, Labelled, Scenario
from benchmarks.transport_sides import (
    ALPHA,
    BATCH_ROWS,
    DOUBLE,
    FREE,
    NEIGHBOUR,
    SIDES,
    TRANSPORT,
    side_scores,
)
from mrot_scale.method.batches import zone_count
from mrot_scale.method.cost import nearest_zone, squared_distances
from mrot_scale.seeds import generator

Record = dict[str, Any]

WEIGHTS = Scenario(
    weights.NAME,
    "a table is rounded to a grid and aggregated to distinct rows with counts",
    weights.PARAMETER,
    weights.WIDTHS,
    weights.rounded_table,
)
ALL = (*SCENARIOS, WEIGHTS)

PAIRS = {weights.NAME: ("counted, transport", "counted, k-NN", "full table, k-NN")}
"""Sides whose difference is reported, and a third one to hold against the first."""

_USUAL_PAIR = (TRANSPORT, NEIGHBOUR, DOUBLE)
TOLD_APART = 0.5
"""Smallest mean difference in points that is called one."""

CHANCE = 50.0
VERDICTS = ("ahead", "behind", "alike", "both below chance")


def pair_of(scenario: str) -> tuple[str, str, str]:
    """Return the side with transport, the one without, and the third."""
    return PAIRS.get(scenario, _USUAL_PAIR)


def sides_of(scenario: str) -> tuple[str, ...]:
    return weights.WEIGHTED_SIDES if scenario == weights.NAME else SIDES


def run_scenario(scenario: Scenario, seeds: int, n_rows: int) -> Iterator[Record]:
    """Yield one record for each difficulty and seed."""
    for value in scenario.values:
        for seed in range(seeds):
            # The same random numbers at every difficulty, so that only the difficulty differs.
            table = scenario.draw(value, n_rows, generator(seed, scenario.name))
            identity = {"scenario": scenario.name, "value": value, "seed": seed}
            yield identity | _measured(scenario.name, table, seed)


def _measured(scenario: str, table: Labelled, seed: int) -> Record:
    if scenario == weights.NAME:
        sides = weights.weighted_sides(table.rows)
        more = {"agreement": weights.agreement(sides)}
    else:
        sides, more = side_scores(table.rows, seed), {}
    return {"roc": _areas(table.labels, sides), "hub_skew": hub_skew(table.rows), **more}


def _areas(labels: Ints, sides: dict[str, Floats]) -> dict[str, float]:
    return {side: 100 * float(roc_auc_score(labels, some)) for side, some in sides.items()}


def hub_skew(rows: Floats) -> float:
    """Return the skewness of how many zones a row is in: high where few rows are near to many."""
    some = rows[:: max(1, len(rows) // BATCH_ROWS)]
    zone = nearest_zone(squared_distances(some, some), zone_count(len(some), ALPHA, None))
    return float(skew(zone.sum(axis=0)))


def summarise(records: Sequence[Record]) -> list[Record]:
    """Return one record for each scenario and difficulty, over its seeds."""
    groups: dict[tuple[str, float], list[Record]] = {}
    for record in records:
        groups.setdefault((record["scenario"], record["value"]), []).append(record)
    return [_summary(name, value, group) for (name, value), group in groups.items()]


def _summary(scenario: str, value: float, group: Sequence[Record]) -> Record:
    areas = {side: [r["roc"][side] for r in group] for side in sides_of(scenario)}
    with_it, without, _ = pair_of(scenario)
    differences = [a - b for a, b in zip(areas[with_it], areas[without], strict=True)]
    found = {
        "scenario": scenario,
        "value": value,
        "roc": {side: _mean_and_deviation(some) for side, some in areas.items()},
        "difference": _mean_and_deviation(differences),
        "verdict": verdict(differences, max(fmean(areas[with_it]), fmean(areas[without]))),
        "hub_skew": fmean(r["hub_skew"] for r in group),
    }
    if FREE in areas:
        alone = [a - b for a, b in zip(areas[with_it], areas[FREE], strict=True)]
        found["constraint_alone"] = _mean_and_deviation(alone)
    if "agreement" in group[0]:
        found["agreement"] = {s: fmean(r["agreement"][s] for r in group) for s in areas}
    return found


def verdict(differences: Sequence[float], best_area: float) -> str:
    """Say ahead or behind where all seeds agree and the mean is worth naming, else alike."""
    mean, signs = fmean(differences), set(np.sign(differences).tolist())
    if abs(mean) < TOLD_APART or len(signs) > 1:
        return VERDICTS[2]
    if best_area < CHANCE:
        return VERDICTS[3]
    return VERDICTS[0] if mean > 0 else VERDICTS[1]


def _mean_and_deviation(values: Sequence[float]) -> list[float]:
    return [fmean(values), stdev(values) if len(values) > 1 else 0.0]
