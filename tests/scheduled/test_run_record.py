"""Run records: what was asked, done and found, whatever the end, and no secret among it."""

import json
import os
import re
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mrot_scale import __version__
from mrot_scale.config.job import full_config
from mrot_scale.config.text import shown_settings
from mrot_scale.errors import GateError, MissingInputError, StorageError
from mrot_scale.scheduled.layout import Layout
from mrot_scale.scheduled.partitions import Partition
from mrot_scale.scheduled.run_record import FORMAT, RUN_FILE, RunRecord, reason_of
from mrot_scale.storing.location import Location

NIGHT = Partition("date", "2026-11-14")
SECRET = "T0KEN-b1946ac9"
SECRETS: dict[str, Any] = {
    "nightly": {"alert_command": ["notify", "--token", SECRET]},
    "cluster": {
        "kind": "dask_jobqueue:SLURMCluster",
        "arguments": {"env_extra": [SECRET], "deep": {"deeper": SECRET}},
    },
}


def record_in(folder: Path, partition: Partition = NIGHT, **settings: Any) -> RunRecord:
    return RunRecord(Layout(Location(folder)), partition, full_config(settings))


def read(record: RunRecord) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((record.location / RUN_FILE).read())
    return found


def test_a_run_is_on_record_from_its_beginning(tmp_path: Path) -> None:
    record = record_in(tmp_path, seed=7)
    assert not (tmp_path / "runs").exists()
    record.write()
    found = read(record)
    assert found == json.loads(json.dumps(record.facts))
    assert found["format"] == FORMAT
    assert found["status"] == "running"
    assert found["partition"] == {"key": "date", "value": "2026-11-14"}
    assert found["interval"] == ["2026-11-14T00:00:00+00:00", "2026-11-15T00:00:00+00:00"]
    assert (found["pid"], found["seed"]) == (os.getpid(), 7)
    assert found["versions"]["mrot-scale"] == __version__
    assert "exit_code" not in found
    began = datetime.fromisoformat(found["started"])
    assert abs((datetime.now(UTC) - began).total_seconds()) < 60


def test_records_are_named_by_moment_and_partition_and_never_alike(tmp_path: Path) -> None:
    ids = [record_in(tmp_path).id for _ in range(50)]
    assert len(set(ids)) == 50
    for id in ids:
        assert re.fullmatch(r"\d{8}T\d{6}Z-2026-11-14-[0-9a-f]{6}", id)


@pytest.mark.parametrize("value", ["../../etc", "a/b", "x" * 500, "a\nb", "\0", "größe 😀", "."])
def test_a_record_of_any_partition_lies_in_one_folder_below_the_runs(
    value: str, tmp_path: Path
) -> None:
    record = record_in(tmp_path, Partition("site", value))
    record.write()
    assert record.location.path.parent == tmp_path / "runs"
    assert read(record)["partition"]["value"] == value
    assert read(record)["interval"] is None


def test_how_a_run_ended_is_written_with_its_time(tmp_path: Path) -> None:
    record = record_in(tmp_path)
    record.write()
    time.sleep(0.02)
    record.finish("gated", 3, reason="psi: moved")
    found = read(record)
    assert (found["status"], found["exit_code"], found["reason"]) == ("gated", 3, "psi: moved")
    assert 0.02 <= found["seconds"] < 30
    assert found["ended"] >= found["started"]


def test_storage_that_is_away_does_not_hide_how_a_run_ended(tmp_path: Path) -> None:
    record = record_in(tmp_path)
    (tmp_path / "runs").write_bytes(b"no folder")
    record.finish("failed", 75)
    assert record.facts["exit_code"] == 75


# --- secrets


def test_no_secret_is_in_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MROT_WEBHOOK", f"https://hooks.example.com/{SECRET}")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    record = record_in(tmp_path, **SECRETS)
    record.write()
    record.finish("published", 0)
    assert SECRET not in (record.location / RUN_FILE).read().decode()


def test_settings_that_may_be_secret_are_named_and_not_shown() -> None:
    shown = shown_settings(full_config(SECRETS))
    assert shown["nightly"]["alert_command"] == "(not shown)"
    assert shown["cluster"]["arguments"] == "(not shown)"
    assert shown["cluster"]["kind"] == "dask_jobqueue:SLURMCluster"


def test_settings_that_are_not_given_are_shown_as_they_are() -> None:
    shown = shown_settings(full_config({"seed": 3}))
    assert shown["nightly"]["alert_command"] == []
    assert shown["cluster"]["arguments"] == {}
    assert shown["seed"] == 3
    assert shown["gates"]["psi"] == {"warn": 0.25, "fail": None}


def test_the_digest_of_settings_tells_them_apart_and_nothing_of_secrets(tmp_path: Path) -> None:
    def digest(**settings: Any) -> str:
        return str(record_in(tmp_path, **settings).facts["config_sha256"])

    assert digest() == digest()
    assert digest(seed=1) != digest(seed=2)
    other = {"nightly": {"alert_command": ["notify", "--token", "another"]}}
    assert digest(nightly=SECRETS["nightly"]) == digest(**other)


# --- time


def test_seconds_of_a_stage_add_up_even_where_it_fails(tmp_path: Path) -> None:
    record = record_in(tmp_path)
    with record.stage("model"):
        time.sleep(0.02)
    first = record.facts["stages"]["model"]
    with suppress(ValueError), record.stage("model"):
        time.sleep(0.02)
        raise ValueError
    assert 0.02 <= first < 10
    assert first + 0.02 <= record.facts["stages"]["model"] < 20


def test_reported_stages_are_timed_and_passed_on(tmp_path: Path) -> None:
    record, heard = record_in(tmp_path), []
    report = record.timed(lambda *step: heard.append(step))
    report("fit", 0, 2)
    time.sleep(0.02)
    report("fit", 1, 2)
    assert record.facts["stages"] == {}, "not before it is through"
    report("fit", 2, 2)
    first = record.facts["stages"]["fit"]
    assert 0.02 <= first < 10
    report("score", 0, 1)
    report("fit", 0, 1)
    time.sleep(0.02)
    report("fit", 1, 1)  # it comes again
    report("score", 1, 1)
    assert record.facts["stages"]["fit"] >= first + 0.02
    assert record.facts["stages"]["score"] >= 0.02
    assert heard[:3] == [("fit", 0, 2), ("fit", 1, 2), ("fit", 2, 2)]
    assert len(heard) == 7


def test_a_stage_of_no_steps_takes_no_time(tmp_path: Path) -> None:
    record = record_in(tmp_path)
    report = record.timed(None)
    report("fit", 0, 0)
    assert record.facts["stages"] == {}


# --- reasons


class Stopped(BaseException):
    number = 15


def noted(error: BaseException, *notes: str) -> BaseException:
    for note in notes:
        error.add_note(note)
    return error


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (GateError("date=x is not published."), 3, "date=x is not published."),
        (MissingInputError("Nothing at /x."), 66, "Nothing at /x."),
        (
            noted(StorageError("Disk full."), "stage fit", "task 3"),
            75,
            "Disk full. (stage fit) (task 3)",
        ),
        (ValueError("two\nlines\tand   spaces"), 1, "two lines and spaces"),
        (ZeroDivisionError(), 1, "ZeroDivisionError"),
        (KeyboardInterrupt(), 130, "KeyboardInterrupt"),
        (Stopped(), 143, "Stopped"),
    ],
)
def test_the_reason_of_an_error_is_one_line_and_its_exit_code(
    error: BaseException, code: int, reason: str
) -> None:
    assert reason_of(error) == (code, reason)
