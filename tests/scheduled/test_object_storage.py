"""A scheduled job whose lake and output are in an object store."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import s3fs

import mrot_scale
from mrot_scale.errors import GateError, MissingInputError
from mrot_scale.scheduled.backfill import backfill
from mrot_scale.scheduled.layout import Layout, read_json
from mrot_scale.scheduled.night import Night, nightly
from mrot_scale.scheduled.partitions import Partition
from mrot_scale.scheduled.registry import listed_models, promote_model
from mrot_scale.scheduled.state import PartitionState, read_state
from mrot_scale.storing.location import Location
from tests.jobs.made import folder_bytes
from tests.scheduled.lake import ROWS, SETTINGS, Job, day, night_table, with_nightly
from tests.servers import S3, s3_server


class Remote:
    """A job in a bucket."""

    def __init__(self, bucket: Location) -> None:
        self.lake, self.output = bucket / "lake", bucket / "out"

    def write(self, number: int, table: pa.Table | None = None, name: str = "part-0") -> Location:
        buffer = pa.BufferOutputStream()
        pq.write_table(night_table(number) if table is None else table, buffer)
        place = self.lake / f"date={day(number)}" / f"{name}.parquet"
        place.write(buffer.getvalue().to_pybytes())
        return place

    def night(self, number: int, config: dict[str, Any] = SETTINGS, **given: Any) -> Night:
        places = (self.lake.address, self.output.address)
        return nightly(*places, date=day(number), config=config, **given)

    def scores(self) -> pa.Table:
        found: pa.Table = mrot_scale.open_scores((self.output / "scores").address).to_table()
        return found

    def state(self, number: int) -> PartitionState:
        found = read_state(Layout(self.output), Partition("date", day(number)))
        assert found is not None
        return found

    def rows(self) -> dict[str, int]:
        """Published rows of each day."""
        found = self.scores()["date"].value_counts().to_pylist()
        return {pair["values"]: pair["counts"] for pair in found}


@pytest.fixture(scope="module")
def server() -> Iterator[S3]:
    """An object store, which this process and those it starts find."""
    with s3_server() as found, pytest.MonkeyPatch.context() as environment:
        for name, value in found.environment.items():
            environment.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()
        yield found
    s3fs.S3FileSystem.clear_instance_cache()


def new_job() -> "Remote":
    """A job in a new bucket, with one night to score."""
    bucket = Location(f"s3://test-{uuid4().hex}")
    bucket.filesystem.mkdir(bucket.address)
    job = Remote(bucket)
    job.write(1)
    return job


@pytest.fixture
def job(server: S3) -> "Remote":
    return new_job()


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """The same night on disk."""
    job = Job.of(tmp_path_factory.mktemp("local"), 1)
    job.night(1)
    return job


@pytest.fixture(scope="module")
def done(server: S3, local: Job) -> "Remote":
    """A job of which two nights have run, with a model from disk; no test changes their scores."""
    job = new_job()
    job.write(2, night_table(2, 700))
    for number in (1, 2):
        assert job.night(number, named_model(local)).status == "done"
    return job


def named_model(local: Job) -> dict[str, Any]:
    """Settings that name the model of the job on disk."""
    place = local.output / "models" / local.state(1)["published"]["model"] / "model"
    return with_nightly(model=str(place), exclude=["read_at"])


def test_a_night_on_s3_gives_the_scores_it_gives_on_disk(done: Remote, local: Job) -> None:
    assert done.output.names() == ["history.html", "reports", "runs", "scores"]
    found, expected = done.scores().filter(pc.field("date") == day(1)), local.scores(1)
    assert found.select(expected.column_names).sort_by("reading").equals(expected)


def test_a_night_on_s3_is_on_record(done: Remote) -> None:
    run = read_json(done.output / "runs" / done.state(1).run_id / "run.json")
    assert run is not None
    assert (run["status"], run["exit_code"]) == ("published", 0)
    [read] = run["inputs"]
    place = done.lake / f"date={day(1)}" / "part-0.parquet"
    assert (read["name"], read["size"]) == ("part-0.parquet", place.size())
    assert read["stamp"], "the store's own mark of the content"
    scores = done.output / "scores" / f"date={day(1)}"
    files = {n.rpartition("/")[2]: (scores / n).read() for n in scores.files_below()}
    assert run["outputs"] == {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in files.items()
        if name.endswith(".parquet")
    }


def test_scores_on_s3_are_one_dataset_with_the_date_column(done: Remote) -> None:
    assert done.rows() == {day(1): ROWS, day(2): 700}
    assert sorted(done.scores().column_names) == ["date", "flag", "reading", "score"]
    place = (done.output / "scores").address
    night = mrot_scale.open_scores(place).to_table(filter=pc.field("date") == day(2))
    assert night["reading"].to_pylist() == night_table(2, 700)["reading"].to_pylist()


@pytest.mark.long
def test_a_model_fitted_on_s3_is_the_one_fitted_on_disk(job: Remote, local: Job) -> None:
    night = job.night(1)
    assert job.output.names() == ["history.html", "models", "reports", "runs", "scores"]
    assert job.scores().drop_columns(["date"]).sort_by("reading").equals(local.scores(1))
    there = job.output / "models" / str(night.model) / "model"
    here = local.output / "models" / local.state(1)["published"]["model"] / "model"
    assert {n: (there / n).read() for n in there.files_below()} == folder_bytes(here)
    assert job.night(1).status == "skipped"


def test_the_same_night_on_s3_is_skipped_and_nothing_of_it_touched(
    done: Remote, local: Job
) -> None:
    place, known = done.output / "scores", done.state(1).published
    before = {name: (place / name).read() for name in place.files_below()}
    night = done.night(1, named_model(local))
    assert (night.status, night.n_rows, night.model) == ("skipped", ROWS, known["model"])
    assert {name: (place / name).read() for name in place.files_below()} == before
    done.write(1)
    again = done.night(1, named_model(local))
    assert again.status == "skipped", "written again with the same content"


@pytest.mark.long
def test_a_late_file_on_s3_replaces_the_scores_and_rollback_brings_them_back(job: Remote) -> None:
    job.night(1)
    before = job.scores()
    job.write(1, night_table(1, 300, seed=5), "part-1")
    assert job.night(1).status == "done"
    assert job.rows() == {day(1): ROWS + 300}, "one generation of them"
    mrot_scale.rollback((job.output / "scores" / f"date={day(1)}").address)
    assert job.scores().equals(before)


@pytest.mark.long
def test_a_failed_gate_on_s3_publishes_nothing_until_it_is_loosened(job: Remote) -> None:
    with pytest.raises(GateError):
        job.night(1, with_nightly({"rows_below": {"fail": 5_000}}))
    assert job.state(1).status == "gated"
    assert not (job.output / "scores").exists()
    calls: list[tuple[str, int, int]] = []
    night = job.night(1, progress=lambda *call: calls.append(call))
    assert night.status == "done"
    assert next(call for call in calls if call[0] == "score") == ("score", 1, 1), "done before"
    assert not (job.output / "runs" / "work").exists()


def test_a_partition_that_is_not_on_s3_is_told_with_what_there_is(job: Remote) -> None:
    with pytest.raises(MissingInputError, match=rf"it has 1, {day(1)} to {day(1)}\."):
        job.night(4)
    assert (job.state(4).status, job.state(4).exit_code) == ("failed", 66)


@pytest.mark.long
def test_a_backfill_on_s3_runs_what_is_new_and_a_promotion_holds(job: Remote) -> None:
    for number in (2, 3):
        job.write(number)
    config = with_nightly(refit_every=2)
    places = (job.lake.address, job.output.address)
    done = backfill(*places, end=day(2), config=config)
    assert [o.status for o in done.outcomes] == ["done", "done"]
    done = backfill(*places, config=config, max_active=2)
    assert [(o.status, o.why) for o in done.outcomes] == [
        *(("skipped", "unchanged"),) * 2,
        ("done", "new"),
    ]
    first, second = (entry["id"] for entry in listed_models(job.output.address))
    assert [job.state(n).published["model"] for n in (1, 2, 3)] == [first, first, second]
    promote_model(job.output.address, first, day(3))
    assert job.night(3, config).model == first
    assert job.rows() == {day(n): ROWS for n in (1, 2, 3)}


@pytest.mark.long
def test_a_lake_on_s3_may_have_its_output_on_disk(job: Remote, tmp_path: Path) -> None:
    night = nightly(job.lake.address, tmp_path / "out", date=day(1), config=SETTINGS)
    assert night.status == "done"
    assert pq.read_table(tmp_path / "out" / "scores" / f"date={day(1)}").num_rows == ROWS
