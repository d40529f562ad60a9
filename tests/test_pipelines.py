"""The pipeline scripts run as they are."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mrot_scale.synthetic import COLUMNS, pump_readings

ROOT = Path(__file__).parent.parent


def test_fit_and_score_writes_model_and_scores(tmp_path: Path) -> None:
    for name, seed in (("known", 1), ("tonight", 2)):
        table = pump_readings(1_500, seed=seed)
        columns = dict(zip(COLUMNS, table.rows.T, strict=True))
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    script = ROOT / "pipelines" / "fit_and_score.py"
    names = ["known.parquet", "tonight.parquet", "model", "scores.parquet"]
    done = subprocess.run(
        [sys.executable, script, *(tmp_path / n for n in names)],
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    scores = pq.read_table(tmp_path / "scores.parquet")
    assert scores.num_rows == 1_500
    assert scores.column_names == [*COLUMNS, "score", "flagged"]
    assert "1500 rows scored" in done.stdout
