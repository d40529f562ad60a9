"""Retention: only what is neither published, nor referenced, nor recent, nor in use is removed."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mrot_scale.errors import DamagedDataError, MissingInputError
from mrot_scale.running.commit import Attempt, RunFolder
from mrot_scale.running.lock import locked
from mrot_scale.running.publish import Folder, current, publish_generation, resolve, rollback
from mrot_scale.scheduled.layout import Layout
from mrot_scale.scheduled.partitions import Partition
from mrot_scale.scheduled.registry import MODEL, Registry, model_id
from mrot_scale.scheduled.retention import Collected, gc
from mrot_scale.scheduled.run_record import FORMAT, RUN_FILE
from mrot_scale.scheduled.state import PartitionState, Status, write_state
from mrot_scale.storing.location import Location
from tests.places import KINDS, fresh_place


def ago(days: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="milliseconds")


class Job:
    """An output in the state that runs would have left it in."""

    def __init__(self, place: Location) -> None:
        self.layout = Layout(place)
        self.registry = Registry(self.layout)

    def run(self, id: str, days: float, model: str | None = None, **facts: Any) -> str:
        """Leave the record of a run that began so many days ago."""
        found = {"format": FORMAT, "run_id": id, "started": ago(days), **facts}
        if model is not None:
            found["model"] = {"id": model, "why": "fitted"}
        (self.layout.runs / id / RUN_FILE).write(json.dumps(found).encode())
        return id

    def state(
        self, value: str, run: str, status: Status = "published", **published: Any
    ) -> Partition:
        partition = Partition("date", value)
        state = PartitionState(value, status, run, 1, published=published)
        write_state(self.layout, partition, state)
        return partition

    def model(self, value: str, days: float, **terms: Any) -> str:
        """Leave a model that was fitted so many days ago."""
        id = model_id(value, terms)
        (self.registry.folder(id) / MODEL / "manifest.json").write(b"{}")
        self.registry.add(id, {"id": id, "partition": value, "at": ago(days)})
        return id

    def work(self, partition: Partition, model: str = "none") -> Location:
        place = self.layout.work(partition)
        (place / "terms.json").write(json.dumps({"model": model}).encode())
        (place / "scores.run/journal").write(b"x")
        return place

    def scores(self, value: str, *generations: str) -> Location:
        """Publish generations of a partition, one after the other."""
        visible = self.layout.scores(Partition("date", value))
        for name in generations:
            run = RunFolder.open(self.layout.root / "out.run", {"c": name}, new_run=True)
            attempt = Attempt(run.location, "stage/00000")
            attempt.put("part", name.encode())
            folder = Folder("a-thing", 1)
            folder.objects["part.parquet"] = attempt.record().objects["part"]
            publish_generation(folder, visible, run, name)
            run.location.remove()
        return visible

    def files(self) -> dict[str, int]:
        return self.layout.root.files_below()

    def gc(self, **options: Any) -> Collected:
        return gc(self.layout.root.address, **options)


ALL: dict[str, int] = {"keep_runs": 0, "keep_days": 0}


@pytest.fixture(params=KINDS)
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Job]:
    with fresh_place(request.param, tmp_path) as found:
        yield Job(found)


def removed(found: Collected) -> set[tuple[str, str]]:
    return {(removal.kind, removal.place.rpartition("/")[2]) for removal in found.removals}


def old_job(job: Job) -> dict[str, Any]:
    """Fill an output with old things, some of which are needed; return which are not."""
    used, chosen, fitted, stale = (job.model(f"2026-01-0{n}", 200) for n in range(1, 5))
    job.registry.promote(chosen, Partition("date", "2026-02-01"))
    for id, value in ((stale, "2026-01-04"), (fitted, "2026-01-05")):
        job.registry.record_fit(Partition("date", value), id)
    job.run("run-1-old", 190, stale)
    job.run("run-2-published", 180, used)
    job.run("run-3-failed", 170)
    job.state("2026-01-10", "run-3-failed", "failed", run_id="run-2-published", model=used)
    visible = job.scores("2026-01-10", "g1", "g2", "g3")
    stopped = job.state("2026-01-11", job.run("run-4-stopped", 160), "running")
    job.work(stopped)
    needed = {"visible": visible, "models": {used, chosen, fitted}}
    needed["runs"] = {"run-2-published", "run-3-failed", "run-4-stopped"}
    gone = {("run", "run-1-old"), ("work", "date=2026-01-11"), ("scores", "g1"), ("model", stale)}
    return needed | {"gone": gone}


# --- what goes, and what never does


def test_only_what_nobody_needs_is_removed(job: Job) -> None:
    made = old_job(job)
    before = job.files()
    found = job.gc(**ALL)
    assert removed(found) == made["gone"]
    assert not found.is_dry
    places = [Location(removal.place) for removal in found.removals]
    assert not any(place.exists() for place in places)
    gone = [place.address.removeprefix(f"{job.layout.root.address}/") for place in places]
    left = {n: size for n, size in before.items() if not any(n.startswith(f"{g}/") for g in gone)}
    assert job.files() == left, "nothing else is touched"


def test_the_published_scores_their_model_and_chosen_models_are_never_removed(job: Job) -> None:
    made = old_job(job)
    job.gc(**ALL)
    assert current(made["visible"]) == "g3"
    assert (resolve(made["visible"]) / "part.parquet").read() == b"g3"
    assert set(job.registry.ids()) == made["models"]
    assert all(
        (job.registry.folder(id) / MODEL / "manifest.json").exists() for id in made["models"]
    )
    for run in made["runs"]:
        assert (job.layout.runs / run / RUN_FILE).exists(), run


def test_a_dry_run_removes_nothing_and_says_what_would_go(job: Job) -> None:
    made = old_job(job)
    before = job.files()
    found = job.gc(**ALL, dry_run=True)
    assert found.is_dry
    assert job.files() == before
    assert removed(found) == made["gone"]
    assert job.gc(**ALL).removals == found.removals, "and that is what goes"


def test_a_second_time_there_is_nothing_to_remove(job: Job) -> None:
    old_job(job)
    assert job.gc(**ALL).removals
    assert job.gc(**ALL).removals == []


def test_by_default_a_month_and_two_weeks_of_runs_are_kept(job: Job) -> None:
    for days in range(60):
        job.run(f"run-{60 - days:02d}", days + 0.5)
    assert removed(job.gc()) == {("run", f"run-{60 - days:02d}") for days in range(30, 60)}


@pytest.mark.parametrize(
    ("keep_runs", "keep_days"), [(0, 0), (3, 0), (0, 5), (3, 5), (5, 3), (99, 0), (0, 99)]
)
def test_runs_are_kept_by_number_or_by_age(job: Job, keep_runs: int, keep_days: int) -> None:
    ages = {f"run-{n}": days for n, days in enumerate([9.5, 8.5, 6.5, 4.5, 3.5, 2.5, 1.5, 0.5])}
    for id, days in ages.items():
        job.run(id, days)
    youngest = sorted(ages, key=lambda id: ages[id])[:keep_runs]
    expected = {("run", i) for i, a in ages.items() if a > keep_days and i not in youngest}
    assert removed(job.gc(keep_runs=keep_runs, keep_days=keep_days)) == expected


def test_runs_are_the_last_by_when_they_began_and_not_by_name(job: Job) -> None:
    job.run("a", 50)
    job.run("b", 60)
    assert removed(job.gc(keep_runs=1)) == {("run", "b")}


@pytest.mark.parametrize("moment", [None, "", "soon", 7, "2020-01-01T00:00:00"])
def test_what_is_of_unknown_age_is_kept(job: Job, moment: Any) -> None:
    job.run("a", 99, started=moment)
    id = model_id("2026-01-01", {})
    job.registry.add(id, {"partition": "2026-01-01", "at": moment})
    assert job.gc(keep_runs=0, keep_days=30).removals == []


def test_what_is_not_ours_is_left_alone(job: Job) -> None:
    job.run("old", 99)
    for name in ("runs/notes.txt", "runs/other/run.json", "runs/metrics.prom", "models/README"):
        (job.layout.root / name).write(b"{}")
    (job.layout.all_scores / "mine/data.parquet").write(b"x")
    assert removed(job.gc(**ALL)) == {("run", "old")}


def test_where_no_job_ever_ran_there_is_nothing_to_remove(job: Job) -> None:
    with pytest.raises(MissingInputError, match="holds no runs of mrot-scale nightly") as caught:
        job.gc()
    assert caught.value.exit_code == 66


def test_damaged_records_stop_it_before_anything_is_removed(job: Job) -> None:
    old_job(job)
    (job.layout.runs / "damaged" / RUN_FILE).write(b"{")
    before = job.files()
    with pytest.raises(DamagedDataError, match="damaged/run"):
        job.gc(**ALL)
    assert job.files() == before


# --- work


def test_work_of_a_run_at_work_is_never_removed(job: Job) -> None:
    partition = job.state("2026-01-10", job.run("a", 99), "running")
    place = job.work(partition)
    with locked(place):
        assert job.gc(**ALL).removals == []
        assert (place / "scores.run/journal").exists()
    assert removed(job.gc(**ALL)) == {("work", "date=2026-01-10")}
    assert not place.exists()


def test_the_model_of_a_run_at_work_is_never_removed(job: Job) -> None:
    """A record names its model only as it ends; until then the terms of its work do."""
    model = job.model("2026-01-01", 99)
    job.registry.record_fit(Partition("date", "2026-01-01"), model)
    later = job.model("2026-01-05", 99, later=1)
    job.registry.record_fit(Partition("date", "2026-01-05"), later)
    partition = job.state("2026-01-02", job.run("a", 0.1), "running")
    with locked(job.work(partition, model)):
        job.gc(keep_runs=14, keep_days=30)
        assert job.registry.has(model)


def test_work_that_may_be_gone_on_with_is_kept(job: Job) -> None:
    partition = job.state("2026-01-10", job.run("a", 5), "failed")
    job.work(partition)
    assert job.gc(keep_runs=0, keep_days=30).removals == []
    assert removed(job.gc(keep_runs=9, keep_days=3)) == {("work", "date=2026-01-10")}


def test_work_of_a_partition_of_any_name_is_found(job: Job) -> None:
    partition = job.state("north/west 100%", job.run("a", 99), "failed")
    place = job.work(partition)
    with locked(place):
        assert job.gc(**ALL).removals == []
    (removal,) = job.gc(**ALL).removals
    assert removal.place == place.address
    assert not place.exists()


# --- generations


def test_the_published_scores_and_those_before_them_are_kept(job: Job) -> None:
    job.run("a", 99)
    visible = job.scores("2026-01-10", "g1", "g2", "g3", "g4")
    other = job.scores("2026-01-11", "h1")
    assert removed(job.gc(keep_days=0)) == {("scores", "g1"), ("scores", "g2")}
    assert rollback(visible) == ("g4", "g3")
    assert (resolve(visible) / "part.parquet").read() == b"g3"
    assert (resolve(other) / "part.parquet").read() == b"h1"


def test_after_a_rollback_the_scores_before_those_are_kept_too(job: Job) -> None:
    job.run("a", 99)
    visible = job.scores("2026-01-10", "g1", "g2", "g3")
    rollback(visible)
    job.gc(**ALL)
    assert current(visible) == "g2"
    assert rollback(visible) == ("g2", "g1")


def test_scores_replaced_a_moment_ago_are_kept(job: Job) -> None:
    """Somebody may be reading them."""
    job.run("a", 0)
    job.scores("2026-01-10", "g1", "g2", "g3")
    assert job.gc(keep_days=30).removals == []


def test_scores_that_were_replaced_once_are_both_kept(job: Job) -> None:
    job.run("a", 99)
    job.scores("2026-01-10", "g1", "g2")
    assert job.gc(keep_days=0).removals == []


# --- models


def test_models_nothing_leads_to_go_once_they_are_old(job: Job) -> None:
    job.run("a", 0)
    last = job.model("2026-01-09", 99)
    job.registry.record_fit(Partition("date", "2026-01-09"), last)
    old, young = job.model("2026-01-01", 31), job.model("2026-01-02", 29)
    assert removed(job.gc(keep_days=30)) == {("model", old)}
    assert job.registry.ids() == [young, last]


def test_a_model_of_a_run_that_is_kept_is_kept(job: Job) -> None:
    """Such as of a night that a gate stopped, which may run again."""
    model = job.model("2026-01-01", 99)
    job.run("a", 40, model)
    assert job.gc(keep_runs=1).removals == []
    assert removed(job.gc(keep_runs=0)) == {("run", "a"), ("model", model)}


def test_the_model_of_every_published_partition_is_kept(job: Job) -> None:
    models = [job.model(f"2026-01-0{n}", 99) for n in range(1, 6)]
    for n, id in enumerate(models):
        run = job.run(f"run-{n}", 99, id)
        job.state(f"2026-02-0{n + 1}", run, run_id=run, model=id)
    assert job.gc(**ALL).removals == []
    assert job.registry.ids() == models


def test_the_model_of_a_partition_of_another_key_is_kept(job: Job) -> None:
    model = job.model("46", 99)
    run = job.run("a", 99, model)
    state = PartitionState("46", "published", run, 1, published={"run_id": run, "model": model})
    write_state(job.layout, Partition("week", "46"), state)
    assert job.gc(**ALL).removals == []


def test_a_partition_whose_model_was_removed_gets_another(job: Job) -> None:
    """As after an update: the same partition gives a model of another id."""
    job.run("a", 0)
    early, last = Partition("date", "2026-01-01"), Partition("date", "2026-01-09")
    old = job.model(early.value, 99)
    for partition, id in ((early, old), (last, job.model(last.value, 99))):
        job.registry.record_fit(partition, id)
    assert removed(job.gc()) == {("model", old)}
    new = job.model(early.value, 0, version="2.0")
    assert job.registry.record_fit(early, new) == new
    assert job.registry.has(job.registry.fits()[early.value])
