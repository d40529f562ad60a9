"""A model at rest: a directory of JSON, LightGBM text and `.npy` files, listed with digests.

Nothing in it can run code, and nothing in it is parsed before its size and sha256 agree with the
list. The list guards against accidents; whoever can write the directory can also rewrite the list.
"""

import hashlib
import io
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from mrot_scale.errors import (
    DamagedModelError,
    MissingInputError,
    ModelMismatchError,
    OutputError,
)

FORMAT = "mrot-scale-model"
FORMAT_VERSION = 1
MANIFEST = "MANIFEST.json"

_FILE_NAME = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*\.(npy|json|txt)")
_MANIFEST_BYTES = 2**20
_FILE_BYTES = 2**31
_REMEDY = "Copy or fit the model again."


class ModelFiles:
    """The named parts of a model, as they are written and read."""

    def __init__(self) -> None:
        self._content: dict[str, bytes] = {}

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
        content = io.BytesIO(self.get(f"{name}.npy"))
        try:
            found = np.load(content, allow_pickle=False)
        except (ValueError, EOFError, OSError, MemoryError) as error:
            raise DamagedModelError(f"{name}.npy is not an array ({error}). {_REMEDY}") from None
        if found.dtype != dtype or found.ndim != ndim:
            raise DamagedModelError(
                f"{name}.npy holds {found.ndim}-d {found.dtype}, expected {ndim}-d "
                f"{np.dtype(dtype)}. {_REMEDY}"
            )
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise DamagedModelError(f"{name}.npy holds non-finite numbers. {_REMEDY}")
        return np.asarray(found)

    def text(self, name: str) -> str:
        return self.get(name).decode()

    def json(self, name: str) -> Any:
        return json.loads(self.get(name))

    def get(self, name: str) -> bytes:
        if name not in self._content:
            raise DamagedModelError(f"{name} is missing from the model. {_REMEDY}")
        return self._content[name]

    def write(self, path: Path) -> None:
        """Write all parts and the list of them; the directory appears whole or not at all."""
        if path.exists() or path.is_symlink():
            raise OutputError(f"{path} exists already. Choose another path or remove it.")
        staging = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            staging.mkdir()
            for name, content in {**self._content, MANIFEST: self._manifest()}.items():
                _write_durably(staging / name, content)
            staging.rename(path)
        except OSError as error:
            shutil.rmtree(staging, ignore_errors=True)
            raise OutputError(f"Cannot write the model to {path}: {error.strerror}.") from error

    def _manifest(self) -> bytes:
        listed = {name: _entry(content) for name, content in sorted(self._content.items())}
        manifest = {"format": FORMAT, "format_version": FORMAT_VERSION, "files": listed}
        return (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()

    @classmethod
    def read(cls, path: Path) -> "ModelFiles":
        """Return the parts of a directory whose every file agrees with its list."""
        if not path.exists():
            raise MissingInputError(f"No model at {path}.")
        listed = _checked_manifest(path)
        extra = sorted({p.name for p in path.iterdir()} - set(listed) - {MANIFEST})
        if extra:
            raise DamagedModelError(f"{path} holds {extra[0]!r}, which is not part of the model.")
        files = cls()
        files._content = {name: _checked_file(path, name, listed[name]) for name in listed}
        return files


def _entry(content: bytes) -> dict[str, Any]:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _write_durably(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _checked_manifest(path: Path) -> dict[str, dict[str, Any]]:
    """Return the listed files, or the reason why this is not a model this version can read."""
    manifest_path = path / MANIFEST
    if not manifest_path.is_file():
        raise DamagedModelError(f"{path} is not a model directory: it has no {MANIFEST}.")
    try:
        manifest = json.loads(_read_bounded(manifest_path, _MANIFEST_BYTES))
        is_ours = manifest["format"] == FORMAT
        version, listed = manifest["format_version"], manifest["files"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DamagedModelError(f"{manifest_path} is damaged or foreign. {_REMEDY}") from None
    if not is_ours or not isinstance(listed, dict):
        raise DamagedModelError(f"{manifest_path} does not list a {FORMAT}. {_REMEDY}")
    if version != FORMAT_VERSION:
        raise ModelMismatchError(
            f"{path} has model format {version!r}, this version of mrot-scale reads "
            f"{FORMAT_VERSION}. Install the version that wrote it, or fit again."
        )
    for name in listed:
        if not _FILE_NAME.fullmatch(name):
            raise DamagedModelError(f"{manifest_path} lists {name!r}, which no model contains.")
    return listed


def _checked_file(path: Path, name: str, entry: Any) -> bytes:
    content = _read_bounded(path / name, _FILE_BYTES)
    if entry != _entry(content):
        raise DamagedModelError(
            f"{path / name} is not the file that was saved (size or sha256 differs). {_REMEDY}"
        )
    return content


def _read_bounded(path: Path, limit: int) -> bytes:
    if path.is_symlink() or not path.is_file():
        raise DamagedModelError(f"{path} is missing or not a plain file. {_REMEDY}")
    if path.stat().st_size > limit:
        raise DamagedModelError(f"{path} is larger than any model file ({limit:,} bytes).")
    return path.read_bytes()
