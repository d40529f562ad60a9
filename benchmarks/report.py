"""What a report costs: the size of the page, the seconds to write it, the counting in every task.

    python -m benchmarks.report [--rows 1e6] [--columns 8] [--out DIR]

A table is stored, a small model is fitted, and every row is scored in this process, so that what
tasks do for the report can be timed by itself.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.record import claim_folder, json_lines, versions
from benchmarks.tables import write_table
from mrot_scale.jobs import score_job, score_tasks
from mrot_scale.jobs.fit_job import fit
from mrot_scale.jobs.ingest_job import ingest
from mrot_scale.jobs.score_job import score

REPORT = "report.json"
_LIBRARIES = ("jinja2", "numpy")
_SETTINGS: dict[str, Any] = {
    "label_rows": 2_000,
    "hybrid": "never",
    "cluster": {"kind": "inline"},
}


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    if options.out:
        claim_folder(options.out, REPORT)
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        found = measure(Path(folder), int(float(options.rows)), options.columns)
    print(table(found), flush=True)
    if options.out:
        record = {"figures": found, "versions": versions(_LIBRARIES)}
        (options.out / REPORT).write_text(json_lines(record), encoding="utf-8")


def measure(folder: Path, n_rows: int, n_columns: int) -> dict[str, Any]:
    """Return size and seconds of the report of one scoring run."""
    write_table(folder / "table.parquet", n_rows, n_columns)
    ingest(folder / "table.parquet", folder / "store", config=_SETTINGS)
    fit(folder / "store", folder / "model", _SETTINGS)
    counting, writing = _Timer(), _Timer()
    with (
        counting.around(score_tasks, "put_parts"),
        counting.around(score_tasks, "_profile_counts"),
        writing.around(score_job, "write_score_report"),
    ):
        done = score(folder / "model", folder / "store", folder / "out", _SETTINGS)
    page, data = folder / "out.report.html", folder / "out.run" / "report.json"
    stage = json.loads(data.read_text())["stages"]["score"]
    return {
        "rows": n_rows,
        "columns": n_columns,
        "flagged": done.n_flagged,
        "page_bytes": page.stat().st_size,
        "data_bytes": data.stat().st_size,
        "writing_seconds": writing.seconds,
        "stage_seconds": stage,
        "counting_seconds": counting.seconds,
        "counting_share": counting.seconds / stage,
    }


class _Timer:
    """Adds up the seconds spent in functions."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def around(self, module: Any, name: str) -> Any:
        """Return a context in which a function of a module is timed."""
        return mock.patch.object(module, name, self._timed(getattr(module, name)))

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                self.seconds += time.perf_counter() - start

        return timed


def table(found: dict[str, Any]) -> str:
    """Return what was measured as Markdown."""
    head = "| rows | columns | flagged | page, kB | report.json, kB | written in, s |"
    head += " score stage, s | counting in it, s | share |"
    line = f"| {found['rows']:,} | {found['columns']} | {found['flagged']:,} | "
    line += f"{found['page_bytes'] / 1e3:,.0f} | {found['data_bytes'] / 1e3:,.0f} | "
    line += f"{found['writing_seconds']:.2f} | {found['stage_seconds']:.2f} | "
    line += f"{found['counting_seconds']:.3f} | {found['counting_share']:.2%} |"
    return f"{head}\n{'|---' * 9}|\n{line}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="What a report costs.")
    parser.add_argument("--rows", default="1e6", help="rows to score")
    parser.add_argument("--columns", type=int, default=8, help="columns of the table")
    parser.add_argument("--scratch", type=Path, help="folder for what is made on the way")
    parser.add_argument("--out", type=Path, help="folder for the figures as JSON")
    return parser


if __name__ == "__main__":
    main()
