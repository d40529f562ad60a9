"""The demo's table: the same rows however they are made, and anomalies where it says."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from mrot_scale import synthetic
from mrot_scale.synthetic import (
    COLUMNS,
    KINDS,
    LOG_KINDS,
    LOG_SCHEMA,
    log_block,
    pump_log,
    pump_readings,
)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic, "BLOCK_ROWS", 1_000)


@pytest.mark.usefixtures("small_blocks")
def test_a_block_is_the_same_whatever_was_made_before_it() -> None:
    in_order = list(pump_log(4_321, seed=3))
    assert [b.num_rows for b in in_order] == [1_000, 1_000, 1_000, 1_321]
    for block in (3, 0, 2, 1):
        assert log_block(4_321, block, seed=3).equals(in_order[block])
    assert not log_block(4_321, 0, seed=4).equals(in_order[0])


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n_rows", [4, 999, 1_000, 1_001, 1_999, 2_000])
def test_readings_are_numbered_without_gaps(n_rows: int) -> None:
    table = pa.Table.from_batches(pump_log(n_rows))
    assert table["reading"].to_pylist() == list(range(n_rows))
    moments = table["read_at"].to_pylist()
    assert moments == sorted(set(moments))


def test_the_log_has_names_times_gaps_and_every_kind_of_anomaly() -> None:
    block = log_block(20_000, 0)
    assert block.schema.equals(LOG_SCHEMA)
    assert len(set(LOG_SCHEMA.names) - {"reading", "planted"}) == 16
    planted = block["planted"].value_counts().to_pylist()
    counts = {pair["values"]: pair["counts"] for pair in planted}
    assert counts == {"normal": 19_800, **dict.fromkeys(LOG_KINDS, 50)}
    gaps = {n: block[n].null_count for n in LOG_SCHEMA.names if block[n].null_count}
    assert set(gaps) < set(COLUMNS)
    assert all(50 < n < 200 for n in gaps.values())
    assert not any(pc.any(pc.is_nan(block[name])).as_py() for name in COLUMNS)


def test_strays_are_the_readings_of_pumps_that_do_not_belong() -> None:
    block = log_block(20_000, 0)
    foreign = pc.starts_with(block["pump"], "T-")
    assert foreign.equals(pc.equal(block["planted"], "stray"))
    assert len(block["pump"].unique()) == 44
    assert len(block["site"].unique()) == 5


def test_local_anomalies_are_ordinary_in_each_column_and_odd_together() -> None:
    table = pump_readings(20_000)
    normal, local = table.rows[table.kind == "normal"], table.rows[table.kind == "local"]
    low, high = normal.min(axis=0), normal.max(axis=0)
    inside = ((local >= low) & (local <= high)).mean()
    assert inside > 0.99
    warmth = [COLUMNS.index(c) for c in ("motor_temperature_c", "bearing_temperature_c")]
    apart = np.diff(normal[:, warmth]).ravel()
    off = np.abs(np.diff(local[:, warmth]).ravel() - apart.mean()) > 3 * apart.std()
    assert off.mean() > 0.5


def test_readings_of_the_benchmarks_stay_what_they_are() -> None:
    table = pump_readings(1_500, seed=1)
    assert table.rows.sum() == pytest.approx(3_041_552.2, rel=1e-7)
    assert [int((table.kind == kind).sum()) for kind in KINDS] == [5, 5, 5]
