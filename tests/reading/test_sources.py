"""Any source: the same table from every kind of it, and what is said about those that are none."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from mrot_scale.errors import DataError, InputTypeError, MissingInputError
from mrot_scale.reading.sources import open_source
from mrot_scale.storing.location import Location
from tests.reading.samples import matrix, sample, whole

WRITERS: dict[str, Callable[[pa.Table, str], Any]] = {
    "t.parquet": pq.write_table,
    "t.csv": pa.csv.write_csv,
    "t.feather": pa.feather.write_feather,
    "t.npy": lambda table, path: np.save(path, matrix(table)),
    "t.npz": lambda table, path: np.savez(path, matrix(table)),
}
OBJECTS: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": lambda table: table.to_pandas(),
    "polars": pl.from_arrow,
    "pyarrow": lambda table: table,
    "batch": lambda table: table.to_batches()[0],
    "reader": lambda table: table.to_reader(),
    "numpy": matrix,
}


@pytest.mark.parametrize("address", [str, Path, Location])
@pytest.mark.parametrize("name", WRITERS)
def test_the_same_table_from_every_file(tmp_path: Path, name: str, address: Any) -> None:
    WRITERS[name](sample(), str(tmp_path / name))
    stream = open_source(address(tmp_path / name))
    assert whole(stream).equals(sample())
    assert str(tmp_path / name) in stream.name
    assert stream.partition_keys == ()
    assert [file[0] for file in stream.identity["files"]] == [name]


@pytest.mark.parametrize("kind", OBJECTS)
def test_the_same_table_from_every_object(kind: str) -> None:
    assert whole(open_source(OBJECTS[kind](sample()))).equals(sample())


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_same_table_from_zarr(tmp_path: Path, zarr_format: int) -> None:
    zarr: Any = pytest.importorskip("zarr")
    pytest.importorskip("mrot_scale.storing.arrays")
    array = zarr.create_array(
        str(tmp_path / "t"), shape=(5, 3), chunks=(2, 2), dtype="f8", zarr_format=zarr_format
    )
    array[:] = matrix(sample())
    stream = open_source(tmp_path / "t")
    assert whole(stream).equals(sample())
    assert len(stream.identity["files"]) >= 7


@pytest.mark.parametrize("address", ["nowhere", "nowhere/t.parquet", "memory://nowhere/t.csv"])
def test_nothing_there(tmp_path: Path, address: str) -> None:
    place = address if "://" in address else str(tmp_path / address)
    with pytest.raises(MissingInputError, match=r"Nothing at .*nowhere") as caught:
        open_source(place)
    assert caught.value.exit_code == 66


def test_a_link_to_nowhere(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").symlink_to(tmp_path / "gone.parquet")
    with pytest.raises(MissingInputError, match=r"Nothing at .*t\.parquet"):
        open_source(tmp_path / "t.parquet")


@pytest.mark.parametrize("name", WRITERS)
def test_files_that_may_not_be_read(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    WRITERS[name](sample(), str(tmp_path / name))

    def denied(path: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    # Tests may run as root, whom no permission stops.
    monkeypatch.setattr(pa, "OSFile", denied)
    monkeypatch.setattr(Location, "open", denied)
    with pytest.raises(MissingInputError, match=rf"{name} is unreadable: Permission") as caught:
        open_source(tmp_path / name)
    assert caught.value.exit_code == 66


@pytest.mark.parametrize("name", ["t.xlsx", "t", "t.gz", "parquet"])
def test_unknown_names_get_a_list_of_known_ones(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(DataError, match=r"\.parquet.*\.csv\.gz.*\.npz.*Zarr") as caught:
        open_source(tmp_path / name)
    assert name in str(caught.value)
    assert caught.value.exit_code == 65


@pytest.mark.parametrize("source", [None, 3, [[1.0, 2.0]], {"a": [1]}, b"t.csv", pl.LazyFrame()])
def test_objects_that_are_no_tables(source: Any) -> None:
    with pytest.raises(InputTypeError, match=type(source).__qualname__) as caught:
        open_source(source)
    assert caught.value.exit_code == 65


def test_no_table_library_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, mrot_scale.reading.sources\n"
        "print({'dask', 'fsspec', 'pandas', 'polars', 'zarr'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
