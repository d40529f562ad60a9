"""The study of the mass constraint at toy size: identities hold, scenarios are what they claim."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from benchmarks import transport_sets
from benchmarks.transport import main
from benchmarks.transport_identities import identity_gaps, program_efforts, sorted_neighbour
from benchmarks.transport_runs import ALL, VERDICTS, run_scenario, summarise, verdict
from benchmarks.transport_scenarios import SCENARIOS
from benchmarks.transport_sets import anchor_sides, paired_tests
from benchmarks.transport_sides import (
    FREE,
    NEIGHBOUR,
    SIDES,
    TRANSPORT,
    Floats,
    batch_sides,
    capacity_efforts,
)
from benchmarks.transport_weights import FULL, aggregate, agreement, weighted_sides
from mrot_scale.errors import ConfigError
from mrot_scale.method.cost import engineered_cost, nearest_zone, squared_distances
from tests.tables import normal_rows

K = 3


@pytest.fixture
def distances() -> Floats:
    rows = normal_rows(40)
    return squared_distances(rows, rows)


@pytest.fixture
def cost(distances: Floats) -> Floats:
    return engineered_cost(distances, nearest_zone(distances, K))


def test_without_target_marginals_transport_is_the_next_neighbour(
    distances: Floats, cost: Floats
) -> None:
    next_neighbour = sorted_neighbour(distances, K + 1)
    for efforts in (capacity_efforts(cost, None), program_efforts(cost, None)):
        np.testing.assert_allclose(efforts, next_neighbour)
    assert not np.allclose(sorted_neighbour(distances, K), next_neighbour)
    assert (capacity_efforts(cost, 1) > next_neighbour + 1e-9).any()


def test_capacity_one_is_the_plain_assignment(cost: Floats) -> None:
    senders, receivers = linear_sum_assignment(cost)
    np.testing.assert_allclose(capacity_efforts(cost, 1), cost[senders, receivers])


def test_more_room_never_costs_more(cost: Floats) -> None:
    totals = [capacity_efforts(cost, capacity).sum() for capacity in (1, 2, 4, None)]
    assert totals == sorted(totals, reverse=True)
    assert totals[0] > totals[1] > totals[-1]
    programs = [program_efforts(cost, capacity).sum() for capacity in (1, 2, 4, None)]
    np.testing.assert_allclose(totals, programs)


def test_identities_hold_in_what_is_reported() -> None:
    assert max(identity_gaps().values()) < 1e-9


def test_sides_share_their_zones() -> None:
    sides = batch_sides(normal_rows(100), alpha=0.05)
    assert tuple(sides) == SIDES
    assert (sides[NEIGHBOUR] < sides[FREE]).all()
    assert (sides[FREE] <= sides[TRANSPORT]).all()


def scenario_areas(name: str, value: float) -> dict[str, float]:
    (scenario,) = (some for some in SCENARIOS if some.name == name)
    chosen = [r for r in run_scenario(scenario, 1, 512) if r["value"] == value]
    areas: dict[str, float] = chosen[0]["roc"]
    return areas


def test_a_small_group_is_found_and_a_large_one_hides_from_both() -> None:
    small, large = (scenario_areas("tight group", share) for share in (0.01, 0.16))
    assert min(small[TRANSPORT], small[NEIGHBOUR]) > 98
    assert max(large[TRANSPORT], large[NEIGHBOUR]) < 10


def test_every_scenario_draws_what_is_asked_for() -> None:
    for scenario in ALL:
        for value in scenario.values:
            table = scenario.draw(value, 200, np.random.default_rng(0))
            assert len(table.rows) == len(table.labels) == 200
            assert 0 < table.labels.sum() < 40


def test_counts_of_one_change_nothing() -> None:
    sides = weighted_sides(normal_rows(100, 2), alpha=0.05)
    for kind in ("transport", "k-NN"):
        full, ignored = sides[f"full table, {kind}"], sides[f"counts ignored, {kind}"]
        np.testing.assert_allclose(sides[f"counted, {kind}"], full)
        np.testing.assert_allclose(ignored, full)
    assert agreement(sides)[FULL] == pytest.approx(1.0)


def test_aggregation_keeps_every_row() -> None:
    rows = np.round(normal_rows(200, 2))
    table = aggregate(rows)
    assert table.counts.sum() == 200
    assert len(table.rows) < 60
    np.testing.assert_array_equal(table.rows[table.place], rows)


def test_verdicts_need_agreement_size_and_more_than_chance() -> None:
    assert verdict([1.0, 2.0], 90.0) == VERDICTS[0]
    assert verdict([-1.0, -2.0], 90.0) == VERDICTS[1]
    assert verdict([3.0, -0.1], 90.0) == VERDICTS[2]
    assert verdict([0.1, 0.2], 90.0) == VERDICTS[2]
    assert verdict([1.0, 2.0], 40.0) == VERDICTS[3]


def test_summaries_by_hand() -> None:
    areas = dict.fromkeys(SIDES, 80.0)
    records: list[dict[str, Any]] = [
        {"scenario": "local (control)", "value": 1.0, "hub_skew": 0.0, "roc": areas | change}
        for change in ({TRANSPORT: 82.0, FREE: 81.0}, {TRANSPORT: 84.0, FREE: 81.0})
    ]
    (found,) = summarise(records)
    assert found["difference"] == pytest.approx([3.0, np.sqrt(2)])
    assert found["constraint_alone"] == pytest.approx([2.0, np.sqrt(2)])


def test_anchors_without_prices_are_neighbours() -> None:
    train, test = normal_rows(256), normal_rows(20, seed=1)
    sides = anchor_sides(train, test, 0.05, 0)
    assert (sides["neighbour"] < sides["no limit"]).all()
    assert (sides["no limit"] <= sides["transport"] + 1e-12).all()
    assert (sides["no limit"] < sides["transport"] - 1e-6).any()


def test_paired_tests_by_hand() -> None:
    found = paired_tests(np.array([1.0, 2.0, 3.0, 4.0, 0.0]))
    assert (found["mean"], found["sets_up"], found["sets_down"]) == (2.0, 4, 0)
    assert found["sign_p"] == found["wilcoxon_p"] == pytest.approx(0.125)
    assert paired_tests(np.zeros(3))["wilcoxon_p"] is None


def test_the_command_writes_numbers_tables_and_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(transport_sets, "ANCHOR_SETS", 2)
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    for seed, name in enumerate(("first", "second")):
        rows = np.vstack([normal_rows(190, seed=seed), 3 + normal_rows(10, seed=seed)])
        np.savez(data / f"{name}.npz", X=rows, y=np.repeat([0, 1], [190, 10]))
    options = ["--seeds", "2", "--rows", "128", "--scenarios", "local (control); weighted rows"]
    assert main(["--out", str(out), "--data", str(data), *options]) == 0
    found = json.loads((out / "transport.json").read_text())
    assert {r["scenario"] for r in found["summary"]} == {"local (control)", "weighted rows"}
    assert set(found["rows"][0]) == {"scenario", "value", "seed", "roc", "hub_skew"}
    assert [r["dataset"] for r in found["set_differences"]] == ["first", "second"]
    assert len(found["set_tests"]) == 9
    assert {p.name for p in out.glob("*.png")} == {"local-control.png", "weighted-rows.png"}
    assert "| local (control) | 0.8 |" in capsys.readouterr().out
    assert "Real sets" in (out / "transport.md").read_text()


def test_an_unknown_scenario_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--scenarios", "nothing"]) == ConfigError.exit_code
    assert "nothing" in capsys.readouterr().err
