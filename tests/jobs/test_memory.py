"""Ingest, fit and score work in far less memory than the table has."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.tables import write_table

LIMIT_BYTES = 700 * 2**20
"""What each process may have in all, its libraries included."""

N_COLUMNS = 128
N_ROWS = 3 * LIMIT_BYTES // (4 * N_COLUMNS)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_third_of_the_table_is_memory_enough(tmp_path: Path) -> None:
    write_table(tmp_path / "table.parquet", N_ROWS, N_COLUMNS)
    assert (tmp_path / "table.parquet").stat().st_size >= 3 * LIMIT_BYTES
    small = ["--set", "label_rows=2000", "--set", "repeats=2", "--set", "anchor_sets=2"]
    _run_limited(tmp_path, "ingest", "table.parquet", "store")
    (tmp_path / "table.parquet").unlink()
    _run_limited(tmp_path, "fit", "store", "model", "--workers", "2", *small)
    done = _run_limited(tmp_path, "score", "model", "store", "scores", "--workers", "2")
    assert f"{N_ROWS:,} rows scored" in done.stdout


def _run_limited(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command whose every process is refused memory beyond the limit."""
    # Arrow's usual allocator reserves a gigabyte of addresses before it uses any.
    environment = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}
    done = subprocess.run(
        ["prlimit", f"--data={LIMIT_BYTES}", sys.executable, "-m", "mrot_scale", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done
