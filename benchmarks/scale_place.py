"""The files of one size: its table, and for each way to fit a store, a model and scores."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from benchmarks.scale_data import write_rows
from benchmarks.scale_grid import Size

TABLE = "table.parquet"


@dataclass(frozen=True)
class Place:
    """A folder in the scratch folder of a run."""

    folder: Path
    size: Size

    @classmethod
    def of(cls, scratch: Path, size: Size) -> "Place":
        return cls((scratch / f"{size.rows}x{size.features}").resolve(), size)

    @property
    def table(self) -> Path:
        """The table, made where it is not there yet."""
        path = self.folder / TABLE
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            write_rows(path, self.size.rows, self.size.features)
            os.sync()  # or it would be written out while the first command is measured
        return path

    def kept(self, name: str) -> Path:
        """Return a folder below, with what an earlier turn left in it."""
        found = self.folder / name
        found.mkdir(parents=True, exist_ok=True)
        return found

    def fresh(self, name: str) -> Path:
        """Return an empty folder below."""
        shutil.rmtree(self.folder / name, ignore_errors=True)
        return self.kept(name)

    def remove(self) -> None:
        """Remove all of it: it can be made again, and others need the room."""
        shutil.rmtree(self.folder, ignore_errors=True)
