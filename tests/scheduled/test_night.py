"""One night: what it leaves for readers, when it is done again, and what is on record of it."""

import hashlib
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import mrot_scale
from mrot_scale import faults
from mrot_scale.errors import ConfigError, GateError, MissingInputError, MrotError
from mrot_scale.model.columns import load_schema
from mrot_scale.scheduled.layout import Layout
from mrot_scale.scheduled.night import nightly
from mrot_scale.scheduled.night_plan import plan_night
from mrot_scale.scheduled.registry import Registry
from mrot_scale.storing.location import Location
from tests.jobs.made import INLINE, folder_bytes
from tests.scheduled.lake import (
    ROWS,
    SETTINGS,
    Job,
    changed,
    day,
    manifest,
    night_table,
    published_digests,
    tree,
    with_nightly,
    write_night,
)
from tests.servers import mrot, ordered, session, started, wait_until

STRICT = {"rows_below": {"fail": 5_000}}
"""Gates that no night passes."""


@pytest.fixture
def fresh(tmp_path: Path) -> Job:
    """A night that has not run."""
    return Job.of(tmp_path, 1)


@pytest.fixture
def job(once: Job, tmp_path: Path) -> Job:
    """A night that has run."""
    return once.copied(tmp_path)


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Job:
    job = Job.of(tmp_path_factory.mktemp("once"), 1)
    job.night(1)
    return job


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Two nights that have run; no test changes them."""
    job = Job.of(tmp_path_factory.mktemp("done"), 1, 2)
    for number in (1, 2):
        job.night(number)
    return job


def features(job: Job, model: str | None) -> list[str]:
    """The columns a model learnt from."""
    assert model is not None
    schema = load_schema(Registry(Layout(Location(job.output))).entry(model).location)
    return [column.name for column in schema.columns]


# --- what it leaves for readers ------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::mrot_scale.errors.LeftOutWarning")
def test_paths_alone_are_enough(fresh: Job) -> None:
    quick = INLINE | {"label_rows": 300}
    night = nightly(fresh.lake, fresh.output, date=day(1), config=quick)
    assert (night.partition, night.status, night.n_rows) == (f"date={day(1)}", "done", ROWS)
    assert night.flagged_share == night.n_flagged / ROWS
    names = ["history.html", "models", "reports", "runs", "scores"]
    assert sorted(p.name for p in fresh.output.iterdir()) == names
    places = (night.scores, night.report, night.manifest)
    assert [str(Path(str(p)).relative_to(fresh.output)) for p in places] == [
        f"scores/date={day(1)}",
        f"reports/date={day(1)}.html",
        f"runs/{night.run_id}/run.json",
    ]
    assert all(Path(str(place)).exists() for place in places)
    assert (fresh.output / "models" / str(night.model) / "model").is_dir()
    assert fresh.scores(1).num_rows == ROWS


def test_a_published_night_leaves_no_work_and_no_lock_behind(done: Job) -> None:
    left = [p.name for p in (done.output / "runs" / "work").iterdir()]
    assert left == []
    assert not list(done.output.rglob("*.lock"))
    assert not list(done.output.rglob("*.tmp"))
    models = [p for p in (done.output / "models").iterdir() if p.name != "fits"]
    names = ["entry.json", "model", "model.report.html", "model.run"]
    assert sorted(p.name for p in models[0].iterdir()) == names


def test_scores_are_one_table_to_pyarrow_pandas_and_duckdb(done: Job) -> None:
    place = done.output / "scores"
    expected = {day(1): ROWS, day(2): ROWS}
    table = ds.dataset(place, partitioning="hive").to_table()
    assert {d: table["date"].to_pylist().count(d) for d in expected} == expected
    frame = pd.read_parquet(place)
    assert frame.groupby(frame["date"].astype(str)).size().to_dict() == expected
    found = duckdb.sql(
        f"SELECT date::text, count(*) FROM read_parquet('{place}/*/*.parquet', "
        "hive_partitioning = true) GROUP BY ALL"
    )
    assert dict(found.fetchall()) == expected


def test_open_scores_is_one_dataset_with_the_date_column(done: Job) -> None:
    found = mrot_scale.open_scores(done.output / "scores").to_table()
    assert sorted(found.column_names) == ["date", "flag", "reading", "score"]
    assert sorted(set(found["date"].to_pylist())) == [day(1), day(2)]
    assert found.num_rows == 2 * ROWS


def test_every_row_keeps_its_id_and_its_score(done: Job) -> None:
    scores, table = done.scores(2), night_table(2)
    assert scores["reading"].to_pylist() == table["reading"].to_pylist()
    model = done.output / "models" / done.state(2)["published"]["model"] / "model"
    expected = mrot_scale.score_rows(model, table.drop_columns(["reading", "read_at"]))
    np.testing.assert_array_equal(scores["score"].to_numpy(), expected)
    assert done.state(2)["published"]["flagged"] == pc.sum(scores["flag"]).as_py()


def test_columns_to_keep_are_beside_the_scores(job: Job) -> None:
    assert job.night(1, keep=["site", "read_at"]).status == "done"
    found, table = job.scores(1), night_table(1)
    assert found["site"].to_pylist() == table["site"].to_pylist()
    assert found["read_at"].cast(pa.timestamp("us")).equals(table["read_at"])


def test_times_are_learnt_from_only_when_asked_for(fresh: Job, done: Job) -> None:
    usual = ["temperature", "pressure", "vibration", "site"]
    assert features(done, done.state(1)["published"]["model"]) == usual
    night = fresh.night(1, times=True, exclude=["pressure"])
    assert features(fresh, night.model) == ["temperature", "vibration", "site", "read_at"]
    assert night.warnings == [], "what is excluded is nothing new"


# --- the same date again -------------------------------------------------------------------------


def test_a_night_that_was_done_is_skipped_and_nothing_of_it_touched(job: Job) -> None:
    places = [job.output / name for name in ("scores", "models", "reports")]
    first, before = job.state(1), [tree(place) for place in places]
    night = job.night(1)
    assert [tree(place) for place in places] == before
    known = first["published"]
    assert (night.status, night.n_rows) == ("skipped", ROWS)
    assert (night.n_flagged, night.model) == (known["flagged"], known["model"])
    assert (night.scores, night.report) == (
        str(job.output / "scores" / f"date={day(1)}"),
        str(job.output / "reports" / f"date={day(1)}.html"),
    )
    assert night.run_id != first["run_id"]
    assert job.last_run(1)["status"] == "published"
    assert (job.last_run(1)["skipped"], job.state(1)["attempts"]) == (True, 2)


def test_a_night_done_again_on_request_gives_the_same_bytes(fresh: Job) -> None:
    fresh.night(1)
    before = published_digests(fresh.output), folder_bytes(fresh.output / "scores")
    assert fresh.night(1, again=True).status == "done"
    assert (published_digests(fresh.output), folder_bytes(fresh.output / "scores")) == before


def test_a_file_that_was_only_touched_is_not_scored_again(job: Job) -> None:
    os.utime(job.lake / f"date={day(1)}" / "part-0.parquet", ns=(1, 1))
    assert job.night(1).status == "skipped"


def test_one_other_digit_in_a_file_of_the_same_size_is_noticed(job: Job) -> None:
    path = job.lake / f"date={day(2)}" / "readings.csv"
    path.parent.mkdir()
    pacsv.write_csv(night_table(2), path)
    job.night(2)
    before, text = published_digests(job.output), path.read_text()
    line = text.splitlines()[7]
    value = line.split(",")[1]
    path.write_text(text.replace(line, line.replace(value, value.replace(".", "9"), 1)))
    assert path.stat().st_size == len(text)
    assert job.night(2).status == "done"
    assert published_digests(job.output) != before


def test_a_file_more_replaces_the_scores_and_rollback_brings_them_back(job: Job) -> None:
    place, model = job.output / "scores" / f"date={day(1)}", job.state(1)["published"]["model"]
    before = folder_bytes(place)
    job.write(1, night_table(1, 300, seed=7), "part-1")
    late = job.night(1)
    assert (late.status, late.n_rows, late.model) == ("done", ROWS + 300, model)
    assert job.scores(1).num_rows == ROWS + 300
    mrot_scale.rollback(place)
    assert folder_bytes(place) == before


def test_a_night_that_was_rolled_back_stays_so_until_it_is_asked_for(job: Job) -> None:
    job.write(1, night_table(1, 300, seed=7), "part-1")
    job.night(1)
    mrot_scale.rollback(job.output / "scores" / f"date={day(1)}")
    assert job.night(1).status == "skipped"
    assert job.scores(1).num_rows == ROWS
    assert job.night(1, again=True).status == "done"
    assert job.scores(1).num_rows == ROWS + 300


def test_scores_that_somebody_removed_are_made_again(job: Job) -> None:
    before = published_digests(job.output)
    (job.output / "scores" / f"date={day(1)}").unlink()
    assert job.night(1).status == "done"
    assert published_digests(job.output) == before


def test_other_settings_of_scoring_replace_the_scores(job: Job) -> None:
    before = job.state(1)["published"]
    config = SETTINGS | {"scoring": {"contamination": 0.2}}
    night = nightly(job.lake, job.output, date=day(1), config=config)
    assert (night.status, night.model) == ("done", before["model"])
    assert night.n_flagged > 3 * before["flagged"]


# --- the record of a run -------------------------------------------------------------------------


def test_the_record_says_what_was_asked(done: Job) -> None:
    run = done.last_run(2)
    assert run["argv"]
    assert run["run_id"] == done.state(2)["run_id"]
    assert run["partition"] == {"key": "date", "value": day(2)}
    assert run["interval"] == [f"{day(2)}T00:00:00+00:00", f"{day(3)}T00:00:00+00:00"]
    assert run["config"]["label_rows"] == SETTINGS["label_rows"]
    assert run["config"]["nightly"]["id"] == "reading"
    text = json.dumps(run["config"], indent=1, sort_keys=True) + "\n"
    assert run["config_sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert run["seed"] == 0
    assert run["versions"]["mrot-scale"] == mrot_scale.__version__
    assert run["versions"]["numpy"] == np.__version__


def test_the_record_lists_inputs_with_their_digests(done: Job) -> None:
    path = done.lake / f"date={day(2)}" / "part-0.parquet"
    [found] = done.last_run(2)["inputs"]
    assert (found["name"], found["size"]) == (path.name, path.stat().st_size)
    assert found["digest"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found["stamp"] == path.stat().st_mtime_ns


def test_the_record_lists_outputs_with_their_digests(done: Job) -> None:
    folder = done.output / "scores" / f"date={day(2)}"
    files = {p.name: p.read_bytes() for p in folder.glob("*.parquet")}
    assert done.last_run(2)["outputs"] == {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in files.items()
    }
    assert len(files) == 1


def test_the_record_says_how_it_went(done: Job) -> None:
    run = done.last_run(2)
    assert (run["status"], run["exit_code"], run["attempts"]) == ("published", 0, 1)
    assert run["rows"] == {"rows": ROWS, "missing": 0, "flagged": run["rows"]["flagged"]}
    assert run["model"]["id"] == done.state(1)["published"]["model"]
    assert (run["model"]["fitted_now"], run["model"]["partitions"]) == (False, [f"date={day(1)}"])
    levels = {gate["gate"]: gate["level"] for gate in run["gates"]}
    assert set(levels.values()) == {"ok"}
    assert {"schema", "new_columns", "row_count", "rows_change", "psi", "previous_psi"} <= set(
        levels
    )
    assert {"model", "ingest", "score", "audit"} <= set(run["stages"])
    assert 0 < sum(run["stages"].values()) <= run["seconds"] + 0.05
    assert run["started"] < run["ended"]
    assert {drift["name"] for drift in run["drift"]} == {
        *("temperature", "pressure", "vibration", "site", "score")
    }


def test_a_gate_that_fails_is_on_record(job: Job) -> None:
    job.write(2)
    with pytest.raises(GateError, match=r"date=2026-11-02 is not published\. rows_below: "):
        job.night(2, gates=STRICT)
    run, state = job.last_run(2), job.state(2)
    assert (run["status"], run["exit_code"]) == ("gated", 3)
    assert (state["status"], state["exit_code"], state["level"]) == ("gated", 3, "fail")
    assert state["reason"] == run["reason"]
    assert "rows_below" in run["reason"]
    assert [g["gate"] for g in run["gates"] if g["level"] == "fail"] == ["rows_below"]
    assert run["outputs"] == {} == state["published"]
    assert not (job.output / "scores" / f"date={day(2)}").exists()


def test_a_partition_that_is_not_there_is_told_with_what_there_is(fresh: Job) -> None:
    fresh.write(4)
    told = rf"No date={day(9)} in .*: it has 2, {day(1)} to {day(4)}\."
    with pytest.raises(MissingInputError, match=told) as caught:
        fresh.night(9)
    assert caught.value.exit_code == 66
    assert (fresh.last_run(9)["status"], fresh.last_run(9)["exit_code"]) == ("failed", 66)
    assert (fresh.state(9)["status"], fresh.state(9)["exit_code"]) == ("failed", 66)
    assert fresh.last_run(9)["reason"] == fresh.state(9)["reason"] == str(caught.value)


def test_a_folder_without_tables_is_told(fresh: Job) -> None:
    (fresh.lake / f"date={day(2)}").mkdir()
    (fresh.lake / f"date={day(2)}" / "_SUCCESS").touch()
    with pytest.raises(MissingInputError, match=rf"No table files in .*date={day(2)}"):
        fresh.night(2)


def test_a_night_that_is_terminated_is_on_record_and_goes_on(job: Job) -> None:
    job.write(2)
    words = ["nightly", str(job.lake), str(job.output), "--date", day(2), "--cluster", "inline"]
    words += ["--set", "nightly.id=reading", "--set", "non_finite=impute"]
    with started(mrot(*words), ordered("begin score/*:1:sleep30")) as process:
        wait_until(lambda: '"stage": "ingest"' in process.errors, "rows are being scored")
        assert job.state(2)["status"] == job.last_run(2)["status"] == "running"
        process.send(signal.SIGTERM)
        assert process.wait(15) == 143
        assert process.errors.splitlines()[-1].startswith("mrot-scale: terminated.")
        wait_until(lambda: not session(process.pid), "nothing is left running", 10)
    for found in (job.last_run(2), job.state(2)):
        assert (found["status"], found["exit_code"]) == ("failed", 143)
    assert job.night(2).status == "done"
    assert job.state(2)["attempts"] == 2


# --- gates ---------------------------------------------------------------------------------------


def reported() -> tuple[list[tuple[str, int, int]], Callable[[str, int, int], None]]:
    """What a run reports, and the function to report to."""
    calls: list[tuple[str, int, int]] = []
    return calls, lambda stage, done, total: calls.append((stage, done, total))


def test_a_failed_gate_leaves_what_was_published_and_a_looser_one_publishes(job: Job) -> None:
    before, rows = published_digests(job.output), job.scores(1)
    job.write(1, night_table(1, 1_000, seed=5))
    with pytest.raises(GateError):
        job.night(1, gates=STRICT)
    assert published_digests(job.output) == before
    assert job.scores(1).equals(rows)
    assert job.state(1)["published"]["run_id"] != job.state(1)["run_id"]
    calls, report = reported()
    night = nightly(job.lake, job.output, date=day(1), config=with_nightly(), progress=report)
    assert night.status == "done"
    assert next(call for call in calls if call[0] == "score") == ("score", 1, 1), "done before"
    assert published_digests(job.output) != before
    assert job.state(1)["status"] == "published"


def test_a_gate_that_failed_is_asked_again_though_the_same_rows_are_published(job: Job) -> None:
    with pytest.raises(GateError):
        job.night(1, gates=STRICT, again=True)
    with pytest.raises(GateError):
        job.night(1, gates=STRICT)
    assert job.night(1).status == "done"
    assert job.night(1).status == "skipped"


def test_other_rows_after_a_failed_gate_are_scored(job: Job) -> None:
    job.write(2)
    with pytest.raises(GateError):
        job.night(2, gates=STRICT)
    job.write(2, night_table(2, 1_000, seed=3))
    calls, report = reported()
    night = nightly(job.lake, job.output, date=day(2), config=SETTINGS, progress=report)
    assert (night.status, night.n_rows) == ("done", 1_000)
    assert next(call for call in calls if call[0] == "score") == ("score", 0, 1)
    assert job.scores(2).num_rows == 1_000


def test_a_warning_is_told_and_the_night_published(job: Job) -> None:
    job.write(2)
    night = job.night(2, gates={"rows_below": {"warn": 5_000, "fail": None}})
    assert night.warnings == ["rows_below: 1,200 rows, less than 5,000"]
    assert (night.status, job.state(2)["level"]) == ("done", "warn")


def test_a_column_that_is_missing_stops_the_night_before_it_is_scored(job: Job) -> None:
    job.write(2, night_table(2).drop_columns(["pressure"]))
    with pytest.raises(GateError, match=r"schema: missing column\(s\) 'pressure'"):
        job.night(2)
    assert "score" not in job.last_run(2)["stages"]


def test_the_partition_before_is_looked_at_even_if_it_never_ran(tmp_path: Path, done: Job) -> None:
    job = Job.of(tmp_path, 1, 2)
    job.night(2, refit_from=day(1))
    assert job.state(1) == {}
    assert job.last_run(2)["drift_previous"] == done.last_run(2)["drift_previous"]


def test_a_failure_as_it_publishes_leaves_what_there_was(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = published_digests(job.output)
    job.write(1, night_table(1, 900, seed=3))
    monkeypatch.setattr(faults, "hits", type(faults.hits)())
    for name, value in ordered("publish.written:1:eio").items():
        monkeypatch.setenv(name, value)
    with pytest.raises(OSError, match=r"publish\.written"):
        job.night(1)
    assert published_digests(job.output) == before
    assert (job.state(1)["status"], job.last_run(1)["exit_code"]) == ("failed", 1)
    monkeypatch.undo()
    assert job.night(1).n_rows == 900
    assert published_digests(job.output) != before


# --- nights without rows -------------------------------------------------------------------------


def test_a_night_without_rows_fails_unless_it_may_be_skipped(fresh: Job) -> None:
    fresh.write(1, night_table(1).slice(0, 0))
    with pytest.raises(GateError, match="rows_below: 0 rows"):
        fresh.night(1)
    night = fresh.night(1, empty="skip")
    assert (night.status, night.n_rows, night.scores, night.model) == ("empty", 0, None, None)
    assert (fresh.last_run(1)["status"], fresh.last_run(1)["exit_code"]) == ("empty", 0)
    assert fresh.state(1)["status"] == "empty"
    assert not (fresh.output / "scores").exists()
    assert not (fresh.output / "models").exists()


def test_a_csv_file_of_a_header_alone_is_a_night_without_rows(job: Job) -> None:
    folder = job.lake / f"date={day(2)}"
    folder.mkdir()
    (folder / "readings.csv").write_text(",".join(night_table(2).column_names) + "\n")
    assert job.night(2, empty="skip").status == "empty"


# --- partitions of other kinds -------------------------------------------------------------------


def write_partition(lake: Path, name: str, number: int) -> None:
    (lake / name).mkdir(parents=True)
    pq.write_table(night_table(number), lake / name / "part.parquet")


def test_integers_are_partitions_in_the_order_of_numbers(tmp_path: Path) -> None:
    job = Job.of(tmp_path)
    for number in (7, 8, 10):
        write_partition(job.lake, f"batch={number}", number)
    config = with_nightly(refit_every=2)
    models = {}
    for number in (7, 8, 10):
        name = f"batch={number}"
        night = nightly(job.lake, job.output, partition=name, config=config)
        assert (night.partition, night.status) == (name, "done")
        models[number] = str(night.model)
    assert models[7] == models[8]
    assert models[10].startswith("10-"), "two partitions later, whatever their numbers"
    entry = manifest(job.output / "models" / models[10] / "entry.json")
    assert entry["partitions"] == ["batch=7", "batch=8", "batch=10"]
    whole = ds.dataset(job.output / "scores", partitioning="hive").to_table()
    assert sorted(set(whole["batch"].to_pylist())) == [7, 8, 10]
    again = nightly(job.lake, job.output, partition="batch=10", config=config)
    assert again.status == "skipped"


@pytest.mark.parametrize(
    ("folder", "value"),
    [("place=north east", "north east"), ("place=a%2Fb", "a/b"), ("place=ü=1", "ü=1")],
)
def test_text_of_any_kind_is_a_partition(
    folder: str, value: str, once: Job, tmp_path: Path
) -> None:
    job, model = Job.of(tmp_path), once.state(1)["published"]["model"]
    write_partition(job.lake, folder, 1)
    place = once.output / "models" / model / "model"
    config = with_nightly(model=str(place), exclude=["read_at"])
    night = nightly(job.lake, job.output, partition=f"place={value}", config=config)
    assert (night.partition, night.status) == (f"place={value}", "done")
    assert Path(str(night.scores)).parent == job.output / "scores"
    whole = ds.dataset(job.output / "scores", partitioning="hive").to_table()
    assert set(whole["place"].to_pylist()) == {value}
    assert manifest(night.manifest)["interval"] is None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mrot_scale.errors.LeftOutWarning")
def test_a_key_that_stands_in_the_files_too_changes_nothing(tmp_path: Path, done: Job) -> None:
    job = Job.of(tmp_path)
    for number in (1, 2):
        job.write(number, changed(night_table(number), "date", [day(number)] * ROWS))
        assert job.night(number).warnings == []
    assert job.scores(2)["score"].equals(done.scores(2)["score"])


def test_folders_below_a_partition_are_no_new_columns(tmp_path: Path) -> None:
    job, table = Job.of(tmp_path), night_table(1)
    for site in ("north", "south", "east"):
        folder = job.lake / f"date={day(1)}" / f"site={site}"
        folder.mkdir(parents=True)
        rows = table.filter(pc.equal(table["site"], site)).drop_columns(["site"])
        pq.write_table(rows, folder / "part.parquet")
    night = job.night(1)
    assert night.n_rows == ROWS
    whole = ds.dataset(job.output / "scores", partitioning="hive").to_table()
    assert set(whole["site"].to_pylist()) == {"north", "south", "east"}
    assert night.warnings == []


@pytest.mark.filterwarnings("ignore::mrot_scale.errors.LeftOutWarning")
def test_a_column_that_was_there_in_training_is_not_new_every_night(tmp_path: Path) -> None:
    """One that has no numbers is left out when the model is fitted."""
    job = Job.of(tmp_path)
    job.write(1, changed(night_table(1), "notes", [{"by": "me"}] * ROWS))
    assert job.night(1).warnings == []


@pytest.mark.parametrize("date", ["2026-11-1", "2026-02-30", "20261114", "yesterday", ""])
def test_a_date_that_is_none_is_refused_before_anything_is_written(date: str, fresh: Job) -> None:
    with pytest.raises(ConfigError, match="--date takes a day such as 2026-11-14") as caught:
        nightly(fresh.lake, fresh.output, date=date, config=SETTINGS)
    assert caught.value.exit_code == 78
    assert not fresh.output.exists()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "Name the partition by --date, or by --partition"),
        ({"date": day(1), "partition": "batch=1"}, "Name the partition by --date"),
        ({"partition": "=1"}, "--partition takes KEY=VALUE"),
        ({"partition": "batch="}, "--partition takes KEY=VALUE"),
    ],
)
def test_a_partition_is_named_in_one_way(given: dict[str, Any], told: str, fresh: Job) -> None:
    with pytest.raises(ConfigError, match=told):
        nightly(fresh.lake, fresh.output, config=SETTINGS, **given)


def test_a_key_that_is_set_is_not_overruled_by_a_partition(fresh: Job) -> None:
    with pytest.raises(ConfigError, match="is no partition by 'date'"):
        nightly(fresh.lake, fresh.output, partition="batch=1", config=with_nightly(key="date"))


# --- plans and settings --------------------------------------------------------------------------


def test_a_plan_says_what_will_be_and_does_nothing(job: Job) -> None:
    plan = plan_night(job.lake, job.output.with_name("none"), date=day(1), config=SETTINGS)
    assert (plan.action, plan.files, plan.n_rows) == ("score", 1, ROWS)
    assert plan.model == f"to be fitted for {day(1)} on 1 partition(s) from {day(1)} on"
    assert not job.output.with_name("none").exists()
    model, before = job.state(1)["published"]["model"], tree(job.output)
    plan = plan_night(job.lake, job.output, date=day(1), config=SETTINGS)
    assert plan.action == "skip (nothing changed)"
    assert plan.model == f"{model} (fitted for {day(1)})"
    again = plan_night(job.lake, job.output, date=day(1), config=SETTINGS, again=True)
    assert again.action == "replace"
    write_night(job.lake, 1, night_table(1).slice(0, 0))
    plan = plan_night(job.lake, job.output, date=day(1), config=SETTINGS)
    assert plan.action == "fail (no rows)"
    assert tree(job.output) == before


def test_a_plan_is_the_same_where_drift_decides(fresh: Job) -> None:
    config = with_nightly(refit_drift=0.5)
    fresh.night(1, refit_drift=0.5)
    plan = plan_night(fresh.lake, fresh.output, date=day(1), config=config)
    assert fresh.night(1, refit_drift=0.5).status == "skipped"
    assert plan.action == "skip (nothing changed)"


def test_a_plan_for_a_first_model_from_before_the_lake_is_no_bug(fresh: Job) -> None:
    config = with_nightly(refit_from="2026-10-01")
    try:
        plan_night(fresh.lake, fresh.output, date=day(1), config=config)
    except MrotError as error:
        assert error.exit_code == 66  # noqa: PT017 - either is fine, an IndexError is not


def test_a_run_folder_may_be_set(fresh: Job, tmp_path: Path) -> None:
    config = SETTINGS | {"run": {"folder": str(tmp_path / "run")}}
    assert nightly(fresh.lake, fresh.output, date=day(1), config=config).status == "done"
    fresh.write(2)
    assert nightly(fresh.lake, fresh.output, date=day(2), config=config).status == "done"


def test_rows_that_a_condition_names_are_scored_but_not_learnt_from(tmp_path: Path) -> None:
    """As with `fit`, what stands in the condition is no feature."""
    job = Job.of(tmp_path)
    label = (np.arange(ROWS) % 4 == 0).astype(int)
    job.write(1, changed(night_table(1), "label", label))
    night = job.night(1, exclude_where="label == 1")
    assert night.n_rows == ROWS
    assert features(job, night.model) == ["temperature", "pressure", "vibration", "site"]
