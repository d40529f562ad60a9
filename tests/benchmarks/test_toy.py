"""The toy example still runs, and still shows what its figures say."""

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from benchmarks import toy, toy_problem
from benchmarks.record import json_lines
from benchmarks.toy_figures import FIGURES
from mrot_scale.errors import OutputError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("toy")
    assert toy.main(["--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def again() -> toy_problem.Toy:
    return toy_problem.compute(0)


def test_every_figure_is_a_png_of_readable_size(folder: Path) -> None:
    assert {path.stem for path in folder.glob("*.png")} == set(FIGURES)
    for path in folder.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        height, width = imread(path).shape[:2]
        assert 900 <= width <= 1_400
        assert 400 <= height <= 1_100


def test_no_figure_is_blank(folder: Path) -> None:
    for path in folder.glob("*.png"):
        assert imread(path)[..., :3].std() > 0.05, path.name


def test_same_seed_gives_same_bytes(folder: Path, again: toy_problem.Toy) -> None:
    assert (folder / "toy.json").read_text() == json_lines(toy.numbers(again))


def test_another_seed_gives_another_sample() -> None:
    assert not np.array_equal(toy_problem.draw_sample(0).rows, toy_problem.draw_sample(1).rows)


def test_numbers_name_no_place_on_disk(folder: Path) -> None:
    assert str(folder.parent) not in (folder / "toy.json").read_text()


def test_high_mrot_effort_marks_anomalies_only_when_the_zone_holds_their_cluster(
    folder: Path,
) -> None:
    numbers = json.loads((folder / "toy.json").read_text())
    by_zone = {it["zone_rows"]: it["auc_high_effort"] for it in numbers["zone_sweep"]}
    assert numbers["mrot"]["auc_high_effort"] >= 0.99
    assert by_zone[numbers["settings"]["zone_rows"]] == numbers["mrot"]["auc_high_effort"]
    assert by_zone[numbers["settings"]["zone_rows_of_the_paper"]] < 0.7


def test_low_coulomb_effort_marks_anomalies(folder: Path) -> None:
    coulomb = json.loads((folder / "toy.json").read_text())["coulomb"]
    assert coulomb["anomalous_effort"] == "low"
    assert coulomb["auc_low_effort"] >= 0.95
    assert coulomb["auc_high_effort"] == pytest.approx(1 - coulomb["auc_low_effort"])


def test_euclidean_plan_keeps_all_mass_at_no_cost(folder: Path) -> None:
    euclidean = json.loads((folder / "toy.json").read_text())["euclidean"]
    assert euclidean["total_cost"] == 0.0
    assert euclidean["plan_is_identity"]


@pytest.mark.parametrize("cost", ["mrot", "coulomb"])
def test_every_row_sends_and_receives_the_same_mass(again: toy_problem.Toy, cost: str) -> None:
    """The paper says that anomalies move less mass under the Coulomb cost; no plan can do that."""
    plan = again.costs[cost].plan
    np.testing.assert_allclose(plan.sum(axis=0), 1 / len(plan), rtol=1e-9)
    np.testing.assert_allclose(plan.sum(axis=1), 1 / len(plan), rtol=1e-9)


def test_regressed_score_is_higher_at_the_anomalies_for_mrot_and_lower_for_coulomb(
    folder: Path,
) -> None:
    regressed = json.loads((folder / "toy.json").read_text())["regressed"]
    for kind in toy_problem.REGRESSORS:
        mrot, coulomb = regressed["mrot"][kind], regressed["coulomb"][kind]
        assert mrot["at_anomaly_center"] > mrot["at_normal_center"]
        assert coulomb["at_anomaly_center"] < coulomb["at_normal_center"]


def test_smoothed_cdf_is_the_mean_of_normal_cdfs() -> None:
    found = toy_problem.smoothed_cdf(np.array([0.0]), np.array([0.0, 1.0]), 1.0)
    assert found[0] == pytest.approx((0.5 + 0.15865525393) / 2)


def test_smoothed_cdf_is_the_integral_of_the_density() -> None:
    values = np.array([0.0, 0.3, 2.0])
    at = np.linspace(-9.0, 11.0, 4_001)
    density = toy_problem.kernel_density(at, values, 0.5)
    mass = np.cumsum(density) * (at[1] - at[0])
    np.testing.assert_allclose(mass, toy_problem.smoothed_cdf(at, values, 0.5), atol=5e-3)


def test_foreign_folder_is_refused_and_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    assert toy.main(["--out", str(tmp_path)]) == OutputError.exit_code
    assert "holds no toy.json" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").write_text("a file")
    assert toy.main(["--out", str(tmp_path / "out")]) == OutputError.exit_code
    assert "is a file" in capsys.readouterr().err


def test_own_folder_is_written_again(
    tmp_path: Path, again: toy_problem.Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy.json").write_text("from an earlier run")
    monkeypatch.setattr(toy_problem, "compute", lambda seed: again)
    monkeypatch.setattr(toy, "draw_all", lambda *_: [])
    assert toy.main(["--out", str(tmp_path)]) == 0
    assert json.loads((tmp_path / "toy.json").read_text())["settings"]["seed"] == 0


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        toy.main(["--help"])
    assert "example: python -m benchmarks.toy --out" in capsys.readouterr().out
