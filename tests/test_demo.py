"""The demo as users run it, and what it does to folders that are there already."""

import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import zarr

from mrot_scale import demo as demo_module
from mrot_scale import demo_findings, score_rows, synthetic
from mrot_scale.commands.demo import HIGH, KIND_TEXT, _demo_text
from mrot_scale.demo import MODEL, SCORES, SCORES_TABLE, TABLE, prepare_folder, run_demo
from mrot_scale.errors import OutputError
from mrot_scale.synthetic import COLUMNS, LOG_KINDS, LOG_SCHEMA

N_ROWS = 3_000
TERMS = {"rows": N_ROWS, "seed": 0}


def start(out: Path, **options: Any) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", "from mrot_scale.cli import main; main()"]
    command += ["demo", "--out", str(out), "--rows", str(N_ROWS), "--workers", "1"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, **options)


class Run(NamedTuple):
    out: Path
    told: str
    stages: list[str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("demo") / "pumps"
    with start(out) as process:
        told, errors = process.communicate(timeout=250)
    assert process.returncode == 0, errors
    return Run(out, told, [line.split(":")[0] for line in errors.splitlines()])


def test_it_tells_what_it_found_where_and_how_fast(run: Run) -> None:
    lines = run.told.splitlines()
    assert lines[0].startswith(f"{N_ROWS:,} readings scored")
    assert ["all", *LOG_KINDS] in [line.split() for line in lines]
    heading = next(n for n, line in enumerate(lines) if line.startswith("Most anomalous"))
    assert all(line.split()[0].isdigit() for line in lines[heading + 2 : heading + 12])
    assert any(f"{column} = " in run.told for column in COLUMNS)
    assert f"mrot-scale inspect {run.out / MODEL}" in run.told
    steps = ["make table", "ingest", "fit", "score", "compare", "in all"]
    assert all(step in run.told.splitlines()[-1] for step in steps)


def test_its_counts_are_those_of_the_table(run: Run) -> None:
    """What a newcomer reads first, counted again from the files."""
    scores = ds.dataset(run.out / SCORES_TABLE).to_table()
    kind, flag = scores["planted"].to_numpy(), scores["flag"].to_numpy()
    highest = kind[np.lexsort((scores["reading"].to_numpy(), -scores["score"].to_numpy()))[:100]]
    planted, high = kind != "normal", scores["score"].to_numpy() > HIGH
    assert f"{planted.sum():,} anomalies (" in run.told
    assert f"Of the 100 highest scores, {(highest != 'normal').sum()} were planted." in run.told
    assert f"planted anomalies, {(planted & flag).sum():,} are among the {flag.sum():,}" in run.told
    assert f"and {(planted & high).sum():,} among the {high.sum():,} that score" in run.told
    for name in LOG_KINDS:
        line = next(line for line in run.told.splitlines() if line.startswith(f"  {name} "))
        counts = [(rows & (kind == name)).sum() for rows in (planted, flag, high)]
        assert [int(word) for word in line.split()[-5:] if "%" not in word] == counts


def test_every_kind_of_anomaly_is_put_in_words() -> None:
    assert set(KIND_TEXT) == set(LOG_KINDS)
    assert demo_findings.HIGH == HIGH, "the command knows it without loading anything"


def test_stages_are_lines_where_there_is_no_terminal(run: Run) -> None:
    assert run.stages[:3] == ["table", "ingest", "sample"]
    assert run.stages[-1] == "score"
    assert len(run.stages) == len(set(run.stages))


def test_it_finds_every_kind_of_planted_anomaly(run: Run) -> None:
    found = json.loads((run.out / "demo.json").read_text())["auc"]
    for method in ("model", "effort"):
        for kind in LOG_KINDS:
            assert found[method][kind] > 0.8, (method, kind)


def test_its_files_agree_with_each_other(run: Run) -> None:
    readings = pq.read_table(run.out / TABLE)
    scores = ds.dataset(run.out / SCORES_TABLE).to_table()
    assert readings.num_rows == scores.num_rows == N_ROWS
    for name in ("reading", "planted"):
        assert scores[name].to_pylist() == readings[name].to_pylist()
    values = scores["score"].to_numpy()
    np.testing.assert_array_equal(zarr.open_group(run.out / SCORES, mode="r")["score"][:], values)
    np.testing.assert_array_equal(score_rows(run.out / MODEL, readings), values)
    flagged = json.loads((run.out / "demo.json").read_text())["flagged"]
    assert flagged == scores["flag"].to_numpy().sum() > 0


def test_interrupting_leaves_no_process_and_the_same_command_goes_on(tmp_path: Path) -> None:
    with start(tmp_path, start_new_session=True) as process:
        assert process.stderr is not None
        while not process.stderr.readline().startswith("sample"):  # workers are at work
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert wait_for_none_of(process.pid) == []
    assert (tmp_path / TABLE).exists()
    before = (tmp_path / TABLE).stat()
    prepare_folder(tmp_path, json.loads((tmp_path / "demo.json").read_text())["unfinished"])
    assert (tmp_path / TABLE).stat() == before
    assert (tmp_path / f"{MODEL}.run").is_dir()


def wait_for_none_of(session: int, patience_s: float = 5.0) -> list[int]:
    """Return the processes of a session that are still there after a while."""
    give_up = time.monotonic() + patience_s
    while (left := processes_of(session)) and time.monotonic() < give_up:
        time.sleep(0.1)
    return left


def processes_of(session: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its_session = status.read_text().rpartition(")")[2].split()[:4]
        except OSError:  # ended meanwhile
            continue
        if int(its_session) == session and state != "Z":
            found.append(int(status.parent.name))
    return found


def test_going_on_tells_what_was_done_and_gives_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A demo stopped after its last step but before its summary has nothing left to do."""
    out = tmp_path / "pumps"
    monkeypatch.setattr(demo_module, "_write_summary", lambda *_: None)
    small = {"repeats": 2, "anchor_sets": 2, "label_rows": 500}
    inline = demo_module.demo_config(0, None).model_copy(update=small)
    cluster = inline.cluster.model_copy(update={"kind": "inline"})
    monkeypatch.setattr(
        demo_module, "demo_config", lambda *_: inline.model_copy(update={"cluster": cluster})
    )
    first = run_demo(out, n_rows=1_000, seed=5)
    calls: list[tuple[str, int, int]] = []
    again = run_demo(out, n_rows=1_000, seed=5, report=lambda *call: calls.append(call))
    assert calls == [("table", 1, 1), ("ingest", 1, 1), ("fit", 1, 1), ("score", 1, 1)]
    assert (again.auc, again.findings) == (first.auc, first.findings)
    paged, unpaged = (replace(again, report=page) for page in ("pumps/report.html", None))
    assert "\n  report    pumps/report.html\n" in _demo_text(paged)
    assert "\n  report " not in _demo_text(unpaged)


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A folder as an earlier, finished demo leaves it, with what killed runs may leave."""
    out = tmp_path / "pumps"
    for name in (
        "readings.store",
        "model",
        "model.run",
        "_gen/scores/1",
        ".model.0123456789ab.tmp",
    ):
        (out / name).mkdir(parents=True)
        (out / name / "file").write_text("x")
    (out / "scores").symlink_to("_gen/scores/1", target_is_directory=True)
    (out / TABLE).write_text("x")
    (out / "demo.json").write_text(json.dumps({"made_by": "mrot-scale demo", "rows": 5}))
    return out


def test_an_earlier_demo_is_replaced(earlier: Path) -> None:
    prepare_folder(earlier, TERMS)
    assert [path.name for path in earlier.iterdir()] == ["demo.json"]


def test_an_unfinished_demo_is_kept_on_the_same_terms_only(tmp_path: Path) -> None:
    prepare_folder(tmp_path, TERMS)
    (tmp_path / TABLE).write_text("x")
    prepare_folder(tmp_path, TERMS)
    assert (tmp_path / TABLE).exists()
    prepare_folder(tmp_path, TERMS | {"seed": 1})
    assert not (tmp_path / TABLE).exists()


@pytest.mark.parametrize("name", ["thesis.txt", "model.old", ".model.mine.tmp"])
def test_files_of_others_are_spared(earlier: Path, name: str) -> None:
    (earlier / name).write_text("years of work")
    before = sorted(earlier.rglob("*"))
    with pytest.raises(OutputError, match="more than an earlier demo wrote"):
        prepare_folder(earlier, TERMS)
    assert sorted(earlier.rglob("*")) == before


@pytest.mark.parametrize("marker", [None, "{}", "[]", "no json", '{"made_by": "me"}'])
def test_folders_that_no_demo_made_are_spared(earlier: Path, marker: str | None) -> None:
    (earlier / "demo.json").unlink()
    if marker is not None:
        (earlier / "demo.json").write_text(marker)
    with pytest.raises(OutputError, match="more than an earlier demo wrote"):
        prepare_folder(earlier, TERMS)
    assert (earlier / TABLE).exists()


def test_links_are_removed_but_not_what_they_lead_to(earlier: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "thesis.txt").write_text("years of work")
    (earlier / SCORES_TABLE).symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    prepare_folder(earlier, TERMS)
    assert (tmp_path / "elsewhere" / "thesis.txt").exists()


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    with pytest.raises(OutputError, match="is a file"):
        prepare_folder(tmp_path / "out", TERMS)


def test_the_table_appears_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        yield from ()
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_module, "pump_log", broken)
    with pytest.raises(KeyboardInterrupt):
        run_demo(tmp_path, n_rows=1_000, seed=0)
    assert not (tmp_path / TABLE).exists()
    prepare_folder(tmp_path, TERMS)  # what is left of it is ours


def test_making_the_table_takes_the_memory_of_a_few_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    block_rows = 5_000
    monkeypatch.setattr(synthetic, "BLOCK_ROWS", block_rows)

    def peak(n_blocks: int) -> tuple[int, int]:
        out = tmp_path / str(n_blocks)
        out.mkdir()
        tracemalloc.start()
        n_rows = n_blocks * block_rows
        demo_module.make_table(out, n_rows, 0, lambda *_: None)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert pq.ParquetFile(out / TABLE).num_row_groups == n_blocks
        return found, pa.default_memory_pool().max_memory()

    small, large = peak(4), peak(24)
    assert large[0] < 1.3 * small[0]
    assert large[1] < small[1] + 8 * block_rows * len(LOG_SCHEMA)
