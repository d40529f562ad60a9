"""How well mini-batch and anchor efforts rank rows, against the converged exact method.

    python -m benchmarks.fidelity --data DIR [--sets a,b] [--rows 1500] [--repeats 10] [--out DIR]

For every data set with enough rows: Spearman's correlation with the exact efforts of one problem
holding all rows, at the same zone mass. Equal rows may trade places in an optimal plan, so their
exact efforts are not unique; the rank correlation is taken over distinct rows, each with the mean
log effort of its copies.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from mrot_scale.config.method import MethodConfig
from mrot_scale.config.views import ViewConfig
from mrot_scale.fitting.anchored import route_stage, view_anchors
from mrot_scale.fitting.batched import batch_stage, measure_neighbours
from mrot_scale.fitting.setup import plan_fit, view_points
from mrot_scale.method.efforts import (
    effort_floor,
    mean_log_efforts,
    middle_log_efforts,
    transport_efforts,
)
from mrot_scale.scoring import problem_of
from mrot_scale.seeds import generator
from mrot_scale.standing import unseen_routes

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Agreement:
    """Rank correlation of one data set in one view."""

    dataset: str
    view: str
    distinct: float
    """Share of the rows that are distinct."""

    minibatch: float
    anchors: float


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    paths = sorted(Path(options.data).glob("*.npz"))
    wanted = options.sets.split(",") if options.sets else [p.stem for p in paths]
    found = []
    for path in paths:
        with np.load(path, allow_pickle=False) as data:
            rows = np.asarray(data["X"], dtype=np.float64)
        if path.stem not in wanted or len(rows) < options.rows:
            continue
        chosen = np.sort(generator(0, "fidelity").permutation(len(rows))[: options.rows])
        for view in options.views.split(","):
            found.append(agreement(path.stem, rows[chosen], view, options.repeats))
            print(_line(found[-1]), flush=True)
    print(_summary(found))
    if options.out:
        out = Path(options.out)
        out.mkdir(parents=True, exist_ok=True)
        (out / "fidelity.json").write_text(json.dumps([asdict(a) for a in found], indent=1) + "\n")


def agreement(dataset: str, rows: Floats, scaling: str, repeats: int) -> Agreement:
    """Return the rank correlations of one table in one view, at the default zone mass."""
    view = ViewConfig.model_validate({"scaling": scaling})
    config = MethodConfig(repeats=repeats, anchor_sets=repeats, views=(view,), distrust=0.0)
    setup = plan_fit(len(rows), config, threads=2, progress=None)
    points = measure_neighbours([view_points(rows, view)], setup)
    exact = transport_efforts(points[0].rows, problem_of(config))
    efforts = batch_stage(points, setup)[0]
    floor = effort_floor(efforts)
    minibatch = mean_log_efforts(efforts, floor)
    anchors = view_anchors(points[0], setup)
    own = np.repeat(np.exp(minibatch)[:, None], len(anchors), axis=1)
    routes = unseen_routes(route_stage(points, [anchors], setup)[0], anchors, own)
    group = np.unique(points[0].rows, axis=0, return_inverse=True)[1].reshape(-1)
    truth = _mean_of_copies(mean_log_efforts(exact[:, None], floor), group)
    return Agreement(
        dataset,
        scaling,
        len(truth) / len(rows),
        _spearman(_mean_of_copies(minibatch, group), truth),
        _spearman(_mean_of_copies(middle_log_efforts(routes, floor), group), truth),
    )


def _mean_of_copies(values: Floats, group: NDArray[np.int64]) -> Floats:
    return np.asarray(np.bincount(group, values) / np.bincount(group))


def _spearman(first: Floats, second: Floats) -> float:
    return float(spearmanr(first, second).statistic)


def _line(a: Agreement) -> str:
    return f"| {a.dataset} | {a.view} | {a.distinct:.2f} | {a.minibatch:.4f} | {a.anchors:.4f} |"


def _summary(found: list[Agreement]) -> str:
    lines = []
    for view in dict.fromkeys(a.view for a in found):
        for name in ("minibatch", "anchors"):
            values = [getattr(a, name) for a in found if a.view == view]
            lines.append(
                f"{view}, {name}: mean {np.mean(values):.4f}, least {min(values):.4f} "
                f"over {len(values)} sets"
            )
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description=__doc__)
    parser.add_argument("--data", required=True, help="folder of .npz files with an array X")
    parser.add_argument("--sets", help="comma-separated names; all with enough rows when omitted")
    parser.add_argument("--rows", type=int, default=1500, help="rows taken of each set")
    parser.add_argument("--repeats", type=int, default=10, help="repeats and anchor sets")
    parser.add_argument("--views", default="none,standard,robust", help="scalings to measure")
    parser.add_argument("--out", help="folder for fidelity.json")
    return parser


if __name__ == "__main__":
    main()
