"""Plans against what jobs then do: tasks counted, memory measured, disk weighed."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

from mrot_scale.config.job import Config
from mrot_scale.config.layers import load_config
from mrot_scale.errors import BudgetError, DataError, OutputError
from mrot_scale.jobs import labelled, plan_sizes, plan_workers
from mrot_scale.jobs.fit_job import fit
from mrot_scale.jobs.ingest_job import ingest
from mrot_scale.jobs.plan_calibration import seconds_per_row
from mrot_scale.jobs.plan_ingest import plan_ingest
from mrot_scale.jobs.plan_score import plan_score
from mrot_scale.jobs.plan_text import Plan, StagePlan, duration_text, plan_text
from mrot_scale.jobs.plan_workers import BASE_BYTES, machine_memory, worker_memory
from mrot_scale.jobs.planning import plan_fit_job
from mrot_scale.jobs.score_choices import score_options
from mrot_scale.jobs.score_job import score
from mrot_scale.model.persist import load_model
from mrot_scale.reading.sources import open_source
from mrot_scale.running.commit import Journal
from mrot_scale.storing.location import Location
from mrot_scale.storing.store import FeatureStore
from mrot_scale.terminal_text import size_text
from tests.jobs.made import stage_arrays
from tests.tables import normal_rows

MIB = 2**20
QUICK: Mapping[str, Any] = {
    "label_rows": 300,
    "repeats": 2,
    "anchor_sets": 2,
    "folds": 2,
    "batch_rows": 64,
    "store": {"chunk_bytes": "8KiB"},
    "cluster": {"kind": "inline"},
    "run": {"keep_stages": True},
}


def written_config(folder: Path, **settings: Any) -> Path:
    """A file, because only a file can say null."""
    place = folder / "config.yaml"
    place.write_text(yaml.safe_dump({**QUICK, **settings}))
    return place


def stored(folder: Path, source: Any, config: Path) -> FeatureStore:
    ingest(source, folder / "store", config=config)
    return FeatureStore.open(Location(folder / "store"))


def tasks_of(run: Path) -> Counter[str]:
    """Committed tasks of each stage, as the journal has them."""
    found = Journal(Location(run)).values()
    return Counter(value["key"].split("/")[0] for value in found if "key" in value)


def counts(plan: Plan) -> dict[str, int]:
    return {stage.name: stage.n_tasks for stage in plan.stages}


def folder_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def categories(n_rows: int) -> Any:
    rows = normal_rows(n_rows, 2)
    names = np.where(np.arange(n_rows) % 97 == 0, "rare", "common")
    return pa.table({"a": rows[:, 0], "b": rows[:, 1], "kind": names})


SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "a wide table": {"wide_columns": 4},
    "whole table": {"batch_rows": None, "label_rows": 300},
    "zones in batches": {"zone": "batch", "folds": 3},
    "one narrow view": {"views": [{"scaling": "robust", "columns": [0, 2]}], "k": 3},
    "every row labelled": {"coverage": "all", "label_rows": 5_000},
    "chosen regressor": {"regressor": "auto", "label_rows": 200},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_fit_submits_the_tasks_planned(tmp_path: Path, settings: dict[str, Any]) -> None:
    place = written_config(tmp_path, **settings)
    store = stored(tmp_path, normal_rows(1_500, 4), place)
    plan = plan_fit_job(store, load_config(place), calibrated=False)
    fit(str(store.location), tmp_path / "model", place)
    done = tasks_of(tmp_path / "model.run")
    may_be = ("mix", "hybrid")
    planned = {n: count for n, count in counts(plan).items() if n in done or n not in may_be}
    assert planned == done
    assert list(planned) == list(done)


@pytest.mark.parametrize(
    "settings", [{}, {"distrust": 0.0}, {"batch_rows": None}, {"wide_columns": 4}]
)
def test_fit_makes_the_anchor_sets_planned(tmp_path: Path, settings: dict[str, Any]) -> None:
    place = written_config(tmp_path, anchor_sets=5, **settings)
    store, config = stored(tmp_path, normal_rows(400, 4), place), load_config(place)
    fit(str(store.location), tmp_path / "model", place)
    sizes = plan_sizes.FitSizes(store, config.for_columns(4))
    model, _ = load_model(Location(tmp_path / "model"))
    assert [plan.n_sets for plan in sizes.anchors] == [len(v.anchors) for v in model.views]
    sets = [a for view in model.views for a in view.anchors]
    arrays = [x for a in sets for x in (a.rows, a.v, a.ids, a.efforts) if x is not None]
    assert sizes.anchor_bytes == sum(x.nbytes for x in arrays)
    routed = stage_arrays(tmp_path / "model.run", "routes").values()
    stages = {stage.name: stage for stage in plan_fit_job(store, config, calibrated=False).stages}
    assert stages["routes"].written_bytes == sum(routes.nbytes for routes in routed)


@pytest.mark.parametrize("label_rows", [50, 200, 350])
def test_fit_keeps_the_company_planned(
    tmp_path: Path, label_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mrot_scale.method.company._ALWAYS_ROWS", 60)
    monkeypatch.setattr("mrot_scale.method.company._MOST_VALUES", 4 * 300)
    place = written_config(tmp_path, label_rows=label_rows)
    store, config = stored(tmp_path, normal_rows(400, 4), place), load_config(place)
    fit(str(store.location), tmp_path / "model", place)
    kept = load_model(Location(tmp_path / "model"))[0].company
    assert kept is not None
    sizes = plan_sizes.FitSizes(store, config.for_columns(4))
    assert sizes.n_company == len(kept.rows) == min(label_rows, 300)
    assert sizes.company_bytes == sum(x.nbytes for x in (kept.rows, kept.rarity, kept.reach))


def test_more_anchor_sets_are_planned_to_take_more(tmp_path: Path) -> None:
    place = written_config(tmp_path)
    store = stored(tmp_path, normal_rows(400, 4), place)
    configs = [load_config(place, overrides={"anchor_sets": n_sets}) for n_sets in (2, 64)]
    few, many = ({s.name: s for s in plan_fit_job(store, c).stages} for c in configs)
    for name in ("anchors", "routes", "calibrate", "mix"):
        assert many[name].task_bytes > few[name].task_bytes
        assert (many[name].seconds or 0) > (few[name].seconds or 0)


def test_trees_are_planned_to_be_taught_again_only_where_they_may_be(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], bool]] = [
        ({}, True),
        ({"hybrid": "never"}, False),
        ({"distrust": 0.0}, False),
    ]
    for settings, there in cases:
        place = written_config(tmp_path, **settings)
        folder = tmp_path / str(sorted(settings))
        store = stored(folder, normal_rows(300, 4), place)
        plan = plan_fit_job(store, load_config(place), calibrated=False)
        assert ("hybrid" in counts(plan)) is there


def test_fit_in_parts_submits_the_tasks_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mrot_scale.jobs.labelled._PART_BYTES", 4 * 4 * 700)
    monkeypatch.setattr("mrot_scale.jobs.labelled.EFFORT_BLOCK_BATCHES", 4)
    for user in ("fit_stages", "effort_tasks", "planning"):
        monkeypatch.setattr(f"mrot_scale.jobs.{user}.EFFORT_BLOCK_BATCHES", 4)
    place = written_config(tmp_path, coverage="all")
    store = stored(tmp_path, normal_rows(1_500, 4), place)
    plan = plan_fit_job(store, load_config(place), calibrated=False)
    fit(str(store.location), tmp_path / "model", place)
    assert counts(plan)["gather"] == 3
    assert counts(plan) == tasks_of(tmp_path / "model.run")


def test_categories_add_a_stage(tmp_path: Path) -> None:
    place = written_config(tmp_path)
    store = stored(tmp_path, categories(1_500), place)
    plan = plan_fit_job(store, load_config(place), calibrated=False)
    fit(str(store.location), tmp_path / "model", place)
    assert counts(plan)["imagine"] == 1
    assert counts(plan) == tasks_of(tmp_path / "model.run")


def test_many_parts_are_not_counted_row_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mrot_scale.jobs.labelled._PART_BYTES", 4 * 4 * 700)
    monkeypatch.setattr(plan_sizes, "_COUNTED_BLOCKS", 1)
    place = written_config(tmp_path, coverage="all")
    store = stored(tmp_path, normal_rows(1_500, 4), place)
    plan = plan_fit_job(store, load_config(place), calibrated=False)
    assert counts(plan)["gather"] == 3
    assert counts(plan)["efforts"] == 2 * 2  # a first pass over the sample alone
    assert counts(plan)["routes"] == 3 * 3


@pytest.mark.parametrize("parquet", [False, True])
def test_score_submits_the_tasks_planned_within_the_disk_planned(
    tmp_path: Path, parquet: bool
) -> None:
    place = written_config(tmp_path, scoring={"percentile": True, "top_columns": 2})
    store, config = stored(tmp_path, normal_rows(1_500, 4), place), load_config(place)
    fitting = plan_fit_job(store, config, calibrated=False)
    fit(str(store.location), tmp_path / "model", place)
    assert folder_bytes(tmp_path / "model.run" / "stages") <= fitting.disk_bytes
    model, saved = load_model(Location(tmp_path / "model"))
    options = score_options(model, saved, config, parquet, ())
    plan = plan_score(model, store, options, config)
    table = tmp_path / "table" if parquet else None
    score(tmp_path / "model", str(store.location), tmp_path / "scores", place, parquet=table)
    assert counts(plan) == tasks_of(tmp_path / "scores.run") == {"score": 3}
    assert folder_bytes(tmp_path / "scores.run" / "stages") <= plan.disk_bytes
    assert plan.seconds is not None
    assert 0 < plan.seconds < 60


@pytest.mark.parametrize(
    ("row_seconds", "n_rows", "n_timed"),
    [
        ({32: 1e-4}, 10_000, [32]),
        ({32: 4e-3, 512: 1e-4}, 10_000, [32, 512]),
        ({32: 4e-3, 512: 3e-4, 5_000: 1e-4}, 10**6, [32, 512, 5_000]),
        ({32: 2e-2}, 10**6, [32]),
        ({32: 4e-3, 512: 2e-3}, 10**6, [32, 512]),
    ],
    ids=["short at once", "short once compiled", "all at hand", "10 s for 512", "10 s for 5,000"],
)
def test_more_rows_are_timed_while_the_job_is_long(
    row_seconds: dict[int, float], n_rows: int, n_timed: list[int]
) -> None:
    asked = []

    def seconds(n: int) -> float:
        asked.append(n)
        return n * row_seconds[n]

    found = seconds_per_row(seconds, 5_000, n_rows)
    assert asked == n_timed
    assert found == pytest.approx(row_seconds[n_timed[-1]])


def test_ingest_writes_the_chunks_planned(tmp_path: Path) -> None:
    place, rows = written_config(tmp_path), normal_rows(1_500, 4)
    plan = plan_ingest(open_source(rows), 4, load_config(place))
    stored(tmp_path, rows, place)
    assert counts(plan) == tasks_of(tmp_path / "store.run") == {"ingest": 3}
    assert folder_bytes(tmp_path / "store" / "features") <= plan.stages[0].written_bytes
    assert plan.workers == 1


def test_ingest_guesses_rows_nobody_has_counted(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a,b\n" + "1.25,3.5\n" * 4_000)
    stream = open_source(table)
    assert stream.n_rows is None
    plan = plan_ingest(stream, 2, load_config(written_config(tmp_path)))
    assert plan.stages[0].read_bytes == table.stat().st_size
    assert 1 <= plan.n_tasks <= 8


def test_times_are_estimated_shortly(tmp_path: Path) -> None:
    place = written_config(tmp_path)
    store = stored(tmp_path, normal_rows(1_500, 4), place)
    start = time.perf_counter()
    plan = plan_fit_job(store, load_config(place))
    assert time.perf_counter() - start < 10  # 0.5 s when nothing else runs
    assert plan.seconds is not None
    assert 0.1 < plan.seconds < 120
    assert plan_fit_job(store, load_config(place), calibrated=False).seconds is None


def test_whole_table_beyond_the_limit_is_refused_as_in_the_job(tmp_path: Path) -> None:
    place = written_config(tmp_path, batch_rows=None, label_rows=2_000, row_limit=1_000)
    store = stored(tmp_path, normal_rows(1_500, 4), place)
    with pytest.raises(DataError, match="limited to 1,000 rows, got 1,500"):
        plan_fit_job(store, load_config(place))


MEASURE = """
import json, os, sys
from pathlib import Path
import distributed, faiss, lightgbm, numba, numpy, ot
import mrot_scale.running.workers as workers
from mrot_scale.jobs import labelled
from mrot_scale.jobs.fit_job import fit
from mrot_scale.jobs.score_job import score
from mrot_scale.method.nearest import compile_search
from mrot_scale.method.relative import routes_and_sums
from mrot_scale.method.resemblance import compile_comparison
from mrot_scale.method.routing import can_route, routes_outside_nearest
from mrot_scale.model.tree_walk import compile_walk

def warm_up():
    "What a worker does once in its life is part of what it has to begin with."
    rows, prices = numpy.ones((3, 2)), numpy.zeros(3)
    for compile in (can_route, compile_search, compile_comparison, compile_walk):
        compile()
    routes_outside_nearest(rows, rows, prices, 1, 0.0)
    routes_and_sums(rows, rows, prices, 1, 0.0, prices)

def memory(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

def in_a_fork(run, task):
    read, write = os.pipe()
    if os.fork() == 0:
        Path("/proc/self/clear_refs").write_text("5")
        before = memory("VmRSS")
        record = run_task(run, task)
        with os.fdopen(write, "w") as out:
            out.write(json.dumps([record, memory("VmHWM") - before]))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        record, peak = json.load(answer)
    os.wait()
    stage = task.key.split("/")[0]
    peaks[stage] = max(peaks.get(stage, 0), peak)
    return record

warm_up()
folder, peaks = Path(sys.argv[1]), {"base": memory("VmHWM")}
labelled._PART_BYTES = int(sys.argv[2])
run_task, workers.run_task = workers.run_task, in_a_fork
fit(str(folder / "store"), folder / "model", folder / "config.yaml")
score(folder / "model", str(folder / "store"), folder / "scores", folder / "config.yaml")
print(json.dumps(peaks))
"""


def measured_and_planned(tmp_path: Path, n_rows: int, n_columns: int, **settings: Any) -> Any:
    """Peaks of tasks, each in a process that has done nothing before, and the stages planned."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("peaks are measured through /proc")
    place = written_config(tmp_path, **settings)
    store, config = stored(tmp_path, normal_rows(n_rows, n_columns), place), load_config(place)
    command = [sys.executable, "-c", MEASURE, str(tmp_path), str(labelled._PART_BYTES)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=280)
    peaks: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    model, saved = load_model(Location(tmp_path / "model"))
    options = score_options(model, saved, config, False, ())
    plans = plan_fit_job(store, config, calibrated=False), plan_score(model, store, options, config)
    return peaks, [stage for plan in plans for stage in plan.stages]


@pytest.mark.long
def test_tasks_stay_within_the_memory_planned(tmp_path: Path) -> None:
    settings = {"zone": "batch", "batch_rows": 128, "repeats": 1, "label_rows": 20_000}
    settings |= {"anchor_sets": 32}
    views = [{"scaling": "robust"}]
    store = {"chunk_bytes": "16MiB"}
    found = measured_and_planned(tmp_path, 24_000, 30, views=views, store=store, **settings)
    peaks, stages = found
    assert 200 * MIB < peaks["base"] <= BASE_BYTES
    for stage in stages:
        assert peaks[stage.name] <= stage.task_bytes, (stage, peaks[stage.name])
        assert stage.task_bytes <= 6 * peaks[stage.name], (stage, peaks[stage.name])


MORE: dict[str, dict[str, Any]] = {
    "parts": {"coverage": "all", "label_rows": 2_000, "views": [{"scaling": "robust"}]},
    "all views in parts": {"coverage": "all", "label_rows": 2_000, "hybrid": "always"},
    "whiten": {"views": [{"scaling": "standard", "whiten": 16}], "scoring": {"method": "effort"}},
}


@pytest.mark.long
@pytest.mark.parametrize("settings", MORE.values(), ids=MORE.keys())
def test_more_kinds_of_tasks_stay_within_the_memory_planned(
    tmp_path: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labelled, "_PART_BYTES", 4 * 60 * 10_000)
    sizes = {"batch_rows": 256, "repeats": 1, "label_rows": 10_000, "store": {}}
    sizes |= {"anchor_sets": 32}
    peaks, stages = measured_and_planned(tmp_path, 40_000, 60, **{**sizes, **settings})
    for stage in stages:
        assert peaks[stage.name] <= stage.task_bytes, (stage, peaks[stage.name])
        assert stage.task_bytes <= 8 * peaks[stage.name], (stage, peaks[stage.name])


@pytest.mark.long
@pytest.mark.parametrize("eps", [0.0, 0.05])
def test_whole_tables_stay_within_the_memory_planned(tmp_path: Path, eps: float) -> None:
    views, n_rows = [{"scaling": "robust"}], 1_200
    peaks, stages = measured_and_planned(
        tmp_path, n_rows, 5, batch_rows=None, eps=eps, views=views, label_rows=n_rows
    )
    efforts = next(stage for stage in stages if stage.name == "efforts")
    assert efforts.setting == "batch_rows"
    assert peaks["efforts"] <= efforts.task_bytes <= 2 * peaks["efforts"]
    assert efforts.task_bytes >= 8 * 8 * n_rows**2


def a_stage(name: str = "efforts", **changes: Any) -> StagePlan:
    values: dict[str, Any] = {
        "n_tasks": 6,
        "read_bytes": 10 * MIB,
        "written_bytes": MIB,
        "task_bytes": 512 * MIB,
        "arithmetic": "8 matrices of 2,896 x 2,896 x 8 B",
        "setting": "batch_rows",
        "seconds": 30.0,
    }
    return StagePlan(name, **{**values, **changes})


def a_plan(*stages: StagePlan, **changes: Any) -> Plan:
    values = {"workers": 4, "worker_bytes": 1_024 * MIB, "base_bytes": 450 * MIB, "disk_bytes": MIB}
    return Plan("fit", stages or (a_stage(),), **{**values, **changes})


def test_a_task_that_does_not_fit_is_refused_with_the_sum_and_the_setting() -> None:
    small = a_stage("views", task_bytes=MIB, setting="label_rows")
    plan = a_plan(small, a_stage(), worker_bytes=800 * MIB)
    with pytest.raises(BudgetError) as caught:
        plan.check()
    assert caught.value.exit_code == 78
    assert str(caught.value) == (
        "Stage 'efforts' needs 512.0 MiB per task (8 matrices of 2,896 x 2,896 x 8 B) on top of "
        "the process's 450.0 MiB, 962.0 MiB in all, but a worker has 800.0 MiB. Lower batch_rows, "
        "or give workers more memory: raise cluster.memory_limit, or lower cluster.workers."
    )


@pytest.mark.parametrize("worker_bytes", [None, 962 * MIB])
def test_a_plan_that_fits_or_cannot_be_judged_is_not_refused(worker_bytes: int | None) -> None:
    a_plan(worker_bytes=worker_bytes).check()


def test_a_store_too_large_for_a_worker_is_refused(tmp_path: Path) -> None:
    limited = {"kind": "inline", "memory_limit": "400MiB"}
    settings = {"batch_rows": None, "label_rows": 2_000, "cluster": limited}
    place = written_config(tmp_path, **settings)
    store = stored(tmp_path, normal_rows(1_500, 4), place)
    with pytest.raises(BudgetError, match=r"8 matrices of 1,500 x 1,500 x 8 B.*Lower batch_rows"):
        plan_fit_job(store, load_config(place), calibrated=False).check()


def test_disk_that_is_not_there_is_refused() -> None:
    a_plan().check_disk(MIB)
    with pytest.raises(OutputError, match=r"may write 1\.0 MiB, but only 1\.0 KiB are free"):
        a_plan().check_disk(1_024)


def test_stages_share_workers_except_where_tasks_wait_for_each_other() -> None:
    alone = a_stage("train", n_tasks=1, seconds=10.0)
    in_turn = a_stage("gather", seconds=5.0, one_by_one=True)
    assert a_plan(a_stage(), alone, in_turn).seconds == 30.0 / 4 + 10.0 + 5.0
    assert a_plan(a_stage(), a_stage(seconds=None)).seconds is None


def test_text_has_a_line_for_each_stage_and_the_totals() -> None:
    text = plan_text(a_plan(a_stage(), a_stage("train", n_tasks=1, seconds=200.0)))
    lines = text.splitlines()
    assert lines[0] == "fit: 7 task(s) on 4 worker(s), 1.0 GiB each"
    assert lines[2].split() == ["stage", "tasks", "read", "written", "memory/task", "work"]
    assert " ".join(lines[3].split()) == "efforts 6 10.0 MiB 1.0 MiB 512.0 MiB about 30 s"
    totals = "total 7 20.0 MiB 2.0 MiB max 512.0 MiB about 3.83 min"
    assert " ".join(lines[5].split()) == totals
    assert "450.0 MiB + 512.0 MiB (efforts) = 962.0 MiB at most." in text
    assert "estimate" in lines[-1]
    assert plan_text(a_plan(a_stage(seconds=None))).endswith("Time: not estimated.")
    assert "does not fit" in plan_text(a_plan(worker_bytes=MIB))
    assert "memory unknown" in plan_text(a_plan(worker_bytes=None))


def test_plan_is_json() -> None:
    found = json.loads(json.dumps(a_plan().to_json()))
    assert found["command"] == "fit"
    assert found["n_tasks"] == 6
    assert found["seconds"] == 7.5
    assert found["needed_bytes"] == 962 * MIB
    assert found["stages"][0]["arithmetic"] == "8 matrices of 2,896 x 2,896 x 8 B"


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [(0, "0 B"), (1_023, "1023 B"), (1_536, "1.5 KiB"), (5 * 2**50, "5120.0 TiB")],
)
def test_sizes_have_units(n_bytes: int, text: str) -> None:
    assert size_text(n_bytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "unknown"),
        (0.2, "under 1 s"),
        (4.21, "about 4.2 s"),
        (100.0, "about 100 s"),
        (600.0, "about 10 min"),
        (9_000.0, "about 2.5 h"),
        (400_000.0, "about 4.63 d"),
    ],
)
def test_times_are_rounded(seconds: float | None, text: str) -> None:
    assert duration_text(seconds) == text


def cluster_of(**settings: Any) -> Config:
    return load_config(None, overrides={"cluster": settings}, environment={})


def test_memory_of_a_worker_is_its_limit_its_share_or_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plan_workers, "machine_memory", lambda: 64 * MIB)
    monkeypatch.setattr(plan_workers, "available_cores", lambda: 2)
    assert worker_memory(cluster_of(memory_limit="4MiB").cluster) == 4 * MIB
    assert worker_memory(cluster_of(kind="inline").cluster) == 64 * MIB
    assert worker_memory(cluster_of(workers=8).cluster) == 8 * MIB
    assert worker_memory(cluster_of(workers=1).cluster) == 32 * MIB
    assert worker_memory(cluster_of(address="tls://far:8786").cluster) is None


def test_memory_of_a_container_counts_as_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, limits = machine_memory(), [tmp_path / "none", tmp_path / "max", tmp_path / "limit"]
    limits[1].write_text("max\n")
    limits[2].write_text(f"{MIB}\n")
    monkeypatch.setattr(plan_workers, "_limit_files", lambda: limits)
    assert machine_memory() == MIB
    limits[2].write_text(f"{2**62}\n")
    assert whole <= machine_memory() < 2**50
