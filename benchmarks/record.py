"""What a benchmark leaves behind: a folder of its own with JSON that diffs line by line."""

import json
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mrot_scale
from mrot_scale.errors import OutputError


def claim_folder(folder: Path, marker: str) -> None:
    """Make the folder, or accept one that is empty or holds `marker` from an earlier run."""
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"--out must name a folder, but {folder} is a file.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / marker).is_file():
        raise OutputError(
            f"{folder} is not empty and holds no {marker}, so no earlier run wrote it. "
            "Name another folder."
        )
    folder.mkdir(parents=True, exist_ok=True)


def versions(libraries: Sequence[str]) -> dict[str, str]:
    """Return the versions of Python, of this package and of the libraries named."""
    own = {"python": platform.python_version(), "mrot-scale": mrot_scale.__version__}
    return own | {name: version(name) for name in libraries}


def json_lines(document: dict[str, Any]) -> str:
    """Return the document as JSON: one top-level entry, or one record of a list, per line."""
    entries = [f"{json.dumps(key)}: {_entry(value)}" for key, value in document.items()]
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _entry(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(_compact(record) for record in value) + "\n]"
    return _compact(value)


def _compact(value: Any) -> str:
    return json.dumps(_rounded(value), allow_nan=False)


def _rounded(value: Any) -> Any:
    """Keep ten significant digits: all a reader can use, and steadier between machines."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value
