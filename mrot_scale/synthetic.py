"""A table people can picture: readings of water pumps, with anomalies planted in three ways.

Pumps idle, run or run flat out, so normal readings form three clusters of unequal density in which
the columns depend on each other. Planted anomalies are *isolated* (a sensor reads far out),
*clustered* (a group of readings from one pump that runs dry) or *local* (every value is ordinary,
but not together, as of a bearing that warms up while the pump idles).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mrot_scale.seeds import generator

Floats = NDArray[np.float64]

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

_AT = {name: position for position, name in enumerate(COLUMNS)}
_REGIMES = np.array([600.0, 1450.0, 2900.0])  # typical speed when idle, running, flat out
_SHARES = np.array([0.25, 0.6, 0.15])


@dataclass(frozen=True)
class PlantedTable:
    """Rows, and for each row the kind of anomaly planted in it or 'normal'."""

    rows: Floats
    kind: NDArray[np.str_]


def pump_readings(n_rows: int, *, anomaly_share: float = 0.01, seed: int = 0) -> PlantedTable:
    """Return readings in random order, the share of anomalies split evenly over the kinds."""
    rng = generator(seed, "pump readings")
    per_kind = max(1, round(anomaly_share * n_rows / len(KINDS)))
    rows, regime = _normal_readings(n_rows, rng)
    kind = np.full(n_rows, "normal", dtype="U9")
    chosen = rng.permutation(n_rows)[: per_kind * len(KINDS)].reshape(len(KINDS), per_kind)
    for name, positions in zip(KINDS, chosen, strict=True):
        kind[positions] = name
    _plant_isolated(rows, chosen[0], rng)
    _plant_clustered(rows, chosen[1], rng)
    _plant_local(rows, chosen[2], regime, rng)
    return PlantedTable(rows, kind)


def _normal_readings(n_rows: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.int64]]:
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


def _plant_isolated(rows: Floats, positions: NDArray[np.int64], rng: np.random.Generator) -> None:
    """Send two or three sensors of each row far out of their usual range."""
    spread = rows.std(axis=0)
    for position in positions:
        columns = rng.choice(len(COLUMNS), rng.integers(2, 4), replace=False)
        signs = rng.choice([-1.0, 1.0], len(columns))
        rows[position, columns] += signs * rng.uniform(3, 6, len(columns)) * spread[columns]


def _plant_clustered(rows: Floats, positions: NDArray[np.int64], rng: np.random.Generator) -> None:
    """Put all rows at one place: a pump running dry, fast but without flow or pressure."""
    shape = (len(positions), len(COLUMNS))
    typical = np.array([1500, 40, 1.8, 2.0, 4.0, 1.4, 62, 58, 4.5, 74, 68, 14.0])
    rows[positions] = typical * (1 + 0.02 * rng.standard_normal(shape))


def _plant_local(
    rows: Floats,
    positions: NDArray[np.int64],
    regime: NDArray[np.int64],
    rng: np.random.Generator,
) -> None:
    """Give each row the bearing values of another regime: ordinary alone, odd together."""
    bearing = [_AT[c] for c in ("bearing_temperature_c", "vibration_mm_s", "noise_db")]
    normal = np.setdiff1d(np.arange(len(rows)), positions)
    for position in positions:
        donors = normal[regime[normal] != regime[position]]
        rows[position, bearing] = rows[rng.choice(donors), bearing]
