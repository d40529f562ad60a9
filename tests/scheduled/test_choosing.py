"""Which model scores a night: named, promoted, fitted every so often or when there is drift."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import mrot_scale
from mrot_scale.errors import GateError, MissingInputError
from mrot_scale.model.columns import load_schema
from mrot_scale.scheduled.night import nightly
from mrot_scale.scheduled.registry import listed_models, promote_model
from mrot_scale.storing.location import Location
from tests.scheduled.lake import (
    ROWS,
    SETTINGS,
    Job,
    changed,
    day,
    manifest,
    night_table,
    published_digests,
    spoil,
    tree,
    with_nightly,
)

DRIFT: dict[str, Any] = {"refit_drift": 0.5, "training_partitions": 1, "refit_from": day(1)}


@pytest.fixture(scope="module")
def every_two(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Four nights with a new model every second day; no test changes them."""
    job = Job.of(tmp_path_factory.mktemp("every-two"), 1, 2, 3, 4)
    for number in (1, 2, 3, 4):
        job.night(number, refit_every=2)
    return job


@pytest.fixture
def job(every_two: Job, tmp_path: Path) -> Job:
    """A copy of it."""
    return every_two.copied(tmp_path)


def model_of(job: Job, number: int) -> str:
    """The model of what is published of a night."""
    return str(job.state(number)["published"]["model"])


def days_of_models(job: Job, numbers: Iterable[int]) -> list[int]:
    """For which night the model of each night was fitted."""
    return [int(model_of(job, number)[8:10]) for number in numbers]


def scores_by_hand(job: Job, model: Path, number: int) -> Any:
    rows = night_table(number).drop_columns(["reading", "read_at"])
    return mrot_scale.score_rows(model, rows)


# --- every so often ------------------------------------------------------------------------------


def test_a_model_is_fitted_every_so_many_days(every_two: Job) -> None:
    assert days_of_models(every_two, (1, 2, 3, 4)) == [1, 1, 3, 3]
    first, second = listed_models(every_two.output)
    assert first["partitions"] == [f"date={day(1)}"]
    assert second["partitions"] == [f"date={day(n)}" for n in (1, 2, 3)]
    assert every_two.last_run(3)["model"]["fitted_now"]
    assert not every_two.last_run(4)["model"]["fitted_now"]
    assert every_two.last_run(4)["model"]["why"] == f"fitted for {day(3)}"


@pytest.mark.slow
def test_nights_in_any_order_get_the_same_models_and_scores(every_two: Job, tmp_path: Path) -> None:
    shutil.copytree(every_two.lake, tmp_path / "lake")
    job = Job(tmp_path / "lake", tmp_path / "out")
    for number in (4, 2, 1, 3):
        job.night(number, refit_every=2, refit_from=day(1))
    assert published_digests(job.output) == published_digests(every_two.output)
    assert [model_of(job, n) for n in (1, 2, 3, 4)] == [
        model_of(every_two, n) for n in (1, 2, 3, 4)
    ]


@pytest.mark.slow
def test_a_model_learns_from_so_many_partitions_at_most(job: Job) -> None:
    for number in (5, 6, 7):
        job.write(number)
    model = job.night(7, refit_every=2, training_partitions=3).model
    entry = manifest(job.output / "models" / str(model) / "entry.json")
    assert entry["partitions"] == [f"date={day(n)}" for n in (5, 6, 7)]
    assert entry["rows"] == 3 * ROWS


def test_rows_that_come_late_do_not_change_which_model_was_fitted(job: Job) -> None:
    before = {n: model_of(job, n) for n in (1, 2, 3, 4)}
    job.write(1, night_table(1, 500, seed=9), "part-1")
    for number in (1, 3):
        job.night(number, refit_every=2)
    assert {n: model_of(job, n) for n in (1, 2, 3, 4)} == before
    assert job.scores(1).num_rows == ROWS + 500


def test_nights_before_the_first_model_get_that_one(job: Job) -> None:
    (job.lake / "date=2026-10-30").mkdir()
    shutil.copy(job.lake / f"date={day(2)}" / "part-0.parquet", job.lake / "date=2026-10-30")
    config = with_nightly(refit_every=2)
    night = nightly(job.lake, job.output, date="2026-10-30", config=config)
    assert night.model == model_of(job, 1)


def test_a_model_lost_with_its_training_rows_is_fitted_again(job: Job) -> None:
    """Its folder was removed, and late rows make what takes its place another one."""
    shutil.rmtree(job.output / "models" / model_of(job, 3))
    job.write(3, night_table(3, 500, seed=9), "part-1")
    assert job.night(4, refit_every=2).status == "done"


def test_a_first_model_from_before_the_lake_begins_is_fitted_on_what_there_is(
    tmp_path: Path,
) -> None:
    """Whoever counts weeks from some Monday long ago need not wait for the next one."""
    job = Job.of(tmp_path, 3)
    assert job.night(3, refit_every=7, refit_from=day(1)).status == "done"


# --- partitions that are not fit to learn from -----------------------------------------------


@pytest.mark.slow
def test_a_partition_that_gate_psi_refused_is_not_learnt_from(job: Job) -> None:
    job.write(5, warmer(5))
    job.write(6)
    job.write(7)
    gates = {"psi": {"fail": 1.0}}
    with pytest.raises(GateError):
        job.night(5, refit_every=3, gates=gates)
    model = job.night(7, refit_every=3, gates=gates).model
    entry = manifest(job.output / "models" / str(model) / "entry.json")
    assert entry["partitions"] == [f"date={day(n)}" for n in (1, 2, 3, 4, 6, 7)]


@pytest.mark.filterwarnings("ignore::mrot_scale.errors.LeftOutWarning")
def test_a_night_that_misses_a_column_does_not_take_it_from_later_models(job: Job) -> None:
    """Gate `schema` refused it; the next model is to know the column all the same."""
    job.write(4, night_table(4).drop_columns(["vibration"]))
    with pytest.raises(GateError, match="schema: missing column"):
        job.night(4, refit_every=2)
    job.write(5)
    night = job.night(5, refit_every=2)
    model = job.output / "models" / str(night.model) / "model"
    assert "vibration" in [column.name for column in load_schema(Location(model)).columns]
    assert night.warnings == []


def test_a_file_nobody_can_read_does_not_stop_later_fits(job: Job) -> None:
    spoil(job.write(4))
    job.write(5)
    assert job.night(5, refit_every=2).status == "done"


def test_a_night_of_another_type_does_not_stop_later_fits(job: Job) -> None:
    table = night_table(4)
    job.write(4, changed(table, "pressure", [str(v) for v in table["pressure"].to_pylist()]))
    job.write(5)
    assert job.night(5, refit_every=2).status == "done"


# --- named ---------------------------------------------------------------------------------------


def test_a_model_is_named_by_its_id(job: Job) -> None:
    first = model_of(job, 1)
    night = job.night(4, model=first)
    assert (night.status, night.model) == ("done", first)
    expected = scores_by_hand(job, job.output / "models" / first / "model", 4)
    np.testing.assert_array_equal(job.scores(4)["score"].to_numpy(), expected)
    assert job.last_run(4)["model"]["why"] == f"named {first}"
    assert job.night(4, model=first).status == "skipped"
    assert job.night(4, refit_every=2).model == model_of(job, 3)


def test_the_latest_model_is_the_one_of_the_last_partition(job: Job) -> None:
    night = nightly(job.lake, job.output, date=day(1), config=SETTINGS, model="latest")
    assert (night.status, night.model) == ("done", model_of(job, 3))
    assert job.last_run(1)["model"]["id"] == model_of(job, 3), "recorded by its id"


def test_a_model_is_named_by_its_path(job: Job, tmp_path: Path) -> None:
    table = night_table(2).drop_columns(["read_at"])
    mrot_scale.fit(table, tmp_path / "own", SETTINGS, id="reading")
    night = job.night(2, model=str(tmp_path / "own"), exclude=["read_at"])
    assert night.status == "done"
    assert str(night.model).partition("#")[0] == str(tmp_path / "own")
    expected = scores_by_hand(job, tmp_path / "own", 2)
    np.testing.assert_array_equal(job.scores(2)["score"].to_numpy(), expected)
    assert night.warnings == []


def test_times_are_nothing_new_to_a_model_at_a_path(job: Job, tmp_path: Path) -> None:
    table = night_table(2).drop_columns(["read_at"])
    mrot_scale.fit(table, tmp_path / "own", SETTINGS, id="reading")
    assert job.night(2, model=str(tmp_path / "own")).warnings == []


def test_another_model_at_the_same_path_scores_again(job: Job, tmp_path: Path) -> None:
    config = with_nightly(model=str(tmp_path / "own"), exclude=["read_at"])
    statuses = []
    for seed in (1, 2):
        for name in ("own", "own.run"):
            shutil.rmtree(tmp_path / name, ignore_errors=True)
        table = night_table(seed).drop_columns(["read_at"])
        mrot_scale.fit(table, tmp_path / "own", SETTINGS | {"seed": seed}, id="reading")
        statuses.append(nightly(job.lake, job.output, date=day(2), config=config).status)
    assert statuses == ["done", "done"]
    expected = scores_by_hand(job, tmp_path / "own", 2)
    np.testing.assert_array_equal(job.scores(2)["score"].to_numpy(), expected)


@pytest.mark.parametrize("name", ["2026-11-01-0123456789", "none", "..", "no/such/place"])
def test_a_model_that_is_not_there_is_told(name: str, job: Job) -> None:
    before = tree(job.output / "scores")
    with pytest.raises(MissingInputError, match="No model") as caught:
        job.night(2, model=name)
    assert caught.value.exit_code == 66
    assert job.last_run(2)["exit_code"] == 66
    assert tree(job.output / "scores") == before


def test_the_latest_of_no_models_is_told(tmp_path: Path) -> None:
    job = Job.of(tmp_path, 1)
    with pytest.raises(MissingInputError, match=r"There is no model in .*models yet"):
        job.night(1, model="latest")


# --- promoted ------------------------------------------------------------------------------------


def test_a_promoted_model_scores_from_its_night_on_until_a_later_fit(job: Job) -> None:
    for number in (5, 6):
        job.write(number)
    promote_model(job.output, model_of(job, 1), day(4))
    assert job.night(3, refit_every=2).status == "skipped"
    night = job.night(4, refit_every=2)
    assert (night.status, night.model) == ("done", model_of(job, 1))
    assert job.last_run(4)["model"]["why"] == f"promoted from {day(4)}"
    for number in (5, 6):
        job.night(number, refit_every=2)
    assert days_of_models(job, range(1, 7)) == [1, 1, 3, 1, 5, 5]


def test_a_promoted_model_is_listed_as_such(job: Job) -> None:
    promote_model(job.output, "latest", day(4))
    promote_model(job.output, model_of(job, 1), day(2), dry_run=True)
    found = {entry["id"]: entry["promoted"] for entry in listed_models(job.output)}
    assert found == {model_of(job, 1): [], model_of(job, 3): [day(4)]}


def test_a_model_that_is_not_there_is_not_promoted(job: Job) -> None:
    with pytest.raises(MissingInputError, match="No model"):
        promote_model(job.output, "2026-11-01-0123456789", day(2))
    assert not (job.output / "models" / "promotions").exists()


# --- when there is drift -------------------------------------------------------------------------


def warmer(number: int, *, seed: int | None = None) -> pa.Table:
    table = night_table(number, seed=seed)
    return changed(table, "temperature", table["temperature"].to_numpy() + 20)


@pytest.fixture(scope="module")
def drifted(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Two usual nights, then three warm ones, in order."""
    job = Job.of(tmp_path_factory.mktemp("drifted"), 1, 2)
    for number in (3, 4, 5):
        job.write(number, warmer(number))
    for number in range(1, 6):
        job.night(number, **DRIFT)
    return job


def test_a_lasting_shift_brings_a_new_model_that_later_nights_keep(drifted: Job) -> None:
    assert days_of_models(drifted, range(1, 6)) == [1, 1, 3, 3, 3]
    decision = manifest(drifted.output / "models" / "decisions" / f"date={day(3)}.json")
    assert decision["psi"] > 0.5
    assert (decision["column"], decision["model"]) == ("temperature", model_of(drifted, 1))
    assert len(listed_models(drifted.output)) == 2


@pytest.mark.slow
def test_without_the_policy_a_shift_is_scored_by_the_model_there_is(drifted: Job) -> None:
    job = Job(drifted.lake, drifted.output.with_name("without"))
    for number in (1, 3):
        night = job.night(number)
    assert days_of_models(job, (1, 3)) == [1, 1]
    assert any(word.startswith("psi: 'temperature' has PSI") for word in night.warnings)


def test_nights_in_reverse_get_the_same_models_and_scores_by_drift(drifted: Job) -> None:
    job = Job(drifted.lake, drifted.output.with_name("reverse"))
    for number in range(5, 0, -1):
        job.night(number, **DRIFT)
    assert [model_of(job, n) for n in range(1, 6)] == [model_of(drifted, n) for n in range(1, 6)]
    assert published_digests(job.output) == published_digests(drifted.output)
    folders = [place.output / "models" / "decisions" for place in (job, drifted)]
    found = [{p.name: p.read_bytes() for p in folder.iterdir()} for folder in folders]
    assert found[0] == found[1]


def test_what_was_decided_stands_when_rows_come_late(drifted: Job, tmp_path: Path) -> None:
    job = drifted.copied(tmp_path)
    before = {n: model_of(job, n) for n in range(1, 6)}
    job.write(2, warmer(2, seed=5), "part-1")
    job.write(4, night_table(4, 3 * ROWS, seed=5), "part-1")
    for number in (5, 4, 2):
        job.night(number, **DRIFT)
    assert {n: model_of(job, n) for n in range(1, 6)} == before
    whole = ds.dataset(job.output / "scores", partitioning="hive")
    assert whole.count_rows() == 5 * ROWS + ROWS + 3 * ROWS


@pytest.mark.slow
def test_a_shift_that_passes_brings_a_model_there_and_back(drifted: Job, tmp_path: Path) -> None:
    job = drifted.copied(tmp_path)
    for number in (6, 7):
        job.write(number)
        job.night(number, **DRIFT)
    assert days_of_models(job, (5, 6, 7)) == [3, 6, 6]


def test_the_first_night_fits_one_model_and_no_other(tmp_path: Path) -> None:
    """Though there are partitions before it, which no model was ever fitted for."""
    job = Job.of(tmp_path, 1, 2, 3)
    night = job.night(3)
    models = [path.name for path in (job.output / "models").glob("*-*")]
    assert models == [night.model]
    assert job.night(3).status == "skipped"
