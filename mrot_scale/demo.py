"""The whole path on a table made for the purpose: make, ingest, fit, score, say what was found."""

import json
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from mrot_scale.config.job import Config
from mrot_scale.config.layers import load_config
from mrot_scale.demo_findings import (
    ID,
    TOP_COLUMNS,
    TRUTH,
    Detection,
    Finding,
    auc_of_efforts,
    auc_of_scores,
    detection,
    most_anomalous,
)
from mrot_scale.errors import OutputError
from mrot_scale.jobs.fit_job import fit
from mrot_scale.jobs.ingest_job import ingest
from mrot_scale.jobs.score_job import score
from mrot_scale.jobs.score_outputs import Scored
from mrot_scale.model.lightgbm_model import check_lightgbm_loads
from mrot_scale.progress import Report, StageTimes, silent
from mrot_scale.running.worker_checks import worker_versions
from mrot_scale.synthetic import LOG_SCHEMA, n_blocks, pump_log

TABLE, STORE, MODEL = "readings.parquet", "readings.store", "model"
SCORES, SCORES_TABLE = "scores", "scores.parquet"

_MARKER = "demo.json"
_MAKER = "mrot-scale demo"
_TABLE_IN_WORK = f".{TABLE}.tmp"
_NAMES = {TABLE, _TABLE_IN_WORK, STORE, MODEL, SCORES, SCORES_TABLE, "_gen", _MARKER}
_NAMES |= {f"{name}.run" for name in (STORE, MODEL, SCORES)}
_NAMES |= {f"{name}.report.html" for name in (MODEL, SCORES)}
_IN_WORK = re.compile(
    r"\.(readings\.store|model|scores|scores\.parquet)(\.run|\.report\.html)?"
    r"(\.[0-9a-f]{12}|\.[0-9a-f]{32})?\.(tmp|link|lock)"
)
"""What a killed run may leave of outputs it was about to publish."""

_TEXT_COLUMNS = ["pump", "site", TRUTH]


@dataclass(frozen=True)
class DemoResult:
    """Everything the demo prints."""

    out: Path
    n_rows: int
    n_flagged: int
    detection: Detection
    auc: dict[str, dict[str, float]]
    """For each method and kind of anomaly, the AUC against the normal readings."""

    findings: tuple[Finding, ...]
    seconds: dict[str, float]
    report: str | None
    """The page about the scores, where scoring made one."""


@dataclass(frozen=True)
class _Path:
    """What the steps share."""

    out: Path
    config: Config
    report: Report


def run_demo(
    out: Path, *, n_rows: int, seed: int, workers: int | None = None, report: Report | None = None
) -> DemoResult:
    """Run the path, everything below `out`; one that was interrupted is gone on with."""
    check_lightgbm_loads()
    path = _Path(out, demo_config(seed, workers), report or silent)
    times = StageTimes()
    prepare_folder(out, {"rows": n_rows, "seed": seed, "versions": worker_versions()})
    with times.step("make table"):
        make_table(out, n_rows, seed, path.report)
    with times.step("ingest"):
        _ingest(path)
    with times.step("fit"):
        _fit(path)
    with times.step("score"):
        scored = _score(path)
    with times.step("compare"):
        readings, table = out / TABLE, out / SCORES_TABLE
        auc = {"model": auc_of_scores(table), "effort": auc_of_efforts(readings, out / MODEL)}
        found = detection(table), auc, most_anomalous(readings, table)
    page = getattr(scored, "report", None)
    result = DemoResult(out, n_rows, scored.n_flagged, *found, times.seconds, page)
    _write_summary(result, seed)
    return result


def demo_config(seed: int, workers: int | None) -> Config:
    """Return the defaults, whatever the environment says, with what the table asks for."""
    settings = {
        "seed": seed,
        "non_finite": "impute",
        "scoring": {"top_columns": TOP_COLUMNS},
        "cluster": {"workers": workers},
    }
    return load_config(None, overrides=settings, environment={})


def prepare_folder(out: Path, terms: dict[str, Any]) -> None:
    """Make the folder: go on with an unfinished demo on the same terms, replace any other demo.

    What no demo wrote is left alone.
    """
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out} is a file. Choose another --out.")
    found = {path.name for path in out.iterdir()} if out.exists() else set()
    marker = _read_marker(out)
    if not all(map(_is_ours, found)) or (found and marker.get("made_by") != _MAKER):
        raise OutputError(f"{out} holds more than an earlier demo wrote. Choose another --out.")
    if marker.get("unfinished") == terms:
        return
    try:
        for name in found - {_MARKER}:
            _remove(out / name)
        out.mkdir(parents=True, exist_ok=True)
        _write_marker(out, {"unfinished": terms})
    except OSError as error:
        raise OutputError(f"Cannot write to {out}: {error.strerror}.") from error


def _is_ours(name: str) -> bool:
    return name in _NAMES or _IN_WORK.fullmatch(name) is not None


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _read_marker(out: Path) -> dict[str, Any]:
    try:
        found = json.loads((out / _MARKER).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write_marker(out: Path, facts: dict[str, Any]) -> None:
    (out / _MARKER).write_text(json.dumps({"made_by": _MAKER, **facts}, indent=1) + "\n")


def _write_summary(result: DemoResult, seed: int) -> None:
    facts = {"rows": result.n_rows, "seed": seed, "flagged": result.n_flagged, "auc": result.auc}
    facts |= {"detection": asdict(result.detection), "seconds": result.seconds}
    _write_marker(result.out, facts)


def make_table(out: Path, n_rows: int, seed: int, report: Report) -> None:
    """Write the log block by block, each a row group; its name appears when it is whole."""
    target, total = out / TABLE, n_blocks(n_rows)
    if target.exists():
        report("table", total, total)
        return
    report("table", 0, total)
    in_work = out / _TABLE_IN_WORK
    with pq.ParquetWriter(in_work, LOG_SCHEMA, use_dictionary=_TEXT_COLUMNS) as writer:
        for done, batch in enumerate(pump_log(n_rows, seed=seed), start=1):
            writer.write_batch(batch, row_group_size=batch.num_rows)
            report("table", done, total)
    in_work.replace(target)


def _ingest(path: _Path) -> None:
    made = ingest(
        path.out / TABLE,
        path.out / STORE,
        id=ID,
        exclude=[TRUTH],
        keep=[TRUTH],
        config=path.config,
        progress=path.report,
    )
    _tell_if_done("ingest", made.was_done, path.report)


def _fit(path: _Path) -> None:
    made = fit(path.out / STORE, path.out / MODEL, path.config, progress=path.report)
    _tell_if_done("fit", made.was_done, path.report)


def _score(path: _Path) -> Scored:
    made = score(
        path.out / MODEL,
        path.out / STORE,
        path.out / SCORES,
        path.config,
        parquet=path.out / SCORES_TABLE,
        keep=[TRUTH],
        progress=path.report,
    )
    _tell_if_done("score", made.was_done, path.report)
    return made


def _tell_if_done(step: str, was_done: bool, report: Report) -> None:
    if was_done:  # then it had no stage to report
        report(step, 1, 1)
