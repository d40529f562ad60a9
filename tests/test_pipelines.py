"""The pipeline scripts run as they are, on small tables."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from mrot_scale.synthetic import log_block

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted((ROOT / "pipelines").glob("*.py"))
N_ROWS = 1_200


def run(script: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a script without worker processes: their start would be most of the time."""
    small = {"MROT_CLUSTER__KIND": "inline", "MROT_LABEL_ROWS": "600", "MROT_REPEATS": "2"}
    return subprocess.run(
        [sys.executable, ROOT / "pipelines" / script, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        env={**os.environ, **small},
    )


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    for name, seed in (("known", 1), ("tonight", 2)):
        table = pa.Table.from_batches([log_block(N_ROWS, 0, seed=seed)])
        pq.write_table(table, folder / f"{name}.parquet")
    return folder


def check_scores(scores: Path, tables: Path) -> None:
    found = ds.dataset(scores).to_table()
    tonight = pq.read_table(tables / "tonight.parquet")
    for name in ("reading", "planted"):
        assert found[name].to_pylist() == tonight[name].to_pylist()
    values = found["score"].to_numpy()
    assert ((values >= 0) & (values <= 1)).all()
    planted = tonight["planted"].to_numpy() != "normal"
    assert np.median(values[planted]) > np.quantile(values[~planted], 0.75)
    assert "top_1" in found.column_names


def test_fit_then_score(tables: Path, tmp_path: Path) -> None:
    fitted = run("fit.py", tables / "known.parquet", tmp_path / "model")
    assert fitted.returncode == 0, fitted.stderr
    assert f"{N_ROWS} rows, 20 features" in fitted.stdout
    assert "distillation_rank_correlation" in fitted.stdout
    scored = run("score.py", tmp_path / "model", tables / "tonight.parquet", tmp_path / "scores")
    assert scored.returncode == 0, scored.stderr
    assert f"{N_ROWS} rows scored" in scored.stdout
    check_scores(tmp_path / "scores", tables)


def test_fit_and_score_and_single_rows_agree(tables: Path, tmp_path: Path) -> None:
    inputs = [tables / "known.parquet", tables / "tonight.parquet"]
    done = run("fit_and_score.py", *inputs, tmp_path / "model", tmp_path / "scores")
    assert done.returncode == 0, done.stderr
    assert f"600 of {N_ROWS} rows labelled" in done.stdout
    check_scores(tmp_path / "scores", tables)
    first = ds.dataset(tmp_path / "scores").head(3)["score"].to_pylist()
    assert f"the first rows by themselves: {first}" in done.stdout


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_wrong_arguments_get_the_usage(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(script), "one argument"])
    with pytest.raises(SystemExit, match=f"python pipelines/{script.name} "):
        runpy.run_path(str(script), run_name="__main__")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_scripts_stay_short(script: Path) -> None:
    assert len(script.read_text().splitlines()) < 80
