"""Many nights: which of them run and why, what stops them, and several at a time."""

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from mrot_scale.errors import ConfigError, GateError, MissingInputError, MrotError
from mrot_scale.scheduled.backfill import Backfilled, Outcome, backfill
from mrot_scale.scheduled.registry import promote_model
from tests.scheduled.lake import (
    ROWS,
    SETTINGS,
    Job,
    day,
    manifest,
    metrics,
    night_table,
    published_digests,
    spoil,
    tree,
    with_nightly,
)
from tests.servers import mrot, ordered, run, session, started, wait_until

STRICT: dict[str, Any] = with_nightly({"rows_below": {"fail": 5_000}})
SKIPPING: dict[str, Any] = with_nightly(empty="skip")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Three nights that have run; no test changes them."""
    job = Job.of(tmp_path_factory.mktemp("done"), 1, 2, 3)
    assert backfill(job.lake, job.output, config=SETTINGS).exit_code == 0
    return job


@pytest.fixture
def job(done: Job, tmp_path: Path) -> Job:
    """A copy of them."""
    return done.copied(tmp_path)


def filled(job: Job, config: dict[str, Any] = SETTINGS, **given: Any) -> Backfilled:
    return backfill(job.lake, job.output, config=config, **given)


def became(found: Backfilled) -> dict[int, tuple[str, str]]:
    """What became of each night, and why it was to run."""
    return {int(o.partition[-2:]): (o.status, o.why) for o in found.outcomes}


UNCHANGED = ("skipped", "unchanged")


# --- which nights run ----------------------------------------------------------------------------


def test_a_first_backfill_runs_all_nights_with_one_model(done: Job) -> None:
    assert set(published_digests(done.output)) == {f"date={day(n)}" for n in (1, 2, 3)}
    models = [done.state(n)["published"]["model"] for n in (1, 2, 3)]
    assert Counter(models) == {models[0]: 3}
    assert [done.state(n)["attempts"] for n in (1, 2, 3)] == [1, 1, 1]


def test_a_second_one_runs_none(job: Job) -> None:
    before = tree(job.output)
    found = filled(job)
    assert became(found) == {1: UNCHANGED, 2: UNCHANGED, 3: UNCHANGED}
    assert found.exit_code == 0
    assert tree(job.output) == before


def test_nights_from_the_first_to_the_last_are_meant(done: Job, tmp_path: Path) -> None:
    job = Job(done.lake, tmp_path / "out")
    assert became(filled(job, start=day(2), end=day(2))) == {2: ("done", "new")}
    assert became(filled(job, start=day(2), dry_run=True)) == {2: UNCHANGED, 3: ("planned", "new")}
    assert became(filled(job, end=day(2), dry_run=True)) == {1: ("planned", "new"), 2: UNCHANGED}
    assert became(filled(job, start=day(8), dry_run=True)) == {}


def test_a_night_whose_rows_changed_runs_again(job: Job) -> None:
    job.write(2, night_table(2, 300, seed=5), "part-1")
    found = filled(job)
    assert became(found) == {1: UNCHANGED, 2: ("done", "inputs changed"), 3: UNCHANGED}
    assert [o.n_rows for o in found.outcomes if o.status == "done"] == [ROWS + 300]


def test_other_settings_of_scoring_run_all_again_and_other_gates_do_not(job: Job) -> None:
    assert became(filled(job, STRICT)) == {1: UNCHANGED, 2: UNCHANGED, 3: UNCHANGED}
    config = SETTINGS | {"scoring": {"percentile": True}}
    changed = ("done", "settings changed")
    assert became(filled(job, config)) == {1: changed, 2: changed, 3: changed}
    assert "percentile" in job.scores(2).column_names


def test_failed_nights_run_again_only_when_asked_for(job: Job) -> None:
    job.write(4)
    with pytest.raises(GateError):
        job.night(4, gates={"rows_below": {"fail": 5_000}})
    assert became(filled(job, start=day(3))) == {3: UNCHANGED, 4: UNCHANGED}
    found = filled(job, start=day(3), reprocess="failed")
    assert became(found) == {3: UNCHANGED, 4: ("done", "failed before")}


def test_a_run_that_died_is_gone_on_with(job: Job) -> None:
    path = job.output / "runs" / "partitions" / f"date={day(2)}.json"
    path.write_text(json.dumps(job.state(2) | {"status": "running"}))
    assert became(filled(job))[2][1] == "failed before"
    assert job.state(2)["status"] == "published"


def test_all_nights_run_again_on_request_and_give_the_same(job: Job) -> None:
    before = published_digests(job.output)
    found = filled(job, start=day(2), reprocess="all")
    assert became(found) == {2: ("done", "asked for"), 3: ("done", "asked for")}
    assert published_digests(job.output) == before
    assert [job.state(n)["attempts"] for n in (1, 2, 3)] == [1, 2, 2]


def test_late_rows_are_looked_for_so_many_partitions_back(job: Job) -> None:
    job.write(5)
    for number in (1, 2):
        job.write(number, night_table(number, 300, seed=5), "part-1")
    found = filled(job, start=day(4), end=day(5), lookback=2)
    assert became(found) == {2: ("done", "inputs changed"), 3: UNCHANGED, 5: ("done", "new")}
    assert job.scores(1).num_rows == ROWS


def test_only_what_was_never_published_is_missing_and_gaps_are_named(job: Job) -> None:
    job.write(2, night_table(2, 300, seed=5), "part-1")
    for number in (4, 5, 7):
        job.write(number)
    with pytest.raises(GateError):
        job.night(5, gates={"rows_below": {"fail": 5_000}})
    found = filled(job, missing=True, end=day(8))
    gap = ("missing", "no input")
    assert became(found) == {
        **dict.fromkeys((1, 2, 3), UNCHANGED),
        4: ("done", "new"),
        5: ("done", "failed before"),
        6: gap,
        7: ("done", "new"),
        8: gap,
    }
    assert found.exit_code == 0
    assert [o.partition for o in found.outcomes] == [f"date={day(n)}" for n in range(1, 9)]


def test_a_night_without_rows_runs_once_rows_have_come(job: Job) -> None:
    job.write(4, night_table(4).slice(0, 0))
    assert became(filled(job, SKIPPING, start=day(4))) == {4: ("empty", "new")}
    assert became(filled(job, SKIPPING, start=day(4)))[4][0] in ("skipped", "empty")
    job.write(4)
    assert became(filled(job, SKIPPING, start=day(4))) == {4: ("done", "inputs changed")}


def test_a_night_without_rows_is_missing_once_rows_have_come(job: Job) -> None:
    job.write(4, night_table(4).slice(0, 0))
    filled(job, SKIPPING, start=day(4))
    job.write(4)
    assert became(filled(job, SKIPPING, start=day(4), missing=True))[4][0] == "done"


def test_a_night_that_failed_for_its_rows_runs_once_they_are_others(job: Job) -> None:
    """Without --reprocess: what has other inputs since is run."""
    spoil(job.write(4))
    with pytest.raises(MrotError):
        job.night(4)
    job.write(4)
    assert became(filled(job, start=day(4))) == {4: ("done", "inputs changed")}


@pytest.mark.long
def test_a_promotion_is_no_reason_to_run_unless_all_do(job: Job) -> None:
    """What a backfill looks at are inputs and settings; `all` gives what policy says now."""
    job.write(4)
    second = job.night(4, refit_every=3).model
    promote_model(job.output, str(second), day(2))
    assert became(filled(job, end=day(3))) == {1: UNCHANGED, 2: UNCHANGED, 3: UNCHANGED}
    filled(job, end=day(3), reprocess="all")
    assert [job.state(n)["published"]["model"] == second for n in (1, 2, 3)] == [False, True, True]


# --- dry runs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{}, {"reprocess": "all"}, {"missing": True}, {"max_active": 2}])
def test_a_dry_run_writes_nothing(given: dict[str, Any], job: Job, tmp_path: Path) -> None:
    job.write(5)
    before = tree(tmp_path)
    found = filled(job, dry_run=True, **given)
    expected = {1: UNCHANGED, 2: UNCHANGED, 3: UNCHANGED, 5: ("planned", "new")}
    if "reprocess" in given:
        expected = dict.fromkeys(expected, ("planned", "asked for"))
    if "missing" in given:
        expected[4] = ("missing", "no input")
    assert became(found) == expected
    assert tree(tmp_path) == before
    other = Job(job.lake, tmp_path / "never")
    assert {status for status, _ in became(filled(other, dry_run=True)).values()} == {"planned"}
    assert tree(tmp_path) == before


# --- what goes wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize("max_active", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_file_nobody_can_read_does_not_stop_other_nights(max_active: int, tmp_path: Path) -> None:
    job = Job.of(tmp_path, 1, 2, 3)
    spoil(job.write(2))
    told: list[Outcome] = []
    found = filled(job, config=with_nightly(), max_active=max_active, told=told.append)
    assert {n: status for n, (status, _) in became(found).items()} == {
        **{1: "done", 2: "failed", 3: "done"}
    }
    assert found.exit_code == 65
    assert (found.outcomes[1].exit_code, found.outcomes[1].model) == (65, None)
    assert "part-0.parquet cannot be read as Parquet" in found.outcomes[1].reason
    assert sorted(told, key=lambda o: o.partition) == found.outcomes
    assert set(published_digests(job.output)) == {f"date={day(1)}", f"date={day(3)}"}


def test_a_night_that_fails_as_its_model_is_seen_to_is_on_record(job: Job) -> None:
    """As when it runs alone: state, run.json and report say so, and metrics count it."""
    spoil(job.write(4))
    assert filled(job).exit_code == 65
    assert (job.state(4).get("status"), job.state(4).get("exit_code")) == ("failed", 65)
    assert metrics(job.output)["partitions"]["failed"] == 1
    assert (job.output / "reports" / f"date={day(4)}.html").exists()


def test_the_exit_code_is_that_of_the_first_night_that_failed(job: Job) -> None:
    job.write(4, night_table(4).slice(0, 0))
    spoil(job.write(5))
    found = filled(job)
    assert [(o.exit_code, o.status) for o in found.outcomes[3:]] == [(3, "failed"), (65, "failed")]
    assert found.exit_code == 3
    assert job.state(4)["status"] == "gated"


@pytest.mark.slow
def test_what_ends_a_process_of_its_own_is_told_as_if_it_had_none(job: Job) -> None:
    job.write(4)
    job.write(5)
    found = filled(job, STRICT, max_active=2)
    assert [(o.exit_code, o.status) for o in found.outcomes[3:]] == [(3, "failed"), (3, "failed")]
    told = "date=2026-11-04 is not published. rows_below: 1,200 rows, less than 5,000."
    assert found.outcomes[3].reason == told == job.state(4)["reason"]


@pytest.mark.slow
def test_a_process_that_is_killed_is_told_with_a_code_and_in_words(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a machine does that runs out of memory."""
    job.write(4)
    for name, value in ordered("begin score/*:1:kill").items():
        monkeypatch.setenv(name, value)
    found = filled(job, start=day(4), max_active=2)
    assert found.outcomes[0].status == "failed"
    assert 0 < found.exit_code < 256
    assert '"event"' not in found.outcomes[0].reason


def test_a_lake_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="Nothing at"):
        backfill(tmp_path / "lake", tmp_path / "out", config=SETTINGS)
    assert not (tmp_path / "out").exists()


def test_less_than_one_at_a_time_is_refused(job: Job) -> None:
    with pytest.raises(ConfigError, match="max_active must be at least 1, got 0"):
        filled(job, max_active=0)


# --- several at a time ---------------------------------------------------------------------------


@pytest.mark.slow
def test_two_at_a_time_give_the_same_scores_as_one(done: Job, tmp_path: Path) -> None:
    job = Job(done.lake, tmp_path / "out")
    found = filled(job, max_active=2)
    assert became(found) == dict.fromkeys((1, 2, 3), ("done", "new"))
    assert [o.n_rows for o in found.outcomes] == [ROWS] * 3
    assert published_digests(job.output) == published_digests(done.output)
    runs = [job.last_run(n) for n in (1, 2, 3)]
    assert len({run["pid"] for run in runs}) == 3
    assert runs[0]["config"] == done.last_run(1)["config"]


@pytest.mark.long
def test_models_that_are_due_are_fitted_in_order_before_two_run_at_a_time(tmp_path: Path) -> None:
    job = Job.of(tmp_path, 1, 2, 3, 4)
    other = Job(job.lake, tmp_path / "one")
    config = with_nightly(refit_every=2)
    assert filled(job, config, max_active=2).exit_code == 0
    assert filled(other, config).exit_code == 0
    assert published_digests(job.output) == published_digests(other.output)
    models = [job.state(n)["published"]["model"][:10] for n in (1, 2, 3, 4)]
    assert models == [day(1), day(1), day(3), day(3)]
    assert not any(job.last_run(n)["stages"]["model"] > 1 for n in (1, 2, 3, 4))


@pytest.mark.slow
def test_a_backfill_that_is_terminated_ends_its_processes_and_goes_on(job: Job) -> None:
    for number in (4, 5, 6):
        job.write(number)
    config = job.output.with_name("settings.yaml")
    config.write_text(yaml.safe_dump(json.loads(json.dumps(SETTINGS))))
    command = mrot("backfill", str(job.lake), str(job.output), "-c", str(config))
    command += ["--max-active", "2", "--output", "json"]

    def scoring() -> bool:
        work = [job.output / "runs" / "work" / f"date={day(n)}" / "scores.run" for n in (4, 5, 6)]
        logs = [place / "log.jsonl" for place in work]
        return len([log for log in logs if log.exists() and "workers" in log.read_text()]) == 2

    with started(command, ordered("begin score/*:1:sleep60")) as process:
        wait_until(scoring, "two nights are being scored")
        assert len(session(process.pid)) == 3
        process.send(signal.SIGTERM)
        assert process.wait(15) == 143
        wait_until(lambda: not session(process.pid), "nothing is left running", 10)
        assert process.errors.splitlines()[-1].startswith("mrot-scale: terminated.")
        assert process.output == ""
    ended = {n: job.state(n).get("status") for n in (4, 5, 6)}
    assert ended == {4: "failed", 5: "failed", 6: None}
    runs = [job.last_run(n) for n in (4, 5)]
    assert [(r["status"], r["exit_code"]) for r in runs] == [("failed", 143), ("failed", 143)]
    again = run(command)
    assert again.returncode == 0, again.stderr
    found = {o["partition"]: o["status"] for o in json.loads(again.stdout)["outcomes"]}
    assert [found[f"date={day(n)}"] for n in (4, 5, 6)] == ["done"] * 3
    assert len(published_digests(job.output)) == 6


def test_a_fit_in_a_backfill_counts_in_no_run_and_is_on_record_all_the_same(done: Job) -> None:
    model = done.state(1)["published"]["model"]
    assert done.last_run(1)["model"]["why"] == f"fitted for {day(1)}"
    entry = manifest(done.output / "models" / model / "entry.json")
    assert (entry["partitions"], entry["rows"]) == ([f"date={day(1)}"], ROWS)
