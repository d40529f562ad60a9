"""Every command, asked for JSON: one document on standard output and nothing else there."""

import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from typer.main import get_command
from typer.testing import CliRunner

from mrot_scale import cli
from mrot_scale.commands.printing import closing_lines, stage_lines
from tests.jobs.made import TINY
from tests.scheduled.lake import day, night_table, write_night
from tests.terminals import shown

Called = Callable[..., Any]


def commands(group: Any, *before: str) -> Iterator[tuple[str, Any]]:
    """Yield every command with the words that call it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *before, name)
        else:
            yield " ".join([*before, name]), command


COMMANDS = dict(commands(get_command(cli.app)))
LONG = {"ingest", "fit", "score", "nightly", "backfill", "demo"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_both_forms_and_long_ones_can_be_quiet(name: str) -> None:
    told = CliRunner().invoke(cli.app, [*name.split(), "--help"]).output
    assert re.search(r"--output [<\[]text\|json[>\]]", told)
    assert "[default: text]" in told
    options = {word for option in COMMANDS[name].params for word in option.opts}
    assert ("--quiet" in options) == ("-q" in options) == (name in LONG)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, a lake and settings."""
    folder = tmp_path_factory.mktemp("work")
    pq.write_table(night_table(1, 300), folder / "table.parquet")
    write_night(folder / "lake", 1, night_table(1, 300))
    settings = TINY | {"nightly": {"id": "reading"}}
    (folder / "settings.yaml").write_text(yaml.safe_dump(settings))
    return folder


@pytest.fixture
def called(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Called:
    """Call a command in that folder; return the JSON it printed."""
    monkeypatch.chdir(work)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, os.environ.get(name, "1"))

    def call(text: str) -> Any:
        monkeypatch.setattr(sys, "argv", ["mrot-scale", *text.split(), "--output", "json"])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        found = capsys.readouterr()
        assert not ended.value.code, found.err
        return json.loads(found.out)

    return call


ASKED = (
    "ingest table.parquet store --id reading -c settings.yaml",
    "fit store model -c settings.yaml",
    "score model store scores -c settings.yaml --parquet scores.parquet",
    "inspect model",
    "explain model --store store --number 3",
    "threshold model",
    "flagged scores --model model",
    "digest scores",
    "verify store",
    "runs list",
    "runs show model",
    "doctor --storage .",
    "config show -c settings.yaml",
    "config schema",
    "config init new.yaml",
    "certificates tls --host scheduler.example",
    "demo --dry-run",
    f"nightly lake out --date {day(1)} -c settings.yaml",
    "backfill lake out -c settings.yaml",
    "history out",
    "models list out",
    f"models compare out latest latest lake/date={day(1)} -c settings.yaml",
    f"models promote out latest --from {day(2)}",
    "gc out --dry-run",
    "score model store scores -c settings.yaml --parquet scores.parquet --new-run "
    "--set scoring.contamination=0.2",
    "rollback scores scores.parquet",
)  # in this order: each finds what those before it made


def test_json_is_one_document_alone(called: Called) -> None:
    answers = {text: called(text) for text in ASKED}
    assert {name for name in COMMANDS for text in ASKED if text.startswith(name)} == set(COMMANDS)
    assert answers[ASKED[0]]["stages"].keys() == {"ingest"}
    assert answers[ASKED[1]]["stages"].keys() >= {"sample", "train", "validate"}
    assert len(answers["digest scores"]["sha256"]) == 64
    rolled = answers["rollback scores scores.parquet"]
    assert [each["path"] for each in rolled] == ["scores", "scores.parquet"]
    assert answers["config init new.yaml"]["path"] == "new.yaml"
    shown_settings = answers["config show -c settings.yaml"]
    assert shown_settings["cluster"]["kind"] == "inline"
    made = answers["certificates tls --host scheduler.example"]
    assert made["settings"]["cluster"]["address"] == "tls://scheduler.example:8786"


@pytest.mark.parametrize(
    "text", ["demo --dry-run", "certificates other --dry-run", "config init --dry-run"]
)
def test_dry_runs_speak_json_too(called: Called, text: str) -> None:
    assert isinstance(called(text), dict)


def test_the_end_says_what_was_made_where_how_long_it_took_and_what_is_next(
    work: Path, tmp_path: Path
) -> None:
    """On a terminal: bars go to it, the summary to standard output."""
    words = ["fit", str(work / "table.parquet"), str(tmp_path / "a model"), "--id", "reading"]
    done = shown(["-m", "mrot_scale", *words, "-c", str(work / "settings.yaml")], 60)
    assert done.exit_code == 0, done.written
    assert max(map(len, done.lines)) < 60
    first, *_, last = done.out.splitlines()
    assert first.startswith(f"model {tmp_path}/a model from 200 labelled of 300 rows")
    assert "\n  time: ingest " in done.out
    assert last == f"  next: mrot-scale score '{tmp_path}/a model' {work}/table.parquet OUT"


def test_times_are_wrapped_between_stages() -> None:
    stages = {f"stage{n}": 0.25 * n for n in range(12)}
    first, *others, last = stage_lines(stages)
    assert first.startswith("  time: stage0 0.0 s, stage1 0.2 s, ")
    assert all(line.endswith(" s,") and len(line) <= 98 for line in [first, *others])
    assert last.endswith("16 s in all stages")
    assert stage_lines({"score": 3.0}) == ["  time: score 3.0 s"]
    assert stage_lines({}) == []


def test_a_report_is_named_where_there_is_one() -> None:
    assert closing_lines(SimpleNamespace(report="a.html"), {}, [["inspect", "a b"]]) == [
        "  report: a.html",
        "  next: mrot-scale inspect 'a b'",
    ]
    assert closing_lines(SimpleNamespace(report=None), {}, []) == []
    assert closing_lines(SimpleNamespace(), {}, []) == []


def test_quiet_runs_print_their_result_alone(work: Path, tmp_path: Path) -> None:
    words = ["ingest", str(work / "table.parquet"), str(tmp_path / "store"), "--id", "reading"]
    done = shown(["-m", "mrot_scale", *words, "--quiet"])
    assert done.written == ""
    assert done.out.startswith("300 rows, ")
