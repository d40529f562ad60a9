"""Freed memory is kept, in a process of its own."""

import subprocess
import sys

_FAULTS = """
import resource
import numpy as np
from mrot_scale.allocation import keep_freed_memory

def faults_of_a_block():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(2**21)  # 16 MiB, freed at once
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

{call}
faults_of_a_block()
print(sum(faults_of_a_block() for _ in range(10)))
"""


def faults(call: str) -> int:
    """Return the pages that the kernel has to give for ten blocks, one after another."""
    code = _FAULTS.format(call=call)
    # MALLOC_TRIM_THRESHOLD_ is what Dask sets for its workers.
    environment = {"MALLOC_TRIM_THRESHOLD_": "65536", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=environment,
    )
    return int(done.stdout)


def test_blocks_reuse_the_pages_of_those_before() -> None:
    assert faults("assert keep_freed_memory()") < faults("") / 5
