"""Runs as people see them: running, finished, failed or unfinished."""

import json
from pathlib import Path

import pytest

import mrot_scale
from mrot_scale.errors import MissingInputError
from mrot_scale.running.commit import RunFolder
from mrot_scale.running.lock import locked
from mrot_scale.running.run_log import recorded
from mrot_scale.runs import details_text, list_runs, runs_text, show_run
from mrot_scale.storing.location import Location
from tests.running.jobs import SETTINGS, make_table
from tests.servers import mrot, run

INLINE = {**SETTINGS, "cluster": {"kind": "inline"}}


def a_run(folder: Path, name: str) -> RunFolder:
    return RunFolder.open(Location(folder / name), {"command": "fit", "settings": {"seed": 1}})


def test_states_are_told_apart(tmp_path: Path) -> None:
    a_run(tmp_path, "a.run").commit_finished()
    a_run(tmp_path, "b.run")
    failed = a_run(tmp_path, "c.run")
    with pytest.raises(RuntimeError), recorded(failed.location):
        raise RuntimeError("no luck")
    going = a_run(tmp_path, "d.run")
    (tmp_path / "no run").mkdir()
    with locked(going.location):
        found = list_runs(tmp_path)
    assert [r.state for r in found] == ["finished", "unfinished", "failed", "running"]
    text = runs_text(found)
    assert "error[1]: no luck" in text
    assert "(process " in text


def test_a_run_is_found_by_its_folder_or_its_output(tmp_path: Path) -> None:
    a_run(tmp_path, "model.run")
    assert show_run(tmp_path / "model.run").summary == show_run(tmp_path / "model").summary
    with pytest.raises(MissingInputError, match="no run folder"):
        show_run(tmp_path / "elsewhere")
    with pytest.raises(MissingInputError, match="Nothing at"):
        list_runs(tmp_path / "elsewhere")
    assert runs_text([]) == "no runs"


def test_a_real_job_tells_what_it_did(tmp_path: Path) -> None:
    table = make_table(tmp_path / "table.parquet")
    mrot_scale.ingest(table, tmp_path / "store", config=INLINE)
    mrot_scale.fit(tmp_path / "store", tmp_path / "model", INLINE)
    found = show_run(tmp_path / "model")
    assert found.summary.state == "finished"
    assert found.summary.committed["gather"] == 1
    assert found.fingerprint["versions"]["mrot-scale"] == mrot_scale.__version__
    events = [line["event"] for line in found.log]
    assert events[-1] == "done"
    assert "stage done" in events
    assert "gather: 1 done" in details_text(found)
    run_folder = tmp_path / "model.run"
    assert "label_rows: 800" in (run_folder / "config.yaml").read_text()
    assert json.loads((run_folder / "plan.json").read_text())["command"] == "fit"


def test_the_command_lists_shows_and_rolls_back(tmp_path: Path) -> None:
    a_run(tmp_path, "model.run")
    listed = run(mrot("runs", "list", str(tmp_path)))
    assert listed.stdout.startswith("unfinished  fit")
    shown = run(mrot("runs", "show", str(tmp_path / "model"), "--output", "json"))
    assert json.loads(shown.stdout)["fingerprint"]["settings"] == {"seed": 1}
    refused = run(mrot("rollback", str(tmp_path / "scores")))
    assert refused.returncode == 66
    assert refused.stderr.startswith("mrot-scale: error[66]: ")


def test_scores_are_replaced_by_a_new_run_and_rolled_back(tmp_path: Path) -> None:
    table = make_table(tmp_path / "table.parquet")
    mrot_scale.ingest(table, tmp_path / "store", config=INLINE)
    mrot_scale.fit(tmp_path / "store", tmp_path / "model", INLINE)
    places = (tmp_path / "model", tmp_path / "store", tmp_path / "scores")
    first = mrot_scale.score(*places, INLINE, parquet=tmp_path / "table")
    before = mrot_scale.open_scores(tmp_path / "table").to_table()
    with pytest.raises(mrot_scale.errors.ConfigError, match=r"settings\.method"):
        mrot_scale.score(*places, INLINE, parquet=tmp_path / "table", method="effort")
    again = mrot_scale.score(
        *places, INLINE, parquet=tmp_path / "table", method="effort", new_run=True
    )
    assert not first.was_done
    assert not again.was_done
    after = mrot_scale.open_scores(tmp_path / "table").to_table()
    assert not after.equals(before)
    for name in ("scores", "table"):
        mrot_scale.rollback(tmp_path / name)
    assert mrot_scale.open_scores(tmp_path / "table").to_table().equals(before)
