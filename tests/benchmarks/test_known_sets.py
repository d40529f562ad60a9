"""Sets of the literature are made of plain tables as their descriptions say."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.known_sets import main
from benchmarks.quality_sets import load_set


def made(tmp_path: Path, name: str, rows: NDArray[np.float64], classes: list[str]) -> int:
    lines = [",".join([*map(str, row), c]) for row, c in zip(rows, classes, strict=True)]
    tables = tmp_path / "in"
    tables.mkdir(exist_ok=True)
    (tables / f"{name}.dat").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return main(["--tables", str(tables), "--out", str(tmp_path / "out")])


def test_a_class_stands_for_anomalies(tmp_path: Path) -> None:
    rows = np.arange(12.0).reshape(6, 2)
    assert made(tmp_path, "ionosphere", rows, list("gbggbg")) == 0
    found, labels = load_set(tmp_path / "out" / "ionosphere.npz")
    np.testing.assert_array_equal(found, rows)
    assert labels.tolist() == [0, 1, 0, 0, 1, 0]


def test_few_of_a_large_class_are_kept(tmp_path: Path) -> None:
    rows = np.arange(60.0).reshape(30, 2)
    assert made(tmp_path, "wdbc", rows, ["B", "M"] * 15) == 0
    found, labels = load_set(tmp_path / "out" / "wdbc.npz")
    assert (len(found), labels.sum()) == (25, 10)
    number = found[:, 0] / 2
    np.testing.assert_array_equal(labels, number % 2)
    assert (np.diff(number) > 0).all()


def test_an_anomalous_pair_of_letters_is_usual_in_its_second_half(tmp_path: Path) -> None:
    names = [c for c in "ABCXYZ" for _ in range(20)]
    rows = np.array([[float(ord(c))] for c in names])
    assert made(tmp_path, "letter", rows, names) == 0
    found, labels = load_set(tmp_path / "out" / "letter.npz")
    assert found.shape == (1_600, 2)
    usual = np.isin(found, [ord(c) for c in "ABC"])
    np.testing.assert_array_equal(usual[:, 0], labels == 0)
    assert usual[:, 1].all()
    assert labels.sum() == 100


def test_a_folder_without_these_tables_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--tables", str(tmp_path), "--out", str(tmp_path / "out")]) == 66
    assert "None of ionosphere, letter" in capsys.readouterr().err
