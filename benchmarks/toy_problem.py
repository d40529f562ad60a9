"""The paper's introductory example, computed: two clouds in the plane and what each cost says.

The zone. The paper names no k for this example; its ablation goes from k = 5, the setting our
"paper" preset takes, to 50. Its k counts the row itself, so 5 means 4 others. The 25 anomalies sit
so close together that such a zone ends inside their own cluster: they pass their mass around among
themselves, pay no more than normal rows do and rank no better than chance (AUC .35 for seed 0; .27
to .59, median .49, over seeds 0 to 19). From 24 others on an anomaly must leave, but then 25 normal
rows must send their mass to the anomalies, pay as much, and hold the AUC near
1 - (25 / 500) / 2 = .975. With `ZONE_ROWS` = 50, twice the cluster, an anomaly may not use the
normal rows nearest to it either and pays more than they do (AUC 1.00; at least .997 over those
seeds): the picture in the paper. `zone_sweep` measures one seed.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.metrics import roc_auc_score

from mrot_scale.method.cost import squared_distances
from mrot_scale.method.efforts import Problem, transport_efforts
from mrot_scale.method.transport import plan_efforts, solve_plan
from mrot_scale.model.regressors import sklearn_regressor
from mrot_scale.seeds import generator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

N_NORMAL, N_ANOMALIES = 500, 25
NORMAL_CENTER, NORMAL_VARIANCE = (0.0, 0.0), 0.25
ANOMALY_CENTER, ANOMALY_VARIANCE = (-3.0, -3.0), 0.01

ZONE_ROWS = 2 * N_ANOMALIES
"""Other rows in every exclusion zone of the figures."""

PAPER_ZONE_ROWS = 4
"""The setting k = 5 of the paper's code, without the row itself."""

SWEPT_ZONE_ROWS = (2, 4, 5, 8, 12, 16, 20, 22, 23, 24, 26, 30, 40, 50, 75, 100)

GRID_LOW, GRID_HIGH, GRID_NODES = -4.0, 2.0, 121
REGRESSORS = ("boosting", "svr")


@dataclass(frozen=True)
class Sample:
    """Normal rows from farthest to nearest to the anomalies, then the anomalies."""

    rows: Floats
    """Coordinates, shape (n, 2)."""

    labels: Ints
    """1 for an anomaly, 0 for a normal row."""


@dataclass(frozen=True)
class Outcome:
    """What one cost makes of the sample."""

    cost: Floats
    """Cost of every pair, shape (n, n)."""

    plan: Floats
    """Mass sent from row i to row j, shape (n, n), sum 1."""

    efforts: Floats
    """What each row pays per unit of its mass."""

    scores: Floats
    """Smoothed share of rows with a smaller effort."""

    bandwidth: float
    """Scott's bandwidth of that share, in units of effort."""

    effort_sign: float
    """+1 when high efforts are anomalous, -1 when low ones are."""

    @property
    def total_cost(self) -> float:
        return float((self.plan * self.cost).sum())

    @property
    def receivers(self) -> Ints:
        """Row that gets most of each row's mass; all of it when the plan is a matching."""
        return np.asarray(self.plan.argmax(axis=1), dtype=np.int64)


@dataclass(frozen=True)
class Toy:
    """Everything the figures show."""

    seed: int
    sample: Sample
    euclidean: Outcome
    costs: dict[str, Outcome]
    """By name: mrot (the engineered cost) and coulomb."""

    sweep: list[tuple[int, float]]
    """Zone size and the AUC of its MROT efforts."""

    surfaces: dict[str, dict[str, Floats]]
    """Regressed score by cost and regressor, shape (GRID_NODES, GRID_NODES), row = second axis."""


def compute(seed: int) -> Toy:
    """Draw the sample and compute everything shown about it."""
    sample = draw_sample(seed)
    costs = {
        "mrot": outcome(sample, Problem(k=ZONE_ROWS)),
        "coulomb": outcome(sample, Problem(kind="coulomb")),
    }
    surfaces = {name: regressed_scores(sample, it.scores, seed) for name, it in costs.items()}
    return Toy(seed, sample, euclidean_outcome(sample), costs, zone_sweep(sample), surfaces)


def draw_sample(seed: int) -> Sample:
    """Return the sample of one seed."""
    rng = generator(seed, "toy example")
    normal = rng.normal(NORMAL_CENTER, np.sqrt(NORMAL_VARIANCE), (N_NORMAL, 2))
    anomalies = rng.normal(ANOMALY_CENTER, np.sqrt(ANOMALY_VARIANCE), (N_ANOMALIES, 2))
    distances = squared_distances(normal, np.array([ANOMALY_CENTER]))[:, 0]
    rows = np.vstack([normal[np.argsort(-distances, kind="stable")], anomalies])
    return Sample(rows, np.repeat([0, 1], [N_NORMAL, N_ANOMALIES]))


def outcome(sample: Sample, problem: Problem) -> Outcome:
    """Solve one problem over the whole sample."""
    return _solved(problem.cost(sample.rows), problem.effort_sign)


def euclidean_outcome(sample: Sample) -> Outcome:
    """Solve with the plain squared distance, under which every row keeps its mass for nothing."""
    return _solved(squared_distances(sample.rows, sample.rows), 1.0)


def _solved(cost: Floats, effort_sign: float) -> Outcome:
    plan = solve_plan(cost, name="the toy example")
    efforts = plan_efforts(plan, cost)
    bandwidth = scott_bandwidth(efforts)
    scores = smoothed_cdf(efforts, efforts, bandwidth)
    return Outcome(cost, plan.matrix, efforts, scores, bandwidth, effort_sign)


def scott_bandwidth(values: Floats) -> float:
    """Return Scott's bandwidth in one dimension."""
    return float(values.std(ddof=1) * len(values) ** -0.2)


def smoothed_cdf(at: Floats, values: Floats, bandwidth: float) -> Floats:
    """Return the CDF of the Gaussian kernel estimate of the values; their own CDF at width 0."""
    if bandwidth == 0.0:
        return np.asarray((at[:, None] >= values).mean(axis=1))
    return np.asarray(ndtr((at[:, None] - values) / bandwidth).mean(axis=1))


def kernel_density(at: Floats, values: Floats, bandwidth: float) -> Floats:
    """Return the density whose CDF `smoothed_cdf` is."""
    z = (at[:, None] - values) / bandwidth
    return np.asarray(np.exp(-(z**2) / 2).mean(axis=1) / (bandwidth * np.sqrt(2 * np.pi)))


def auc(sample: Sample, values: Floats) -> float:
    """Return the chance that an anomaly has the higher value of the two, ties counting half."""
    return float(roc_auc_score(sample.labels, values))


def zone_sweep(sample: Sample) -> list[tuple[int, float]]:
    """Return the AUC of the MROT efforts for zones from far below to far above the cluster."""
    return [(k, auc(sample, transport_efforts(sample.rows, Problem(k=k)))) for k in SWEPT_ZONE_ROWS]


def grid_axis() -> Floats:
    """Return the coordinates of the grid along either axis."""
    return np.linspace(GRID_LOW, GRID_HIGH, GRID_NODES)


def regressed_scores(sample: Sample, scores: Floats, seed: int) -> dict[str, Floats]:
    """Return, for each regressor, the score it extends to the grid over the plane."""
    x, y = np.meshgrid(grid_axis(), grid_axis())
    nodes = np.column_stack([x.ravel(), y.ravel()])
    fitted = {
        kind: sklearn_regressor(kind, len(scores), seed).fit(sample.rows, scores)
        for kind in REGRESSORS
    }
    return {kind: np.asarray(it.predict(nodes)).reshape(x.shape) for kind, it in fitted.items()}
