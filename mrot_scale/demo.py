"""The main job on a table made for the purpose: make, fit, score, and say what was found."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from mrot_scale.errors import OutputError
from mrot_scale.estimator import MROT
from mrot_scale.progress import Report, StageTimes
from mrot_scale.synthetic import COLUMNS, KINDS, PlantedTable, pump_readings

_MARKER = "demo.json"
_MAKER = "mrot-scale demo"
FILES = ("readings.parquet", "scores.parquet", "model", _MARKER)
_TOP_ROWS = 10
_TOP_COLUMNS = 3


@dataclass(frozen=True)
class Finding:
    """One of the most anomalous rows, with the columns that made it so."""

    row: int
    kind: str
    score: float
    columns: tuple[tuple[str, float], ...]
    """Name and value, the strongest first."""


@dataclass(frozen=True)
class DemoResult:
    """Everything the demo prints."""

    out: Path
    n_rows: int
    n_flagged: int
    auc: dict[str, dict[str, float]]
    """For each method and kind of anomaly, the AUC against the normal rows."""

    findings: tuple[Finding, ...]
    seconds: dict[str, float]


def run_demo(
    out: Path, *, n_rows: int, seed: int, n_jobs: int, report: Report | None = None
) -> DemoResult:
    """Run the job and write table, model and scores under `out`."""
    prepare_folder(out)
    times = StageTimes()
    with times.step("make table"):
        table = pump_readings(n_rows, seed=seed)
        _write_table(out / "readings.parquet", table)
    with times.step("fit"):
        detector = MROT(random_state=seed, n_jobs=n_jobs).fit(_named(table.rows), progress=report)
        detector.save(out / "model")
    with times.step("score"):
        scores = {
            "model": detector.anomaly_score(_named(table.rows)),
            "effort": detector.anomaly_score(_named(table.rows), method="effort"),
        }
        flagged = scores["model"] > -detector.offset_
        _write_scores(out / "scores.parquet", scores, flagged)
    with times.step("explain"):
        findings = _findings(detector, table, scores["model"])
    auc = {method: auc_per_kind(table.kind, values) for method, values in scores.items()}
    result = DemoResult(out, n_rows, int(flagged.sum()), auc, findings, times.seconds)
    summary = {
        "made_by": _MAKER,
        "rows": n_rows,
        "seed": seed,
        "auc": auc,
        "flagged": result.n_flagged,
    }
    (out / _MARKER).write_text(json.dumps(summary, indent=1) + "\n")
    return result


def prepare_folder(out: Path) -> None:
    """Make the folder; what an earlier demo wrote is replaced, anything else is left alone."""
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out} is a file. Choose another --out.")
    found = {path.name for path in out.iterdir()} if out.exists() else set()
    if found - set(FILES) or (found and not _is_earlier_demo(out)):
        raise OutputError(f"{out} holds more than an earlier demo wrote. Choose another --out.")
    try:
        for name in found - {_MARKER}:
            shutil.rmtree(out / name) if (out / name).is_dir() else (out / name).unlink()
        out.mkdir(parents=True, exist_ok=True)
        (out / _MARKER).write_text(json.dumps({"made_by": _MAKER}) + "\n")
    except OSError as error:
        raise OutputError(f"Cannot write to {out}: {error.strerror}.") from error


def _is_earlier_demo(out: Path) -> bool:
    try:
        return bool(json.loads((out / _MARKER).read_text())["made_by"] == _MAKER)
    except (OSError, ValueError, TypeError, KeyError):
        return False


def auc_per_kind(kind: NDArray[np.str_], scores: NDArray[np.float32]) -> dict[str, float]:
    """Return the AUC of each planted kind, and of all of them, against the normal rows."""
    normal = kind == "normal"
    found = {"all": float(roc_auc_score(~normal, scores))}
    for name in KINDS:
        chosen = normal | (kind == name)
        found[name] = float(roc_auc_score(kind[chosen] == name, scores[chosen]))
    return found


def _findings(
    detector: MROT, table: PlantedTable, scores: NDArray[np.float32]
) -> tuple[Finding, ...]:
    top = np.argsort(-scores, kind="stable")[:_TOP_ROWS]
    contributions = detector.explain(_named(table.rows[top]))
    return tuple(
        Finding(
            int(row),
            str(table.kind[row]),
            float(scores[row]),
            tuple(
                (COLUMNS[c], float(table.rows[row, c]))
                for c in np.argsort(-contributed, kind="stable")[:_TOP_COLUMNS]
            ),
        )
        for row, contributed in zip(top, contributions, strict=True)
    )


def _named(rows: NDArray[np.float64]) -> pa.Table:
    return pa.table(dict(zip(COLUMNS, rows.T, strict=True)))


def _write_table(path: Path, table: PlantedTable) -> None:
    named = _named(table.rows).add_column(0, "reading", pa.array(np.arange(len(table.rows))))
    pq.write_table(named.append_column("planted", pa.array(table.kind.tolist())), path)


def _write_scores(
    path: Path, scores: dict[str, NDArray[np.float32]], flagged: NDArray[np.bool_]
) -> None:
    columns = {
        "reading": np.arange(len(flagged)),
        "score": scores["model"],
        "effort_score": scores["effort"],
        "flagged": flagged,
    }
    pq.write_table(pa.table(columns), path)
