"""A run that was stopped goes on where it was, ends in the same bytes, and harms nobody's files."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mrot_scale import fit, ingest, score
from mrot_scale.errors import ConfigError, MrotError, OutputError
from mrot_scale.running.tasks import Task, run_task
from tests.jobs.made import (
    FEATURES,
    ROW_BYTES,
    TINY,
    folder_bytes,
    listing,
    mixed_table,
    run_records,
    stage_arrays,
    write_parts,
    zarr_values,
)

CONFIG = TINY | {
    "label_rows": 400,
    "repeats": 2,
    "anchor_sets": 2,
    "store": {"chunk_bytes": 200 * ROW_BYTES},
    "run": {"keep_stages": True},
}


@dataclass
class Tasks:
    """Counts the tasks that ran to their end, and stops one of them."""

    ended: list[str] = field(default_factory=list)
    stop_at: str | None = None
    """Key of the task that is to fail."""

    def run(self, run: str, task: Task) -> dict[str, Any]:
        if task.key == self.stop_at:
            raise RuntimeError(f"stopped at {task.key}")
        record = run_task(run, task)
        self.ended.append(task.key)
        return record

    def forget(self) -> None:
        self.ended, self.stop_at = [], None


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> Tasks:
    """All tasks of jobs in this process."""
    counted = Tasks()
    monkeypatch.setattr("mrot_scale.running.workers.run_task", counted.run)
    return counted


@dataclass(frozen=True)
class Undisturbed:
    """A fit that nothing happened to."""

    folder: Path
    keys: frozenset[str]
    """All its tasks."""

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def model(self) -> Path:
        return self.folder / "model"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed")
    table = mixed_table(900).select(["reading", *FEATURES])
    ingest(table, folder / "store", id="reading", config=CONFIG)
    fit(folder / "store", folder / "model", CONFIG)
    return Undisturbed(folder, frozenset(run_records(folder / "model.run")))


@pytest.mark.parametrize(
    "stop_at", ["sample/00003", "efforts/00000/00000/00001/00000", "train/00002", "validate/00000"]
)
def test_a_stopped_fit_goes_on_with_what_is_missing(
    undisturbed: Undisturbed, tasks: Tasks, tmp_path: Path, stop_at: str
) -> None:
    tasks.stop_at = stop_at
    with pytest.raises(RuntimeError, match=stop_at):
        fit(undisturbed.store, tmp_path / "model", CONFIG)
    done = set(tasks.ended)
    assert stop_at not in done
    assert not (tmp_path / "model").exists()
    tasks.forget()
    found = fit(undisturbed.store, tmp_path / "model", CONFIG)
    assert not found.was_done
    assert sorted(tasks.ended) == sorted(undisturbed.keys - done)
    assert folder_bytes(tmp_path / "model") == folder_bytes(undisturbed.model)


def test_a_task_that_fails_in_the_middle_of_its_writing_is_run_again(
    undisturbed: Undisturbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mrot_scale.jobs import effort_tasks

    real: Callable[..., Any] = effort_tasks.solve_efforts
    calls = []

    def solve(work: Any, **arguments: Any) -> Any:
        calls.append(arguments["repeat"])
        record = real(work, **arguments)  # its objects are on disk, but nobody heard of them
        if len(calls) == 2:
            raise MrotError("the disk went away")
        return record

    monkeypatch.setattr(effort_tasks, "solve_efforts", solve)
    with pytest.raises(MrotError, match="the disk went away"):
        fit(undisturbed.store, tmp_path / "model", CONFIG)
    fit(undisturbed.store, tmp_path / "model", CONFIG)
    assert calls == [0, 1, 1]
    assert folder_bytes(tmp_path / "model") == folder_bytes(undisturbed.model)


def test_a_finished_fit_is_not_done_again(
    undisturbed: Undisturbed, tasks: Tasks, tmp_path: Path
) -> None:
    before = listing(undisturbed.folder)
    again = fit(undisturbed.store, undisturbed.model, CONFIG)
    assert again.was_done
    assert again.labelled_rows == 400
    assert tasks.ended == []
    assert listing(undisturbed.folder) == before


def test_other_settings_are_refused_by_name_and_new_run_starts_over(
    undisturbed: Undisturbed, tasks: Tasks, tmp_path: Path
) -> None:
    tasks.stop_at = "train/00001"
    with pytest.raises(RuntimeError):
        fit(undisturbed.store, tmp_path / "model", CONFIG)
    tasks.forget()
    other = CONFIG | {"label_rows": 300}
    with pytest.raises(ConfigError, match=r"label_rows: 400 -> 300") as refused:
        fit(undisturbed.store, tmp_path / "model", other)
    assert refused.value.exit_code == 78
    assert "\n" not in str(refused.value)
    assert tasks.ended == []
    fit(undisturbed.store, tmp_path / "model", other, new_run=True)
    assert len(tasks.ended) == len(undisturbed.keys)
    assert folder_bytes(tmp_path / "model") != folder_bytes(undisturbed.model)


def test_a_damaged_object_of_a_stage_is_made_again(
    undisturbed: Undisturbed, tasks: Tasks, tmp_path: Path
) -> None:
    tasks.stop_at = "calibrate/00000"
    with pytest.raises(RuntimeError):
        fit(undisturbed.store, tmp_path / "model", CONFIG)
    records = run_records(tmp_path / "model.run")
    flipped = (
        tmp_path / "model.run" / records["efforts/00000/00000/00000/00000"].objects["efforts"].name
    )
    content = bytearray(flipped.read_bytes())
    content[len(content) // 2] ^= 1
    flipped.write_bytes(content)
    (tmp_path / "model.run" / records["sample/00001"].objects["held"].name).unlink()
    done = set(tasks.ended) - {"efforts/00000/00000/00000/00000", "sample/00001"}
    tasks.forget()
    fit(undisturbed.store, tmp_path / "model", CONFIG)
    assert sorted(tasks.ended) == sorted(undisturbed.keys - done)
    assert folder_bytes(tmp_path / "model") == folder_bytes(undisturbed.model)
    assert len(stage_arrays(tmp_path / "model.run", "efforts")) == 2


def test_a_line_of_the_journal_cut_short_loses_one_task(
    undisturbed: Undisturbed, tasks: Tasks, tmp_path: Path
) -> None:
    tasks.stop_at = "calibrate/00000"
    with pytest.raises(RuntimeError):
        fit(undisturbed.store, tmp_path / "model", CONFIG)
    last = tasks.ended[-1]
    journal = tmp_path / "model.run" / "journal.jsonl"
    os.truncate(journal, journal.stat().st_size - 10)
    done = set(tasks.ended) - {last}
    tasks.forget()
    fit(undisturbed.store, tmp_path / "model", CONFIG)
    assert sorted(tasks.ended) == sorted(undisturbed.keys - done)
    assert folder_bytes(tmp_path / "model") == folder_bytes(undisturbed.model)


def test_a_stopped_scoring_goes_on_with_what_is_missing(
    undisturbed: Undisturbed, tasks: Tasks, tmp_path: Path
) -> None:
    arguments: dict[str, Any] = {"config": TINY, "parquet": tmp_path / "table"}
    tasks.stop_at = "score/00002"
    with pytest.raises(RuntimeError):
        score(undisturbed.model, undisturbed.store, tmp_path / "out", **arguments)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.run"]
    tasks.forget()
    score(undisturbed.model, undisturbed.store, tmp_path / "out", **arguments)
    assert tasks.ended == ["score/00002", "score/00003", "score/00004"]
    again = score(undisturbed.model, undisturbed.store, tmp_path / "out", **arguments)
    assert again.was_done
    score(undisturbed.model, undisturbed.store, tmp_path / "anew", **arguments | {"parquet": None})
    assert zarr_values(tmp_path / "out").tobytes() == zarr_values(tmp_path / "anew").tobytes()


def test_a_finished_scoring_asked_for_another_parquet_folder_does_not_claim_it(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    def asked(parquet: Path) -> Any:
        return score(undisturbed.model, undisturbed.store, tmp_path / "out", TINY, parquet=parquet)

    asked(tmp_path / "first")
    try:
        found = asked(tmp_path / "second")
    except MrotError:
        return  # a refusal is fine
    assert Path(found.parquet).exists()


def test_scores_and_parquet_at_the_same_place_are_refused(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    with pytest.raises(MrotError):
        score(
            undisturbed.model, undisturbed.store, tmp_path / "out", TINY, parquet=tmp_path / "out"
        )


class StoppedError(Exception):
    """The source went away."""


def test_a_stopped_ingest_goes_on_and_gives_the_same_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = mixed_table(900).select(["reading", *FEATURES])
    source = write_parts(table, tmp_path / "source", n_files=3)
    from mrot_scale.storing.ingestion import StoreBuilder

    real = StoreBuilder.chunks

    def some(self: StoreBuilder, batches: Any, chunk_rows: int) -> Iterator[Any]:
        for chunk in real(self, batches, chunk_rows):
            if chunk.number == 3:
                raise StoppedError
            yield chunk

    with monkeypatch.context() as patch:
        patch.setattr(StoreBuilder, "chunks", some)
        with pytest.raises(StoppedError):
            ingest(source, tmp_path / "store", id="reading", config=CONFIG)
    assert not (tmp_path / "store").exists()
    done = run_records(tmp_path / "store.run")
    ingest(source, tmp_path / "store", id="reading", config=CONFIG)
    after = run_records(tmp_path / "store.run")
    assert done
    assert all(after[key] == record for key, record in done.items())
    ingest(table, tmp_path / "other", id="reading", config=CONFIG)
    assert folder_bytes(tmp_path / "store") == folder_bytes(tmp_path / "other")
    assert ingest(source, tmp_path / "store", id="reading", config=CONFIG).was_done


def test_an_ingest_of_a_table_that_has_changed_is_refused(tmp_path: Path) -> None:
    table = mixed_table(300).select(["reading", *FEATURES])
    source = write_parts(table, tmp_path / "source")
    ingest(source, tmp_path / "store", id="reading", config=CONFIG)
    write_parts(table.slice(10), tmp_path / "newer")
    (tmp_path / "newer/part-000.parquet").replace(source / "part-000.parquet")
    before = listing(tmp_path)
    with pytest.raises(MrotError) as refused:
        ingest(source, tmp_path / "store", id="reading", config=CONFIG)
    assert refused.value.exit_code in (73, 78)
    assert listing(tmp_path) == before


@pytest.mark.parametrize("kind", ["file", "pandas"])
def test_a_stopped_fit_of_a_table_goes_on(tasks: Tasks, tmp_path: Path, kind: str) -> None:
    table = mixed_table(500).select(FEATURES)
    source: Any = table.to_pandas()
    if kind == "file":
        source = write_parts(table, tmp_path / "source")
    tasks.stop_at = "train/00001"
    with pytest.raises(RuntimeError):
        fit(source, tmp_path / "model", TINY)
    tasks.forget()
    fit(source, tmp_path / "model", TINY)
    assert tasks.ended[0].startswith("train/")
    names = {path.name for path in tmp_path.iterdir()} - {"source"}
    assert names == {"model", "model.run", "model.report.html"}


def test_an_output_of_somebody_else_is_refused_and_not_touched(
    undisturbed: Undisturbed, tasks: Tasks, tmp_path: Path
) -> None:
    jobs: dict[str, Callable[[Path], Any]] = {
        "ingest": lambda out: ingest(mixed_table(50), out, id="reading"),
        "fit": lambda out: fit(undisturbed.store, out, TINY),
        "score": lambda out: score(undisturbed.model, undisturbed.store, out, TINY),
    }
    for name, job in jobs.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.txt").write_text("years of work")
        with pytest.raises(OutputError, match="exists already") as refused:
            job(tmp_path / name)
        assert refused.value.exit_code == 73
    assert tasks.ended == []
    assert set(listing(tmp_path)) == {f"{name}/thesis.txt" for name in jobs}


@pytest.mark.parametrize("other", ["settings", "command"])
def test_an_output_of_another_run_is_refused_as_existing(
    undisturbed: Undisturbed, tmp_path: Path, other: str
) -> None:
    model = tmp_path / "model"
    fit(undisturbed.store, model, TINY)
    jobs: dict[str, Callable[[], Any]] = {
        "settings": lambda: fit(undisturbed.store, model, TINY | {"seed": 3}),
        "command": lambda: score(undisturbed.model, undisturbed.store, model, TINY),
    }
    with pytest.raises(MrotError, match="exists already") as refused:
        jobs[other]()
    assert refused.value.exit_code == 73


def test_a_refused_new_run_leaves_the_finished_one_as_it_was(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    fit(undisturbed.store, tmp_path / "model", TINY)
    with pytest.raises(OutputError, match="exists already"):
        fit(undisturbed.store, tmp_path / "model", TINY | {"seed": 3}, new_run=True)
    assert fit(undisturbed.store, tmp_path / "model", TINY).was_done


@pytest.mark.parametrize("job", ["ingest", "ingest of a table in memory", "fit", "score"])
def test_a_new_run_never_removes_a_folder_that_is_no_run(
    undisturbed: Undisturbed, tmp_path: Path, job: str
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/thesis.txt").write_text("years of work")
    config = TINY | {"run": {"folder": str(tmp_path / "home")}}
    table = pa.table({"x": np.arange(50.0)})
    source = write_parts(table, tmp_path / "source")
    out, (store, model) = tmp_path / "out", (undisturbed.store, undisturbed.model)
    jobs: dict[str, Callable[[], Any]] = {
        "ingest": lambda: ingest(source, out, config=config, new_run=True),
        "ingest of a table in memory": lambda: ingest(table, out, config=config),
        "fit": lambda: fit(store, out, config, new_run=True),
        "score": lambda: score(model, store, out, config, new_run=True),
    }
    with pytest.raises(ConfigError, match="not a run folder"):
        jobs[job]()
    assert (tmp_path / "home/thesis.txt").read_text() == "years of work"
