"""Agreement of mini-batches and anchors with the exact method, small here, real where data are."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.fidelity import agreement, main
from tests.tables import normal_rows, uneven_clusters


def test_the_command_measures_every_set_with_enough_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "large.npz", X=uneven_clusters(400))
    np.savez(tmp_path / "small.npz", X=normal_rows(50))
    main(["--data", str(tmp_path), "--rows", "300", "--views", "robust", "--out", str(tmp_path)])
    found = json.loads((tmp_path / "fidelity.json").read_text())
    assert [entry["dataset"] for entry in found] == ["large"]
    assert "robust, minibatch: mean" in capsys.readouterr().out


def test_both_agree_with_the_exact_method_on_generated_rows() -> None:
    found = agreement("clusters", uneven_clusters(1_000), "standard", repeats=10)
    assert found.distinct == 1.0
    assert found.minibatch > 0.97
    assert found.anchors > 0.97


def test_equal_rows_count_once() -> None:
    rows = np.repeat(normal_rows(300), 3, axis=0)
    assert agreement("copies", rows, "standard", repeats=4).distinct == pytest.approx(1 / 3)


@pytest.mark.data
def test_agreement_holds_on_the_ten_largest_real_sets() -> None:
    if "MROT_DATA" not in os.environ:
        pytest.skip("MROT_DATA names no folder of data sets")
    paths = Path(os.environ["MROT_DATA"]).glob("*.npz")
    sizes = {path: len(np.load(path)["y"]) for path in paths}
    largest = sorted(sizes, key=lambda path: -sizes[path])[:10]
    found = []
    for path in largest:
        rows = np.asarray(np.load(path)["X"], dtype=np.float64)
        chosen = np.random.default_rng(0).permutation(len(rows))[:1_500]
        found.append(agreement(path.stem, rows[np.sort(chosen)], "standard", repeats=10))
    for values in ([a.minibatch for a in found], [a.anchors for a in found]):
        assert np.mean(values) >= 0.97
        assert min(values) >= 0.93
