"""The estimator on rows in memory and the jobs on a store of the same rows are one method."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from mrot_scale import MROT, fit, ingest, score
from tests.jobs.made import INLINE, folder_bytes, zarr_values

Floats = NDArray[np.float64]

SETTINGS: dict[str, Any] = {"label_rows": 500, "repeats": 2, "anchor_sets": 3, "batch_rows": 64}
VIEWS = ("none", "robust")


def plain_rows(n_rows: int) -> Floats:
    """Values float32 cannot hold: a third, and decimals of every size."""
    rows = np.random.default_rng(1).normal(size=(n_rows, 3)) / 3
    rows[:, 2] *= 1e-6
    return rows


def awkward_rows(n_rows: int) -> Floats:
    """Seconds since 1970 with fractions, heavy tails on both sides, and a level far from zero."""
    rng = np.random.default_rng(2)
    seconds = 1.7e9 + rng.uniform(0, 3e7, n_rows)
    tails = rng.standard_cauchy(n_rows) * 10.0 ** rng.integers(-3, 9, n_rows)
    return np.column_stack([seconds, tails, 1e6 + rng.normal(size=n_rows), rng.normal(size=n_rows)])


def with_gaps(rows: Floats) -> Floats:
    gone = np.random.default_rng(3).random(rows.shape)
    rows[gone < 0.03] = np.nan
    rows[gone > 0.995] = np.inf
    return rows


CASES = [
    pytest.param(plain_rows(400), "reject", id="fewer rows than are labelled"),
    pytest.param(awkward_rows(5_000), "reject", id="times and tails, a sample labelled"),
    pytest.param(with_gaps(awkward_rows(1_500)), "impute", id="gaps filled"),
    pytest.param(with_gaps(plain_rows(1_500)), "score-nan", id="gaps without a score"),
]


def fitted_both_ways(
    folder: Path, rows: Floats, policy: str, chunk_bytes: int = 6_000
) -> tuple[MROT, dict[str, Any]]:
    """The estimator, and the settings of the jobs; the store's model is in `folder`."""
    config = INLINE | SETTINGS | {"non_finite": policy, "views": [{"scaling": v} for v in VIEWS]}
    config |= {"store": {"chunk_bytes": chunk_bytes, "allow_lost_values": True}}
    detector = MROT(**SETTINGS, views=VIEWS, non_finite=policy, n_jobs=2).fit(rows)
    ingest(rows, folder / "store", config=config)
    fit(folder / "store", folder / "model", config)
    return detector, config


@pytest.mark.parametrize(("rows", "policy"), CASES)
def test_estimator_and_jobs_give_the_same_scores_and_files(
    tmp_path: Path, rows: Floats, policy: str
) -> None:
    detector, config = fitted_both_ways(tmp_path, rows, policy)
    for method in ("model", "effort"):
        out = tmp_path / f"by {method}"
        score(tmp_path / "model", tmp_path / "store", out, config, method=method)
        assert zarr_values(out).tobytes() == detector.anomaly_score(rows, method).tobytes()
    detector.save(tmp_path / "saved")
    saved, fitted = folder_bytes(tmp_path / "saved"), folder_bytes(tmp_path / "model")
    ours = {"MANIFEST.json", "model.json"}
    of_stores = {"schema.json", "validation.json", "bins.edges.npy", "bins.counts.npy"}
    assert fitted.keys() - saved.keys() == of_stores
    assert saved.keys() <= fitted.keys()
    for name in saved.keys() - ours:
        assert saved[name] == fitted[name], name


def test_the_estimator_loads_a_model_that_a_job_fitted(tmp_path: Path) -> None:
    rows = awkward_rows(700)
    detector, _ = fitted_both_ways(tmp_path, rows, "reject")
    loaded = MROT.load(tmp_path / "model")
    frame = pd.DataFrame(rows, columns=[f"c{i}" for i in range(rows.shape[1])])
    for method in ("model", "effort"):
        expected = detector.anomaly_score(rows, method)
        assert loaded.anomaly_score(frame, method).tobytes() == expected.tobytes()
    np.testing.assert_array_equal(loaded.predict(frame), detector.predict(rows))


def test_a_job_scores_with_a_model_that_the_estimator_saved(tmp_path: Path) -> None:
    rows = awkward_rows(700)
    detector = MROT(**SETTINGS, views=VIEWS).fit(rows)
    detector.save(tmp_path / "saved")
    np.save(tmp_path / "rows.npy", rows)
    score(tmp_path / "saved", tmp_path / "rows.npy", tmp_path / "out", INLINE)
    assert zarr_values(tmp_path / "out").tobytes() == detector.anomaly_score(rows).tobytes()
