"""Notebooks as pages: their text and code, without outputs."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "notebooks"


def notebook_paths() -> list[Path]:
    """Return the notebooks in the order in which they are to be read."""
    return sorted(FOLDER.glob("*.ipynb"))


def notebooks() -> str:
    """Return all notebooks one after the other, each with a link to its file."""
    return "\n".join(_page(path) for path in notebook_paths())


def _page(path: Path) -> str:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    name = f"notebooks/{path.name}"
    return "\n\n".join([_cell(cells[0]), f"[{name}]({name})", *map(_cell, cells[1:])]) + "\n"


def _cell(cell: dict[str, Any]) -> str:
    text = "".join(cell["source"])
    if cell["cell_type"] == "code":
        return f"```python\n{text}\n```"
    return "\n".join(f"#{line}" if line.startswith("#") else line for line in text.splitlines())
