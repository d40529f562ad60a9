"""Run the paper's introductory example: numbers to `toy.json`, pictures to PNG files.

    python -m benchmarks.toy --out results/toy

The figures use a zone of 50 other rows, not the paper's k = 5 (4 others and the row itself), which
ranks these anomalies no better than chance (AUC .35 for seed 0): `benchmarks.toy_problem` says why,
and `zone_sweep` in the JSON holds the measurements. The same seed and package versions give the
same bytes of JSON.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import toy_problem as problem
from benchmarks.record import claim_folder, json_lines, versions
from benchmarks.toy_figures import draw_all
from benchmarks.toy_problem import Floats, Outcome, Toy
from mrot_scale.errors import MrotError

NUMBERS = "toy.json"

LISTED_EVERY = 10
"""Of the grid of a regressed score, the JSON lists every tenth node of each axis."""

LIBRARIES = ("numpy", "scipy", "POT", "scikit-learn", "matplotlib")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    given = _parser().parse_args(arguments)
    try:
        claim_folder(given.out, NUMBERS)
        toy = problem.compute(given.seed)
    except MrotError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    # The numbers first: they mark the folder as ours should a figure fail.
    (given.out / NUMBERS).write_text(json_lines(numbers(toy)), encoding="utf-8")
    for path in draw_all(toy, given.out):
        print(path)
    print(summary(toy))
    return 0


def summary(toy: Toy) -> str:
    """Return the findings in two lines."""
    mrot, coulomb = toy.costs["mrot"], toy.costs["coulomb"]
    return (
        f"MROT: AUC of high effort {problem.auc(toy.sample, mrot.efforts):.4f} with a zone of "
        f"{problem.ZONE_ROWS} other rows, {dict(toy.sweep)[problem.PAPER_ZONE_ROWS]:.4f} with "
        f"{problem.PAPER_ZONE_ROWS} (the paper's k = 5)\n"
        f"Coulomb: AUC of low effort {problem.auc(toy.sample, -coulomb.efforts):.4f}"
    )


def numbers(toy: Toy) -> dict[str, Any]:
    """Return the numbers behind every figure."""
    return {
        "settings": _settings(toy),
        "versions": versions(LIBRARIES),
        "euclidean": _euclidean_numbers(toy),
        **{name: _cost_numbers(toy, outcome) for name, outcome in toy.costs.items()},
        "zone_sweep": [{"zone_rows": k, "auc_high_effort": auc} for k, auc in toy.sweep],
        "regressed": _regressed_numbers(toy),
        "rows": [_row_numbers(toy, row) for row in range(len(toy.sample.rows))],
    }


def _settings(toy: Toy) -> dict[str, Any]:
    return {
        "seed": toy.seed,
        "normal": {
            "rows": problem.N_NORMAL,
            "center": problem.NORMAL_CENTER,
            "variance": problem.NORMAL_VARIANCE,
        },
        "anomalies": {
            "rows": problem.N_ANOMALIES,
            "center": problem.ANOMALY_CENTER,
            "variance": problem.ANOMALY_VARIANCE,
        },
        "zone_rows": problem.ZONE_ROWS,
        "zone_rows_of_the_paper": problem.PAPER_ZONE_ROWS,
        "zone_counts": "other rows only; the paper's k = 5 counts the row itself",
        "score": "CDF of raw efforts, Gaussian kernel, Scott's bandwidth",
    }


def _euclidean_numbers(toy: Toy) -> dict[str, Any]:
    outcome = toy.euclidean
    identity = np.eye(len(outcome.plan)) / len(outcome.plan)
    return {
        "total_cost": outcome.total_cost,
        "plan_is_identity": bool(np.allclose(outcome.plan, identity, rtol=0.0, atol=1e-12)),
        "cost_by_block": _blocks(toy, outcome.cost, np.mean),
    }


def _cost_numbers(toy: Toy, outcome: Outcome) -> dict[str, Any]:
    n = len(outcome.plan)
    return {
        "total_cost": outcome.total_cost,
        "anomalous_effort": "high" if outcome.effort_sign > 0 else "low",
        "auc_high_effort": problem.auc(toy.sample, outcome.efforts),
        "auc_low_effort": problem.auc(toy.sample, -outcome.efforts),
        "score_bandwidth": outcome.bandwidth,
        "cost_range": [float(outcome.cost.min()), float(outcome.cost.max())],
        "cost_by_block": _blocks(toy, outcome.cost, np.mean),
        "mass_by_block": _blocks(toy, outcome.plan, np.sum),
        "largest_error_of_mass_sent": float(np.abs(outcome.plan.sum(axis=1) - 1 / n).max()),
        "largest_error_of_mass_received": float(np.abs(outcome.plan.sum(axis=0) - 1 / n).max()),
    }


def _blocks(toy: Toy, matrix: Floats, summarise: Any) -> dict[str, float]:
    """Return one number for each pair of kinds of sender and receiver."""
    kinds = {"normal": toy.sample.labels == 0, "anomaly": toy.sample.labels == 1}
    return {
        f"{sender}_to_{receiver}": float(summarise(matrix[np.ix_(sending, receiving)]))
        for sender, sending in kinds.items()
        for receiver, receiving in kinds.items()
    }


def _regressed_numbers(toy: Toy) -> dict[str, Any]:
    axis = problem.grid_axis()
    surfaces = {
        cost: {kind: _surface_numbers(axis, surface) for kind, surface in by_kind.items()}
        for cost, by_kind in toy.surfaces.items()
    }
    grid = {"nodes_per_axis": len(axis), "axis_of_listed_nodes": axis[::LISTED_EVERY].tolist()}
    return grid | surfaces


def _surface_numbers(axis: Floats, surface: Floats) -> dict[str, Any]:
    return {
        "smallest": float(surface.min()),
        "mean": float(surface.mean()),
        "largest": float(surface.max()),
        "at_normal_center": _value_at(axis, surface, problem.NORMAL_CENTER),
        "at_anomaly_center": _value_at(axis, surface, problem.ANOMALY_CENTER),
        "listed_nodes": surface[::LISTED_EVERY, ::LISTED_EVERY].tolist(),
    }


def _value_at(axis: Floats, surface: Floats, point: tuple[float, float]) -> float:
    column, row = (int(np.abs(axis - coordinate).argmin()) for coordinate in point)
    return float(surface[row, column])


def _row_numbers(toy: Toy, row: int) -> dict[str, Any]:
    x, y = toy.sample.rows[row].tolist()
    by_cost = {
        name: {
            "effort": float(outcome.efforts[row]),
            "score": float(outcome.scores[row]),
            "receiver": int(outcome.receivers[row]),
        }
        for name, outcome in toy.costs.items()
    }
    return {"x": x, "y": y, "anomaly": int(toy.sample.labels[row])} | by_cost


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.toy",
        description="The paper's introductory example: figures as PNG, their numbers as toy.json.",
        epilog="example: python -m benchmarks.toy --out results/toy --seed 0",
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder to write: new, empty, or of an earlier run, whose files are replaced",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample (default: 0)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
