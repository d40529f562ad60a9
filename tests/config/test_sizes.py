"""Sizes are written as people write them, and refused where they make no sense."""

from typing import Any

import pytest
from pydantic import ValidationError

from mrot_scale.config.cluster import ClusterConfig
from mrot_scale.config.job import StoreConfig
from tests.config.given import cluster_complaint


@pytest.mark.parametrize(
    ("written_as", "count"),
    [
        (4096, 4096),
        ("4096", 4096),
        ("16MiB", 16 * 2**20),
        ("64MB", 64_000_000),
        ("64 mb", 64_000_000),
        ("1.5 GiB", 3 * 2**29),
        ("2kB", 2_000),
        ("7B", 7),
        ("1TiB", 2**40),
    ],
)
def test_sizes_are_written_as_people_write_them(written_as: Any, count: int) -> None:
    cluster = ClusterConfig(memory_limit=written_as)
    assert cluster.memory_limit == count
    assert ClusterConfig.model_validate_json(cluster.model_dump_json()) == cluster
    assert cluster.model_dump()["memory_limit"] == count


@pytest.mark.parametrize("wrong", ["16XB", "-1", 0, -3, "MiB", "", True, "4iB", "1e3", 1.5, "0MB"])
def test_sizes_that_make_no_sense_are_refused(wrong: Any) -> None:
    with pytest.raises(ValidationError):
        StoreConfig(chunk_bytes=wrong)


def test_a_wrong_size_is_told_how_to_write_one() -> None:
    assert "such as 16MiB or 64MB, got '4 gigs'" in cluster_complaint(memory_limit="4 gigs")
