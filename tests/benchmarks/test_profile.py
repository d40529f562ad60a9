"""The profile runs, and what one stop-watch counts no other does."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.profile import COMMANDS, main, parts_of
from benchmarks.profile_stages import REST
from benchmarks.profile_timers import Timed, Timers, timed
from mrot_scale.storing.manifest import Entry
from mrot_scale.storing.store import ids_name


def test_a_small_run_tells_the_parts_of_every_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"LABEL_ROWS": "300", "REPEATS": "1", "ANCHOR_SETS": "2"}.items():
        monkeypatch.setenv(f"MROT_{name}", value)
    monkeypatch.setenv("MROT_HYBRID", "never")
    monkeypatch.setattr("benchmarks.profile._SHORTEST_S", 1e-9)
    out = tmp_path / "out"
    sizes = ["--rows", "2000", "--features", "3", "--scratch", str(tmp_path)]
    assert main([*sizes, "--out", str(out)]) == 0
    found = json.loads((out / "profile.json").read_text())
    parts = {command: {part["part"] for part in found[command]} for command in COMMANDS}
    assert parts["ingest"] >= {"read Parquet", "encode columns", "statistics", "digest", "fsync"}
    assert parts["fit"] >= {"sample", "efforts", "train", REST}
    # COMPILING is left out: another test may have loaded everything in this process.
    assert parts["score"] >= {"read files", "LightGBM", "calibrate", "journal"}
    assert parts["score"] >= {"Parquet: encode", "decode Zarr: crc32c, zstd", "to float64"}
    assert "| score, 2,000 x 3 | seconds | rows/s | share |" in capsys.readouterr().out
    assert (out / "profile.md").read_text().count("| all |") == len(COMMANDS)


@pytest.mark.slow
def test_trees_are_walked_where_rows_are_many(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"LABEL_ROWS": "300", "REPEATS": "1", "ANCHOR_SETS": "2"}.items():
        monkeypatch.setenv(f"MROT_{name}", value)
    monkeypatch.setenv("MROT_HYBRID", "never")
    monkeypatch.setattr("mrot_scale.model.lightgbm_model.WALKED_FROM", 1_000)
    assert main(["--rows", "20000", "--features", "3", "--stage", "score"]) == 0
    told = capsys.readouterr().out
    assert "| tree walk |" in told
    assert "| ingest," not in told


@dataclass
class Clock:
    """A clock that goes on when it is told to."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


def test_a_timer_leaves_out_what_those_inside_it_count() -> None:
    clock = Clock()
    timers = Timers(clock=clock)
    with timers.timing("outer"):
        clock.pass_by(1)
        with timers.timing("inner"):
            clock.pass_by(5)
    assert timers.seconds == {"inner": 5, "outer": 1}


def test_a_whole_timer_counts_all_inside_it() -> None:
    clock = Clock()
    timers = Timers(clock=clock)
    with timers.timing("outer", whole=True), timers.timing("inner"):
        clock.pass_by(1)
    assert timers.seconds == {"outer": 1}


def test_work_that_is_done_while_iterating_is_counted_as_it_is_done() -> None:
    clock = Clock()
    timers = Timers(clock=clock)

    def slow_numbers() -> Iterator[int]:
        for number in range(3):
            clock.pass_by(1)
            yield number

    found = []
    for number in timers.iterated(slow_numbers(), "numbers"):
        clock.pass_by(10)
        found.append(number)
    assert found == [0, 1, 2]
    assert timers.seconds == {"numbers": 3}


def test_functions_and_class_methods_are_timed_by_name_and_then_left_alone() -> None:
    timers, before = Timers(), ids_name
    functions = [
        Timed("mrot_scale.storing.manifest:Entry.of", "digest"),
        Timed("mrot_scale.storing.store:ids_name", "name"),
    ]
    with timed(timers, functions):
        from mrot_scale.storing.store import ids_name as wrapped

        assert Entry.of(b"x").n_bytes == 1
        assert wrapped(1) == before(1)
    assert set(timers.seconds) == {"digest", "name"}
    Entry.of(b"y")
    assert set(timers.seconds) == {"digest", "name"}
    from mrot_scale.storing import store

    assert store.ids_name is before


def test_a_function_that_is_no_longer_there_is_not_passed_over() -> None:
    with pytest.raises(AttributeError), timed(Timers(), [Timed("mrot_scale.rows:gone", "x")]):
        pass


def test_parts_come_with_rates_and_shares_the_largest_first() -> None:
    found = parts_of({"a": 1.0, "b": 3.0, "c": 0.0}, 6)
    assert found == [
        {"part": "b", "seconds": 3.0, "rows_per_s": 2.0, "share": 0.75},
        {"part": "a", "seconds": 1.0, "rows_per_s": 6.0, "share": 0.25},
    ]
