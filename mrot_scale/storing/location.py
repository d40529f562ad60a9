"""Where things rest: a local path or an object store's, behind the same few verbs.

The only importer of fsspec. Credentials and endpoints come from the environment of each process,
so a location travels to workers as its address alone.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any, cast
from uuid import uuid4

from mrot_scale.errors import (
    ConfigError,
    MissingInputError,
    MissingLibraryError,
    MrotError,
    OutputError,
    StorageError,
)
from mrot_scale.faults import is_careless, reach

_EXTRA_OF = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az"}

_S3_SETTINGS = {
    "connect_timeout": 5,
    "read_timeout": 10,
    "retries": {"mode": "standard", "max_attempts": 3},
}
_S3_ROUNDS = 2
"""How often s3fs tries, botocore's attempts each time: left alone, both try for half an hour."""

_S3_WRITE_S = 60.0
_S3_SLOWEST = 2**20
"""Bytes per second. Before a body is sent, aiohttp waits for leave to do so without any limit."""

_RACE_LOST = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey")
"""What S3 says when an object is no longer the one that was read, or is there already."""


class Location:
    """An address of a file or folder; `location / "name"` is one below it."""

    def __init__(self, address: "str | os.PathLike[str] | Location") -> None:
        text: str = address.address if isinstance(address, Location) else os.fspath(address)
        if not text:
            raise ConfigError("An empty path was given.")
        protocol, found, rest = text.partition("://")
        self.protocol = protocol if found else "file"
        local = str(Path(rest if found else text).absolute())
        self.address: str = (
            local if self.protocol == "file" else f"{protocol}://{rest.strip(chr(47))}"
        )

    def __truediv__(self, name: str) -> "Location":
        return Location(
            f"{self.address.rstrip('/')}/{name}"
            if self.is_local or self.address[-1] != "/"
            else self.address + name
        )

    def __str__(self) -> str:
        return self.address

    def __repr__(self) -> str:
        return f"Location({self.address!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Location) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    @property
    def is_local(self) -> bool:
        return self.protocol == "file"

    @property
    def path(self) -> Path:
        """The local path; only where `is_local`."""
        return Path(self.address)

    @property
    def name(self) -> str:
        return self.address.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        return Path(self.name).suffix.lower()

    def is_within(self, other: "Location") -> bool:
        """Whether it is the other place, or somewhere below it."""
        return f"{self.address}/".startswith(f"{other.address.rstrip('/')}/")

    def real_name(self) -> str:
        """The name of what a symbolic link leads to, or just the name."""
        return self.path.resolve().name if self.is_local else self.name

    def sibling(self, name: str) -> "Location":
        return Location(f"{self.address.rpartition('/')[0]}/{name}")

    @cached_property
    def filesystem(self) -> Any:
        """The fsspec file system, made when first needed."""
        import fsspec

        try:
            # Listings may be stale when other processes write: never cache them.
            options: dict[str, Any] = {} if self.is_local else {"use_listings_cache": False}
            if not self._is_s3:
                return fsspec.filesystem(self.protocol, **options)
            made = fsspec.filesystem(self.protocol, **options, config_kwargs=_S3_SETTINGS)
            made.retries = _S3_ROUNDS
            return made
        except ImportError:
            extra = _EXTRA_OF.get(self.protocol, self.protocol)
            raise MissingLibraryError(
                f"{self.protocol}:// needs a library: pip install 'mrot-scale[{extra}]'."
            ) from None
        except ValueError as error:
            raise ConfigError(f"{self.address}: {error}.") from None

    def exists(self) -> bool:
        if self.is_local:
            return os.path.lexists(self.address)
        with self._explained("look at"):
            return bool(self.filesystem.exists(self.address))

    def is_folder(self) -> bool:
        if self.is_local:
            return self.path.is_dir()
        with self._explained("look at"):
            return bool(self.filesystem.isdir(self.address))

    def size(self) -> int:
        with self._explained("read"):
            return int(self.filesystem.size(self.address))

    def names(self) -> list[str]:
        """Return the names of what lies directly below, sorted."""
        with self._explained("list"):
            if self.is_local:
                return sorted(path.name for path in self.path.iterdir())
            found = self.filesystem.ls(self.address, detail=False)
            return sorted({str(p).rstrip("/").rpartition("/")[2] for p in found})

    def files_below(self) -> dict[str, int]:
        """Return the path of every file below, relative and sorted, with its size."""
        with self._explained("list"):
            if self.is_local:
                files = (p for p in self.path.rglob("*") if p.is_file())
                return dict(
                    sorted((str(p.relative_to(self.path)), p.stat().st_size) for p in files)
                )
            root = self.filesystem._strip_protocol(self.address)
            found = self.filesystem.find(self.address, detail=True)
            return {p[len(root) + 1 :]: int(i["size"]) for p, i in sorted(found.items())}

    def read(self) -> bytes:
        with self._explained("read"):
            if self.is_local:
                return self.path.read_bytes()
            return bytes(self.filesystem.cat_file(self.address))

    def open(self) -> IO[bytes]:
        """Return the file opened for reading from any position."""
        with self._explained("read"):
            return cast(IO[bytes], self.filesystem.open(self.address, "rb"))

    def write(self, content: bytes) -> None:
        """Write a whole file: it appears, or is replaced, all at once and lasts."""
        with self._explained("write"):
            if self.is_local:
                _replace_durably(self.path, content)
            else:
                self.filesystem.pipe_file(self.address, content, **self._limit(content))

    def write_new(self, content: bytes) -> bool:
        """Write a file unless one is there already; tell whether it was written.

        Writers must differ in content: on object stores the same bytes count as one's own.
        """
        with self._explained("write"):
            if self.is_local:
                return _create_durably(self.path, content)
            try:
                limit = self._limit(content)
                self.filesystem.pipe_file(self.address, content, mode="create", **limit)
            except OSError as error:
                # Stores other than Amazon's need not say which condition failed, as s3fs expects.
                if not isinstance(error, FileExistsError) and _s3_code(error) not in _RACE_LOST:
                    raise
                return self._holds(content)
            return True

    def _holds(self, content: bytes) -> bool:
        """Tell whether an object is our own: its answer was lost, and it was sent again."""
        found = self.read_marked()  # gone again, if somebody held it only for a moment
        return found is not None and found[0] == content

    def read_marked(self) -> tuple[bytes, str] | None:
        """Return an object's content and the mark that tells it from what replaces it, if any."""
        with self._explained("read"):
            while True:
                try:
                    mark, content = self._mark(), bytes(self.filesystem.cat_file(self.address))
                    if mark == self._mark():
                        return content, mark
                except FileNotFoundError:
                    return None

    def _mark(self) -> str:
        found = self.filesystem.info(self.address)
        return str(found.get("ETag") or found.get("etag") or found.get("created"))

    def replace_marked(self, content: bytes, mark: str) -> bool:
        """Replace an object that is still the one `read_marked` returned; tell whether it was.

        Only S3 checks this as it writes. Elsewhere it is checked just before.
        """
        with self._explained("write"):
            if not self._is_s3:
                if self._mark() != mark:
                    return False
                self.filesystem.pipe_file(self.address, content)
                return True
            try:
                limit = self._limit(content)
                self.filesystem.pipe_file(self.address, content, IfMatch=mark, **limit)
            except OSError as error:
                if _s3_code(error) not in _RACE_LOST:
                    raise
                return self._holds(content)
            return True

    @property
    def _is_s3(self) -> bool:
        return _EXTRA_OF.get(self.protocol) == "s3"

    def _limit(self, content: bytes) -> dict[str, float]:
        return {"timeout": _S3_WRITE_S + len(content) / _S3_SLOWEST} if self._is_s3 else {}

    def append_line(self, line: bytes) -> None:
        """Add a line to a local file and wait until it is safe."""
        with self._explained("write"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            reach("append.begin")
            with self.path.open("ab") as file:
                file.write(line)
                file.flush()
                reach("append.written")
                _sync(file.fileno())
            reach("append.synced")

    def copy_to(self, target: "Location") -> None:
        """Let the same bytes be found at another place of the same storage as well."""
        with self._explained("copy"):
            if not self.is_local or not target.is_local:
                _copy_between(self, target)
                return
            target.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(self.path, target.path)
            except OSError:  # another disk, or one without hard links
                _replace_durably(target.path, self.path.read_bytes())

    def remove(self) -> None:
        """Remove the file or everything below; nothing there is fine."""
        with self._explained("remove"):
            if not self.is_local:
                if self.filesystem.exists(self.address):
                    self.filesystem.rm(self.address, recursive=True)
            elif self.path.is_dir() and not self.path.is_symlink():
                shutil.rmtree(self.address)
            elif self.exists():
                self.path.unlink(missing_ok=True)

    @contextmanager
    def _explained(self, verb: str) -> Iterator[None]:
        """Turn what storage raises into errors that say what to do."""
        try:
            yield
        except MrotError:  # explained already
            raise
        except FileNotFoundError as error:
            if verb == "write":  # folders are made as needed: it is the bucket
                raise OutputError(f"Cannot write {self.address}: {_reason(error)}.") from error
            raise MissingInputError(f"Nothing at {self.address}.") from error
        except (PermissionError, IsADirectoryError, NotADirectoryError, FileExistsError) as error:
            if verb in ("read", "list", "look at"):
                raise MissingInputError(
                    f"Cannot {verb} {self.address}: {_reason(error)}."
                ) from error
            raise OutputError(f"Cannot {verb} {self.address}: {_reason(error)}.") from error
        except OSError as error:
            raise StorageError(
                f"Cannot {verb} {self.address}: {_reason(error)}. Run the same command again."
            ) from error
        except Exception as error:
            if type(error).__module__.split(".")[0] not in ("botocore", "aiobotocore", "aiohttp"):
                raise
            raise StorageError(
                f"Cannot {verb} {self.address}: {_reason(error)}. Check endpoint and credentials, "
                "and run the same command again."
            ) from error


def _s3_code(error: BaseException) -> str | None:
    """Return what S3 called an error."""
    response = getattr(error.__cause__, "response", None) or {}
    return cast("str | None", response.get("Error", {}).get("Code"))


def _copy_between(source: Location, target: Location) -> None:
    if source.protocol == target.protocol:
        source.filesystem.cp_file(source.address, target.address)
    else:
        target.write(source.read())


def _reason(error: BaseException) -> str:
    told = getattr(error, "strerror", None) or " ".join(str(error).split())
    return str(told or type(error).__name__).rstrip(".")


def _write_and_sync(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        reach("write.written")
        _sync(file.fileno())


def _sync(descriptor: int) -> None:
    """Wait until a file is safe on disk."""
    if not is_careless():
        os.fsync(descriptor)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are safe on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        _sync(descriptor)
    finally:
        os.close(descriptor)


def _replace_durably(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    staging = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    reach("write.begin")
    try:
        _write_and_sync(staging, content)
        reach("write.synced")
        staging.replace(path)
        reach("write.renamed")
    except BaseException:
        staging.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
    reach("write.done")


def _create_durably(path: Path, content: bytes) -> bool:
    path.parent.mkdir(parents=True, exist_ok=True)
    staging = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        _write_and_sync(staging, content)
        os.link(staging, path)  # unlike a rename, fails where something is
    except FileExistsError:
        return False
    finally:
        staging.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True
