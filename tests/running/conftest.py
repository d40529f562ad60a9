"""`place`: a location where nothing is yet, on disk and in memory in turn."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mrot_scale.storing.location import Location
from tests.places import KINDS, fresh_place


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    with fresh_place(request.param, tmp_path) as found:
        yield found
