"""A table people can picture: readings of water pumps, with anomalies planted in several ways.

Pumps idle, run or run flat out, so normal readings form three clusters of unequal density in which
the columns depend on each other. Planted anomalies are *isolated* (a sensor reads far out),
*clustered* (a group of readings from one pump that runs dry), *local* (every value is ordinary,
but not together, as of a bearing that warms up while the pump idles) or, in the full log with its
names and times, *stray* (ordinary readings, but of a pump that hardly ever reports here).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mrot_scale.seeds import generator

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

COLUMNS = (
    "speed_rpm",
    "flow_l_min",
    "inlet_pressure_bar",
    "outlet_pressure_bar",
    "motor_current_a",
    "power_kw",
    "motor_temperature_c",
    "bearing_temperature_c",
    "vibration_mm_s",
    "noise_db",
    "valve_open_pct",
    "water_temperature_c",
)
KINDS = ("isolated", "clustered", "local")
LOG_KINDS = (*KINDS, "stray")
"""Kinds planted in the full log."""

LOG_SCHEMA = pa.schema(
    [
        ("reading", pa.int64()),
        ("read_at", pa.timestamp("s")),
        ("pump", pa.string()),
        ("site", pa.string()),
        ("remote", pa.bool_()),
        *((name, pa.float64()) for name in COLUMNS),
        ("planted", pa.string()),
    ]
)
"""The full log: an identifier, 16 columns to learn from, and the truth."""

BLOCK_ROWS = 50_000
"""Rows of the log made at a time; the last block also has what is left, so that none is tiny."""

_ANOMALY_SHARE = 0.01
_REGIMES = np.array([600.0, 1450.0, 2900.0])  # typical speed when idle, running, flat out
_SHARES = np.array([0.25, 0.6, 0.15])
_SITES = ("Brook", "Dale", "Ford", "Mill", "Weir")
_PUMPS = tuple(f"P-{number:02d}" for number in range(1, 41))
_STRAY_PUMPS = ("T-01", "T-02", "T-03", "T-04")
_REMOTE_SHARE = 0.3
_SOMETIMES_MISSING = ("inlet_pressure_bar", "noise_db", "valve_open_pct", "water_temperature_c")
_MISSING_SHARE = 0.005
_DECIMALS = 3
_FIRST_READING_S = 1_735_689_600  # 2025 begins
_SECONDS_APART = 30
_AT = {name: position for position, name in enumerate(COLUMNS)}


@dataclass(frozen=True)
class PlantedTable:
    """Rows, and for each row the kind of anomaly planted in it or 'normal'."""

    rows: Floats
    kind: NDArray[np.str_]
    disturbed: NDArray[np.bool_]
    """Which values were planted, (n, columns): what an explanation should name."""


def pump_readings(
    n_rows: int, *, anomaly_share: float = _ANOMALY_SHARE, seed: int = 0
) -> PlantedTable:
    """Return readings in random order, the share of anomalies split evenly over the kinds."""
    rng = generator(seed, "pump readings")
    rows, regime = _normal_readings(n_rows, rng)
    places = _places(n_rows, KINDS, anomaly_share, rng)
    disturbed = _plant(rows, regime, places, rng)
    return PlantedTable(rows, _kind_of_rows(n_rows, places), disturbed)


def n_blocks(n_rows: int) -> int:
    """Return the number of blocks in a log of this many rows."""
    return max(1, n_rows // BLOCK_ROWS)


def pump_log(n_rows: int, *, seed: int = 0) -> Iterator[Any]:
    """Yield the full log as record batches, one per block, in order of time."""
    for block in range(n_blocks(n_rows)):
        yield log_block(n_rows, block, seed=seed)


def log_block(n_rows: int, block: int, *, seed: int = 0) -> Any:
    """Return one block of a log of `n_rows`, whatever blocks were made before it."""
    first = block * BLOCK_ROWS
    n = n_rows - first if block == n_blocks(n_rows) - 1 else BLOCK_ROWS
    rng = generator(seed, "pump log", block)
    rows, regime = _normal_readings(n, rng)
    places = _places(n, LOG_KINDS, _ANOMALY_SHARE, rng)
    _plant(rows, regime, places, rng)
    reading = np.arange(first, first + n)
    pump = _pumps(n, places["stray"], rng)
    columns = {
        "reading": reading,
        "read_at": (_FIRST_READING_S + _SECONDS_APART * reading).astype("datetime64[s]"),
        "pump": pa.array(_PUMPS + _STRAY_PUMPS).take(pa.array(pump)),
        "site": pa.array(_SITES).take(pa.array(pump % len(_SITES))),
        "remote": rng.random(n) < _REMOTE_SHARE,
        "planted": _kind_of_rows(n, places).tolist(),
    }
    _lose_some(rows, rng)
    columns |= {
        name: pa.array(np.round(values, _DECIMALS), from_pandas=True)  # NaN is missing
        for name, values in zip(COLUMNS, rows.T, strict=True)
    }
    return pa.record_batch([columns[name] for name in LOG_SCHEMA.names], schema=LOG_SCHEMA)


def _places(
    n_rows: int, kinds: Sequence[str], share: float, rng: np.random.Generator
) -> dict[str, Ids]:
    """Return for each kind the rows it is planted in, no row twice and no kind without a row."""
    per_kind = max(1, round(share * n_rows / len(kinds)))
    chosen = rng.permutation(n_rows)[: per_kind * len(kinds)].reshape(len(kinds), per_kind)
    return dict(zip(kinds, chosen, strict=True))


def _kind_of_rows(n_rows: int, places: dict[str, Ids]) -> NDArray[np.str_]:
    kind = np.full(n_rows, "normal", dtype="U9")
    for name, positions in places.items():
        kind[positions] = name
    return kind


def _normal_readings(n_rows: int, rng: np.random.Generator) -> tuple[Floats, Ids]:
    """Return readings that follow the pump's physics, and the regime each pump was in."""
    regime = rng.choice(len(_REGIMES), n_rows, p=_SHARES)
    noise = rng.standard_normal((n_rows, len(COLUMNS)))
    speed = _REGIMES[regime] * (1 + 0.04 * noise[:, 0])
    load = speed / _REGIMES[-1]
    valve = np.clip(35 + 60 * load + 4 * noise[:, 10], 0, 100)
    flow = 900 * load * valve / 100 * (1 + 0.03 * noise[:, 1])
    inlet = 2.0 - 0.5 * load + 0.05 * noise[:, 2]
    outlet = inlet + 6.5 * load**2 + 0.12 * noise[:, 3]
    power = 0.4 + 11 * load**3 * (1 + 0.04 * noise[:, 5])
    current = 1.2 + 1.9 * power + 0.25 * noise[:, 4]
    water = 14 + 3 * noise[:, 11]
    motor = water + 18 + 34 * load**2 + 1.5 * noise[:, 6]
    bearing = water + 12 + 26 * load**2 + 1.2 * noise[:, 7]
    vibration = np.exp(np.log(0.6 + 2.2 * load) + 0.12 * noise[:, 8])
    sound = 52 + 22 * load + 1.3 * noise[:, 9]
    columns = [speed, flow, inlet, outlet, current, power]
    columns += [motor, bearing, vibration, sound, valve, water]
    return np.column_stack(columns), regime


def _plant(
    rows: Floats, regime: Ids, places: dict[str, Ids], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Plant the kinds that show in the sensors; return which values they are."""
    before = rows.copy()
    _plant_isolated(rows, places["isolated"], rng)
    _plant_clustered(rows, places["clustered"], rng)
    _plant_local(rows, places["local"], regime, rng)
    return np.asarray(rows != before)


def _plant_isolated(rows: Floats, positions: Ids, rng: np.random.Generator) -> None:
    """Send two or three sensors of each row far out of their usual range."""
    spread = rows.std(axis=0)
    for position in positions:
        columns = rng.choice(len(COLUMNS), rng.integers(2, 4), replace=False)
        signs = rng.choice([-1.0, 1.0], len(columns))
        rows[position, columns] += signs * rng.uniform(3, 6, len(columns)) * spread[columns]


def _plant_clustered(rows: Floats, positions: Ids, rng: np.random.Generator) -> None:
    """Put all rows at one place: a pump running dry, fast but without flow or pressure."""
    shape = (len(positions), len(COLUMNS))
    typical = np.array([1500, 40, 1.8, 2.0, 4.0, 1.4, 62, 58, 4.5, 74, 68, 14.0])
    rows[positions] = typical * (1 + 0.02 * rng.standard_normal(shape))


def _plant_local(rows: Floats, positions: Ids, regime: Ids, rng: np.random.Generator) -> None:
    """Give each row the bearing values of another regime: ordinary alone, odd together."""
    names = ("bearing_temperature_c", "vibration_mm_s", "noise_db")
    bearing = np.array([_AT[name] for name in names])
    normal = np.setdiff1d(np.arange(len(rows)), positions)
    donors = [normal[regime[normal] != own] for own in range(len(_REGIMES))]
    chosen = np.array([rng.choice(donors[regime[position]]) for position in positions])
    rows[np.ix_(positions, bearing)] = rows[np.ix_(chosen, bearing)]


def _pumps(n_rows: int, strays: Ids, rng: np.random.Generator) -> Ids:
    """Return the pump of each reading; strays come from pumps beyond those that belong here."""
    pump = rng.integers(len(_PUMPS), size=n_rows)
    pump[strays] = len(_PUMPS) + rng.integers(len(_STRAY_PUMPS), size=len(strays))
    return pump


def _lose_some(rows: Floats, rng: np.random.Generator) -> None:
    """Let some sensors fail to report now and then."""
    for name in _SOMETIMES_MISSING:
        rows[rng.random(len(rows)) < _MISSING_SHARE, _AT[name]] = np.nan
