"""All rows in a few figures, read off a model: efforts, columns, and a map that stays the same."""

from typing import Any

import numpy as np
import pytest

from mrot_scale import fit, ingest
from mrot_scale.model.persist import load_model, model_schema
from mrot_scale.reporting.populations import (
    column_spreads,
    effort_spreads,
    features_of,
    quality_lines,
)
from mrot_scale.reporting.projecting import projection_of
from mrot_scale.scoring import FittedModel
from mrot_scale.storing.location import Location
from mrot_scale.storing.store import FeatureStore
from tests.jobs.made import SMALL, mixed_table

SETTINGS: dict[str, Any] = SMALL | {"hybrid": "never", "folds": 2}


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[FittedModel, FeatureStore]:
    folder = tmp_path_factory.mktemp("populations")
    ingest(mixed_table(), folder / "store", id="reading", exclude=["note"], config=SETTINGS)
    fit(folder / "store", folder / "model", SETTINGS)
    return load_model(Location(folder / "model"))[0], FeatureStore.open(Location(folder / "store"))


def test_efforts_of_all_training_rows_are_counted_in_every_view(
    job: tuple[FittedModel, FeatureStore],
) -> None:
    found = effort_spreads(job[0])
    assert [len(view["counts"]) for view in found] == [48, 48, 48]
    for view in found:
        assert sum(view["counts"]) == pytest.approx(600, abs=30)
        assert np.all(np.diff(view["edges"]) > 0)
        assert np.all(np.diff(view["cdf"]) >= 0)
        assert view["cdf"][-1] > 0.999
    assert found[2]["view"].endswith("column by column")


def test_columns_are_counted_by_value_and_category(job: tuple[FittedModel, FeatureStore]) -> None:
    model, store = job
    found = column_spreads(model, model_schema(model), ["x", "site", "at", "gone"], None)
    assert found.keys() == {"x", "site", "at"}
    assert {name: spread["kind"] for name, spread in found.items()} == {
        "x": "number",
        "site": "category",
        "at": "time",
    }
    assert sum(found["x"]["training"]) == 600
    assert found["x"]["training"][-1] > 0, "rows without a value are counted last"
    assert sum(found["site"]["training"]) == 1_500
    assert len(features_of(store.schema)) == len(store.schema.features)


def test_quality_speaks_of_columns_as_people_know_them(
    job: tuple[FittedModel, FeatureStore],
) -> None:
    lines = {line["name"]: line for line in quality_lines(job[1].schema)}
    assert "at.day_sin" not in lines
    assert str(lines["at"]["min"]).startswith("2023-11-")
    assert lines["x"]["missing"] > 0
    assert lines["site"]["categories"] == 3


def test_a_map_is_the_same_every_time_and_blind_to_what_is_redacted(
    job: tuple[FittedModel, FeatureStore],
) -> None:
    model, _ = job
    rows = np.random.default_rng(0).normal(size=(20, model.n_features))
    first, second = projection_of(model, set()), projection_of(model, set())
    assert first is not None
    assert second is not None
    places = first.apply(rows, model.fill)
    assert places.shape == (20, 2)
    np.testing.assert_array_equal(places, second.apply(rows, model.fill))
    assert first.explained[0] >= first.explained[1] >= 0
    hidden = projection_of(model, {0, 3})
    assert hidden is not None
    changed = rows.copy()
    changed[:, [0, 3]] = 99.0
    np.testing.assert_array_equal(hidden.apply(rows, model.fill), hidden.apply(changed, model.fill))
    assert projection_of(model, set(range(model.n_features))) is None


def test_the_axes_of_a_map_are_at_right_angles(job: tuple[FittedModel, FeatureStore]) -> None:
    found = projection_of(job[0], set())
    assert found is not None
    assert found.axes.T @ found.axes == pytest.approx(np.eye(2), abs=1e-9)
