"""A model for each value of a column: the one that fitting by hand gives, and one for the rest."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import mrot_scale
from mrot_scale.errors import MrotError
from mrot_scale.model.columns import load_schema
from mrot_scale.scheduled.registry import listed_models
from mrot_scale.storing.location import Location
from tests.scheduled.lake import (
    ROWS,
    SETTINGS,
    Job,
    changed,
    day,
    manifest,
    metrics,
    night_table,
    published_digests,
)

GROUPED: dict[str, Any] = {"by": "pump", "group_rows": 300}
LABELLED: dict[str, Any] = {
    **{"exclude_where": "label == 1", "exclude": ["label"], "keep": ["label"]}
}
NAMES: tuple[str | None, ...] = ("a", "o'b", "small", None)
SHARES = (0.45, 0.35, 0.08, 0.12)
"""Two groups that are large enough, one that is not, and rows of none."""


def pumps(number: int) -> pa.Table:
    """A night's readings of several pumps, each warmer than the one before."""
    rng = np.random.default_rng(number)
    codes = rng.choice(len(NAMES), ROWS, p=SHARES)
    table = night_table(number)
    table = changed(table, "temperature", table["temperature"].to_numpy() + 8.0 * codes)
    return changed(table, "pump", [NAMES[code] for code in codes])


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Two nights by groups; no test changes them."""
    job = Job.of(tmp_path_factory.mktemp("groups"))
    for number in (1, 2):
        job.write(number, pumps(number))
        job.night(number, **GROUPED)
    return job


def members(table: pa.Table, *names: str | None) -> NDArray[np.bool_]:
    return np.array([name in names for name in table["pump"].to_pylist()])


def fitted_by_hand(folder: Path, table: Path, condition: str | None) -> Path:
    """A model as nightly's own, made with nothing but `ingest` and `fit`."""
    columns: dict[str, Any] = {"id": "reading", "exclude": ["pump", "read_at"], "keep": ["pump"]}
    mrot_scale.ingest(table, folder / "store", config=SETTINGS, **columns)
    mrot_scale.fit(folder / "store", folder / "model", SETTINGS, exclude_where=condition)
    return folder / "model"


def scores_of(model: Path, table: pa.Table, folder: Path) -> tuple[Any, Any]:
    """Scores and flags that a model gives all rows of a table."""
    rows = table.drop_columns(["pump", "read_at"])
    mrot_scale.score(model, rows, folder / "s", SETTINGS, parquet=folder / "p", id="reading")
    found = mrot_scale.open_scores(folder / "p").to_table()
    assert found["reading"].equals(table["reading"])
    np.testing.assert_array_equal(
        found["score"].to_numpy(), mrot_scale.score_rows(model, rows.drop_columns(["reading"]))
    )
    return found["score"].to_numpy(), found["flag"].to_numpy()


@pytest.mark.parametrize(
    ("names", "condition"),
    [
        (("a",), "pump != 'a' or pump is None"),
        (("o'b",), 'pump != "o\'b" or pump is None'),
        (("small", None), None),
    ],
    ids=["a large group", "another", "a small group and rows of none, by the model of all rows"],
)
def test_rows_are_scored_as_by_a_model_fitted_by_hand(
    names: tuple[str | None, ...], condition: str | None, done: Job, tmp_path: Path
) -> None:
    model = fitted_by_hand(tmp_path, done.lake / f"date={day(1)}", condition)
    table, published = pumps(2), done.scores(2)
    score, flag = scores_of(model, table, tmp_path)
    mine = members(table, *names)
    assert mine.sum() > 50
    assert published["reading"].equals(table["reading"])
    np.testing.assert_array_equal(published["score"].to_numpy()[mine], score[mine])
    np.testing.assert_array_equal(published["flag"].to_numpy()[mine], flag[mine])
    assert (published["score"].to_numpy()[~mine] != score[~mine]).mean() > 0.9


def test_the_column_that_chooses_is_carried_along_but_not_learnt_from(done: Job) -> None:
    [entry] = listed_models(done.output)
    folder = done.output / "models" / entry["id"]
    groups = sorted((folder / "groups").glob("[0-9]*[0-9]"))
    for place in (folder / "model", *groups):
        names = [column.name for column in load_schema(Location(place)).columns]
        assert names == ["temperature", "pressure", "vibration", "site"], place
    assert len(groups) == 2
    assert done.scores(2)["pump"].equals(pumps(2)["pump"])


def test_large_groups_are_on_record_with_their_rows_the_largest_first(done: Job) -> None:
    [entry] = listed_models(done.output)
    table = pumps(1)
    assert [(g["value"], g["rows"]) for g in entry["groups"]] == [
        ("a", members(table, "a").sum()),
        ("o'b", members(table, "o'b").sum()),
    ]
    assert entry["by"] == "pump"


def test_rows_and_flags_of_each_group_are_in_the_record_and_the_metrics(done: Job) -> None:
    published, run = done.scores(2), done.last_run(2)
    flags, expected = published["flag"].to_numpy(), {}
    shares: dict[str, tuple[str | None, ...]] = {"a": ("a",), "o'b": ("o'b",)}
    for name, values in {**shares, "(shared)": ("small", None)}.items():
        mine = members(published, *values)
        expected[name] = [int(mine.sum()), int(flags[mine].sum())]
    assert run["groups"] == expected
    assert sum(n for n, _ in expected.values()) == ROWS
    ratios = {name: flagged / n for name, (n, flagged) in expected.items()}
    assert metrics(done.output)["group_flagged_ratio"] == ratios
    text = (done.output / "runs" / "metrics.prom").read_text()
    for name, ratio in ratios.items():
        labels = f'group="{name}",output="{done.output}"'
        assert f"mrot_group_flagged_ratio{{{labels}}} {ratio}" in text


@pytest.mark.slow
def test_the_partition_before_is_seen_through_the_groups_models(done: Job, tmp_path: Path) -> None:
    """Its scores are counted when it runs, or looked at now where it never did."""
    job = Job.of(tmp_path)
    for number in (1, 2):
        job.write(number, pumps(number))
    job.night(2, refit_from=day(1), **GROUPED)
    assert job.last_run(2)["drift_previous"] == done.last_run(2)["drift_previous"]
    assert "score" in [drift["name"] for drift in job.last_run(2)["drift_previous"]]
    assert (
        published_digests(job.output)[f"date={day(2)}"]
        == (published_digests(done.output)[f"date={day(2)}"])
    )


def test_there_are_no_more_models_than_allowed_and_the_largest_groups_have_them(
    tmp_path: Path,
) -> None:
    job = Job.of(tmp_path)
    job.write(1, pumps(1))
    job.night(1, **GROUPED, most_groups=1)
    [entry] = listed_models(job.output)
    assert [group["value"] for group in entry["groups"]] == ["a"]
    assert set(job.last_run(1)["groups"]) == {"a", "(shared)"}


def test_a_value_that_was_never_seen_is_scored_by_the_model_of_all_rows(done: Job) -> None:
    job = Job(done.lake.with_name("other"), done.output)
    table = changed(pumps(3), "pump", ["new"] * ROWS)
    job.write(3, table)
    job.write(1, pumps(1))
    night = job.night(3, **GROUPED)
    expected = mrot_scale.score_rows(
        done.output / "models" / str(night.model) / "model",
        table.drop_columns(["pump", "read_at", "reading"]),
    )
    np.testing.assert_array_equal(job.scores(3)["score"].to_numpy(), expected)
    assert job.last_run(3)["groups"]["(shared)"][0] == ROWS


@pytest.mark.parametrize(
    "values",
    [
        [3, 5],
        pytest.param([True, False], marks=pytest.mark.slow),
        pytest.param([1.5, 2.0], marks=pytest.mark.slow),
        ["", "b\\n\n"],
        pytest.param(["a`b", "ü"], marks=pytest.mark.slow),
    ],
    ids=["integers", "booleans", "floats", "odd text", "more of it"],
)
def test_values_of_any_kind_choose(values: list[Any], tmp_path: Path) -> None:
    job = Job.of(tmp_path)
    column = [values[i % 3 == 0] for i in range(ROWS)]
    job.write(1, changed(night_table(1), "pump", column))
    job.night(1, **GROUPED)
    [entry] = listed_models(job.output)
    assert [(g["value"], g["rows"]) for g in entry["groups"]] == [
        (values[0], 2 * ROWS // 3),
        (values[1], ROWS // 3),
    ]
    found = job.last_run(1)["groups"]
    assert sum(rows for rows, _ in found.values()) == ROWS


def test_a_column_of_days_is_used_or_refused_in_words(tmp_path: Path) -> None:
    job, days = Job.of(tmp_path), [datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)]
    job.write(1, changed(night_table(1), "pump", days * (ROWS // 2)))
    try:
        job.night(1, **GROUPED)
    except MrotError as error:
        assert "pump" in str(error)  # noqa: PT017 - either is fine, a TypeError is not


def test_a_group_of_which_all_rows_are_left_out_shares_the_model(tmp_path: Path) -> None:
    job = Job.of(tmp_path)
    table = changed(pumps(1), "label", members(pumps(1), "a").astype(int))
    job.write(1, table)
    night = job.night(1, **GROUPED, **LABELLED)
    assert night.n_rows == ROWS
    assert set(job.last_run(1)["groups"]) == {"o'b", "(shared)"}


@pytest.mark.slow
def test_rows_left_out_of_training_are_left_out_of_the_groups_too(tmp_path: Path) -> None:
    job = Job.of(tmp_path)
    label = (np.arange(ROWS) % 5 == 0).astype(int)
    job.write(1, changed(pumps(1), "label", label))
    model = job.night(1, **GROUPED, **LABELLED).model
    store = tmp_path / "store"
    mrot_scale.ingest(
        job.lake / f"date={day(1)}",
        store,
        id="reading",
        exclude=["pump", "read_at", "label"],
        keep=["pump", "label"],
        config=SETTINGS,
    )
    condition = "label == 1 or pump != 'a' or pump is None"
    mrot_scale.fit(store, tmp_path / "a", SETTINGS, exclude_where=condition)
    rows = night_table(2).drop_columns(["reading", "read_at"])
    own = job.output / "models" / str(model) / "groups" / "0000"
    np.testing.assert_array_equal(
        mrot_scale.score_rows(own, rows), mrot_scale.score_rows(tmp_path / "a", rows)
    )


def test_a_night_without_the_column_is_told_by_its_name(done: Job) -> None:
    job = Job(done.lake.with_name("without"), done.output)
    job.write(4, night_table(4))
    with pytest.raises(MrotError, match="'pump'"):
        job.night(4, **GROUPED)
    assert manifest(job.output / "runs" / job.state(4)["run_id"] / "run.json")["exit_code"]


def test_groups_asked_for_later_are_fitted_or_refused_in_words(tmp_path: Path) -> None:
    """There is a model already, which has none; scores without groups are not what was asked."""
    job = Job.of(tmp_path)
    job.write(1, pumps(1))
    job.night(1, exclude=["pump"])
    try:
        job.night(1, **GROUPED, exclude=["pump"])
    except MrotError as error:
        assert "by" in str(error)  # noqa: PT017 - either is fine, silence is not
    else:
        assert set(job.last_run(1)["groups"]) == {"a", "o'b", "(shared)"}
