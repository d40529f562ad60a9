"""What users of the estimator rely on, beyond scikit-learn's own checks."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsRegressor

from mrot_scale import MROT, MethodConfig
from mrot_scale.config.scoring import Method
from mrot_scale.errors import (
    ConfigError,
    DataError,
    InputTypeError,
    ModelMismatchError,
    MrotError,
    NoContrastWarning,
    OutputError,
)
from mrot_scale.estimator import NotFittedYetError
from mrot_scale.model.regressors import SklearnModel
from tests.tables import Floats, normal_rows, uneven_clusters

METHODS: tuple[Method, ...] = ("model", "effort")
FEW: dict[str, Any] = {"repeats": 2, "anchor_sets": 2}
"""Where the numbers do not matter."""


@pytest.fixture(scope="module")
def rows() -> Floats:
    return normal_rows(400)


@pytest.fixture(scope="module")
def detector(rows: Floats) -> MROT:
    return MROT(repeats=4, anchor_sets=4).fit(rows)


def with_far_rows(rows: Floats, n_far: int = 5) -> tuple[Floats, Any]:
    far = rows[:n_far] + 20 * np.sign(rows[:n_far])
    labels = np.repeat([0, 1], [len(rows), n_far])
    return np.vstack([rows, far]), labels


@pytest.mark.parametrize("method", METHODS)
def test_far_rows_get_the_highest_scores(method: Method, rows: Floats) -> None:
    table, labels = with_far_rows(rows)
    scores = MROT(repeats=4, anchor_sets=4, method=method).fit(table).anomaly_score(table)
    assert scores.dtype == np.float32
    assert scores.min() >= 0
    assert scores.max() <= 1
    assert roc_auc_score(labels, scores) > 0.99


def test_sign_follows_scikit_learn_and_anomaly_score_does_not(rows: Floats) -> None:
    detector = MROT(repeats=4, anchor_sets=4, method="effort").fit(rows)
    near_and_far = np.array([[0.0, 0, 0], [9.0, 9, 9]])
    assert np.diff(detector.anomaly_score(near_and_far)) > 0
    assert np.diff(detector.score_samples(near_and_far)) < 0
    assert detector.predict(near_and_far).tolist() == [1, -1]


def test_contamination_can_be_changed_after_fitting(detector: MROT, rows: Floats) -> None:
    changed = clone(detector).fit(rows)
    for share in (0.01, np.float32(0.1), 0.25):
        changed.set_params(contamination=share)
        assert (changed.predict(rows) == -1).sum() == round(share * len(rows))


def test_method_can_be_changed_after_fitting(detector: MROT, rows: Floats) -> None:
    by_model = detector.anomaly_score(rows)
    by_effort = detector.anomaly_score(rows, method="effort")
    assert not np.array_equal(by_model, by_effort)
    assert spearmanr(by_model, by_effort).statistic > 0.8


def test_every_kind_of_table_gives_the_same_scores(rows: Floats) -> None:
    columns = {f"c{i}": rows[:, i] for i in range(rows.shape[1])}
    expected = MROT(**FEW).fit(rows).anomaly_score(rows)
    for table in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        fitted = MROT(**FEW).fit(table)
        assert fitted.feature_names_in_.tolist() == list(columns)
        np.testing.assert_array_equal(fitted.anomaly_score(table), expected)


@pytest.mark.parametrize("unit", [2.0**-90, 2.0**30, 2.0**90])
def test_the_unit_of_the_table_does_not_matter(unit: float, rows: Floats) -> None:
    expected = MROT(**FEW, views=("none",)).fit(rows).efforts_
    found = MROT(**FEW, views=("none",)).fit(rows * unit).efforts_
    np.testing.assert_allclose(found / unit**2, expected, rtol=1e-9)


def test_efforts_are_kept_for_every_labelled_row_and_view(rows: Floats) -> None:
    fitted = MROT(**FEW, label_rows=100).fit(rows)
    assert fitted.efforts_.shape == (100, 3)
    assert (fitted.efforts_ > 0).all()
    assert len(np.unique(fitted.labelled_rows_)) == 100


@pytest.mark.parametrize(
    "view", ["standard", {"scaling": "standard", "whiten": 20}], ids=["plain", "whitened"]
)
def test_neither_threads_nor_other_rows_change_a_score(view: Any, tmp_path: Path) -> None:
    table = normal_rows(600, 60)
    one, two = (MROT(**FEW, views=(view,), n_jobs=n).fit(table) for n in (1, 2))
    one.save(tmp_path / "one")
    two.save(tmp_path / "two")
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name
    for method in METHODS:
        together = one.anomaly_score(table, method)
        np.testing.assert_array_equal(two.anomaly_score(table, method), together)
        alone = [float(one.anomaly_score(table[i : i + 1], method)[0]) for i in range(40)]
        np.testing.assert_array_equal(alone, together[:40])


def test_the_seed_is_all_the_randomness_there_is(rows: Floats) -> None:
    same = [MROT(**FEW, random_state=5).fit(rows).anomaly_score(rows) for _ in "ab"]
    other = MROT(**FEW, random_state=6).fit(rows).anomaly_score(rows)
    np.testing.assert_array_equal(same[0], same[1])
    assert not np.array_equal(same[0], other)


def test_one_batch_of_all_rows_is_the_exact_method(rows: Floats) -> None:
    from mrot_scale import transport_efforts

    rows = rows.astype(np.float32).astype(np.float64)  # as the estimator sees them
    fitted = MROT(batch_rows=None, views=("none",)).fit(rows)
    np.testing.assert_allclose(fitted.efforts_[:, 0], transport_efforts(rows), rtol=1e-9)


def test_duplicated_rows_give_finite_and_equal_scores() -> None:
    table = normal_rows(300)
    table[200:290] = table[0]  # 30% copies of one row
    table[290:] = table[1:11]
    fitted = MROT(repeats=4, anchor_sets=4).fit(table)
    for method in METHODS:
        scores = fitted.anomaly_score(table, method)
        assert np.isfinite(scores).all()
        assert len(np.unique(scores[200:290])) == 1
        assert scores[200] == scores[0]
        np.testing.assert_array_equal(scores[290:], scores[1:11])


def test_identical_rows_warn_and_score_alike() -> None:
    with pytest.warns(NoContrastWarning, match="identical"):
        fitted = MROT(**FEW).fit(np.ones((50, 2)))
    assert (fitted.efforts_ == 0).all()
    for method in METHODS:
        scores = fitted.anomaly_score(np.ones((5, 2)), method)
        assert np.isfinite(scores).all()
        assert len(np.unique(scores)) == 1


def test_constant_columns_change_nothing(rows: Floats) -> None:
    padded = np.column_stack([rows, np.full(len(rows), 7.0)])
    plain, wider = MROT(**FEW).fit(rows), MROT(**FEW).fit(padded)
    np.testing.assert_allclose(wider.efforts_, plain.efforts_)


@pytest.mark.parametrize("regressor", ["lightgbm", "boosting", "svr", "knn", "auto"])
def test_every_regressor_learns_and_is_saved_bit_equal(
    regressor: str, rows: Floats, tmp_path: Path
) -> None:
    table, labels = with_far_rows(rows)
    fitted = MROT(**FEW, regressor=regressor, contamination=0.05).fit(table)
    assert roc_auc_score(labels, fitted.anomaly_score(table)) > 0.9
    fitted.save(tmp_path / "model")
    loaded = MROT.load(tmp_path / "model")
    for method in METHODS:
        np.testing.assert_array_equal(
            loaded.anomaly_score(table, method), fitted.anomaly_score(table, method)
        )
    np.testing.assert_array_equal(loaded.predict(table), fitted.predict(table))


def test_a_regressor_object_is_used_but_not_saved(rows: Floats, tmp_path: Path) -> None:
    fitted = MROT(**FEW, regressor=KNeighborsRegressor(3)).fit(rows)
    assert fitted.model_.score_model.kind == "custom"
    with pytest.raises(ConfigError, match="without pickle"):
        fitted.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_auto_prefers_a_model_that_can_follow_the_targets(rows: Floats) -> None:
    chosen = MROT(**FEW, regressor="auto").fit(rows).model_.score_model.kind
    linear = MROT(**FEW, regressor=Ridge()).fit(rows)
    assert chosen in {"lightgbm", "boosting", "svr", "knn"}
    model = linear.model_.score_model
    assert isinstance(model, SklearnModel)
    targets = model.targets
    ridge_error = np.mean((model.predict(rows) - targets) ** 2)
    assert ridge_error > 0.5 * np.var(targets)  # effort is no linear function of the columns


def test_paper_preset_is_the_method_as_published(rows: Floats) -> None:
    fitted = MROT(preset="paper").fit(rows)
    config = fitted.model_.config
    assert (config.k, config.batch_rows, config.regressor) == (4, None, "boosting")
    assert fitted.efforts_.shape == (len(rows), 1)
    assert MROT(preset="paper", k=9).fit(rows).model_.config.k == 9


def test_paper_preset_is_refused_above_its_limit() -> None:
    for settings in ({"preset": "paper"}, {"batch_rows": None}):
        with pytest.raises(DataError, match=r"limited to 8,000 rows, got 8,001"):
            MROT(**settings).fit(normal_rows(8_001, 2))
    small = MethodConfig(batch_rows=None, row_limit=50)
    with pytest.raises(DataError, match="limited to 50 rows"):
        MROT(config=small).fit(normal_rows(60, 2))
    assert MROT(config=small, force=True).fit(normal_rows(60, 2)).efforts_.shape == (60, 3)


def test_settings_by_hand_win_over_preset_and_config(rows: Floats) -> None:
    def fitted(**settings: Any) -> MethodConfig:
        config = MROT(**settings).fit(rows).model_.config
        assert isinstance(config, MethodConfig)
        return config

    by_mass = fitted(preset="paper", alpha=0.2)
    assert (by_mass.k, by_mass.alpha, by_mass.regressor) == (None, 0.2, "boosting")
    assert fitted(preset="paper", radius=0.5).k is None
    assert fitted(preset="paper", k=300).k == 300
    assert fitted(config=MethodConfig(repeats=3, batch_rows=64), repeats=2).repeats == 2
    assert fitted(config=MethodConfig(anchor_sets=3), repeats=2).anchor_sets == 3
    assert fitted(config=MethodConfig(anchor_sets=3), anchor_sets=2).anchor_sets == 2
    with pytest.raises(ConfigError, match="MethodConfig"):
        fitted(config="configs/paper.yaml")


def test_coulomb_baseline_scores_low_efforts_high() -> None:
    normal = normal_rows(300, 2) * 0.5
    tight_group = np.random.default_rng(1).normal(-3, 0.1, size=(15, 2))
    table = np.vstack([normal, tight_group])
    labels = np.repeat([0, 1], [300, 15])
    fitted = MROT(cost="coulomb", batch_rows=None, views=("none",)).fit(table)
    assert fitted.efforts_[300:].mean() < fitted.efforts_[:300].mean()
    assert roc_auc_score(labels, fitted.anomaly_score(table)) > 0.95


@pytest.mark.parametrize(
    "settings",
    [
        {"eps": 0.1},
        {"radius": 0.5, "views": ("none",)},
        {"k": 5},
        {"zone": "batch"},
        {"ceiling": "zone"},
        {"ceiling": 50.0, "views": ("none",)},
        {"views": ({"scaling": "standard", "whiten": 2}, {"scaling": "none", "columns": (0, 2)})},
        {"views": ({"scaling": ("none", "robust", "standard")},)},
        {"eps": 0.1, "cost": "coulomb"},
    ],
)
def test_every_setting_finds_far_rows_by_both_methods(
    settings: dict[str, Any], rows: Floats
) -> None:
    table, labels = with_far_rows(rows)
    fitted = MROT(**FEW, **settings).fit(table)
    if settings.get("cost") == "coulomb":
        assert np.isfinite(fitted.anomaly_score(table, "effort")).all()
        return
    for method in METHODS:
        assert roc_auc_score(labels, fitted.anomaly_score(table, method)) > 0.9


def test_explanations_name_the_column_that_stands_out(rows: Floats) -> None:
    table = rows.copy()
    table[:8, 1] += 12.0
    fitted = MROT(repeats=4, anchor_sets=4).fit(table)
    contributions = fitted.explain(table[:8])
    assert contributions.shape == (8, 3)
    assert (contributions.argmax(axis=1) == 1).all()
    with pytest.raises(ConfigError, match="lightgbm"):
        MROT(**FEW, views=[{"whiten": 2}], regressor="knn").fit(rows).explain(rows)


def test_non_finite_values_by_policy(rows: Floats) -> None:
    table = rows.copy()
    table[3, 1], table[7, 0] = np.nan, np.inf
    with pytest.raises(DataError, match=r"1 NaN and 1 infinity .* row 3 column 1, row 7 column 0"):
        MROT().fit(table)
    imputed = MROT(**FEW, non_finite="impute").fit(table)
    assert np.isfinite(imputed.anomaly_score(table)).all()
    named = MROT(**FEW, non_finite="score-nan").fit(table)
    scores = named.anomaly_score(table)
    assert np.flatnonzero(np.isnan(scores)).tolist() == [3, 7]
    assert not {3, 7} & set(named.labelled_rows_.tolist())
    assert np.isnan(named.anomaly_score(np.full((1, 3), np.nan))).all()
    assert np.isnan(named.explain(table)[[3, 7]]).all()
    assert np.isfinite(np.delete(named.explain(table), [3, 7], axis=0)).all()
    assert named.predict(table)[[3, 7]].tolist() == [1, 1]


def test_values_are_filled_alike_when_fitting_and_scoring() -> None:
    table = normal_rows(300)
    table[::3, 0] = np.nan
    fitted = MROT(**FEW, label_rows=50, non_finite="impute").fit(table)
    seen = table.astype(np.float32).astype(np.float64)[fitted.labelled_rows_]
    np.testing.assert_array_equal(fitted.model_.fill, np.nanmedian(seen, axis=0))
    filled = np.where(np.isnan(table), fitted.model_.fill, table)
    np.testing.assert_array_equal(fitted.anomaly_score(table), fitted.anomaly_score(filled))


BAD_TABLES: list[tuple[str, Any, type[Exception], str]] = [
    ("empty", np.empty((0, 3)), DataError, "0 sample"),
    ("no columns", np.empty((10, 0)), DataError, "0 feature"),
    ("one row", np.ones((1, 3)), DataError, "1 sample"),
    ("too few for the zone", np.eye(3), DataError, "3 row"),
    ("one dimension", np.ones(5), DataError, "2D array"),
    ("text", np.array([["a", "b"]] * 10, dtype=object), DataError, "could not convert"),
    ("text column", pd.DataFrame({"x": [1.0] * 9, "city": ["Rome"] * 9}), DataError, "'city'"),
    ("text in arrow", pa.table({"x": [1.0] * 9, "city": ["Rome"] * 9}), DataError, "'city'"),
    ("complex", np.ones((9, 2)) * 1j, DataError, "omplex"),
    ("huge", np.vstack([normal_rows(20), np.full((1, 3), 1e200)]), DataError, "row 20, column 0"),
]


@pytest.mark.parametrize(
    ("name", "table", "error", "message"), BAD_TABLES, ids=lambda v: str(v)[:20]
)
def test_bad_tables_are_refused_with_a_reason(
    name: str, table: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        MROT().fit(table)
    assert isinstance(caught.value, MrotError)


def test_sparse_input_is_refused() -> None:
    from scipy.sparse import csr_array

    with pytest.raises(InputTypeError, match=r"[Ss]parse"):
        MROT().fit(csr_array(np.eye(20)))


def test_wrong_columns_at_scoring_are_refused(detector: MROT) -> None:
    with pytest.raises(ModelMismatchError, match="2 features, but MROT is expecting 3"):
        detector.anomaly_score(np.ones((4, 2)))
    named = MROT(**FEW).fit(pd.DataFrame(normal_rows(50), columns=["a", "b", "c"]))
    with pytest.raises(ModelMismatchError, match="feature names"):
        named.anomaly_score(pd.DataFrame(normal_rows(5), columns=["a", "c", "b"]))


def test_scores_before_fitting_are_refused() -> None:
    with pytest.raises(NotFittedYetError):
        MROT().anomaly_score(np.ones((4, 2)))


BAD_SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"alpha": 0.7}, "alpha"),
    ({"alpha": float("nan")}, "alpha"),
    ({"k": 0}, "k"),
    ({"k": 300}, "k must be at most 254"),
    ({"k": 3, "radius": 1.0}, "both"),
    ({"eps": -1.0}, "eps"),
    ({"radius": float("inf")}, "radius"),
    ({"views": ({"columns": (-1,)},)}, "columns"),
    ({"views": ({"columns": (0, 7)},)}, "column 7, but the table has only columns 0 to 2"),
    ({"batch_rows": 2}, "batch_rows"),
    ({"repeats": 0}, "repeats"),
    ({"anchor_sets": 0}, "anchor_sets: Input should be greater than or equal to 1"),
    ({"views": ()}, "views"),
    ({"views": "robust"}, "views"),
    ({"views": ("squared",)}, "views"),
    ({"views": ({"scaling": "none", "whiten": 9},)}, "whiten must be between 1 and 3"),
    ({"views": ({"scaling": ("none", "none")},)}, "2 scalings"),
    ({"cost": "gravity"}, "cost"),
    ({"ceiling": "sky"}, "ceiling must be 'max', 'zone' or a positive number"),
    ({"ceiling": 0.0}, "ceiling must be"),
    ({"ceiling": True}, "ceiling must be"),
    ({"regressor": "oracle"}, "regressor"),
    ({"regressor": 3}, "regressor"),
    ({"method": "guess"}, "method"),
    ({"contamination": 0.9}, "contamination"),
    ({"preset": "thesis"}, "preset"),
    ({"preset": "paper", "config": MethodConfig()}, "both"),
    ({"n_jobs": 0}, "n_jobs"),
    ({"non_finite": "ignore"}, "non_finite"),
    ({"random_state": "dice"}, "dice"),
]


@pytest.mark.parametrize(("settings", "message"), BAD_SETTINGS, ids=lambda v: str(v)[:40])
def test_bad_settings_are_refused_by_name(
    settings: dict[str, Any], message: str, rows: Floats
) -> None:
    with pytest.raises(ConfigError, match=message):
        MROT(**settings).fit(rows)


def test_saving_over_something_is_refused(detector: MROT, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    with pytest.raises(OutputError, match="exists"):
        detector.save(tmp_path / "model")


@pytest.mark.slow
@pytest.mark.parametrize("make", [normal_rows, uneven_clusters], ids=["gaussian", "clusters"])
def test_one_percent_of_unseen_rows_score_above_099(make: Any) -> None:
    fitted = MROT(n_jobs=2).fit(make(20_000, seed=1))
    unseen = make(100_000, seed=2)
    for method in METHODS:
        share = float((fitted.anomaly_score(unseen, method) > 0.99).mean())
        assert abs(share - 0.01) <= 0.002, f"{method}: {share:.4f}"
