"""The data of a report, read and checked, as the plots draw them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.errors import ConfigError, DamagedDataError, MissingInputError
from mrot_scale.storing.location import Location

Report = Mapping[str, Any]
Floats = NDArray[np.float64]

FORMAT, VERSION = "mrot-scale-report", 1
DATA = "report.json"

_PARTS: dict[str, type] = {
    "rows": dict, "scores": dict, "efforts": list, "flagged": list, "columns": dict, "map": dict,
    "drift": list, "quality": list, "stages": dict,
}  # fmt: skip
_CELLS = 40


def read_report(place: str | Path | Location) -> dict[str, Any]:
    """Return the data of a report, checked.

    Parameters
    ----------
    place
        `report.json`, the run folder it is in, or the output that the run made; local or s3://.
    """
    found = _data_of(Location(place))
    try:
        report = json.loads(found.read())
    except (ValueError, RecursionError) as error:
        raise DamagedDataError(f"{found} is no report ({error!s:.200}).") from None
    return check_report(report, str(found))


def _data_of(place: Location) -> Location:
    """Return where the data are."""
    if place.name.endswith(".json"):
        return place
    for candidate in (place / DATA, place.sibling(f"{place.name}.run") / DATA):
        if candidate.exists():
            return candidate
    raise MissingInputError(f"{place} has no {DATA}, nor has its run folder.")


def check_report(report: Any, name: str = "This") -> dict[str, Any]:
    """Return a report if it is one, with all parts that plots are made from."""
    if not isinstance(report, dict) or report.get("format") != FORMAT:
        raise DamagedDataError(f"{name} is no report of mrot-scale.")
    if report.get("version") != VERSION:
        raise DamagedDataError(
            f"{name} is a report of version {report.get('version')!s:.20}, not {VERSION}. Read it "
            "with the mrot-scale that wrote it."
        )
    wrong = [part for part, kind in _PARTS.items() if not isinstance(report.get(part), kind)]
    if wrong:
        raise DamagedDataError(f"{name} is no whole report: {', '.join(wrong)} is missing or odd.")
    return report


def as_report(report: Report | str | Path | Location) -> Report:
    """Return a report given as such or by its place."""
    return check_report(report) if isinstance(report, dict) else read_report(report)  # type: ignore[arg-type]


def flagged_row(report: Report, row: int | str) -> dict[str, Any]:
    """Return one of the rows a report shows: by its place, 0 being the highest, or by its id."""
    rows: Sequence[dict[str, Any]] = report["flagged"]
    if isinstance(row, str):
        found = [one for one in rows if one["id"] == row]
        if not found:
            raise ConfigError(f"The report shows no row with id {row!r}.")
        return found[0]
    if not 0 <= row < len(rows):
        raise ConfigError(f"The report shows {len(rows)} rows; there is no row {row}.")
    return rows[row]


def shares(counts: Sequence[float]) -> Floats:
    """Return counts as parts of their sum."""
    found = np.asarray(counts, dtype=np.float64)
    return found / max(float(found.sum()), 1e-300)


def even_density(edges: Sequence[float], counts: Sequence[float]) -> tuple[Floats, Floats, float]:
    """Return bounds of cells of equal width, the share of rows in each, and the share beyond.

    Counts are of the values up to each edge, of those above the last, and of missing ones; or of
    the values between edges, where there are fewer counts than edges.
    """
    ends = np.asarray(edges, dtype=np.float64)
    mass = np.asarray(counts, dtype=np.float64)
    if len(mass) > len(ends):
        known = mass[: len(ends) + 1]
        inner, beyond = known[1:-1], float(known[0] + known[-1])
    else:
        inner, beyond = mass, 0.0
    total = max(inner.sum() + beyond, 1e-300)
    bounds = np.linspace(ends[0], ends[-1], _CELLS + 1) if ends[-1] > ends[0] else _around(ends[0])
    return bounds, _spread(ends, inner, bounds) / total, beyond / total


def _around(value: float) -> Floats:
    half = max(abs(value) * 0.05, 0.5)
    return np.linspace(value - half, value + half, _CELLS + 1)


def _spread(ends: Floats, mass: Floats, bounds: Floats) -> Floats:
    """Return what each cell has of bins that lie evenly; of no width, they are one cell wide."""
    cell = bounds[1] - bounds[0]
    middle = np.clip((ends[:-1] + ends[1:]) / 2, bounds[0] + cell / 2, bounds[-1] - cell / 2)
    is_narrow = np.diff(ends) < cell / 2
    low = np.where(is_narrow, middle - cell / 2, ends[:-1])[:, None]
    high = np.where(is_narrow, middle + cell / 2, ends[1:])[:, None]
    overlap = np.minimum(high, bounds[1:]) - np.maximum(low, bounds[:-1])
    found: Floats = (mass[:, None] * np.clip(overlap, 0.0, None) / (high - low)).sum(axis=0)
    return found
