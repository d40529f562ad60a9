"""Scheduled jobs on the command line: help, results, exit codes, logs, and what stays secret."""

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from mrot_scale import cli
from mrot_scale.scheduled.comparison import compare_models
from tests.scheduled.lake import (
    ROWS,
    SETTINGS,
    Job,
    changed,
    day,
    manifest,
    night_table,
    published_digests,
    ran,
    tree,
    with_nightly,
)

COMMANDS = (
    *("nightly", "backfill", "gc", "rollback", "runs list"),
    *("models list", "models promote", "models compare"),
)
NIGHT_KEYS = {
    *("partition", "status", "n_rows", "n_flagged", "flagged_share", "model", "scores", "report"),
    *("manifest", "run_id", "warnings", "seconds"),
}

Called = tuple[int, str, str]
"""Exit code, output and log."""

Caller = Callable[..., Called]


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Caller:
    """Call the command line within this process."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, os.environ.get(name, "1"))

    def call(*words: str) -> Called:
        monkeypatch.setattr(sys, "argv", ["mrot-scale", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        found = capsys.readouterr()
        return int(ended.value.code or 0), found.out, found.err

    return call


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Two nights with a model each that have run, with their settings in a file."""
    job = Job.of(tmp_path_factory.mktemp("done"), 1, 2)
    for number in (1, 2):
        job.night(number, refit_every=1)
    write_settings(job, with_nightly(refit_every=1))
    return job


@pytest.fixture
def job(done: Job, tmp_path: Path) -> Job:
    """A copy of it."""
    return done.copied(tmp_path)


def settings_file(job: Job) -> Path:
    return job.lake.with_name("settings.yaml")


def write_settings(job: Job, settings: dict[str, Any]) -> None:
    settings_file(job).write_text(yaml.safe_dump(json.loads(json.dumps(settings))))


def words_for(job: Job, command: str, *words: str) -> list[str]:
    places = [str(job.lake), str(job.output), "-c", str(settings_file(job))]
    return [command, *places, *words]


def models_of(job: Job) -> list[str]:
    return [job.state(n)["published"]["model"] for n in (1, 2)]


# --- help and completion -------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_has_an_example(command: str) -> None:
    found = CliRunner().invoke(cli.app, [*command.split(), "--help"], prog_name="mrot-scale")
    assert found.exit_code == 0
    text = " ".join(found.output.split())
    assert f"Example: mrot-scale {command} " in text
    assert f"Usage: mrot-scale {command} [OPTIONS]" in text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mrot-scale ni", {"nightly"}),
        ("mrot-scale models ", {"list", "promote", "compare"}),
        ("mrot-scale backfill --rep", {"--reprocess"}),
    ],
)
def test_a_shell_completes_commands(line: str, expected: set[str], tmp_path: Path) -> None:
    """Bash finds out that it is asked for, gets its script, and completes by it."""
    program = tmp_path / "mrot-scale"
    program.write_text(f"#!{sys.executable}\nfrom mrot_scale.cli import main\nmain()\n")
    program.chmod(0o755)
    script = f"""
        eval "$(mrot-scale --show-completion; true)"
        COMP_WORDS=({line})
        [[ "{line}" == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _mrot_scale_completion mrot-scale
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=Path(__file__).parent.parent.parent,
        env={
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "PYTHONPATH": str(Path(__file__).parent.parent.parent),
            "SHELL": "/bin/bash",
        },
    )
    assert set(done.stdout.split()) == expected, done.stderr


# --- results -------------------------------------------------------------------------------------


def test_a_night_is_one_json_document_and_its_log_lines_of_json(job: Job) -> None:
    job.write(3)
    code, out, log = ran(*words_for(job, "nightly", "--date", day(3), "--output", "json"))
    assert code == 0, log
    found = json.loads(out)
    assert set(found) == NIGHT_KEYS
    assert (found["partition"], found["status"], found["n_rows"]) == (
        f"date={day(3)}",
        "done",
        ROWS,
    )
    assert manifest(found["manifest"])["argv"][1:3] == ["nightly", str(job.lake)]
    assert Path(found["report"]).exists()
    assert Path(found["scores"]).exists()
    events = [json.loads(line) for line in log.splitlines()]
    assert {event["run_id"] for event in events} == {found["run_id"]}
    assert {event["event"] for event in events} == {"stage"}
    stages = [event["stage"] for event in events]
    assert stages[0] == "ingest"
    assert stages[-1] == "score"
    assert all(event["steps"] >= event["done_before"] == 0 for event in events)


def test_a_night_is_told_in_words(job: Job, called: Caller) -> None:
    code, out, log = called(*words_for(job, "nightly", "--date", day(2)))
    assert (code, log) == (0, "")
    first, *others = out.splitlines()
    assert first.startswith(f"already done: date={day(2)}: 1,200 rows scored, ")
    assert f"by model {models_of(job)[1]}" in first
    assert [line.split(":")[0].strip() for line in others] == ["scores", "report", "run"]


def test_a_dry_run_of_a_night_is_told_and_writes_nothing(job: Job, called: Caller) -> None:
    job.write(3)
    before = tree(job.lake.parent)
    words = words_for(job, "nightly", "--date", day(3), "--dry-run")
    code, out, log = called(*words)
    assert (code, log) == (0, "")
    assert out.splitlines()[0] == f"date={day(3)}: score"
    found = json.loads(called(*words, "--output", "json")[1])
    assert (found["action"], found["n_rows"], found["files"]) == ("score", ROWS, 1)
    assert found["model"] == f"to be fitted for {day(3)} on 3 partition(s) from {day(1)} on"
    assert tree(job.lake.parent) == before


def test_a_backfill_is_one_json_document(job: Job, called: Caller) -> None:
    job.write(4)
    words = words_for(job, "backfill", "--start", day(2), "--missing", "--output", "json")
    code, out, log = called(*words)
    assert code == 0, log
    found = json.loads(out)
    assert found["exit_code"] == 0
    assert [(o["partition"], o["status"], o["why"]) for o in found["outcomes"]] == [
        (f"date={day(2)}", "skipped", "unchanged"),
        (f"date={day(3)}", "missing", "no input"),
        (f"date={day(4)}", "done", "new"),
    ]
    assert all(isinstance(json.loads(line), dict) for line in log.splitlines())


def test_a_backfill_is_told_in_words(job: Job, called: Caller) -> None:
    job.write(3)
    code, out, _ = called(*words_for(job, "backfill", "--dry-run"))
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["skipped", f"date={day(1)}"],
        ["skipped", f"date={day(2)}"],
        ["planned", f"date={day(3)}"],
    ]
    assert called(*words_for(job, "backfill", "--start", day(9)))[1] == "no partitions\n"


def test_models_are_listed_promoted_and_compared(job: Job, called: Caller) -> None:
    first, second = models_of(job)
    output = str(job.output)
    found = json.loads(called("models", "list", output, "--output", "json")[1])
    assert [(m["id"], m["rows"], m["promoted"]) for m in found] == [
        (first, ROWS, []),
        (second, 2 * ROWS, []),
    ]
    words: tuple[str, ...] = ("models", "promote", output, first, "--from", day(2))
    dry = json.loads(called(*words, "--dry-run", "--output", "json")[1])
    assert dry == {"model": first, "from": day(2), "dry_run": True}
    assert "promoted" not in called("models", "list", output)[1]
    assert called(*words)[1] == f"{first} scores date={day(2)} and later\n"
    text = called("models", "list", output)[1].splitlines()
    assert text[0].startswith(f"{first}  1,200 rows, fitted ")
    assert text[0].endswith(f", promoted from {day(2)}")
    rows, config = str(job.lake / f"date={day(2)}"), str(settings_file(job))
    words = ("models", "compare", output, first, "latest", rows, "-c", config)
    figures = json.loads(called(*words, "--output", "json")[1])
    expected = compare_models(output, first, second, rows, SETTINGS)
    assert figures == json.loads(json.dumps(expected.__dict__))
    told = called(*words)[1]
    assert f"rank correlation {expected.rank_correlation:.4f}" in told
    assert f"overlap {expected.flagged_overlap:.1%}" in told


def test_old_things_are_collected_and_runs_listed(job: Job, called: Caller) -> None:
    runs = json.loads(called("runs", "list", str(job.output / "runs"), "--output", "json")[1])
    assert len(runs) == 2
    words = ("gc", str(job.output), "--keep-runs", "0", "--keep-days", "0")
    found = json.loads(called(*words, "--dry-run", "--output", "json")[1])
    assert found == {"is_dry": True, "removals": []}, "both are published"
    assert called(*words)[:2] == (0, "nothing to remove\n")


def test_scores_are_rolled_back(job: Job, called: Caller) -> None:
    before = published_digests(job.output)
    job.write(2, night_table(2, 300, seed=5), "part-1")
    assert called(*words_for(job, "nightly", "--date", day(2)))[0] == 0
    assert published_digests(job.output) != before
    assert called("rollback", str(job.output / "scores" / f"date={day(2)}"))[0] == 0
    assert published_digests(job.output) == before


def test_a_model_and_groups_are_named_by_flags(job: Job, called: Caller) -> None:
    first = models_of(job)[0]
    words = words_for(job, "nightly", "--date", day(2), "--model", first, "--output", "json")
    assert json.loads(called(*words)[1])["model"] == first
    write_settings(job, SETTINGS)
    other = Job(job.lake, job.output.with_name("by-site"))
    words = words_for(other, "nightly", "--date", day(1), "--by", "site", "--output", "json")
    code, out, log = called(*words, "--set", "nightly.group_rows=300")
    assert code == 0, log
    assert set(manifest(json.loads(out)["manifest"])["groups"]) == {
        *("north", "south", "east", "(shared)")
    }


def test_partitions_of_another_key_are_named_by_a_flag(job: Job, called: Caller) -> None:
    (job.lake / "batch=7").mkdir()
    (job.lake / f"date={day(1)}" / "part-0.parquet").rename(job.lake / "batch=7" / "part-0.parquet")
    words = words_for(job, "nightly", "--partition", "batch=7", "--output", "json")
    code, out, log = called(*words)
    assert code == 0, log
    assert json.loads(out)["partition"] == "batch=7"
    assert (job.output / "scores" / "batch=7").exists()


@pytest.mark.parametrize("way", ["--set", "a file", "the environment"])
def test_a_day_may_be_a_setting(
    way: str, job: Job, called: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """YAML takes 2026-11-01 for a date, where nobody has put it in quotes."""
    words = words_for(job, "nightly", "--date", day(2), "--dry-run")
    if way == "--set":
        words += ["--set", f"nightly.refit_from={day(1)}"]
    elif way == "a file":
        text = settings_file(job).read_text()
        settings_file(job).write_text(text.replace("nightly:", f"nightly:\n  refit_from: {day(1)}"))
    else:
        monkeypatch.setenv("MROT_NIGHTLY__REFIT_FROM", day(1))
    code, _, log = called(*words)
    assert code == 0, log


# --- exit codes ----------------------------------------------------------------------------------


def test_a_gate_that_fails_is_exit_3_and_told_in_one_last_line(job: Job, called: Caller) -> None:
    job.write(3)
    words = words_for(job, "nightly", "--date", day(3), "--output", "json")
    code, out, log = called(*words, "--set", "gates.rows_below.fail=5000")
    assert (code, out) == (3, "")
    *events, last = log.splitlines()
    assert last == (
        f"mrot-scale: error[3]: date={day(3)} is not published. "
        "rows_below: 1,200 rows, less than 5,000."
    )
    [run_id] = {json.loads(event)["run_id"] for event in events}
    assert manifest(job.output / "runs" / run_id / "run.json")["status"] == "gated"
    code, out, log = called(*words)
    assert (code, json.loads(out)["status"]) == (0, "done")
    scored = [json.loads(line) for line in log.splitlines() if '"score"' in line]
    assert [(event["done_before"], event["steps"]) for event in scored] == [(1, 1)]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--date", day(9)], 66, f"it has 2, {day(1)} to {day(2)}."),
        (["--date", "2026-11-31"], 78, "--date takes a day such as 2026-11-14"),
        (["--date", "tomorrow"], 78, "--date takes a day such as 2026-11-14"),
        ([], 78, "Name the partition by --date, or by --partition KEY=VALUE."),
        (["--date", day(1), "--partition", "date=1"], 78, "Name the partition by --date"),
        (["--date", day(1), "--model", "2026-11-01-0123456789"], 66, "it has: "),
        (["--date", day(1), "--set", "nightly.refit_evry=2"], 78, "Did you mean"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(
    words: list[str], code: int, told: str, done: Job, called: Caller, tmp_path: Path
) -> None:
    copy = done.copied(tmp_path)
    found, out, log = called(*words_for(copy, "nightly", *words))
    assert (found, out) == (code, "")
    [line] = log.splitlines()
    assert line.startswith(f"mrot-scale: error[{code}]: ")
    assert told in line


@pytest.mark.parametrize("command", ["nightly", "backfill"])
def test_nothing_to_do_is_exit_99_only_when_asked_for(
    command: str, job: Job, called: Caller
) -> None:
    write_settings(job, with_nightly(refit_every=1, empty="skip"))
    job.write(3, night_table(3).slice(0, 0))
    range_ = ["--start", day(3), "--end", day(3)]
    empty = words_for(job, command, *(range_ if command == "backfill" else ["--date", day(3)]))
    range_ = ["--start", day(1), "--end", day(1)]
    same = words_for(job, command, *(range_ if command == "backfill" else ["--date", day(1)]))
    for words in (empty, same):
        assert called(*words)[0] == 0
        assert called(*words, "--skip-exit-code")[0] == 99
    job.write(4)
    range_ = ["--start", day(4)]
    new = words_for(job, command, *(range_ if command == "backfill" else ["--date", day(4)]))
    assert called(*new, "--skip-exit-code")[0] == 0


def test_a_backfill_ends_with_the_code_of_what_failed(job: Job, called: Caller) -> None:
    job.write(3, night_table(3).drop_columns(["pressure"]))
    job.write(4)
    words = words_for(job, "backfill", "--set", "nightly.refit_every=null")
    code, out, _ = called(*words, "--set", f"nightly.model={models_of(job)[0]}")
    assert code == 3
    lines = out.splitlines()
    assert lines[2].startswith(f"failed [3]   date={day(3)}  (new)  ")
    assert lines[3].startswith(f"done         date={day(4)}  (new)  1,200 rows, ")


# --- warnings and secrets ------------------------------------------------------------------------


@pytest.mark.filterwarnings("always")
def test_warnings_are_events_of_the_run(
    job: Job, called: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.write(3, changed(night_table(3), "humidity", [0.5] * ROWS))
    words = words_for(job, "nightly", "--date", day(3), "--output", "json")
    words += ["--model", models_of(job)[0]]
    monkeypatch.setenv("MROT_WEBHOOK", "http://127.0.0.1:9/T0KEN")
    code, out, log = called(*words)
    assert code == 0, log
    found, events = json.loads(out), [json.loads(line) for line in log.splitlines()]
    assert found["warnings"] == ["new_columns: new column(s) 'humidity', not scored"]
    assert {event["run_id"] for event in events} == {found["run_id"]}
    told = [event["message"] for event in events if event["event"] == "warning"]
    assert told == ["Alert to 127.0.0.1 failed: URLError."]


SECRET = "T0KEN-b1946ac9"
ALERT = [sys.executable, "-c", "pass", SECRET]
CLASS: dict[str, Any] = {
    "kind": "distributed:LocalCluster",
    "arguments": {
        **{"n_workers": 1, "threads_per_worker": 1, "processes": False},
        **{"dashboard_address": None, "name": SECRET},
    },
}
PLACES: dict[str, tuple[dict[str, Any], list[str], dict[str, str]]] = {
    "the environment": (
        {},
        [],
        {
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_SESSION_TOKEN": SECRET,
            "MROT_WEBHOOK": f"http://user:{SECRET}@127.0.0.1:9/{SECRET}?token={SECRET}",
        },
    ),
    "an alert command in a file": ({"nightly": {"alert_command": ALERT}}, [], {}),
    "arguments of a cluster in a file": ({"cluster": CLASS}, [], {}),
    "arguments of a cluster in flags": (
        {"cluster": CLASS | {"arguments": {**CLASS["arguments"], "name": "x"}}},
        ["--set", f"cluster.arguments={json.dumps(CLASS['arguments'])}"],
        {},
    ),
}
"""Where secrets may come from: settings, words and variables."""


@pytest.mark.parametrize(
    "where",
    [pytest.param(w, marks=pytest.mark.slow) if "cluster" in w else w for w in PLACES],
)
@pytest.mark.filterwarnings("always")
def test_a_secret_stands_in_no_file_and_no_log(
    where: str, tmp_path: Path, called: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that a gate stops leaves most behind, and one after it publishes."""
    settings, words, variables = PLACES[where]
    job = Job.of(tmp_path, 1)
    nightly = SETTINGS["nightly"] | settings.get("nightly", {})
    write_settings(job, SETTINGS | settings | {"nightly": nightly})
    words = words_for(job, "nightly", "--date", day(1), "--output", "json", *words)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    call = ran if "cluster" in where else called
    for gate, expected in (("5000", 3), ("1", 0)):
        done = call(*words, "--set", f"gates.rows_below.fail={gate}")
        assert done[0] == expected, done[2]
        assert SECRET not in done[1] + done[2]
        files = [path for path in job.output.rglob("*") if path.is_file()]
        found = [path for path in files if SECRET.encode() in path.read_bytes()]
        assert [str(path.relative_to(job.output)) for path in found] == []
