"""Tables of many columns have views of their own, and these hold everywhere."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from mrot_scale import MROT, MethodConfig, fit, ingest, score
from mrot_scale.config.method import method_config
from mrot_scale.config.views import ViewConfig
from mrot_scale.errors import ConfigError, DamagedModelError
from mrot_scale.explanation import explain_row
from mrot_scale.model.persist import model_files, model_of
from mrot_scale.scoring import problem_of
from tests import oracle
from tests.jobs.made import INLINE, folder_bytes, zarr_values

Floats = NDArray[np.float64]

SMALL: dict[str, Any] = {"label_rows": 500, "repeats": 2, "anchor_sets": 3, "batch_rows": 64}


def relative(config: MethodConfig) -> list[bool]:
    return [view.relative for view in config.views]


def uneven_topics(n_columns: int, seed: int = 0) -> tuple[Floats, NDArray[np.int64]]:
    """Clusters of unequal density; the anomalies lie outside the tightest ones."""
    rng = np.random.default_rng(seed)
    centres = 2 * rng.normal(size=(4, n_columns))
    spread = np.array([0.3, 0.5, 1.0, 2.0])
    topic = rng.integers(4, size=600)
    rows = centres[topic] + spread[topic][:, None] * rng.normal(size=(600, n_columns))
    odd = centres[0] + 0.5 * rng.normal(size=(12, n_columns))
    return np.vstack([rows, odd]), np.repeat([0, 1], [600, 12])


# --- which views ---------------------------------------------------------------------------------


def test_from_128_columns_on_efforts_are_taken_next_to_those_around() -> None:
    config = MethodConfig()
    assert relative(config.for_columns(127)) == [False, False, False]
    assert relative(config.for_columns(128)) == [True, True]
    assert config.for_columns(128).batch_views == (0, 1)


def test_what_is_chosen_is_for_any_table() -> None:
    chosen = MethodConfig().for_columns(1_000)
    assert all(view.tables == "any" for view in chosen.views)
    assert chosen.for_columns(3) == chosen
    assert MethodConfig.model_validate_json(chosen.model_dump_json()) == chosen


@pytest.mark.parametrize(
    "settings",
    [{"wide_columns": None}, {"radius": 1.0}, {"cost": "coulomb"}, {"wide_columns": 2_000}],
)
def test_settings_without_wide_tables_keep_the_views_of_narrow_ones(
    settings: dict[str, Any],
) -> None:
    config = method_config(**settings)
    assert config.for_columns(1_000).views == MethodConfig().for_columns(4).views


def test_views_by_hand_are_for_tables_of_any_width() -> None:
    config = method_config(views=[{"scaling": "standard"}])
    assert config.for_columns(3).views == config.for_columns(500).views == config.views


@pytest.mark.parametrize("settings", [{"distrust": 0}, {"batch_rows": None}])
def test_relative_efforts_without_a_first_pass_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"relative efforts, .* need a first pass"):
        method_config(views=[{"relative": True}], **settings)


@pytest.mark.parametrize("settings", [{"radius": 1.0}, {"cost": "coulomb"}])
def test_relative_efforts_without_nearest_rows_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="relative efforts need zones of nearest rows"):
        method_config(views=[{"relative": True}], **settings)


def test_columns_by_themselves_have_nothing_around() -> None:
    with pytest.raises(ValueError, match="leave separate out"):
        ViewConfig(separate=True, relative=True)


@pytest.mark.parametrize("tables", ["narrow", "wide"])
def test_a_kind_of_tables_without_a_view_is_refused(tables: str) -> None:
    other = {"narrow": "wide", "wide": "narrow"}[tables]
    with pytest.raises(ConfigError, match=f"give one without separate for {tables} tables"):
        method_config(views=[{"tables": other}])


# --- what they are worth -------------------------------------------------------------------------


def test_rows_just_outside_a_tight_region_are_found_in_many_columns() -> None:
    rows, labels = uneven_topics(130)
    found = {
        wide: MROT(**SMALL, hybrid="never", config=MethodConfig(wide_columns=wide))
        .fit(rows)
        .anomaly_score(rows, "effort")
        for wide in (128, None)
    }
    points = {wide: roc_auc_score(labels, scores) for wide, scores in found.items()}
    assert points[128] > 0.95
    assert points[None] < 0.8


# --- one method, in memory and on disk -----------------------------------------------------------


@pytest.mark.parametrize("hybrid", ["never", "always"])
def test_estimator_and_jobs_agree_on_a_wide_table(tmp_path: Path, hybrid: str) -> None:
    rows, _ = uneven_topics(6)
    settings = SMALL | {"wide_columns": 6, "hybrid": hybrid}
    detector = MROT(config=method_config(**settings), n_jobs=2).fit(rows)
    assert relative(detector.model_.config) == [True, True]
    config = INLINE | settings | {"store": {"chunk_bytes": 6_000, "allow_lost_values": True}}
    ingest(rows, tmp_path / "store", config=config)
    fit(tmp_path / "store", tmp_path / "model", config)
    detector.save(tmp_path / "saved")
    loaded = MROT.load(tmp_path / "saved")
    for method in ("model", "effort"):
        out = tmp_path / f"by {method}"
        score(tmp_path / "model", tmp_path / "store", out, config, method=method)
        expected = detector.anomaly_score(rows, method).tobytes()
        assert zarr_values(out).tobytes() == expected
        assert loaded.anomaly_score(rows, method).tobytes() == expected
    saved, fitted = folder_bytes(tmp_path / "saved"), folder_bytes(tmp_path / "model")
    assert saved["view0.anchor-efforts.npy"] == fitted["view0.anchor-efforts.npy"]


@pytest.mark.parametrize("harm", ["shape", "sign"])
def test_efforts_that_do_not_fit_the_anchors_are_refused(harm: str) -> None:
    rows, _ = uneven_topics(6)
    fitted = MROT(config=method_config(**SMALL, wide_columns=6, hybrid="never")).fit(rows).model_
    files = model_files(fitted)
    efforts = files.array("view0.anchor-efforts", np.float64, 2)
    files.put_array("view0.anchor-efforts", efforts[:, 1:] if harm == "shape" else -efforts)
    with pytest.raises(DamagedModelError, match="efforts of anchors do not fit"):
        model_of(files)


def test_an_explanation_says_how_much_harder_a_row_is_to_move_than_those_around() -> None:
    rows, _ = uneven_topics(6)
    fitted = MROT(config=method_config(**SMALL, wide_columns=6, hybrid="never")).fit(rows).model_
    told = explain_row(fitted, rows[-1], id="last", threshold=0.99, method="effort")
    assert [view.name for view in told.views] == [
        "none, next to those around",
        "robust, next to those around",
    ]
    for part, view, own in zip(told.views, fitted.views, fitted.config.views, strict=True):
        routes = view.routes(rows[-1:], problem_of(fitted.config, own), 1)
        averaged = oracle.middle_half(np.log(routes[0]).tolist())
        assert part.effort == pytest.approx(float(np.exp(averaged)))
        assert part.effort != pytest.approx(part.cost)
