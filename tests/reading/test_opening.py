"""What reading may raise, and what is told instead."""

import errno
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from mrot_scale.errors import MrotError, OutputError, StorageError
from mrot_scale.reading.opening import explained, opened
from mrot_scale.storing.location import Location

DENIED = PermissionError(errno.EACCES, "Permission denied")


class NetworkError(Exception):
    """Stands in for what an object store's client raises."""


NetworkError.__module__ = "botocore.exceptions"


@pytest.mark.parametrize(
    ("raised", "exit_code", "said"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file"), 66, "Nothing at /x/t.parquet"),
        (DENIED, 66, "/x/t.parquet is unreadable: Permission denied"),
        (OutputError("Cannot read"), 66, "unreadable"),
        (OSError(errno.EIO, "Input/output error"), 75, "Cannot read /x/t.parquet: Input/output"),
        (NetworkError("no route"), 75, "Cannot read /x/t.parquet: no route"),
        (StorageError("as it is"), 75, "as it is"),
        (OSError("Couldn't deserialize thrift"), 65, "/x/t.parquet cannot be read as Parquet"),
        (pa.ArrowInvalid("magic bytes"), 65, "/x/t.parquet cannot be read as Parquet: magic bytes"),
        (zipfile.BadZipFile("not a zip file"), 65, "cannot be read as Parquet: not a zip file"),
        (EOFError(), 65, "cannot be read as Parquet: EOFError"),
    ],
)
def test_errors_have_an_exit_code_and_a_place(raised: Exception, exit_code: int, said: str) -> None:
    with pytest.raises(MrotError) as caught, explained(Location("/x/t.parquet"), "Parquet"):
        raise raised
    assert caught.value.exit_code == exit_code
    assert said in str(caught.value)


def test_bugs_stay_bugs() -> None:
    with pytest.raises(KeyError), explained(Location("/x"), "Parquet"):
        raise KeyError("a")


@pytest.mark.parametrize("scattered", [True, False])
@pytest.mark.parametrize("store", ["local", "memory"])
def test_files_open_alike_wherever_they_are(tmp_path: Path, store: str, scattered: bool) -> None:
    folder = Location(tmp_path if store == "local" else "memory://opening")
    (folder / "t.bin").write(b"content")
    with opened(folder / "t.bin", scattered=scattered) as file:
        file.seek(3)
        assert file.read(2) == b"te"
