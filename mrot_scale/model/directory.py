"""A model at rest: a directory of JSON, LightGBM text and `.npy` files, listed with digests.

Nothing in it can run code, and nothing in it is parsed before its size and sha256 agree with the
list. The list guards against accidents; whoever can write the directory can also rewrite the list.
"""

import io
import json
import re
from math import prod
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from mrot_scale.errors import DamagedDataError, DamagedModelError, MissingInputError, OutputError
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import MANIFEST, Entry, Manifest, read_manifest

FORMAT = "mrot-scale-model"
FORMAT_VERSION = 1

_FILE_NAME = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*\.(npy|json|txt)")
_NPY_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(?P<length>..)\{'descr': '(?P<dtype>[<|][bfi][1248])', "
    rb"'fortran_order': False, 'shape': \((?P<shape>[0-9]{1,18},|[0-9]{1,18}(?:, [0-9]{1,18})+)\), "
    rb"\} {0,128}\n",
    re.DOTALL,
)
_NPY_MAGIC_BYTES = 10
_MANIFEST_BYTES = 2**20
_FILE_BYTES = 2**31
_REMEDY = "Copy or fit the model again."


class ModelFiles:
    """The named parts of a model, as they are written and read."""

    def __init__(self) -> None:
        self._content: dict[str, bytes] = {}

    @classmethod
    def of(cls, content: dict[str, bytes]) -> "ModelFiles":
        """Return files that were written one by one."""
        files = cls()
        files._content = dict(content)
        return files

    def put_array(self, name: str, array: NDArray[Any]) -> None:
        buffer = io.BytesIO()
        np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
        self._content[f"{name}.npy"] = buffer.getvalue()

    def put_text(self, name: str, text: str) -> None:
        self._content[name] = text.encode()

    def put_json(self, name: str, value: Any) -> None:
        self.put_text(name, json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n")

    def array(self, name: str, dtype: type, ndim: int) -> NDArray[Any]:
        """Return an array after checking that it has the type and dimensions expected."""
        found = _npy_array(self.get(f"{name}.npy"), np.dtype(dtype), ndim)
        if found is None:
            raise DamagedModelError(
                f"{name}.npy is not an array of type {np.dtype(dtype)} and {ndim} dimension(s). "
                f"{_REMEDY}"
            )
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise DamagedModelError(f"{name}.npy holds non-finite numbers. {_REMEDY}")
        return found

    def text(self, name: str) -> str:
        try:
            return self.get(name).decode()
        except UnicodeDecodeError as error:
            raise DamagedModelError(f"{name} is not text ({error}). {_REMEDY}") from None

    def json(self, name: str) -> Any:
        try:
            return json.loads(self.text(name))
        except (ValueError, RecursionError) as error:
            if isinstance(error, DamagedModelError):
                raise
            raise DamagedModelError(f"{name} is not JSON ({error}). {_REMEDY}") from None

    def get(self, name: str) -> bytes:
        if name not in self._content:
            raise DamagedModelError(f"{name} is missing from the model. {_REMEDY}")
        return self._content[name]

    def __contains__(self, name: str) -> bool:
        return name in self._content

    @property
    def content(self) -> dict[str, bytes]:
        """The bytes of each file."""
        return dict(self._content)

    def write(self, folder: Location) -> None:
        """Write all parts and the list of them; the directory appears whole or not at all."""
        if folder.exists():
            raise OutputError(f"{folder} exists already. Choose another path or remove it.")
        if not folder.is_local:
            self._write_below(folder)
            return
        staging = folder.sibling(f".{folder.name}.{uuid4().hex}.tmp")
        try:
            self._write_below(staging)
            staging.path.rename(folder.path)
        except OSError as error:
            staging.remove()
            raise OutputError(f"Cannot write the model to {folder}: {_reason(error)}.") from error

    def _write_below(self, folder: Location) -> None:
        for name, content in self._content.items():
            (folder / name).write(content)
        (folder / MANIFEST).write(self._manifest())

    def _manifest(self) -> bytes:
        entries = {name: Entry.of(content) for name, content in self._content.items()}
        return Manifest(FORMAT, FORMAT_VERSION, entries).to_bytes()

    @classmethod
    def read(cls, folder: Location) -> "ModelFiles":
        """Return the parts of a directory whose every file agrees with its list."""
        if not folder.exists():
            raise MissingInputError(f"No model at {folder}.")
        listed = _checked_manifest(folder)
        extra = sorted(set(folder.names()) - set(listed) - {MANIFEST})
        if extra:
            raise DamagedModelError(f"{folder} holds {extra[0]!r}, which is not part of the model.")
        return cls.of({name: _checked_file(folder / name, listed[name]) for name in listed})


def _npy_array(content: bytes, dtype: np.dtype[Any], ndim: int) -> NDArray[Any] | None:
    """Return the array of a file that `put_array` could have written, None for any other.

    NumPy's own reader takes more than it writes: archives, headers that are programs, shapes
    beyond the file.
    """
    header = _NPY_HEADER.match(content)
    if header is None or header["dtype"].decode() != dtype.str:
        return None
    shape = [int(length) for length in header["shape"].replace(b",", b" ").split()]
    values = content[header.end() :]
    if (
        int.from_bytes(header["length"], "little") != header.end() - _NPY_MAGIC_BYTES
        or len(shape) != ndim
        or len(values) != dtype.itemsize * prod(shape)
        or max(shape) > len(content)  # no rows of endless width either
    ):
        return None
    if dtype.kind == "b" and values.translate(None, b"\0\1"):
        return None
    return np.frombuffer(values, dtype).reshape(shape).copy()


def _checked_manifest(folder: Location) -> dict[str, Entry]:
    """Return the listed files, or the reason why this is not a model this version can read."""
    place = folder / MANIFEST
    if not folder.is_folder() or not place.exists():
        raise DamagedModelError(f"{folder} is not a model directory: it has no {MANIFEST}.")
    _check_plain_file(place, _MANIFEST_BYTES)
    try:
        listed = read_manifest(folder, FORMAT, FORMAT_VERSION, "model").files
    except DamagedDataError as error:
        raise DamagedModelError(f"{error} {_REMEDY}") from None
    for name in listed:
        if not _FILE_NAME.fullmatch(name):
            raise DamagedModelError(f"{place} lists {name!r}, which no model contains.")
    return listed


def _checked_file(place: Location, entry: Entry) -> bytes:
    _check_plain_file(place, _FILE_BYTES)
    content = place.read()
    if entry != Entry.of(content):
        raise DamagedModelError(
            f"{place} is not the file that was saved (size or sha256 differs). {_REMEDY}"
        )
    return content


def _check_plain_file(place: Location, limit: int) -> None:
    if place.is_local and (place.path.is_symlink() or not place.path.is_file()):
        raise DamagedModelError(f"{place} is missing or not a plain file. {_REMEDY}")
    if not place.exists():
        raise DamagedModelError(f"{place} is missing or not a plain file. {_REMEDY}")
    if place.size() > limit:
        raise DamagedModelError(f"{place} is larger than any model file ({limit:,} bytes).")


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
