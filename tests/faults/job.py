"""The job that is killed: a table becomes a store, a model and scores, on terms that never change.

    python -m tests.faults.job WORK [WORKERS]

Over scores that are there already it publishes the next generation. It says when it begins, and at
the end how often it came to each point where tests may order a fault.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import mrot_scale
from mrot_scale import faults
from tests.running.jobs import SETTINGS, make_table

OLD_SEED, NEW_SEED = 1, 2


def settings(seed: int, workers: int = 0) -> dict[str, Any]:
    """Return the job's settings; without workers it runs in its own process."""
    cluster = {"workers": workers} if workers else {"kind": "inline"}
    return {**SETTINGS, "seed": seed, "hybrid": "never", "cluster": cluster}


def prepare(work: Path) -> None:
    """Make the table, a store of it, and scores by an old model."""
    table = make_table(work / "table.parquet")
    config = settings(OLD_SEED)
    mrot_scale.fit(table, work / "old.model", config, id="reading")
    score(work, "old.model", config)


def score(work: Path, model: str, config: dict[str, Any]) -> None:
    mrot_scale.score(
        work / model,
        work / "table.parquet",
        work / "scores",
        config,
        parquet=work / "scores.parquet",
        id="reading",
        new_run=True,
    )


def run(work: Path, workers: int) -> None:
    """Do the whole job, or what is left of it."""
    config = settings(NEW_SEED, workers)
    mrot_scale.ingest(work / "table.parquet", work / "store", id="reading", config=config)
    mrot_scale.fit(work / "store", work / "model", config)
    score(work, "model", config)


def main() -> None:
    """Say when it begins and what it did."""
    import faiss  # noqa: F401 - loaded now, so that a kill meets the job and not its imports
    import lightgbm  # noqa: F401
    import ot  # noqa: F401
    import zarr  # noqa: F401

    print("begin", os.getpid(), flush=True)
    run(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    print(json.dumps(faults.hits), flush=True)


if __name__ == "__main__":
    main()
