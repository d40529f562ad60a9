"""What the jobs find: anomalies in any order of rows, rare and unseen categories, close times."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from mrot_scale import fit, ingest, score
from mrot_scale.storing.location import Location
from mrot_scale.storing.store import FeatureStore
from tests.jobs.made import INLINE, TINY, auc, zarr_values

N_ROWS = 20_000
CONFIG = INLINE | {
    "label_rows": 2_000,
    "repeats": 2,
    "anchor_sets": 2,
    "batch_rows": 64,
    "folds": 3,
    "store": {"chunk_bytes": 30_000},
}
COMMON = ("pump", "valve", "fan")


@dataclass(frozen=True)
class Plant:
    """A table with anomalies of two kinds, and where they are."""

    table: pa.Table
    is_far: NDArray[np.bool_]
    """200 rows off the clusters."""

    is_rare: NDArray[np.bool_]
    """10 ordinary rows of a category nobody else has."""

    def sorted(self) -> "Plant":
        """All anomalies next to each other, at the end."""
        order = np.argsort(self.is_far.astype(int) + 2 * self.is_rare, kind="stable")
        return Plant(self.table.take(order), self.is_far[order], self.is_rare[order])


def made_plant(seed: int = 0) -> Plant:
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, 3, N_ROWS)
    rows = np.array([[0, 0], [6, 0], [0, 6]])[cluster] + rng.normal(size=(N_ROWS, 2)) * 0.7
    kinds = np.array(COMMON)[rng.choice(3, N_ROWS, p=[0.6, 0.3, 0.1])].astype(object)
    places = rng.permutation(N_ROWS)
    is_far, is_rare = np.zeros(N_ROWS, dtype=bool), np.zeros(N_ROWS, dtype=bool)
    is_far[places[:200]], is_rare[places[200:210]] = True, True
    rows[is_far] = rng.uniform(-8, 14, size=(200, 2))
    kinds[is_rare] = "turbine"
    table = pa.table({"x": rows[:, 0], "y": rows[:, 1], "kind": pa.array(kinds.tolist())})
    return Plant(table, is_far, is_rare)


@pytest.fixture(scope="module")
def plant() -> Plant:
    return made_plant()


def scores_of(folder: Path, plant: Plant) -> dict[str, NDArray[Any]]:
    store = ingest(plant.table, folder / "store", config=CONFIG)
    assert store.n_rows == N_ROWS
    fit(folder / "store", folder / "model", CONFIG)
    for method in ("model", "effort"):
        score(folder / "model", folder / "store", folder / f"by {method}", CONFIG, method=method)
    return {method: zarr_values(folder / f"by {method}") for method in ("model", "effort")}


@pytest.fixture(scope="module")
def scored(
    plant: Plant, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, NDArray[Any]]]:
    folder = tmp_path_factory.mktemp("plant")
    return folder, scores_of(folder, plant)


Scored = tuple[Path, dict[str, NDArray[Any]]]


def test_anomalies_that_fill_one_chunk_are_found_as_well_as_scattered_ones(
    plant: Plant, scored: Scored, tmp_path: Path
) -> None:
    in_order = plant.sorted()
    chunk_rows = CONFIG["store"]["chunk_bytes"] // 12
    assert np.flatnonzero(in_order.is_far).min() // chunk_rows == (N_ROWS - 1) // chunk_rows
    found = scores_of(tmp_path, in_order)
    for method, scattered in scored[1].items():
        expected = auc(scattered, plant.is_far)
        assert expected > 0.85
        assert auc(found[method], in_order.is_far) == pytest.approx(expected, abs=0.01), method


@pytest.mark.parametrize("method", ["model", "effort"])
def test_rows_of_a_rare_category_stand_out(plant: Plant, scored: Scored, method: str) -> None:
    found = scored[1][method]
    assert auc(found, plant.is_rare) > 0.97
    assert np.median(found[plant.is_rare]) > 0.97


@pytest.mark.parametrize("method", ["model", "effort"])
def test_a_category_never_seen_scores_high(scored: Scored, tmp_path: Path, method: Any) -> None:
    ordinary = {"x": [0.1, 6.0, 0.2], "y": [0.2, -0.1, 5.8]}
    table = pa.table(ordinary | {"kind": pa.array(["teapot", "teapot", "kettle"])})
    score(scored[0] / "model", table, tmp_path / "new", CONFIG, method=method)
    known = pa.table(ordinary | {"kind": pa.array(["pump", "pump", "pump"])})
    score(scored[0] / "model", known, tmp_path / "known", CONFIG, method=method)
    assert (zarr_values(tmp_path / "new") > 0.97).all()
    assert (zarr_values(tmp_path / "known") < 0.9).all()


def test_a_category_missing_from_every_row_to_score_works(scored: Scored, tmp_path: Path) -> None:
    for number, kind in enumerate([pa.nulls(4), pa.nulls(4, pa.string())]):
        table = pa.table({"x": [0.1, 6.0, 0.2, 0.0], "y": [0.2, -0.1, 5.8, 0.0], "kind": kind})
        score(scored[0] / "model", table, tmp_path / f"out{number}", CONFIG)
        assert np.isfinite(zarr_values(tmp_path / f"out{number}")).all()


def test_a_category_missing_from_every_row_to_fit_says_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    numbers = {"x": rng.normal(size=400), "y": rng.normal(size=400)}
    table = pa.table(numbers | {"kind": pa.nulls(400, pa.string())})
    fit(table, tmp_path / "model", TINY)
    score(tmp_path / "model", table, tmp_path / "out", TINY)
    found = zarr_values(tmp_path / "out")
    assert len(np.unique(found)) > 20
    seen = table.set_column(2, "kind", pa.array(["first"] * 400))
    score(tmp_path / "model", seen, tmp_path / "seen", TINY, method="effort")
    score(tmp_path / "model", table, tmp_path / "as before", TINY, method="effort")
    assert np.median(zarr_values(tmp_path / "seen")) > np.median(
        zarr_values(tmp_path / "as before")
    )


@pytest.mark.parametrize("years", [0, 3])
def test_times_a_second_apart_stay_apart(tmp_path: Path, years: int) -> None:
    day = 86_400
    seconds = 1_650_000_000 + np.arange(2 * day)
    if years:
        far = 1_650_000_000 + np.arange(0, years * 365 * day, 3_607)
        seconds = np.unique(np.concatenate([seconds, far, far + 1]))
    times = pa.array(seconds * 1_000_000, pa.timestamp("us", "UTC"))
    ingest(pa.table({"at": times}), tmp_path / "store")
    store = FeatureStore.open(Location(tmp_path / "store"))
    rows = np.concatenate([store.read_chunk(c) for c in store.chunks])
    assert (np.diff(rows, axis=0) != 0).any(axis=1).all()
    assert len(np.unique(rows, axis=0)) == len(seconds)
