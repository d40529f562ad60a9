"""A job that would not fit its workers is refused before its first task."""

from pathlib import Path

import numpy as np
import pytest

from mrot_scale import fit, ingest, score
from mrot_scale.errors import BudgetError

SMALL = {
    "label_rows": 200,
    "repeats": 2,
    "anchor_sets": 2,
    "batch_rows": 32,
    "cluster": {"kind": "inline"},
}


def test_a_task_that_cannot_fit_is_refused_with_the_sum_and_the_setting(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(300, 3))
    ingest(rows, tmp_path / "store")
    tight = SMALL | {"cluster": {"kind": "inline", "memory_limit": "100MiB"}}
    with pytest.raises(BudgetError, match="MiB") as caught:
        fit(tmp_path / "store", tmp_path / "model", tight)
    assert caught.value.exit_code == 78
    assert not (tmp_path / "model.run").exists()
    fit(tmp_path / "store", tmp_path / "model", SMALL)
    with pytest.raises(BudgetError, match="MiB"):
        score(tmp_path / "model", tmp_path / "store", tmp_path / "out", tight)
    assert not (tmp_path / "out.run").exists()
