"""Two models side by side: the same figures as computed by other means from their scores."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.stats import rankdata

import mrot_scale
from mrot_scale.errors import DataError, MissingInputError
from mrot_scale.scheduled.comparison import Compared, compare_models
from tests.scheduled.lake import (
    ROWS,
    SETTINGS,
    Job,
    changed,
    day,
    night_table,
    with_incident,
    with_nightly,
)

MANY: dict[str, Any] = SETTINGS | {"scoring": {"contamination": 0.2}}
"""Settings with which both models flag rows enough."""


@dataclass(frozen=True)
class Two:
    """A job with two models, and rows for them."""

    job: Job
    first: str
    second: str
    rows: Path

    def compared(self, first: str | None = None, second: str | None = None) -> Compared:
        names = (first or self.first, second or self.second)
        return compare_models(self.job.output, *names, self.rows, MANY)

    def model(self, name: str) -> Path:
        return self.job.output / "models" / name / "model"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Two:
    """Models of a usual night, and of one in which the pumps behaved otherwise."""
    job = Job.of(tmp_path_factory.mktemp("two"), 1)
    table = night_table(2)
    table = changed(table, "pressure", 3 - 0.4 * table["pressure"].to_numpy())
    job.write(2, changed(table, "vibration", table["vibration"].to_numpy() ** 2))
    models = [
        str(job.night(number, refit_every=1, training_partitions=1).model) for number in (1, 2)
    ]
    rows = job.write(3, with_incident(night_table(3), 0.05)).parent
    return Two(job, models[0], models[1], rows)


def scored(two: Two, name: str, folder: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """Scores by `score_rows` and flags by `score`, of the rows to compare by."""
    table = with_incident(night_table(3), 0.05)
    scores = mrot_scale.score_rows(two.model(name), table.drop_columns(["reading", "read_at"]))
    done = mrot_scale.score(
        two.model(name), table, folder / name, MANY, parquet=folder / f"{name}.p", id="reading"
    )
    flags = mrot_scale.open_scores(folder / f"{name}.p").to_table()["flag"].to_numpy()
    assert done.n_flagged == flags.sum()
    return scores, flags


@pytest.mark.filterwarnings("ignore::mrot_scale.errors.LeftOutWarning")
def test_figures_are_those_of_the_scores(two: Two, tmp_path: Path) -> None:
    found = two.compared()
    (a, flagged_a), (b, flagged_b) = (scored(two, n, tmp_path) for n in (two.first, two.second))
    assert (found.first, found.second, found.n_rows) == (two.first, two.second, ROWS)
    spearman = np.corrcoef(rankdata(a), rankdata(b))[0, 1]
    assert found.rank_correlation == pytest.approx(spearman, abs=1e-12)
    assert found.rank_correlation is not None
    assert 0 < found.rank_correlation < 0.99
    both, either = (flagged_a & flagged_b).sum(), (flagged_a | flagged_b).sum()
    assert (found.flagged_first, found.flagged_second) == (flagged_a.sum(), flagged_b.sum())
    assert found.flagged_both == both
    assert 0 < both < either
    assert found.flagged_overlap == pytest.approx(both / either)
    assert found.largest_difference == pytest.approx(np.abs(a - b).max())


def test_the_drift_of_the_score_is_counted_in_twentieths_and_in_the_tail(two: Two) -> None:
    table = with_incident(night_table(3), 0.05).drop_columns(["reading", "read_at"])
    a, b = (mrot_scale.score_rows(two.model(n), table) for n in (two.first, two.second))
    ends = [-np.inf, *np.arange(1, 20) / 20, 0.99, 0.999, np.inf]
    shares = []
    for scores in (a, b):  # an empty bin counts as half a row
        counts = [((scores > low) & (scores <= high)).mean() for low, high in pairwise(ends)]
        shares.append(np.maximum(counts, 0.5 / ROWS))
    psi = ((shares[1] - shares[0]) * np.log(shares[1] / shares[0])).sum()
    found = two.compared()
    assert found.score_psi == pytest.approx(psi, rel=1e-6)
    distances = [abs((a <= end).mean() - (b <= end).mean()) for end in ends[1:]]
    assert found.score_ks == pytest.approx(max(distances), rel=1e-6)


def test_a_model_is_just_like_itself(two: Two) -> None:
    found = two.compared(two.first, two.first)
    assert found.rank_correlation == pytest.approx(1.0)
    assert (found.flagged_overlap, found.largest_difference) == (1.0, 0.0)
    assert (found.score_psi, found.score_ks) == (0.0, 0.0)
    assert found.flagged_both == found.flagged_first == found.flagged_second


def test_two_models_either_way_are_as_much_alike(two: Two) -> None:
    there, back = two.compared(), two.compared(two.second, two.first)
    assert there.rank_correlation == pytest.approx(back.rank_correlation)
    assert there.flagged_overlap == back.flagged_overlap
    assert there.score_psi == pytest.approx(back.score_psi)
    assert (there.flagged_first, there.flagged_second) == (
        *(back.flagged_second, back.flagged_first),
    )


def test_models_are_named_by_latest_and_by_path_too(two: Two) -> None:
    named = two.compared()
    found = two.compared(str(two.model(two.first)), "latest")
    assert found.second == two.second
    assert found.rank_correlation == named.rank_correlation
    assert found.flagged_both == named.flagged_both


def test_another_share_to_flag_is_another_overlap(two: Two) -> None:
    found = compare_models(two.job.output, two.first, two.second, two.rows, SETTINGS)
    assert found.flagged_first < two.compared().flagged_first
    assert found.rank_correlation == two.compared().rank_correlation


def test_rows_without_a_score_are_left_out(two: Two, tmp_path: Path) -> None:
    table = night_table(3)
    holes = np.where(np.arange(ROWS) % 3 == 0, np.nan, table["pressure"].to_numpy())
    job = Job(tmp_path / "lake", two.job.output)
    rows = job.write(3, changed(table, "pressure", holes)).parent
    config = with_nightly() | {"non_finite": "score-nan"}
    found = compare_models(job.output, two.first, two.second, rows, config)
    known = table.filter(pa.array(~np.isnan(holes))).drop_columns(["reading", "read_at"])
    a, b = (mrot_scale.score_rows(two.model(n), known) for n in (two.first, two.second))
    assert found.n_rows == ROWS
    spearman = np.corrcoef(rankdata(a), rankdata(b))[0, 1]
    assert found.rank_correlation == pytest.approx(spearman, abs=1e-12)
    assert found.largest_difference == pytest.approx(np.abs(a - b).max())


def test_no_rows_are_told(two: Two, tmp_path: Path) -> None:
    job = Job(tmp_path / "lake", two.job.output)
    rows = job.write(3, night_table(3).slice(0, 0)).parent
    with pytest.raises(DataError, match="0 rows"):
        compare_models(job.output, two.first, two.second, rows, SETTINGS)


@pytest.mark.parametrize("name", ["none", "2026-11-09-0123456789", "no/where"])
def test_a_model_that_is_not_there_is_told(name: str, two: Two) -> None:
    with pytest.raises(MissingInputError, match="No model"):
        two.compared(second=name)


def test_nothing_is_written(two: Two) -> None:
    before = sorted(str(p) for p in two.job.output.rglob("*"))
    two.compared()
    assert sorted(str(p) for p in two.job.output.rglob("*")) == before
    assert not (two.job.output / "runs" / "partitions" / f"date={day(3)}.json").exists()
