"""The same pair on real sets: transport efforts and neighbour distances to the same anchors."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from scipy.stats import binomtest, wilcoxon

from benchmarks.quality_families import Scored
from benchmarks.quality_runs import quality
from benchmarks.quality_sets import Split
from benchmarks.smaller_splits import load_smaller
from benchmarks.transport_scenarios import Floats
from mrot_scale.errors import MrotError
from mrot_scale.method.anchors import fit_anchor_set, route_matrix
from mrot_scale.method.batches import fitting_batch_rows
from mrot_scale.method.efforts import Problem, effort_floor, middle_log_efforts
from mrot_scale.method.strata import draw_evenly
from mrot_scale.method.views import Scaling, ViewSpec, fit_view

Record = dict[str, Any]

ROWS = 2_000
"""Most training and most test rows of a set."""

ANCHOR_ROWS, ANCHOR_SETS = 256, 8
VIEWS: tuple[Scaling, ...] = ("none", "robust")
ALPHAS = (0.02, 0.04, 0.08, 0.16)
METRICS = ("roc", "pr")
SIDES = ("transport", "neighbour", "no limit")


def run_sets(paths: dict[str, Path], seeds: int, *, rows: int = ROWS) -> Iterator[Record]:
    """Yield a record for each set, seed, view and zone mass; what fails says why."""
    for name, path in paths.items():
        print(f"{name} ...", file=sys.stderr, flush=True)
        for seed in range(seeds):
            split = load_smaller(path, seed, test_rows=rows, train_rows=rows)
            for view in VIEWS:
                yield from _run_view({"dataset": name, "seed": seed, "view": view}, split)


def _run_view(identity: Record, split: Split) -> Iterator[Record]:
    view = fit_view(ViewSpec(scaling=identity["view"]), split.train)
    train, test = view.apply(split.train), view.apply(split.test)
    for alpha in ALPHAS:
        named = {**identity, "alpha": alpha}
        try:
            sides = anchor_sides(train, test, alpha, identity["seed"])
        except MrotError as error:
            yield {**named, "error": str(error)}
            continue
        found = {s: quality(split.labels, Scored(s, x, 0.0, 0.0)) for s, x in sides.items()}
        yield {**named, **found}


def anchor_sides(train: Floats, test: Floats, alpha: float, seed: int) -> dict[str, Floats]:
    """Return the log effort of the test rows against anchors, with and without transport."""
    problem = Problem(alpha=alpha)
    size = fitting_batch_rows(len(train), ANCHOR_ROWS, alpha, None)
    anchors = [
        fit_anchor_set(train[rows], rows, problem, f"set {number}")
        for number, rows in enumerate(draw_evenly(train, size, ANCHOR_SETS, seed))
    ]
    # At the zone's own ceiling a row stays put: its effort is the distance to the zone's edge.
    edge = Problem(alpha=alpha, ceiling="zone")
    # Without prices it goes to its cheapest place outside the zone, its (k+1)-th neighbour.
    unpriced = [replace(some, v=np.zeros(len(some.v))) for some in anchors]
    routes = {
        "transport": route_matrix(anchors, test, problem),
        "neighbour": route_matrix(anchors, test, edge),
        "no limit": route_matrix(unpriced, test, problem),
    }
    return {name: middle_log_efforts(some, effort_floor(some)) for name, some in routes.items()}


def set_differences(records: Sequence[Record]) -> list[Record]:
    """Return, for each set, what transport adds in points: mean over seeds, views, zone masses."""
    names = dict.fromkeys(r["dataset"] for r in records if "error" not in r)
    return [{"dataset": name, **_means(records, dataset=name)} for name in names]


def setting_tests(records: Sequence[Record]) -> list[Record]:
    """Return, for each setting and for their mean, what sets say about transport."""
    settings = [{"view": view, "alpha": alpha} for view in VIEWS for alpha in ALPHAS]
    found = [setting | _tests(records, setting) for setting in settings]
    return [*found, {"view": "all", "alpha": "all"} | _tests(records, {})]


def _tests(records: Sequence[Record], setting: Record) -> Record:
    some = [r for r in records if "error" not in r and _agrees(r, setting)]
    names = dict.fromkeys(r["dataset"] for r in some)
    by_set = [_means(some, dataset=name) for name in names]
    found: Record = {"n_sets": len(by_set)}
    for metric in METRICS:
        for gain in ("gain", "alone"):
            gains = np.array([means[f"{metric}_{gain}"] for means in by_set])
            found |= {f"{metric}_{gain}_{key}": v for key, v in paired_tests(gains).items()}
    return found


def paired_tests(gains: Floats) -> Record:
    """Return the mean gain, how many sets gain, and the p-values of two tests for no gain."""
    moved = gains[gains != 0]
    n_up = int((moved > 0).sum())
    return {
        "mean": float(gains.mean()) if gains.size else None,
        "sets_up": n_up,
        "sets_down": len(moved) - n_up,
        "sign_p": float(binomtest(n_up, len(moved)).pvalue) if moved.size else None,
        "wilcoxon_p": float(wilcoxon(moved).pvalue) if moved.size else None,
    }


def _means(records: Sequence[Record], **fields: Any) -> Record:
    some = [r for r in records if "error" not in r and _agrees(r, fields)]
    found: Record = {}
    for metric in METRICS:
        sides = {side: fmean(r[side][metric] for r in some) for side in SIDES}
        found |= {f"{metric}_{side}": value for side, value in sides.items()}
        found[f"{metric}_gain"] = sides["transport"] - sides["neighbour"]
        found[f"{metric}_alone"] = sides["transport"] - sides["no limit"]
    return found


def _agrees(record: Record, fields: Record) -> bool:
    return all(record[name] == value for name, value in fields.items())
