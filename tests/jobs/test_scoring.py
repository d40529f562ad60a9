"""What scoring gives: arrays, Parquet for plain readers, a few rows at a time, any table."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from mrot_scale import fit, ingest, open_scores, score, score_rows
from mrot_scale.encoding import Decoder
from mrot_scale.errors import LeftOutWarning, MrotError
from mrot_scale.explaining import column_contributions
from mrot_scale.model.persist import load_model, model_schema
from mrot_scale.storing.location import Location
from mrot_scale.storing.store import FeatureStore
from tests.jobs.made import (
    FEATURES,
    ROW_BYTES,
    SITES,
    TINY,
    folder_bytes,
    mixed_table,
    stage_arrays,
    write_hive,
    write_parts,
    zarr_values,
)

CONFIG = TINY | {
    "label_rows": 500,
    "store": {"chunk_bytes": 170 * ROW_BYTES},
    "scoring": {"percentile": True, "top_columns": 2, "contamination": 0.05},
}
COLUMNS = ["reading", "site", *FEATURES, "note"]


@dataclass(frozen=True)
class Made:
    """A partitioned table with all that jobs make of it."""

    folder: Path
    table: pa.Table
    """Rows in the order of the store."""

    @property
    def model(self) -> Path:
        return self.folder / "model"

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def parquet(self) -> Path:
        return self.folder / "table"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("made")
    table = mixed_table(900).select(COLUMNS).sort_by([("site", "ascending")])
    source = write_hive(table, folder / "source", "site")
    columns: dict[str, Any] = {"id": "reading", "keep": ["note"], "exclude": ["note"]}
    ingest(source, folder / "store", config=CONFIG, **columns)
    fit(folder / "store", folder / "model", CONFIG)
    found = score(
        folder / "model",
        folder / "store",
        folder / "out",
        CONFIG,
        parquet=folder / "table",
        keep=["note", "kind", "on"],
    )
    assert found.n_rows == 900
    store = FeatureStore.open(Location(folder / "store"))
    ids = pa.concat_tables([store.read_ids(c) for c in store.chunks])["reading"].to_pylist()
    place = {name: i for i, name in enumerate(table["reading"].to_pylist())}
    return Made(folder, table.take([place[name] for name in ids]))


def by_reading(rows: list[dict[str, Any]]) -> dict[str, tuple[Any, ...]]:
    wanted = ("site", "note", "kind", "on", "score", "flag", "percentile", "top_1", "top_2")
    return {row["reading"]: tuple(row[name] for name in wanted) for row in rows}


def test_parquet_scores_read_alike_by_every_plain_reader(made: Made) -> None:
    pattern = f"{made.parquet}/**/*.parquet"
    read = {
        "pyarrow": ds.dataset(made.parquet, partitioning="hive").to_table().to_pylist(),
        "open_scores": open_scores(made.parquet).to_table().to_pylist(),
        "polars": pl.read_parquet(pattern, hive_partitioning=True).to_dicts(),
        "duckdb": duckdb.sql(f"select * from read_parquet('{pattern}', hive_partitioning=true)")
        .to_arrow_table()
        .to_pylist(),
    }
    frame = pd.read_parquet(made.parquet)
    frame["site"] = frame["site"].astype(str)
    read["pandas"] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    expected = by_reading(read.pop("pyarrow"))
    assert len(expected) == 900
    for reader, rows in read.items():
        assert by_reading(rows) == expected, reader


def test_parquet_scores_lie_in_the_partition_folders_of_the_source(made: Made) -> None:
    def folders(root: Path) -> set[str]:
        return {path.name for path in root.iterdir() if path.is_dir()}

    found = ds.dataset(made.parquet, partitioning="hive").to_table()
    assert set(found["site"].to_pylist()) == set(SITES)
    assert folders(made.parquet.resolve()) == {f"site={name}" for name in SITES}
    for site in SITES:
        inside = ds.dataset(made.parquet / f"site={site}").to_table()["reading"].to_pylist()
        rows = zip(made.table["reading"].to_pylist(), made.table["site"].to_pylist(), strict=True)
        assert sorted(inside) == sorted(name for name, where in rows if where == site)


def test_parquet_and_zarr_hold_the_same_scores_beside_the_right_rows(made: Made) -> None:
    table = ds.dataset(made.parquet, partitioning="hive").to_table()
    place = {name: i for i, name in enumerate(made.table["reading"].to_pylist())}
    order = np.array([place[name] for name in table["reading"].to_pylist()])
    for name in ("score", "flag", "percentile"):
        np.testing.assert_array_equal(table[name].to_numpy(), zarr_values(made.out, name)[order])
    for name in ("note", "kind", "on", "site"):
        assert table[name].to_pylist() == made.table[name].take(order).to_pylist(), name


def test_flags_percentiles_and_top_columns_follow_from_the_scores(made: Made) -> None:
    scores, flags = zarr_values(made.out), zarr_values(made.out, "flag")
    percentiles, tops = zarr_values(made.out, "percentile"), zarr_values(made.out, "top_columns")
    assert ((scores >= 0) & (scores <= 1)).all()
    assert 0 < flags.sum() < 0.12 * len(scores)
    assert scores[flags].min() > scores[~flags].max()
    order = np.argsort(scores, kind="stable")
    assert (np.diff(percentiles[order]) >= 0).all()
    assert percentiles.min() >= 0
    assert percentiles.max() <= 100
    assert (tops[~flags] == -1).all()
    assert (tops[flags, 0] >= 0).all()
    assert tops.max() < 9


def test_contributions_stand_beside_the_columns_of_flagged_rows(made: Made) -> None:
    flags, tops = zarr_values(made.out, "flag"), zarr_values(made.out, "top_columns")
    parts = zarr_values(made.out, "top_contributions")
    assert (np.isnan(parts) == (tops < 0)).all()
    assert np.isnan(parts[~flags]).all()
    assert (np.diff(parts[flags], axis=1) <= 0).all()
    model, _ = load_model(Location(made.model))
    store = FeatureStore.open(Location(made.store))
    stored = np.concatenate([store.read_chunk(chunk) for chunk in store.chunks])
    rows = Decoder(model_schema(model), store.schema).rows(stored[flags])
    expected = column_contributions(model, rows)
    found = np.take_along_axis(expected, np.maximum(tops[flags], 0), axis=1)
    np.testing.assert_array_equal(parts[flags], found.astype(np.float32))
    assert (expected.max(axis=1) == found[:, 0]).all()
    table = ds.dataset(made.parquet, partitioning="hive").to_table()
    place = {name: i for i, name in enumerate(made.table["reading"].to_pylist())}
    order = np.array([place[name] for name in table["reading"].to_pylist()])
    for number in (0, 1):
        column = table[f"top_{number + 1}_contribution"]
        assert column.null_count == (tops[:, number] < 0).sum()
        np.testing.assert_array_equal(column.to_numpy(), parts[order, number])
        names = [store.schema.features[t] if t >= 0 else None for t in tops[order, number]]
        assert table[f"top_{number + 1}"].to_pylist() == names


def test_scores_by_effort_differ_and_agree_in_what_they_mean(made: Made, tmp_path: Path) -> None:
    found = score(made.model, made.store, tmp_path / "out", TINY, method="effort")
    by_effort, by_model = zarr_values(tmp_path / "out"), zarr_values(made.out)
    assert 0.004 < (by_effort > 0.99).mean() < 0.03
    assert np.corrcoef(by_effort.argsort().argsort(), by_model.argsort().argsort())[0, 1] > 0.5
    assert found.n_flagged == zarr_values(tmp_path / "out", "flag").sum()


@pytest.mark.parametrize("method", ["model", "effort"])
def test_a_few_rows_score_as_in_a_job(made: Made, tmp_path: Path, method: Any) -> None:
    score(made.model, made.store, tmp_path / "out", TINY, method=method)
    expected = zarr_values(tmp_path / "out")[:120]
    some = made.table.slice(0, 120)
    forms = {
        "pyarrow": some,
        "pandas": some.to_pandas(),
        "polars": pl.from_arrow(some),
        "dicts": some.to_pylist(),
    }
    for form, rows in forms.items():
        found = score_rows(made.model, rows, method=method)
        assert found.tobytes() == expected.tobytes(), form


def test_one_row_scores_alone_as_among_others_with_any_value_missing(made: Made) -> None:
    row = made.table.slice(3, 1).to_pylist()[0]
    assert score_rows(made.model, [row]) == score_rows(made.model, made.table.slice(0, 9))[3]
    for name in FEATURES:
        gap = row | {name: None}
        among = score_rows(made.model, [row, gap])[1]
        assert score_rows(made.model, [gap]) == among, name


@pytest.mark.parametrize("follow", ["the model", "the store"])
def test_a_table_whose_words_and_columns_come_in_another_order_scores_the_same(
    made: Made, tmp_path: Path, follow: str
) -> None:
    order = np.random.default_rng(5).permutation(made.table.num_rows)
    table = made.table.take(order).select([*reversed(FEATURES), "reading"])
    place = table.column_names.index("kind")
    table = table.set_column(place, "kind", table["kind"].dictionary_encode())
    like = made.model if follow == "the model" else made.store
    ingest(table, tmp_path / "store", id="reading", like=like, config=CONFIG)
    score(made.model, tmp_path / "store", tmp_path / "out", TINY)
    assert zarr_values(tmp_path / "out").tobytes() == zarr_values(made.out)[order].tobytes()


def test_a_table_with_a_vocabulary_of_its_own_scores_by_word(made: Made, tmp_path: Path) -> None:
    table = made.table.slice(0, 60).select(FEATURES)
    place = FEATURES.index("kind")
    words = ["zebra", *table["kind"].to_pylist()[1:]]
    table = table.set_column(place, "kind", pa.array(words))
    ingest(table, tmp_path / "store", config=CONFIG)  # not like the model: codes of its own
    store = FeatureStore.open(Location(tmp_path / "store"))
    assert store.schema.columns[place].vocabulary[0] == "zebra"
    score(made.model, tmp_path / "store", tmp_path / "out", TINY, method="effort")
    expected = score_rows(made.model, table, method="effort")
    found = zarr_values(tmp_path / "out")
    # Origins of its own round numbers otherwise, in the last bits; they may decide for a row that
    # is an anchor itself, whose ways out prices make equally cheap.
    assert np.mean(~np.isclose(found, expected, atol=1e-4)) < 0.05
    known = score_rows(made.model, made.table.slice(0, 60), method="effort")
    np.testing.assert_array_equal(expected[1:], known[1:])
    assert expected[0] >= known[0]


def test_tables_go_straight_into_fit_and_score_and_leave_nothing_else(
    made: Made, tmp_path: Path
) -> None:
    table = made.table.select(["reading", *FEATURES])
    source = write_parts(table, tmp_path / "source")
    fit(source, tmp_path / "model", CONFIG, id="reading")
    same = folder_bytes(made.model)
    for name, content in folder_bytes(tmp_path / "model").items():
        if name != "MANIFEST.json":
            assert content == same[name], name
    found = score(
        tmp_path / "model", table, tmp_path / "out", CONFIG, id="reading", parquet=tmp_path / "t"
    )
    assert zarr_values(tmp_path / "out").tobytes() == zarr_values(made.out).tobytes()
    assert pq.read_table(tmp_path / "t")["reading"].to_pylist() == table["reading"].to_pylist()
    assert found.n_rows == 900
    names = {path.name for path in tmp_path.iterdir()}
    reports = {"model.report.html", "out.report.html"}
    assert names == {"source", "model", "model.run", "out", "out.run", "t", "_gen"} | reports


def test_columns_the_model_does_not_know_are_named_and_left_out(made: Made, tmp_path: Path) -> None:
    table = made.table.slice(0, 20).select([*FEATURES, "note"])
    with pytest.warns(LeftOutWarning, match="'note' is left out"):
        score(made.model, table, tmp_path / "out", CONFIG)
    expected = score_rows(made.model, table)
    assert zarr_values(tmp_path / "out").tobytes() == expected.tobytes()


def test_zeros_and_ones_do_for_a_column_of_truths(made: Made, tmp_path: Path) -> None:
    table = made.table.slice(0, 50).select(FEATURES)
    numbers = table.set_column(4, "on", table["on"].cast(pa.int64()))
    expected = score_rows(made.model, table)
    assert score_rows(made.model, numbers).tobytes() == expected.tobytes()
    score(made.model, numbers, tmp_path / "out", CONFIG)
    assert zarr_values(tmp_path / "out").tobytes() == expected.tobytes()


def test_a_column_missing_throughout_is_filled(made: Made, tmp_path: Path) -> None:
    table = made.table.slice(0, 30).select(FEATURES)
    for number, name in enumerate(FEATURES):
        gone = table.set_column(number, name, pa.nulls(30))
        typed = table.set_column(number, name, pa.nulls(30, table.schema.field(name).type))
        expected = score_rows(made.model, typed)
        assert np.isfinite(expected).all()
        score(made.model, gone, tmp_path / name, CONFIG)
        assert zarr_values(tmp_path / name).tobytes() == expected.tobytes(), name


def test_rows_without_a_score_are_missing_in_every_form(made: Made, tmp_path: Path) -> None:
    config = TINY | {"non_finite": "score-nan"}
    found = score(made.model, made.store, tmp_path / "out", config, parquet=tmp_path / "t")
    gone = np.isnan(made.table["x"].to_numpy())
    assert found.n_missing == gone.sum() > 0
    scores = zarr_values(tmp_path / "out")
    np.testing.assert_array_equal(np.isnan(scores), gone)
    assert not zarr_values(tmp_path / "out", "flag")[gone].any()
    assert ds.dataset(tmp_path / "t").to_table()["score"].null_count == gone.sum()
    filled = zarr_values(made.out)
    np.testing.assert_array_equal(scores[~gone], filled[~gone])


@pytest.mark.parametrize("name", ["score", "flag", "percentile", "top_1"])
def test_a_kept_column_is_never_lost_under_one_of_ours(
    made: Made, tmp_path: Path, name: str
) -> None:
    table = made.table.slice(0, 40).select(FEATURES).append_column(name, pa.array(range(60, 100)))
    asked: dict[str, Any] = {"parquet": tmp_path / "t", "keep": [name]}
    try:
        score(made.model, table, tmp_path / "out", CONFIG, **asked)
    except MrotError:
        return  # a refusal is fine
    found = pq.read_table(tmp_path / "t").to_pydict()
    assert list(range(60, 100)) in found.values()


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param("note == 'note 3'", id="a column carried along"),
        pytest.param("site == 'north'", id="a partition key"),
        pytest.param("y > 1.5", id="a feature"),
        pytest.param("kind == 'a'", id="a category"),
        pytest.param("y > 1.5 or note == 'note 3'", id="both"),
    ],
)
def test_excluded_rows_are_not_learnt_from(made: Made, tmp_path: Path, condition: str) -> None:
    config = TINY | {"run": {"keep_stages": True}}
    tests = {
        "note == 'note 3'": lambda row: row["note"] == "note 3",
        "site == 'north'": lambda row: row["site"] == "north",
        "y > 1.5": lambda row: row["y"] > 1.5,
        "kind == 'a'": lambda row: row["kind"] == "a",
        "y > 1.5 or note == 'note 3'": lambda row: row["y"] > 1.5 or row["note"] == "note 3",
    }
    is_out = np.array([tests[condition](row) for row in made.table.to_pylist()])
    fitted = fit(
        made.store, tmp_path / "model", config | {"label_rows": 900}, exclude_where=condition
    )
    assert fitted.labelled_rows == (~is_out).sum()
    learnt = stage_arrays(tmp_path / "model.run", "gather")["gather/00000.rows"]
    np.testing.assert_allclose(learnt[:, 1], made.table["y"].to_numpy()[~is_out], rtol=1e-6)


def test_a_table_straight_into_fit_is_excluded_by_a_column_that_is_no_feature(
    made: Made, tmp_path: Path
) -> None:
    label = np.arange(900) % 10 == 0
    table = made.table.select(FEATURES).append_column("label", pa.array(label.astype(int)))
    with pytest.warns(LeftOutWarning, match="'label' stands in the condition"):
        fitted = fit(
            table, tmp_path / "model", TINY | {"label_rows": 900}, exclude_where="label == 1"
        )
    assert fitted.labelled_rows == 810
    assert score_rows(tmp_path / "model", made.table.slice(0, 5)).shape == (5,)
