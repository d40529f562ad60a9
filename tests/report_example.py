"""A report as a night of pump readings leaves it, small enough to read."""

from datetime import date, timedelta
from typing import Any

import numpy as np

from mrot_scale.profiles import LEVELS, SCORE_EDGES

ROWS = 120_000
FIRST_DAY = 20_000
"""Days since 1970 of the earliest reading."""

NUMBERS = {
    "speed_rpm": (1_450.0, 600.0),
    "flow_l_min": (310.0, 90.0),
    "bearing_temperature_c": (52.0, 6.0),
    "vibration_mm_s": (1.8, 0.6),
    "inlet_pressure_bar": (2.4, 0.3),
}
HOSTILE = "price $x^2$ \\frac{1}{2} $\nsecond line\x1b[31m " + "very long " * 30
"""A name that would be a formula, several lines, an escape code, and wider than any page."""

STAGES = {
    "ingest": 2.1, "sample": 0.4, "neighbours": 3.2, "efforts": 18.4, "anchors": 2.9,
    "routes": 9.8, "train": 6.1, "score": 11.7,
}  # fmt: skip


def example_report() -> dict[str, Any]:
    """Return a new report; the same every time."""
    rng = np.random.default_rng(7)
    return {
        "format": "mrot-scale-report",
        "version": 1,
        "kind": "nightly",
        "title": "date=2026-11-14",
        "run": {"command": "nightly", "status": "done", "seconds": 54.6, "version": "0.1.0"},
        "input": {"path": "/data/lake/date=2026-11-14", "rows": ROWS, "columns": 8},
        "model": {"path": "/data/out/models/a", "id": "a", "kind": "lightgbm", "method": "model"},
        "notices": [{"level": "warn", "name": "psi", "message": "flow_l_min has moved"}],
        "rows": {"rows": ROWS, "flagged": 1_641, "missing": 12},
        "threshold": 0.99012,
        "scores": _scores(rng),
        "efforts": [_efforts(rng, name) for name in ("robust", "quantile", "column by column")],
        "flagged": [_flagged(rng, place) for place in range(12)],
        "columns": _columns(rng),
        "map": _map(rng),
        "drift": _drift(),
        "quality": _quality(),
        "stages": dict(STAGES),
    }


def _scores(rng: np.random.Generator) -> dict[str, Any]:
    edges = [0.0, *SCORE_EDGES.tolist(), 1.0]
    scores = np.concatenate([rng.random(ROWS - 900), 1 - rng.exponential(0.002, 900)])
    counts = np.histogram(np.clip(scores, 0, 1), edges)[0]
    return {"edges": edges, "counts": counts.tolist(), "expected": np.diff(edges).tolist()}


def _efforts(rng: np.random.Generator, view: str) -> dict[str, Any]:
    values = rng.gumbel(0.1 * len(view) - 1.0, 0.18, 20_000)
    counts, edges = np.histogram(values, 48)
    cdf = np.cumsum(counts) / counts.sum()
    return {"view": view, "edges": edges.tolist(), "counts": counts.tolist(), "cdf": cdf.tolist()}


def _flagged(rng: np.random.Generator, place: int) -> dict[str, Any]:
    names = list(NUMBERS)
    order = rng.permutation(len(names))[:3]
    columns: list[dict[str, Any]] = [
        {
            "name": names[n],
            "value": round(NUMBERS[names[n]][0] + NUMBERS[names[n]][1] * (4 + place % 3), 3),
            "contribution": round(2.4 / (position + 1), 4),
        }
        for position, n in enumerate(order)
    ]
    columns.append({"name": "site", "value": "Weir", "contribution": 0.31})
    columns.append({"name": "read_at", "value": "2024-10-05T03:20:00Z", "contribution": 0.12})
    columns.append({"name": "noise_db", "value": None, "contribution": -0.22})
    row = 4_711 + 997 * place
    score = round(0.99999 - place * 1e-4, 6)
    return {"row": row, "id": f"r{row:06d}", "score": score, "columns": columns}


def _columns(rng: np.random.Generator) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, (middle, width) in NUMBERS.items():
        found[name] = _number(rng, "number", middle, width, 0.4 if name == "flow_l_min" else 0.0)
    found["read_at"] = _number(rng, "time", FIRST_DAY + 10, 3.0, 0.0)
    found["on"] = _number(rng, "number", 0.0, 0.0, 0.0)
    sites = ["Brook", "Dale", "Ford", "Mill", "Weir", "(others)", "(missing)"]
    found["site"] = {
        "kind": "category",
        "edges": sites,
        "training": [6_100, 5_200, 4_400, 3_100, 1_150, 50, 0],
        "now": [37_000, 30_500, 27_000, 15_500, 9_000, 800, 200],
    }
    return found


def _number(
    rng: np.random.Generator, kind: str, middle: float, width: float, moved: float
) -> dict[str, Any]:
    training = rng.normal(middle, width, 20_000)
    edges = np.quantile(training, LEVELS, method="lower")
    now = rng.normal(middle + moved * width, width, ROWS)
    counts = [
        np.bincount(np.searchsorted(edges, v), minlength=len(edges) + 1) for v in (training, now)
    ]
    return {
        "kind": kind,
        "edges": edges.tolist(),
        "training": [*counts[0].tolist(), 0],
        "now": [*counts[1].tolist(), 36],
    }


def _map(rng: np.random.Generator) -> dict[str, Any]:
    usual = np.concatenate(
        [rng.normal(at, 0.5, (n, 2)) for at, n in (((-2, 0), 250), ((1, 1), 600), ((3, -1), 150))]
    )
    odd = np.concatenate([rng.normal((6, 4), 0.15, (8, 2)), [[-5.0, 4.5], [0.0, -5.0]]])
    score = np.concatenate([0.98 * rng.random(len(usual)), 0.9999 - 0.0001 * np.arange(len(odd))])
    points = np.concatenate([usual, odd])
    return {
        "x": points[:, 0].tolist(),
        "y": points[:, 1].tolist(),
        "score": score.tolist(),
        "id": [f"r{n:06d}" for n in range(len(points))],
        "explained": [0.41, 0.23],
    }


def _drift() -> list[dict[str, Any]]:
    found = {"flow_l_min": 0.31, "score": 0.14, "site": 0.06, "speed_rpm": 0.012}
    found |= {"vibration_mm_s": 0.009, "inlet_pressure_bar": 0.004, "read_at": 0.003}
    return [
        {"name": name, "psi": psi, "ks": psi / 2, "nulls": 0.0, "previous_psi": psi * 0.7}
        for name, psi in found.items()
    ]


def _quality() -> list[dict[str, Any]]:
    missing = {"noise_db": 5_400, "valve_open_pct": 640, "inlet_pressure_bar": 36, "speed_rpm": 0}
    return [{"name": n, "missing": m, "min": -3.0, "max": 9.5} for n, m in missing.items()]


def example_nights(count: int = 30) -> list[dict[str, Any]]:
    """Return the nights of a job, one of which failed and one of which had no rows."""
    rng = np.random.default_rng(3)
    nights: list[dict[str, Any]] = []
    for number in range(count):
        day = (date(2026, 11, 1) + timedelta(days=number)).isoformat()
        rows = int(rng.normal(ROWS, 4_000))
        night = {"partition": f"date={day}", "status": "done", "exit_code": 0, "rows": rows}
        night |= {"flagged": int(rows * (0.01 + 0.004 * rng.random())), "seconds": 60.0}
        nights.append(night | {"drift": 0.02 + 0.01 * number / 3, "model": "a", "report": None})
    if count > 20:
        nights[12] |= {"status": "failed", "exit_code": 3, "rows": None, "flagged": None}
        nights[12]["drift"] = None
        nights[17] |= {"status": "empty", "rows": 0, "flagged": 0, "drift": None}
        nights[22] |= {
            "status": "failed",
            "exit_code": 3,
            "flagged": int(nights[22]["rows"] * 0.06),
        }
    return nights
