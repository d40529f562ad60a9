"""Tables of KEEL become sets, and what is no set is said to be none."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.keel import main
from benchmarks.quality_sets import load_set


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def converted(tmp_path: Path) -> int:
    return main(["--tables", str(tmp_path / "in"), "--out", str(tmp_path / "out")])


def test_words_become_columns_and_headers_are_passed_over(tmp_path: Path) -> None:
    lines = ["1.5, M, negative", "2,F , negative", "-3e1, M,positive", "4, I, negative"]
    rest = ["5, F, negative"] * 20 + ["6, F, positive"] * 19
    write(tmp_path / "in" / "shells.dat", ["@relation shells, old", "@data", *lines, *rest])
    assert converted(tmp_path) == 0
    rows, labels = load_set(tmp_path / "out" / "shells.npz")
    assert rows[:4].tolist() == [[1.5, 0, 0, 1], [2, 1, 0, 0], [-30, 0, 0, 1], [4, 0, 1, 0]]
    assert labels.tolist() == [0, 0, 1, 0] + [0] * 20 + [1] * 19


@pytest.mark.parametrize(
    ("name", "counts", "reason"),
    [
        ("pima", (30, 20), "defaults were chosen on a set made of it"),
        ("few", (30, 19), "fewer than 20 positive rows"),
        ("many", (30, 31), "positive rows are not the rare ones"),
    ],
)
def test_what_is_left_out_is_said(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    counts: tuple[int, int],
    reason: str,
) -> None:
    words = np.repeat(["negative", "positive"], counts)
    write(tmp_path / "in" / f"{name}.dat", [f"{i}, {w}" for i, w in enumerate(words)])
    assert converted(tmp_path) == 0
    assert capsys.readouterr().out.endswith(f"positive; left out: {reason}\n")
    assert not list((tmp_path / "out").iterdir())


def test_ragged_tables_and_empty_folders_are_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "in" / "torn.dat", ["1, 2, negative", "3, positive"])
    assert converted(tmp_path) == 65
    assert "torn.dat: expected rows of equal length" in capsys.readouterr().err
    (tmp_path / "in" / "torn.dat").unlink()
    assert converted(tmp_path) == 66
