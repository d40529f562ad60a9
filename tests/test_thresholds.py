"""Thresholds: choices become scores, rest beside the model, and hold in the documented order."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from mrot_scale import fit, flagged, ingest, open_scores, score, set_threshold, threshold
from mrot_scale.cli import app
from mrot_scale.config.job import full_config
from mrot_scale.config.layers import load_config
from mrot_scale.config.scoring import ScoringConfig
from mrot_scale.errors import ConfigError, DamagedDataError, ModelMismatchError
from mrot_scale.flagging import count_above, threshold_options
from mrot_scale.model.persist import load_model
from mrot_scale.storing.location import Location
from mrot_scale.thresholds import Choice, stored_choice, threshold_in_force, threshold_place
from tests.jobs.made import TINY, zarr_values

UNIFORM = np.linspace(0, 1, 10_001, dtype=np.float32)[:-1]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store, a model, and scores as Zarr and Parquet."""
    folder = tmp_path_factory.mktemp("thresholds")
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "name": [f"r{i}" for i in range(600)],
            **dict(zip("xyz", rng.normal(size=(3, 600)), strict=True)),
        }
    )
    ingest(table, folder / "store", id="name", config=TINY)
    fit(folder / "store", folder / "model", TINY)
    score(folder / "model", folder / "store", folder / "scores", TINY, parquet=folder / "table")
    return folder


@pytest.fixture
def unset(made: Path) -> Path:
    """The same, with no choice stored before or after."""
    threshold_place(Location(made / "model")).remove()
    return made


@pytest.mark.parametrize(
    ("text", "expected"),
    [("share=0.01", 0.99), ("count=50", 0.995), ("score=0.5", 0.5), ("evt=0.2", 0.8)],
)
def test_choices_mean_what_they_say_of_even_scores(text: str, expected: float) -> None:
    choice = Choice.parse(text, 10_000)
    assert choice.text == text
    assert choice.score(UNIFORM) == pytest.approx(expected, abs=2e-4)


def test_extremes_of_even_scores_are_one_in_so_many() -> None:
    assert 1 - Choice.parse("evt=1e-3").score(UNIFORM) == pytest.approx(1e-3, rel=0.25)
    assert 1 - Choice.parse("evt=1e-5").score(UNIFORM) < 1e-4
    assert 0.9 <= Choice.parse("elbow").score(UNIFORM) < 1


@pytest.mark.parametrize(
    "text",
    ["", "share", "share=", "share=0", "share=0.6", "share=x", "count=50", "score=1.1", "evt=0",
     "elbow=1", "evt=nan", "share=inf", "mean=3"],
)  # fmt: skip
def test_what_is_no_choice_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        Choice.parse(text)


def test_a_count_is_at_most_half_of_a_night() -> None:
    assert Choice.parse("count=5", 10).score(UNIFORM) == pytest.approx(0.5, abs=1e-3)
    with pytest.raises(ConfigError, match="half of the 10 rows"):
        Choice.parse("count=6", 10)


def test_a_choice_is_kept_beside_the_model_and_forgotten(unset: Path) -> None:
    model = unset / "model"
    usual, before = threshold(model), sorted(p.name for p in model.iterdir())
    assert set_threshold(model, "share=0.1") < usual
    assert threshold(model) == load_model(Location(model))[0].threshold("model", 0.1)
    assert json.loads((unset / "model.threshold.json").read_text())["kind"] == "share"
    assert sorted(p.name for p in model.iterdir()) == before
    assert set_threshold(model, None) == usual
    assert not (unset / "model.threshold.json").exists()


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", DamagedDataError),
        ("[]", DamagedDataError),
        ('{"format": "x", "version": 1}', DamagedDataError),
        ('{"format": "mrot-scale-threshold", "version": 1, "kind": "share", "value": 7, '
         '"rows_per_night": null}', DamagedDataError),
        ('{"format": "mrot-scale-threshold", "version": 2, "kind": "share", "value": 0.1, '
         '"rows_per_night": null}', ModelMismatchError),
    ],
)  # fmt: skip
def test_a_damaged_choice_is_named(unset: Path, content: str, error: type[Exception]) -> None:
    (unset / "model.threshold.json").write_text(content)
    with pytest.raises(error, match=r"model\.threshold\.json"):
        stored_choice(Location(unset / "model"))
    (unset / "model.threshold.json").unlink()


def test_settings_win_over_the_stored_choice_and_that_over_the_fit(unset: Path) -> None:
    model, saved = load_model(Location(unset / "model"))
    stored = Choice("share", 0.2)

    def level(settings: dict[str, float], choice: Choice | None = stored) -> float:
        return threshold_in_force(model, "model", ScoringConfig(**settings), saved, choice)

    assert level({"threshold": 0.7}) == 0.7
    assert level({"contamination": 0.3}) == model.threshold("model", 0.3)
    assert level({}) == model.threshold("model", 0.2)
    assert level({}, None) == model.threshold("model", saved["contamination"])


def test_threshold_and_contamination_exclude_each_other_but_later_layers_win(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError, match="give one"):
        full_config({"scoring": {"threshold": 0.9, "contamination": 0.1}})
    place = tmp_path / "settings.yaml"
    place.write_text("scoring: {contamination: 0.1, percentile: true}\n")
    found = load_config(place, overrides={"scoring": {"threshold": 0.9}}, environment={}).scoring
    assert found.threshold == 0.9
    assert found.percentile
    assert "contamination" not in found.model_fields_set


def test_scoring_takes_the_stored_choice_and_runs_again_for_another(
    unset: Path, tmp_path: Path
) -> None:
    model, store = unset / "model", unset / "store"
    first = score(model, store, tmp_path / "out", TINY)
    assert score(model, store, tmp_path / "out", TINY).was_done
    level = set_threshold(model, "share=0.2")
    again = score(model, store, tmp_path / "again", TINY)
    assert again.threshold == level < first.threshold
    assert again.n_flagged == (zarr_values(tmp_path / "again") > np.float32(level)).sum()
    given = TINY | {"scoring": {"threshold": 0.75}}
    assert score(model, store, tmp_path / "given", given).threshold == 0.75
    set_threshold(model, None)


def test_published_scores_are_flagged_anew_without_scoring(unset: Path) -> None:
    scores = zarr_values(unset / "scores")
    for level in (0.5, 0.9, 0.999):
        expected = np.sort(scores[scores > np.float32(level)])[::-1]
        for place in ("scores", "table"):
            found = flagged(unset / place, level)
            assert found["score"].to_numpy().tolist() == expected.tolist()
            assert count_above(unset / place, [level]) == (600, [len(expected)])
    few = flagged(unset / "table", 0.5, limit=7)
    assert few.num_rows == 7
    assert "name" in few.column_names
    numbers = flagged(unset / "scores", 0.5, limit=7)["row"].to_numpy()
    assert scores[numbers].tolist() == few["score"].to_pylist()
    above = open_scores(unset / "table", above=0.9)
    assert above.count_rows() == (scores > np.float32(0.9)).sum()


def test_published_scores_know_their_threshold_and_their_model(unset: Path, tmp_path: Path) -> None:
    level = set_threshold(unset / "model", "share=0.3")
    count = int((zarr_values(unset / "scores") > np.float32(level)).sum())
    assert flagged(unset / "scores", model=unset / "model").num_rows == count
    assert flagged(unset / "scores").num_rows < count
    set_threshold(unset / "model", None)
    fit(unset / "store", tmp_path / "other", TINY | {"seed": 5})
    with pytest.raises(ModelMismatchError, match="not scored by"):
        flagged(unset / "scores", model=tmp_path / "other")
    pq.write_table(pa.table({"score": pa.array([0.5], pa.float32())}), tmp_path / "plain.parquet")
    with pytest.raises(ConfigError, match="no threshold of its own"):
        flagged(tmp_path / "plain.parquet")


def test_options_are_counted_on_training_rows_nights_and_scores(unset: Path) -> None:
    found = threshold_options(
        unset / "model", rows_per_night=10_000, scores=unset / "scores", more=["share=0.02"]
    )
    by_choice = {option.choice: option for option in found.options}
    assert {"share=0.01", "count=100", "elbow", "evt=0.0001", "share=0.02"} <= set(by_choice)
    assert found.rows == 600
    scores = zarr_values(unset / "scores")
    for option in found.options:
        assert option.flagged == (scores > np.float32(option.score)).sum()
        assert option.per_night == pytest.approx(10_000 * option.training_share)
    assert by_choice["share=0.01"].training_share == pytest.approx(0.01, abs=0.004)


def run(*words: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(word) for word in words])
    return (getattr(done.exception, "exit_code", done.exit_code), done.output)


def test_commands_show_set_and_clear(unset: Path) -> None:
    code, text = run(
        "threshold", unset / "model", "--rows-per-night", "1000", "--scores", unset / "table"
    )
    assert code == 0
    assert "share=0.005" in text
    assert "no choice is stored" in text
    assert run("threshold", unset / "model", "--set", "share=0.1", "--dry-run")[0] == 0
    assert not (unset / "model.threshold.json").exists()
    code, text = run("threshold", unset / "model", "--set", "share=0.1", "--output", "json")
    assert code == 0
    found = json.loads(text)
    assert found["chosen"] == "share=0.1"
    assert found["in_force"] == threshold(unset / "model")
    code, text = run("flagged", unset / "table", "--model", unset / "model", "--limit", "3")
    assert code == 0
    assert len(text.splitlines()) == 5
    assert run("threshold", unset / "model", "--clear")[0] == 0
    assert not (unset / "model.threshold.json").exists()


def test_commands_refuse_with_documented_codes(unset: Path) -> None:
    assert run("threshold", unset / "model", "--set", "many")[0] == 78
    assert run("threshold", unset / "model", "--set", "count=5")[0] == 78
    assert run("threshold", unset / "model", "--set", "elbow", "--clear")[0] == 78
    assert run("threshold", unset / "nowhere", "--set", "elbow")[0] == 66
    assert not (unset / "nowhere.threshold.json").exists()
    assert run("flagged", unset / "nowhere")[0] == 66
    assert run("flagged", unset / "table", "--threshold", "3")[0] == 2
    (unset / "model.threshold.json").write_text("{")
    assert run("threshold", unset / "model")[0] == 74
    assert run("threshold", unset / "model", "--clear")[0] == 0
