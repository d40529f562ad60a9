"""The columns a model expects, told without loading it; what is no model tells none."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mrot_scale.errors import DamagedModelError
from mrot_scale.model.columns import load_schema
from mrot_scale.storing.location import Location
from tests.model.test_directory import GOLDEN, rewrite


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN, tmp_path / "copy"))


def test_a_model_of_rows_in_memory_has_columns_of_numbers(copy: Path) -> None:
    schema = load_schema(Location(copy))
    assert {column.kind for column in schema.columns} == {"number"}


@pytest.mark.parametrize("names", ["abc", 3, {}, [], ["a"] * 99, {"a": 1}], ids=repr)
def test_names_that_are_none_are_refused(copy: Path, names: Any) -> None:
    header = json.loads((copy / "model.json").read_text()) | {"feature_names": names}
    rewrite(copy, "model.json", json.dumps(header).encode())
    with pytest.raises(DamagedModelError, match="does not name"):
        load_schema(Location(copy))


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000], ids=range(5))
def test_a_header_that_is_none_is_refused(copy: Path, content: bytes) -> None:
    rewrite(copy, "model.json", content)
    with pytest.raises(DamagedModelError):
        load_schema(Location(copy))
