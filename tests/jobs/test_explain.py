"""Explaining one row: found by name or number, told as text, as JSON and as a picture."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from mrot_scale import MROT, explain, fit, ingest, score_rows, set_threshold
from mrot_scale.cli import app
from mrot_scale.errors import ConfigError, DataError, MissingInputError
from mrot_scale.explanation_text import explanation_text
from mrot_scale.method.anchors import route_costs
from mrot_scale.method.route_story import route_of
from mrot_scale.model.persist import load_model
from mrot_scale.plots_explanation import check_picture
from mrot_scale.scoring import problem_of
from mrot_scale.storing.location import Location
from tests.jobs.made import TINY

SETTINGS = TINY | {
    "label_rows": 700,
    "repeats": 2,
    "anchor_sets": 4,
    "views": [{"scaling": "none"}, {"scaling": "robust"}, {"separate": True, "alpha": 0.1}],
    "hybrid": "always",
    "non_finite": "impute",
    "store": {"chunk_bytes": 2_400},
}
ODD = 431


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of several chunks with one odd row, its store and model."""
    folder = tmp_path_factory.mktemp("explain")
    rng = np.random.default_rng(0)
    x = rng.normal(size=700)
    columns = {"x": x, "y": 2 * x + 0.1 * rng.normal(size=700), "z": rng.normal(size=700)}
    columns["w"] = x + 0.1 * rng.normal(size=700)  # two columns agree, so that one is odd
    columns["y"][ODD] += 9.0
    kind = np.where(rng.random(700) < 0.5, "red", "blue").tolist()
    table = pa.table({"name": [f"r{i}" for i in range(700)], **columns, "kind": kind})
    pq.write_table(table, folder / "table.parquet")
    ingest(table, folder / "store", id="name", config=SETTINGS)
    fit(folder / "store", folder / "model", SETTINGS)
    return folder


@pytest.mark.parametrize("method", ["model", "effort"])
def test_the_odd_column_comes_first_with_all_that_is_known_of_it(made: Path, method: str) -> None:
    found = explain(made / "model", made / "store", f"r{ODD}", method=method)  # type: ignore[arg-type]
    table = pq.read_table(made / "table.parquet")
    first = found.columns[0]
    assert first.name == "y"
    assert first.value == pytest.approx(table["y"][ODD].as_py(), rel=1e-6)
    assert first.share > 0.5
    assert first.usual is not None
    assert abs(first.usual - 2 * table["x"][ODD].as_py()) < 2
    assert first.median == pytest.approx(np.median(table["y"].to_numpy()), abs=0.3)
    assert sum(c.contribution for c in found.columns) == pytest.approx(found.rarity)
    assert {c.name: c.value for c in found.columns}["kind"] == table["kind"][ODD].as_py()
    scored = score_rows(made / "model", table.slice(ODD, 1), method=method)  # type: ignore[arg-type]
    assert found.score == float(scored[0])


def test_a_row_is_the_same_however_it_is_found(made: Path) -> None:
    by_name = explain(made / "model", made / "store", f"r{ODD}")
    table = pq.read_table(made / "table.parquet")
    ways = [
        explain(made / "model", made / "store", number=ODD),
        explain(made / "model", made / "table.parquet", f"r{ODD}", id="name"),
        explain(made / "model", table, f"r{ODD}", id="name"),
    ]
    assert all(way == by_name for way in ways)
    as_dict = explain(made / "model", table.slice(ODD, 1).to_pylist()[0])
    assert as_dict.columns == by_name.columns
    assert explain(made / "model", table, number=ODD).views == by_name.views


def test_rows_that_are_not_there_are_named(made: Path) -> None:
    for source in (made / "store", made / "table.parquet"):
        with pytest.raises(MissingInputError, match="no row with name 'r700'"):
            explain(made / "model", source, "r700", id="name")
        with pytest.raises(MissingInputError, match="no row number 700"):
            explain(made / "model", source, number=700)
    with pytest.raises(ConfigError, match="--id"):
        explain(made / "model", made / "table.parquet", "r1")
    with pytest.raises(ConfigError, match="which row"):
        explain(made / "model", made / "store")
    with pytest.raises(ConfigError, match="from 0 on"):
        explain(made / "model", made / "store", number=-1)
    with pytest.raises(DataError):
        explain(made / "model", {"x": 1e300, "y": 0.0, "z": 0.0, "w": 0.0, "kind": "red"})


def test_missing_values_are_shown_as_missing(made: Path) -> None:
    found = explain(made / "model", {"x": None, "y": 1.0, "z": 0.0, "w": 0.5, "kind": None})
    values = {c.name: c for c in found.columns}
    assert values["x"].value is None
    assert values["x"].percentile is None
    assert values["kind"].value is None


def test_routes_told_are_the_routes_scored() -> None:
    """The cost told of each set is what scoring pays, and no anchor of the zone is used."""
    rng = np.random.default_rng(1)
    for settings in ({}, {"ceiling": "zone"}, {"radius": 0.5}, {"cost": "coulomb"}):
        given = {"distrust": 0.0} if settings else {}
        fixed = {"repeats": 2, "anchor_sets": 2, "label_rows": 300, **settings, **given}
        model = MROT(**fixed).fit(rng.normal(size=(300, 3))).model_  # type: ignore[arg-type]
        for view, config in zip(model.views, model.config.views, strict=True):
            problem = problem_of(model.config, config)
            points = view.view.apply(rng.normal(size=(20, 3)) * 2)
            for anchors in view.anchors:
                expected = route_costs(anchors, anchors.among(points), problem)
                found = [route_of(anchors, point, problem) for point in points]
                np.testing.assert_allclose([r.cost for r in found], expected)
                if not settings:
                    assert all(r.cost >= r.reach for r in found)


def test_views_tell_where_mass_goes(made: Path) -> None:
    model = load_model(Location(made / "model"))[0]
    found = explain(made / "model", made / "store", f"r{ODD}")
    assert [v.name for v in found.views] == ["none", "robust", "robust, column by column"]
    row = np.array([[{c.name: c for c in found.columns}[n].value or 0.0 for n in "xyzw"] + [0.0]])
    alone = replace(model, company=None)  # what is told of a view is the row's own
    np.testing.assert_allclose(
        [v.rarity for v in found.views], alone.rarity(row)[0], rtol=1e-5, atol=1e-5
    )
    whole = found.views[0]
    assert sum(whole.by_column.values()) == pytest.approx(1)
    assert whole.by_column["y"] > 0.3
    assert 0 < whole.n_zone < whole.n_anchors
    assert set(whole.anchor) == {"x", "y", "z", "w", "kind"}
    assert set(found.views[2].by_column) <= {"x", "y", "z", "w", "kind"}


def test_percentiles_are_those_of_the_training_rows(made: Path) -> None:
    table = pq.read_table(made / "table.parquet")
    x = table["x"].to_numpy()
    for number in range(0, 700, 50):
        found = explain(made / "model", made / "store", number=number)
        percentile = {c.name: c.percentile for c in found.columns}["x"]
        assert percentile == pytest.approx(100 * (x < x[number]).mean(), abs=4)


def run(*words: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(word) for word in words])
    return (getattr(done.exception, "exit_code", done.exit_code), done.output)


def test_the_command_tells_it_as_text_and_as_json(made: Path) -> None:
    words = ("explain", made / "model", "--store", made / "store")
    code, text = run(*words, "--row", f"r{ODD}")
    assert code == 0
    assert f"row r{ODD}: score" in text
    assert "Normal rows that it resembles" in text
    assert "Where its mass was sent" in text
    assert text.rstrip("\n") == explanation_text(explain(made / "model", made / "store", f"r{ODD}"))
    code, text = run(*words, "--number", str(ODD), "--output", "json")
    assert code == 0
    assert json.loads(text)["columns"][0]["name"] == "y"
    assert run(*words, "--row", "nobody")[0] == 66
    assert run(*words)[0] == 78
    assert run("explain", made / "model", "--store", made / "nowhere", "--row", "r1")[0] == 66


def test_flags_follow_the_threshold_in_force(made: Path) -> None:
    assert explain(made / "model", made / "store", f"r{ODD}").is_flagged
    set_threshold(made / "model", "score=1")
    assert not explain(made / "model", made / "store", f"r{ODD}").is_flagged
    set_threshold(made / "model", None)


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_pictures_are_drawn_and_the_same_each_time(made: Path, tmp_path: Path, ending: str) -> None:
    words = ("explain", made / "model", "--store", made / "store", "--row", f"r{ODD}")
    for name in ("one", "two"):
        assert run(*words, "--picture", tmp_path / f"{name}.{ending}")[0] == 0
    content = (tmp_path / f"one.{ending}").read_bytes()
    assert content == (tmp_path / f"two.{ending}").read_bytes()
    assert content[:5] == (b"<?xml" if ending == "svg" else b"\x89PNG\r")
    if ending == "svg":
        assert f"row r{ODD}" in content.decode()


def test_pictures_that_cannot_be_drawn_are_refused_first(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("explain", made / "model", "--store", made / "store", "--row", f"r{ODD}", "--picture")
    assert run(*words, tmp_path / "picture.jpg")[0] == 78
    assert run(*words, tmp_path / "none" / "picture.svg")[0] == 73
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    code, _ = run(*words, tmp_path / "picture.svg")
    assert code == 78
    with pytest.raises(ImportError, match=r"pip install 'mrot-scale\[plots\]'"):
        check_picture("picture.svg")
