"""Files are opened for reading, and what goes wrong is told in our words."""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from mrot_scale.errors import DataError, MissingInputError, MrotError, OutputError, StorageError
from mrot_scale.storing.location import Location

_DAMAGE = (
    pa.ArrowException,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,  # a compression zipfile does not know
    RuntimeError,  # an encrypted member of an archive
    ValueError,
)
_NETWORK_LIBRARIES = ("botocore", "aiobotocore", "aiohttp", "gcsfs", "azure")


@contextmanager
def opened(location: Location, *, scattered: bool = False) -> Iterator[Any]:
    """Open a file; `scattered` reads jump about, so that reading ahead would be wasted."""
    if location.is_local:
        file = pa.OSFile(location.address)
    elif scattered:
        file = location.filesystem.open(location.address, "rb", cache_type="none")
    else:
        file = location.open()
    with file:
        yield file


@contextmanager
def explained(location: Location, kind: str) -> Iterator[None]:
    """Turn what reading raises into errors that name the file and say what to do."""
    try:
        yield
    except OutputError as error:
        # Location blames the output when access is denied; here it is input.
        raise _unreadable(location, error.__cause__ or error) from error
    except MrotError:
        raise
    except FileNotFoundError as error:
        raise MissingInputError(f"Nothing at {error.filename or location}.") from error
    except (PermissionError, IsADirectoryError, NotADirectoryError) as error:
        raise _unreadable(location, error) from error
    except OSError as error:
        # Arrow tells damage by errors without a number; the system's have one.
        raise (
            _failed(location, error) if error.errno else _damaged(location, kind, error)
        ) from error
    except _DAMAGE as error:
        raise _damaged(location, kind, error) from error
    except Exception as error:
        if type(error).__module__.split(".")[0] not in _NETWORK_LIBRARIES:
            raise
        raise _failed(location, error) from error


def _unreadable(location: Location, error: BaseException) -> MissingInputError:
    return MissingInputError(
        f"{location} is unreadable: {_reason(error)}. Check its permissions and yours."
    )


def _failed(location: Location, error: BaseException) -> StorageError:
    return StorageError(f"Cannot read {location}: {_reason(error)}. Run the same command again.")


def _damaged(location: Location, kind: str, error: BaseException) -> DataError:
    return DataError(
        f"{location} cannot be read as {kind}: {_reason(error)}. "
        "The file may be damaged, unfinished or of another format."
    )


def _reason(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or " ".join(str(error).split())
    return (text or type(error).__name__).rstrip(".")
