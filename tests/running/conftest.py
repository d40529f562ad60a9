"""An object store, a table, and what fitting and scoring it on one disk gives."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import s3fs

from mrot_scale.storing.location import Location
from tests.running.jobs import Results, job_in_process, make_table
from tests.servers import S3, s3_server


@pytest.fixture(scope="session")
def store_server() -> Iterator[S3]:
    with s3_server() as server:
        yield server


@pytest.fixture
def s3(store_server: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """The object store, as this process and those it starts find it."""
    s3fs.S3FileSystem.clear_instance_cache()
    for name, value in store_server.environment.items():
        monkeypatch.setenv(name, value)
    yield store_server
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def bucket(s3: S3) -> Location:
    """A new, empty bucket."""
    place = Location(f"s3://test-{uuid4().hex}")
    place.filesystem.mkdir(place.address)
    return place


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_table(tmp_path_factory.mktemp("table") / "readings.parquet")


@pytest.fixture(scope="session")
def expected(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What the job gives on one disk, in one process."""
    return job_in_process(Location(table), Location(tmp_path_factory.mktemp("expected")))
