"""The benchmark of scale runs, goes on where it stopped, and says what its figures mean."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import scale_peers
from benchmarks.quality_cells import CELLS
from benchmarks.scale import main, outcome
from benchmarks.scale_commands import phases, stages_done
from benchmarks.scale_data import KINDS, block_of_rows, load_rows, write_rows
from benchmarks.scale_figures import draw, time_shares
from benchmarks.scale_findings import Results, Spread, efficiencies, exponent, growth
from benchmarks.scale_grid import FIELDS, Cell, Grid, Size, Unit, is_long
from benchmarks.scale_limits import at_once, measure_copy
from benchmarks.scale_peers import PEERS, Peer, Timing, halvings, largest_within
from benchmarks.scale_tables import report, short, spread_text
from benchmarks.scale_targets import Target, exact_seconds, targets
from benchmarks.scale_watch import CommandFailedError, Peaks, Watched, watched
from mrot_scale.errors import ConfigError

GRID = Grid((1_000_000, 10_000_000), (32,), (1, 2))
SMALL, LARGE = Size(1_000_000, 32), Size(10_000_000, 32)
TINY = {
    "MROT_CLUSTER__KIND": "inline",
    "MROT_LABEL_ROWS": "300",
    "MROT_REPEATS": "1",
    "MROT_ANCHOR_SETS": "2",
}


@pytest.mark.slow
def test_a_small_grid_is_measured_and_reported_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in TINY.items():
        monkeypatch.setenv(name, value)
    for slow_to_load in ("IsolationForest as it comes", "HBOS", "ECOD", "exact MROT"):
        monkeypatch.delitem(PEERS, slow_to_load)
    out = tmp_path / "out"
    words = ["--rows", "1500", "--features", "3", "--workers", "1", "--repeats", "1"]
    assert main([*words, "--out", str(out)]) == 0
    told = capsys.readouterr()
    assert "FAILED" not in told.err
    assert "| score stage / HBOS score |" in told.out
    found = json.loads((out / "scale.json").read_text())
    units = Grid((1_500,), (3,), (1,)).units(Size(1_500, 3))
    measured = {(cell["kind"], cell["method"]) for cell in found["cells"]}
    assert measured | {("ours", "always")} == {(unit.kind, unit.method) for unit in units}
    assert {path.name for path in out.glob("*.png")} == {
        "memory.png",
        "rates.png",
        "score-time.png",
    }
    assert not list((out / "scratch").iterdir())

    before = (out / CELLS).read_bytes()
    assert main([*words, "--out", str(out)]) == 0
    assert "[1 of" not in capsys.readouterr().err
    assert (out / CELLS).read_bytes() == before


def test_other_arguments_than_those_recorded_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(rows: str, repeats: str = "0", **more: str) -> int:
        others = [word for name, value in more.items() for word in (f"--{name}", value)]
        return main(["--rows", rows, "--repeats", repeats, *others, "--out", str(tmp_path / "out")])

    assert run("1e3,2e3") == 0
    assert run("1e3,2e3", only="2e3x32") == 0
    assert run("1e3,4e3") == ConfigError.exit_code
    assert "Give the same settings" in capsys.readouterr().err
    assert run("1e3,2e3", only="3e3x32") == ConfigError.exit_code
    assert "--only: 3,000 x 32 is not in the grid" in capsys.readouterr().err


def test_the_largest_size_and_single_workers_are_not_measured_everywhere() -> None:
    grid = Grid((10**5, 10**6, 10**7), (8, 32, 128), (1, 2))
    assert Size(10**7, 128) not in grid.sizes
    assert len(grid.sizes) == 8
    assert Size(10**7, 128) in Grid(grid.rows, grid.features, grid.workers, full=True).sizes
    assert (grid.reference, grid.target) == (SMALL, LARGE)
    ours = {
        size: [(u.method, u.workers) for u in grid.units(size) if u.kind == "ours"]
        for size in grid.sizes
    }
    assert ours.pop(SMALL) == [("plain", 2), ("plain", 1), ("auto", 2), ("always", 2)]
    assert set(map(tuple, ours.values())) == {(("plain", 2),)}


def test_sizes_that_targets_are_set_at_are_replaced_by_the_nearest() -> None:
    assert Grid((3_000, 6_000), (4,), (2,)).reference == Size(6_000, 4)
    assert Grid((10**5, 10**6), (8, 128), (2,)).target == Size(10**6, 8)
    assert Grid((10**8,), (1,), (2,), full=True).reference == Size(10**8, 1)


def _found(*cells: Cell) -> Any:
    by_key = {tuple(cell[field] for field in FIELDS): cell for cell in cells}
    return lambda identity: by_key.get(tuple(identity[field] for field in FIELDS))


def test_finished_cells_are_skipped_and_failed_ones_tried_again() -> None:
    unit = Unit("limit", "zarr", SMALL, 2)
    assert GRID.is_wanted(unit, 0, _found())
    assert not GRID.is_wanted(unit, 0, _found(unit.identity(0) | {"seconds": 1.0}))
    assert GRID.is_wanted(unit, 0, _found(unit.identity(0) | {"error": "no room"}))


def test_what_takes_over_three_minutes_is_measured_once() -> None:
    unit = Unit("ours", "plain", LARGE, 2)
    quick = unit.identity(0) | {"seconds": 190.0, "commands": {"fit": {"seconds": 170.0}}}
    slow = unit.identity(0) | {"seconds": 190.0, "commands": {"fit": {"seconds": 181.0}}}
    assert (is_long(quick), is_long(slow)) == (False, True)
    assert GRID.is_wanted(unit, 1, _found(quick))
    assert not GRID.is_wanted(unit, 1, _found(slow))


def test_a_peer_that_was_cut_is_not_tried_on_a_larger_table() -> None:
    small, large = (Unit("peer", "ECOD", size, 1) for size in (SMALL, LARGE))
    whole = small.identity(0) | {"measured_rows": SMALL.rows}
    cut = small.identity(0) | {"measured_rows": SMALL.rows // 2}
    assert GRID.is_wanted(large, 0, _found(whole))
    assert not GRID.is_wanted(large, 0, _found(cut))
    assert GRID.is_wanted(small, 1, _found(cut))


def test_efforts_are_asked_for_where_plain_trees_were_chosen() -> None:
    auto, always = (Unit("ours", method, SMALL, 2) for method in ("auto", "always"))
    assert GRID.is_wanted(always, 0, _found(auto.identity(0) | {"model_kind": "plain"}))
    assert not GRID.is_wanted(always, 0, _found(auto.identity(0) | {"model_kind": "hybrid"}))


def test_turns_go_there_and_back() -> None:
    pending = GRID.pending(LARGE, 2, _found())
    turns = [[unit for unit, repeat in pending if repeat == turn] for turn in (0, 1)]
    assert turns[0] == turns[1][::-1] == GRID.units(LARGE)


@pytest.mark.parametrize("name", PEERS)
def test_peers_are_timed_on_rows_in_memory(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rows(tmp_path / "table.parquet", 300, 3)
    scale_peers.main([name, str(tmp_path / "table.parquet"), "300", "--within", "60"])
    found = json.loads(capsys.readouterr().out)
    assert found["measured_rows"] == 300
    assert found["score_s"] > 0


def test_peers_are_given_as_many_rows_as_go_in_the_time() -> None:
    peer = Peer(lambda found, rows: None, exponent=2.0, reach=5)
    tried: list[int] = []

    def measure(n: int) -> Timing:
        tried.append(n)
        return Timing(n, 0.0, (n / 1_000) ** 2)

    sizes = halvings(64_000, 1_000)
    assert sizes == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000]
    assert largest_within(measure, sizes, peer, 100.0).measured_rows == 8_000
    assert tried == [1_000, 4_000, 8_000]
    assert largest_within(measure, [64_000], peer, 0.0).measured_rows == 64_000


def test_rows_are_the_same_however_many_are_read(tmp_path: Path) -> None:
    write_rows(tmp_path / "table.parquet", 1_000, 3)
    rows = load_rows(tmp_path / "table.parquet", 1_000)
    np.testing.assert_array_equal(rows, block_of_rows(0, 1_000, 3, 0)[0])
    np.testing.assert_array_equal(rows[:10], load_rows(tmp_path / "table.parquet", 10))
    assert rows.flags.c_contiguous
    with pytest.raises(ValueError, match="has 1000 rows, not 1001"):
        load_rows(tmp_path / "table.parquet", 1_001)


def test_one_row_in_a_hundred_is_odd_in_one_of_three_ways() -> None:
    rows, kinds = block_of_rows(0, 60_000, 8, 0)
    shares = np.bincount(kinds, minlength=len(KINDS)) / len(kinds)
    np.testing.assert_allclose(shares, [0.99, 0.01 / 3, 0.01 / 3, 0.01 / 3], atol=0.002)
    assert np.abs(rows[kinds == 1]).mean() > 3 * np.abs(rows[kinds == 0]).mean()
    assert len(np.unique(rows[kinds == 2].round(0), axis=0)) < 0.5 * (kinds == 2).sum()
    other, _ = block_of_rows(1, 60_000, 8, 0)
    assert not np.isin(other[:, 0], rows[:, 0]).all()


def test_a_command_is_watched_with_all_below_it(tmp_path: Path) -> None:
    below = "import time; x = bytearray(60 << 20); time.sleep(1)"
    words = ["-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {below!r}])"]
    found = watched(words, folder=tmp_path).figures()
    assert found["worker_mib"] > 60 > found["driver_mib"]
    assert found["tree_mib"] >= found["worker_mib"]
    assert found["bytes"]["rchar"] > 0
    assert found["seconds"] >= 1
    assert found["cpu_s"] > 0


def test_a_command_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(CommandFailedError, match="no luck"):
        watched(["-c", "raise SystemExit('no luck')"], folder=tmp_path)


@pytest.mark.slow
def test_memory_is_copied_by_two_processes_at_once() -> None:
    found = measure_copy(1_000_000, 4, 2)
    assert found["measured_rows"] == 1_000_000
    assert found["rows_per_s"] > 1e6


def _failing(number: int, processes: int) -> Any:
    raise SystemExit(3)


@pytest.mark.slow
def test_a_process_that_dies_is_not_waited_for() -> None:
    with pytest.raises(EOFError):
        at_once(_failing, 2)


def test_phases_come_from_the_log_of_a_run() -> None:
    events = {"begun": "01", "workers": "03", "stage": "03", "stage done": "13", "done": "14"}
    log = "\n".join(
        json.dumps({"at": f"1970-01-01T00:00:{at}+00:00", "event": event})
        for event, at in events.items()
    )
    found = phases(log, Watched("", "", 0.0, 16.0, Peaks(0)))
    assert found == {
        "start": 1.0,
        "open workers": 2.0,
        "stage": 10.0,
        "publish": 1.0,
        "end": 2.0,
    }


def test_exponents_are_powers_of_rows() -> None:
    assert exponent((10, 3.0), (1_000, 300.0)) == pytest.approx(1.0)
    assert exponent((10, 3.0), (1_000, 3.0)) == pytest.approx(0.0)
    assert exponent((10, 0.0), (1_000, 3.0)) is None
    assert exponent((10, None), (1_000, 3.0)) is None


@pytest.mark.parametrize(
    ("figure", "is_least", "verdict"),
    [
        (2.0, True, "met"),
        (1.9, True, "not met"),
        (2.0, False, "met"),
        (2.1, False, "not met"),
        (None, True, "not measured"),
    ],
)
def test_targets_are_met_or_not(figure: float | None, is_least: bool, verdict: str) -> None:
    assert Target("x", figure, 2.0, "", is_least).verdict == verdict


def _ours(size: Size, scored_s: float, repeat: int = 0, workers: int = 2, **more: Any) -> Cell:
    def command(stage_s: float, mib: float) -> dict[str, Any]:
        return {
            "seconds": stage_s + 5.0,
            "stages": {"score": stage_s},
            "stage_s": stage_s,
            "beside_s": 5.0,
            "driver_mib": mib,
            "worker_mib": 2 * mib,
            "tree_mib": 3 * mib,
            "bytes": dict.fromkeys(("rchar", "wchar"), 10**6),
            "phases": {"start": 1.0, "open workers": 2.0, "stage": stage_s, "publish": 2.0},
        }

    commands = {
        "ingest": command(size.rows / 1e6, 100.0),
        "fit": command(50.0, 100.0),
        "score": command(scored_s, 200.0),
    }
    total = sum(found["seconds"] for found in commands.values())
    cell = Unit("ours", "plain", size, workers).identity(repeat)
    facts = {"seconds": total, "model_kind": "plain", "commands": commands}
    return {**cell, **facts, **more}


def _peer(name: str, size: Size, rows: int, fit_s: float, score_s: float) -> Cell:
    found = {"measured_rows": rows, "fit_s": fit_s, "score_s": score_s, "tree_mib": 500.0}
    return {**Unit("peer", name, size, PEERS[name].threads).identity(0), **found}


def _limit(name: str, size: Size, rate: float, **more: Any) -> Cell:
    return {**Unit("limit", name, size, 2).identity(0), "rows_per_s": rate, **more}


def _results() -> Results:
    return Results(
        GRID,
        [
            _ours(SMALL, 2.0, 0),
            _ours(SMALL, 4.0, 1),
            _ours(SMALL, 3.0, 2),
            _ours(SMALL, 5.4, 0, workers=1),
            _ours(LARGE, 20.0),
            _peer("IsolationForest", LARGE, LARGE.rows, 10.0, 100.0),
            _peer("HBOS", LARGE, LARGE.rows // 2, 5.0, 2.5),
            _limit("zarr", LARGE, 2e6),
            _limit("trees", LARGE, 5e5, lightgbm_rows_per_s=1e5, ratio=5.0, equal=True),
            {**Unit("peer", "ECOD", LARGE, 1).identity(0), "error": "no room"},
        ],
    )


def test_targets_are_worked_out_from_cells() -> None:
    found = {target.name: target for target in targets(_results())}
    figures = {name: target.figure for name, target in found.items()}
    assert figures["score stage / IsolationForest score, two threads"] == pytest.approx(5.0)
    assert figures["score stage / HBOS score"] == pytest.approx(0.25)
    assert figures["score command / IsolationForest score, two threads"] == pytest.approx(4.0)
    assert figures["score stage / reading Zarr"] == pytest.approx(0.25)
    assert figures["seconds of fit / IsolationForest fit and score"] == pytest.approx(0.5)
    assert figures["seconds of ingest, fit and score"] == pytest.approx(95.0)
    assert figures["tree walk / LightGBM, 2 processes"] == pytest.approx(5.0)
    assert figures["tree walk / LightGBM, 1 process"] is None
    assert figures["runs whose tree walk equals LightGBM in all bits"] == 1.0
    assert figures["largest exponent of time in rows"] == pytest.approx(1.0)
    assert figures["largest exponent of memory in rows"] == pytest.approx(0.0)
    assert found["score stage / HBOS score"].verdict == "not met"
    assert {target.at for target in found.values()} >= {"10,000,000 x 32"}


def test_targets_of_a_smaller_grid_say_where_they_were_measured() -> None:
    results = Results(GRID, [_ours(SMALL, 3.0)])
    (whole,) = [t for t in targets(results) if t.name == "seconds of ingest, fit and score"]
    assert whole.at == "1,000,000 x 32"


def test_growth_is_between_neighbouring_sizes_by_medians() -> None:
    found = {g["command"]: g for g in growth(_results())}
    assert found["score"]["stage_s"] == pytest.approx(np.log10(20.0 / 3.0))
    assert found["ingest"]["stage_s"] == pytest.approx(1.0)
    assert found["fit"]["tree_mib"] == pytest.approx(0.0)


def test_efficiency_is_of_the_time_that_workers_have() -> None:
    found = {e["command"]: e["efficiency"] for e in efficiencies(_results())}
    assert found["score"] == pytest.approx(5.4 / (2 * 3.0))
    assert found["fit"] == pytest.approx(0.5)


def test_the_report_has_medians_ranges_cuts_and_failures() -> None:
    text = report(_results(), "Here.")
    assert "333 k (250 k..500 k)" in text
    assert "2 M @ 5,000,000" in text
    assert "| score stage / reading Zarr | - | 25.0% |" in text
    assert "| score | 1,000,000 x 32 | 1 to 2 | 5.4 to 3.0 | 0.90 |" in text
    assert "| ECOD | 10,000,000 x 32 | no room |" in text


def test_what_was_measured_once_for_its_length_is_marked() -> None:
    cell = _ours(LARGE, 200.0)
    assert "| mrot-scale: score stage | 50 k * |" in report(Results(GRID, [cell]), "")


def test_an_empty_grid_has_a_report_and_no_pictures(tmp_path: Path) -> None:
    assert "not measured" in report(Results(GRID, []), "")
    assert draw(Results(GRID, []), tmp_path) == []


def test_the_time_of_scoring_is_divided_among_its_parts() -> None:
    shares = time_shares(_results(), LARGE)
    assert sum(shares.values()) == pytest.approx(1.0)
    # Read and walked alone they would take 25 s of a stage of 20 s, so they fill it.
    expected = {"start": 1, "open workers": 2, "reading": 4, "walking": 16, "rest": 0, "publish": 2}
    assert shares == pytest.approx({n: s / 25 for n, s in {**expected, "end": 0}.items()})


@pytest.mark.parametrize(
    ("value", "text"), [(12.3, "12.3"), (999.6, "1 k"), (5_120.0, "5.12 k"), (3.1e9, "3.1 G")]
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert short(value) == text


def test_a_single_repeat_has_no_range() -> None:
    assert spread_text(Spread.of([2_000.0])) == "2 k"
    assert spread_text(Spread.of([])) == "-"


def test_progress_says_what_became_of_a_cell() -> None:
    results = _results()
    told = [outcome(cell) for cell in (*results.cells, *results.failures)]
    assert told[0] == "ingest 6.0 s, fit 55.0 s, score 7.0 s (plain)"
    assert "fit 10.00 s, score 100.00 s of 10,000,000 rows" in told
    assert told[-1] == "FAILED: no room"


def test_processes_are_of_this_python() -> None:
    found = watched(["-c", "import sys; print(sys.executable)"])
    assert found.out.strip() == sys.executable


def test_stages_and_tasks_come_from_the_log_of_a_run() -> None:
    events = [
        {"event": "stage", "stage": "score", "tasks": 7},
        {"event": "stage done", "stage": "score", "tasks": 7, "seconds": 1.234},
        {"event": "done"},
    ]
    found = stages_done("\n".join(map(json.dumps, events)))
    assert found["score"]["seconds"] == 1.234
    assert found["score"]["tasks"] == 7


def test_the_exact_method_is_taken_to_grow_with_the_square_at_least() -> None:
    results = Results(GRID, [_peer("exact MROT", SMALL, 4_000, 0.0, 5.0)])
    assert exact_seconds(results) == pytest.approx(125.0)
    assert exact_seconds(Results(GRID, [])) is None
