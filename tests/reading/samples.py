"""A small table for the tests of readers, and what they do with any stream."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from mrot_scale.reading.stream import BATCH_ROWS, TableStream

# The system's record of this process; getrusage would begin with the parent's peak.
_READ_AND_WEIGH = """
import re, sys
from pathlib import Path
from mrot_scale.reading.sources import open_source

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

stream = open_source(sys.argv[1])
before = peak()
n_rows = sum(batch.num_rows for batch in stream.read(stream.schema.names))
print(n_rows, peak() - before)
"""


def sample(n_rows: int = 5, *, first: int = 0) -> pa.Table:
    """Rows that tell their number: three columns of float64."""
    number = np.arange(first, first + n_rows, dtype=np.float64)
    return pa.table({"c0": number, "c1": number * 2 + 0.5, "c2": -number})


def matrix(table: pa.Table) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    return np.column_stack([column.to_numpy() for column in table.columns])


def whole(stream: TableStream, columns: Sequence[str] | None = None) -> pa.Table:
    """All rows of one pass, each batch checked for its size and its types."""
    names = stream.schema.names if columns is None else list(columns)
    wanted = pa.schema([stream.schema.field(name) for name in names])
    batches = list(stream.read(names))
    for batch in batches:
        assert 1 <= batch.num_rows <= BATCH_ROWS
        assert batch.schema == wanted
        batch.validate(full=True)
    return pa.Table.from_batches(batches, schema=wanted)


def read_elsewhere(path: Path) -> tuple[int, int]:
    """Rows a new process finds in a file, and by how many bytes reading them all makes it grow."""
    command = [sys.executable, "-c", _READ_AND_WEIGH, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    n_rows, grown_bytes = done.stdout.split()
    return int(n_rows), int(grown_bytes)
