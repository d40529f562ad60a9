"""The command as users run it: a process with output, errors and exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.dataset as ds
import pytest

from mrot_scale import MROT, __version__
from mrot_scale.synthetic import COLUMNS, KINDS


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from mrot_scale.cli import main; main()", *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        env={**os.environ, **environment},
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    out = tmp_path_factory.mktemp("demo") / "pumps"
    done = run("demo", "--out", str(out), "--rows", "2000", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    return out, done.stdout, done.stderr


def test_demo_tells_what_it_found_where_and_how_fast(demo: tuple[Path, str, str]) -> None:
    out, told, _ = demo
    for kind in KINDS:
        assert kind in told
    assert "most anomalous readings" in told.lower()
    assert any(column in told for column in COLUMNS)
    assert str(out) in told
    assert "fit" in told.splitlines()[-1]
    assert "Traceback" not in told


def test_demo_finds_every_kind_of_planted_anomaly(demo: tuple[Path, str, str]) -> None:
    found = json.loads((demo[0] / "demo.json").read_text())["auc"]
    for method in ("model", "effort"):
        for kind in KINDS:
            assert found[method][kind] > 0.85, (method, kind)


def test_demo_reports_progress_as_lines_when_not_on_a_terminal(
    demo: tuple[Path, str, str],
) -> None:
    stages = [line.split(":")[0] for line in demo[2].splitlines()]
    assert stages == ["neighbours", "efforts", "anchors", "train"]


def test_demo_files_are_readable_by_others_and_agree(demo: tuple[Path, str, str]) -> None:
    out = demo[0]
    readings = ds.dataset(out / "readings.parquet").to_table()
    scores = ds.dataset(out / "scores.parquet").to_table()
    assert readings.num_rows == scores.num_rows == 2000
    again = MROT.load(out / "model").anomaly_score(readings.select(COLUMNS))
    np.testing.assert_array_equal(scores["score"].to_numpy(), again)


def test_demo_may_be_run_again_but_spares_other_folders(
    demo: tuple[Path, str, str], tmp_path: Path
) -> None:
    again = run("demo", "--out", str(demo[0]), "--rows", "2000", "--jobs", "1")
    assert again.returncode == 0
    (tmp_path / "mine.txt").write_text("keep")
    refused = run("demo", "--out", str(tmp_path), "--rows", "2000")
    assert refused.returncode == 73
    assert refused.stderr.startswith("mrot-scale: error[73]:")
    assert len(refused.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_demo_never_removes_what_it_did_not_write(
    demo: tuple[Path, str, str], tmp_path: Path
) -> None:
    for marker in ("{}", (demo[0] / "demo.json").read_text()):
        (tmp_path / "demo.json").write_text(marker)
        (tmp_path / "thesis.txt").write_text("years of work")
        assert run("demo", "--out", str(tmp_path), "--rows", "2000").returncode == 73
        assert (tmp_path / "thesis.txt").read_text() == "years of work"
    (tmp_path / "thesis.txt").unlink()
    (tmp_path / "demo.json").write_text("{}")  # not ours
    assert run("demo", "--out", str(tmp_path), "--rows", "2000").returncode == 73


def test_tracebacks_are_shown_only_on_request(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    shown = run("--debug", "demo", "--out", str(tmp_path))
    assert shown.returncode == 73
    assert "Traceback" in shown.stderr


def test_wrong_usage_is_exit_2() -> None:
    assert run("demo", "--rows", "many").returncode == 2
    assert run("dmo").returncode == 2


def test_help_has_an_example_and_version_answers() -> None:
    assert "Example: mrot-scale demo" in run("demo", "--help").stdout
    assert run("--version").stdout.strip() == f"mrot-scale {__version__}"


def test_a_missing_libgomp_is_named_in_one_line(tmp_path: Path) -> None:
    """LightGBM's wheel needs the system's OpenMP runtime; here it is hidden for one process."""
    library = _system_libgomp()
    probe = subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True)
    if library is None or probe.returncode != 0:
        pytest.skip("needs a system libgomp and the right to make mount namespaces")
    inner = (
        f"mount --bind /dev/null {library} && exec {sys.executable} -c "
        f"'from mrot_scale.cli import main; main()' demo --out {tmp_path / 'out'}"
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", inner],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 78, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "libgomp1" in done.stderr


def _system_libgomp() -> str | None:
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False)
    paths = [
        line.split("=>")[1].strip() for line in listed.stdout.splitlines() if "libgomp" in line
    ]
    return str(Path(paths[0]).resolve()) if paths else None
