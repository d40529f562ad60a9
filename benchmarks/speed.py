"""Mini-batch efforts and calibration against the converged exact method, in one run.

    python -m benchmarks.speed [--exact-rows 1000,2000,4000,8000] [--rows 20000] [--out DIR]

The exact method solves one problem of all rows, by the faster of two converged solvers; its time at
`--rows` is extrapolated from the two largest sizes measured. Everything runs on one thread.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mrot_scale.config.method import MethodConfig
from mrot_scale.config.views import ViewConfig
from mrot_scale.fitting.batched import batch_stage, measure_neighbours
from mrot_scale.fitting.setup import plan_fit, view_points
from mrot_scale.method.calibrate import LOG_EFFORT_STEP, count_on_grid, fit_calibration
from mrot_scale.method.efforts import Problem, effort_floor, mean_log_efforts
from mrot_scale.method.transport import best_receivers, plan_efforts, solve_plan
from mrot_scale.synthetic import pump_readings

Floats = NDArray[np.float64]


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    sizes = sorted(int(size) for size in options.exact_rows.split(","))
    with threadpool_limits(limits=1):
        result = compare(sizes, options.rows)
    print(_table(result))
    if options.out:
        out = Path(options.out)
        out.mkdir(parents=True, exist_ok=True)
        (out / "speed.json").write_text(json.dumps(result, indent=1) + "\n")


def compare(sizes: list[int], n_rows: int) -> dict[str, Any]:
    """Return the seconds of both methods and the ratio at `n_rows`."""
    view = ViewConfig(scaling="standard")
    points = view_points(pump_readings(max(n_rows, *sizes)).rows, view).rows
    exact = [exact_seconds(points[:n]) for n in sizes]
    before, last = (min(e.values()) for e in exact[-2:])
    exponent = float(np.log(last / before) / np.log(sizes[-1] / sizes[-2]))
    extrapolated = last * (n_rows / sizes[-1]) ** exponent
    ours = _seconds(lambda: minibatch_targets(points[:n_rows], view))
    return {
        "exact": [{"rows": n, **e} for n, e in zip(sizes, exact, strict=True)],
        "exact_exponent": exponent,
        "rows": n_rows,
        "exact_extrapolated_s": extrapolated,
        "minibatch_s": ours,
        "ratio": extrapolated / ours,
    }


def exact_seconds(points: Floats) -> dict[str, float]:
    """Return the seconds of each converged solver on one problem of all rows, cost included."""
    problem = Problem()
    return {
        "assignment_s": _seconds(lambda: best_receivers(problem.cost(points))),
        "network_simplex_s": _seconds(lambda: _by_network_simplex(points, problem)),
    }


def minibatch_targets(rows: Floats, view: ViewConfig) -> Floats:
    """Return the calibrated mini-batch efforts of all rows in one view, by the default settings."""
    config = MethodConfig(views=(view,))
    setup = plan_fit(len(rows), config, threads=1, progress=None)
    efforts = batch_stage(measure_neighbours([view_points(rows, view)], setup), setup)[0]
    logs = mean_log_efforts(efforts, effort_floor(efforts))
    return fit_calibration(count_on_grid(logs, LOG_EFFORT_STEP)).neg_log_survival(logs)


def _by_network_simplex(points: Floats, problem: Problem) -> Floats:
    cost = problem.cost(points)
    return plan_efforts(solve_plan(cost), cost)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _table(result: dict[str, Any]) -> str:
    lines = ["| rows | assignment s | network simplex s |", "|---|---|---|"]
    for e in result["exact"]:
        lines.append(f"| {e['rows']} | {e['assignment_s']:.2f} | {e['network_simplex_s']:.2f} |")
    lines.append(
        f"\nexact, extrapolated to {result['rows']} rows (exponent "
        f"{result['exact_exponent']:.2f}): {result['exact_extrapolated_s']:.0f} s\n"
        f"mini-batches and calibration of {result['rows']} rows: {result['minibatch_s']:.1f} s\n"
        f"ratio: {result['ratio']:.0f}"
    )
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--exact-rows", default="1000,2000,4000,8000", help="sizes to measure")
    parser.add_argument("--rows", type=int, default=20_000, help="size to compare at")
    parser.add_argument("--out", help="folder for speed.json")
    return parser


if __name__ == "__main__":
    main()
