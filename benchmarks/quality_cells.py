"""The file of finished cells: one JSON line each, so that a run can go on where it stopped."""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mrot_scale.errors import ConfigError

Cell = dict[str, Any]

CELLS = "cells.jsonl"
"""Name of the file in the folder of a benchmark."""


class CellFile:
    """Finished cells, in memory and on disk.

    The first line holds the settings that every cell must share. A line cut short by a kill is
    dropped. Of two cells for the same thing the later one counts.
    """

    def __init__(self, path: Path, header: dict[str, Any], fields: Sequence[str]) -> None:
        self._path, self._header, self._fields = path, header, tuple(fields)
        self._cells: dict[str, Cell] = {}
        self._is_whole = False
        lines = _whole_lines(path)
        if lines:
            _check_settings(path, json.loads(lines[0]), header)
        for line in lines[1:]:
            self._keep(json.loads(line))

    @property
    def cells(self) -> list[Cell]:
        return list(self._cells.values())

    def find(self, identity: dict[str, Any]) -> Cell | None:
        """Return the finished cell with these fields, if there is one."""
        return self._cells.get(self._key(identity))

    def append(self, cells: Iterable[Cell]) -> None:
        """Write cells so that they survive a kill or a power cut."""
        self._mend()
        with self._path.open("a", encoding="utf-8") as file:
            for cell in cells:
                self._keep(cell)
                file.write(json.dumps(cell) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _mend(self) -> None:
        """Before the first append, write the first line or cut off one that was never finished."""
        if self._is_whole:
            return
        lines = _whole_lines(self._path) or [json.dumps(self._header)]
        self._path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        self._is_whole = True

    def _keep(self, cell: Cell) -> None:
        self._cells[self._key(cell)] = cell

    def _key(self, cell: Cell) -> str:
        return json.dumps([cell[field] for field in self._fields])


def _whole_lines(path: Path) -> list[str]:
    """Return the lines that end in a newline."""
    if not path.is_file():
        return []
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def _check_settings(path: Path, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Refuse to put cells computed on other terms into one table."""
    if found["settings"] != wanted["settings"]:
        raise ConfigError(
            f"{path.name} was computed with {found['settings']}, this command has "
            f"{wanted['settings']}. Give the same settings, or another folder."
        )
