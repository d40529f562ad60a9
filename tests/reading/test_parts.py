"""Files of a table: their order, their stamps and the keys of their folders."""

from pathlib import Path

import pyarrow as pa
import pytest

from mrot_scale.errors import DataError, MissingInputError
from mrot_scale.reading.parts import (
    Part,
    identity_of,
    partition_schema,
    partition_values,
    parts_below,
    single_part,
)
from mrot_scale.storing.location import Location


def named(*names: str) -> list[Part]:
    return [Part(Location("/t") / name, name, 1, 1) for name in names]


def filled(root: Location) -> Location:
    for name in ("b/2.csv", "a/1.csv", "a/_temporary/3.csv", ".hidden", "_SUCCESS", "10.csv"):
        (root / name).write(name.encode())
    return root


@pytest.mark.parametrize("store", ["local", "memory"])
def test_files_are_sorted_and_hidden_ones_left_out(tmp_path: Path, store: str) -> None:
    root = filled(Location(tmp_path if store == "local" else "memory://parts"))
    parts = parts_below(root)
    assert [part.name for part in parts] == ["10.csv", "a/1.csv", "b/2.csv"]
    assert [part.location.read() for part in parts] == [part.name.encode() for part in parts]
    assert len(parts_below(root, hidden=True)) == 6


def test_identity_changes_with_size_and_time(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    found = path.stat()
    identity = identity_of([single_part(Location(path))], "CSV")
    assert identity == {"kind": "CSV", "files": [["t.csv", 4, found.st_mtime_ns]]}


def test_identity_of_remote_files_has_a_stamp() -> None:
    location = Location("memory://stamped/t.csv")
    location.write(b"a\n1\n")
    part = single_part(location)
    assert (part.name, part.size) == ("t.csv", 4)
    assert part.stamp
    assert parts_below(Location("memory://stamped"))[0].stamp


@pytest.mark.parametrize(
    ("values", "kind", "found"),
    [
        (["1", "-2"], pa.int64(), [1, -2]),
        (["1", "02"], pa.string(), ["1", "02"]),  # as a number it would lose its zero
        (["1", "x"], pa.string(), ["1", "x"]),
        (["1", "__HIVE_DEFAULT_PARTITION__"], pa.int64(), [1, None]),
        (["a%2Fb", "c=d"], pa.string(), ["a/b", "c=d"]),
        (["1", str(2**63)], pa.string(), ["1", str(2**63)]),
        (["²"], pa.string(), ["²"]),
        (["__HIVE_DEFAULT_PARTITION__"], pa.string(), [None]),
    ],
)
def test_keys_are_integers_where_all_are(
    values: list[str], kind: pa.DataType, found: list[object]
) -> None:
    parts = named(*(f"k={value}/t.parquet" for value in values))
    schema = partition_schema(parts)
    assert schema == pa.schema([("k", kind)])
    assert [partition_values(part, schema)["k"].as_py() for part in parts] == found


def test_keys_must_be_the_same_everywhere() -> None:
    with pytest.raises(DataError, match=r"^/t/month=1/t.csv: .*'month'.*year=1/t.csv give 'year'"):
        partition_schema(named("year=1/t.csv", "month=1/t.csv"))


def test_a_link_to_nowhere_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "lost.csv").symlink_to(tmp_path / "gone")
    with pytest.raises(MissingInputError, match=r"lost\.csv"):
        parts_below(Location(tmp_path))


def test_a_folder_that_cannot_be_listed_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "closed").mkdir()
    real = __import__("os").scandir

    def denying(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr("os.scandir", denying)
    with pytest.raises(MissingInputError, match="unreadable: Permission denied"):
        parts_below(Location(tmp_path))


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    elsewhere, table = tmp_path / "elsewhere", tmp_path / "table"
    elsewhere.mkdir()
    table.mkdir()
    (elsewhere / "1.csv").write_text("a\n")
    (table / "linked").symlink_to(elsewhere)
    assert [part.name for part in parts_below(Location(table))] == ["linked/1.csv"]
    (elsewhere / "back").symlink_to(table)
    with pytest.raises(DataError, match="link to a folder it lies in"):
        parts_below(Location(table))
