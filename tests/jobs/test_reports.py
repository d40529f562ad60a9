"""Reports of fit and score: beside the output, true to it, and never in its way."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mrot_scale import fit, ingest, score
from mrot_scale.errors import UnwrittenReportWarning
from mrot_scale.jobs import score_report
from mrot_scale.jobs.score_outputs import Scored
from mrot_scale.storing.location import Location
from tests.jobs.made import INLINE, TINY, folder_bytes, mixed_table, zarr_values
from tests.places import KINDS, fresh_place

SETTINGS: dict[str, Any] = TINY | {"scoring": {"contamination": 0.05}}
SECRET = "4111-1111"


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of odd columns and a model of it, scored in several chunks."""
    folder = tmp_path_factory.mktemp("job")
    small = SETTINGS | {"store": {"chunk_bytes": 8_000}}
    ingest(_table(), folder / "store", id="reading", exclude=["note"], config=small)
    fit(folder / "store", folder / "model", SETTINGS)
    score(folder / "model", folder / "store", folder / "out", SETTINGS)
    return folder


def _table(n_rows: int = 1_500) -> pa.Table:
    found = mixed_table(n_rows)
    rng = np.random.default_rng(5)
    secret = rng.normal(size=n_rows) + 123_456.0
    secret[::100] = 987_654.25
    card = [f"{SECRET}-{i % 3}" for i in range(n_rows)]
    return found.append_column("secret", pa.array(secret)).append_column("card", pa.array(card))


def data_of(folder: Path, name: str = "out") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{name}.run" / "report.json").read_text())
    return found


def test_a_score_leaves_a_page_and_its_data(job: Path) -> None:
    done = score(job / "model", job / "store", job / "out", SETTINGS)
    assert done.report == str(job / "out.report.html")
    page, found = (job / "out.report.html").read_text(), data_of(job)
    assert (found["format"], found["kind"], found["version"]) == ("mrot-scale-report", "score", 1)
    assert found["rows"] == {"rows": 1_500, "flagged": done.n_flagged, "missing": 0}
    assert sum(found["scores"]["counts"]) == 1_500
    assert found["threshold"] == done.threshold
    assert found["stages"].keys() == {"score"}
    assert f"{done.n_flagged:,}" in page
    assert {line["name"] for line in found["drift"]} >= {"x", "y", "kind", "score"}


def test_flagged_rows_are_the_highest_with_their_identifiers(job: Path) -> None:
    found, scores = data_of(job), zarr_values(job / "out")
    flagged = found["flagged"]
    assert len(flagged) == found["rows"]["flagged"] > 10
    rows = [row["row"] for row in flagged]
    assert set(rows) == set(np.flatnonzero(scores > found["threshold"]).tolist())
    assert [row["score"] for row in flagged] == pytest.approx(sorted(scores[rows])[::-1], rel=1e-5)
    assert [row["id"] for row in flagged] == [f"r{row:05d}" for row in rows]
    table = _table()
    for row in flagged:
        for column in row["columns"]:
            name, value = column["name"], column["value"]
            if name in ("x", "y", "secret") and value is not None:
                assert value == pytest.approx(table[name][row["row"]].as_py(), rel=1e-4)
            if name in ("kind", "card"):
                assert value == table[name][row["row"]].as_py()
            assert len(found["columns"][name]["training"]) > 0


def test_the_map_shows_flagged_rows_and_a_sample(job: Path) -> None:
    found = data_of(job)
    drawn = found["map"]
    assert set(drawn["row"]) >= {row["row"] for row in found["flagged"]}
    assert len(drawn["x"]) == len(drawn["y"]) == len(drawn["score"]) == len(set(drawn["row"]))
    assert 0 < drawn["explained"][1] <= drawn["explained"][0] <= 1


def test_a_fit_shows_the_rows_it_learnt_from(job: Path) -> None:
    found = data_of(job, "model")
    assert found["kind"] == "fit"
    assert (job / "model.report.html").exists()
    assert found["stages"].keys() >= {"sample", "efforts", "train"}
    assert [e["cdf"][-1] > 0.99 for e in found["efforts"]] == [True]
    assert found["flagged"]
    table = _table()
    for row in found["flagged"]:
        assert row["id"] == f"r{row['row']:05d}"
        for column in row["columns"]:
            if column["name"] == "card":
                assert column["value"] == table["card"][row["row"]].as_py()


def test_excluded_rows_are_not_among_those_shown(job: Path, tmp_path: Path) -> None:
    fit(job / "store", tmp_path / "model", SETTINGS, exclude_where="x > 0")
    found, table = data_of(tmp_path, "model"), _table()
    assert found["map"]["row"]
    for row in found["map"]["row"]:
        assert not (table["x"][row].as_py() or 0) > 0


@pytest.mark.parametrize("policy", ["impute", "score-nan"])
def test_reports_of_rows_that_miss_values(job: Path, tmp_path: Path, policy: str) -> None:
    settings = SETTINGS | {"non_finite": policy}
    fit(job / "store", tmp_path / "model", settings)
    score(tmp_path / "model", job / "store", tmp_path / "out", settings)
    missing = data_of(tmp_path)["rows"]["missing"]
    assert (missing > 0) == (policy == "score-nan")
    drawn = data_of(tmp_path, "model")["map"]
    assert policy == "impute" or all(score is not None for score in drawn["score"])


def test_redacted_values_are_nowhere(job: Path, tmp_path: Path) -> None:
    report = {"redact": ["secret", "card", "reading", "nothing"]}
    settings = SETTINGS | {"report": report, "gates": {"columns": {"secret": {"max": 200_000}}}}
    fit(job / "store", tmp_path / "model", settings)
    score(tmp_path / "model", job / "store", tmp_path / "out", settings)
    for name in ("model", "out"):
        found = data_of(tmp_path, name)
        page = (tmp_path / f"{name}.report.html").read_text()
        for text in (page, json.dumps(found)):
            assert SECRET not in text
            assert not re.search(r"123[,]?4\d\d|987[,]?6|r0\d{4}", text)
        assert not {"secret", "card"} & found["columns"].keys()
        assert "report.redact names 'nothing'" in json.dumps(found["notices"])
        named = [c for row in found["flagged"] for c in row["columns"] if c["name"] == "secret"]
        assert all(c["value"] is None and c["redacted"] for c in named)
        assert [row["id"] for row in found["flagged"]] == [str(r["row"]) for r in found["flagged"]]
    assert any(n["name"] == "columns.secret" for n in data_of(tmp_path)["notices"])


def test_a_map_knows_nothing_of_redacted_columns(job: Path, tmp_path: Path) -> None:
    """Rows that differ in a redacted column alone lie on the same place."""
    table = _table(40).slice(0, 1)
    rows = pa.concat_tables([table.set_column(9, "card", [[f"{n}"]]) for n in range(8)])
    rows = rows.set_column(8, "secret", [[float(n) for n in range(8)]])
    rows = rows.set_column(0, "reading", [[f"r{n}" for n in range(8)]])
    settings = SETTINGS | {"report": {"redact": ["secret", "card"]}}
    assert rows.column_names == _table(2).column_names
    score(job / "model", rows.drop_columns(["note"]), tmp_path / "out", settings, id="reading")
    drawn = data_of(tmp_path)["map"]
    assert len(set(drawn["x"])) == len(set(drawn["y"])) == 1


def test_scores_and_models_are_the_same_without_a_report(job: Path, tmp_path: Path) -> None:
    settings = SETTINGS | {"report": {"enabled": False}}
    fitted = fit(job / "store", tmp_path / "model", settings)
    done = score(job / "model", job / "store", tmp_path / "out", settings)
    assert fitted.report is None
    assert done.report is None
    assert not list(tmp_path.glob("*.html"))
    assert folder_bytes(tmp_path / "model") == folder_bytes(job / "model")
    assert folder_bytes((tmp_path / "out").resolve()) == folder_bytes((job / "out").resolve())


def test_a_report_that_fails_stops_nothing(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("no\nway")

    monkeypatch.setattr(score_report, "contents_of", broken)
    with pytest.warns(UnwrittenReportWarning, match=r"^There is no report: no way$"):
        done = score(job / "model", job / "store", tmp_path / "out", SETTINGS)
    assert done.report is None
    assert zarr_values(tmp_path / "out").tobytes() == zarr_values(job / "out").tobytes()


def test_a_page_that_is_lost_comes_back_and_one_that_is_there_stays(
    job: Path, tmp_path: Path
) -> None:
    def again() -> Scored:
        return score(job / "model", job / "store", tmp_path / "out", SETTINGS)

    first, page = again(), tmp_path / "out.report.html"
    content = page.read_bytes()
    page.unlink()
    assert again().report == first.report
    assert page.read_bytes() == content
    page.write_bytes(b"mine")
    (tmp_path / f".{page.name}.0123.tmp").write_bytes(b"left by a run that was killed")
    assert again().was_done
    assert page.read_bytes() == b"mine"
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]


def test_a_run_killed_before_its_report_gets_one(job: Path, tmp_path: Path) -> None:
    settings = SETTINGS | {"run": {"keep_stages": True}}
    fit(job / "store", tmp_path / "model", settings)
    score(job / "model", job / "store", tmp_path / "out", settings)
    for name in ("model", "out"):
        (tmp_path / f"{name}.report.html").unlink()
        (tmp_path / f"{name}.run" / "report.json").unlink()
    fit(job / "store", tmp_path / "model", settings)
    score(job / "model", job / "store", tmp_path / "out", settings)
    for name in ("model", "out"):
        assert (tmp_path / f"{name}.report.html").exists()
        assert data_of(tmp_path, name)["flagged"] == data_of(job, name)["flagged"]


def test_a_run_gone_on_with_after_switching_reports_on_has_what_there_is(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks scored while reports were off left nothing for one."""
    from mrot_scale.running import commit

    commits = commit.RunFolder.commit
    n_left = [2]

    def stopping(run: commit.RunFolder, record: commit.Record) -> None:
        if n_left[0] == 0:
            raise KeyboardInterrupt
        n_left[0] -= 1
        commits(run, record)

    monkeypatch.setattr(commit.RunFolder, "commit", stopping)
    off = SETTINGS | {"report": {"enabled": False}}
    with pytest.raises(KeyboardInterrupt):
        score(job / "model", job / "store", tmp_path / "out", off)
    monkeypatch.undo()
    score(job / "model", job / "store", tmp_path / "out", SETTINGS)
    found = data_of(tmp_path)
    assert 0 < sum(found["scores"]["counts"]) < 1_500
    assert found["drift"] == []
    assert "counted" in found["notes"]["scores"]


def test_the_number_of_rows_and_points_is_bounded(job: Path, tmp_path: Path) -> None:
    settings = SETTINGS | {"report": {"rows": 5, "points": 20}}
    score(job / "model", job / "store", tmp_path / "out", settings)
    found = data_of(tmp_path)
    assert [r["id"] for r in found["flagged"]] == [r["id"] for r in data_of(job)["flagged"]][:5]
    assert len(found["map"]["x"]) <= 5 + 21
    assert found["notes"]["flagged"].startswith("The 5 highest of ")
    settings = SETTINGS | {"report": {"rows": 0, "points": 0}}
    score(job / "model", job / "store", tmp_path / "none", settings)
    assert data_of(tmp_path, "none")["map"]["x"] == []


@pytest.mark.parametrize("kind", KINDS)
def test_reports_lie_beside_outputs_wherever_these_are(
    job: Path, tmp_path: Path, kind: str
) -> None:
    with fresh_place(kind, tmp_path) as place:
        out = (place / "deep/out").address
        done = score(job / "model", job / "store", out, SETTINGS)
        assert done.report == f"{out}.report.html"
        assert Location(done.report).read().startswith(b"<!doctype html>")


def test_models_that_cannot_explain_name_the_columns_far_out(job: Path, tmp_path: Path) -> None:
    whitened = [{"scaling": "standard", "whiten": 2}]
    settings = SETTINGS | {"regressor": "knn", "label_rows": 100, "views": whitened}
    fit(job / "store", tmp_path / "model", settings)
    score(tmp_path / "model", job / "store", tmp_path / "out", settings)
    for row in data_of(tmp_path)["flagged"]:
        assert row["columns"]
        assert all(column["contribution"] is None for column in row["columns"])


def test_a_table_in_memory_is_named_as_such(tmp_path: Path) -> None:
    table = pa.table({"a": np.random.default_rng(0).normal(size=300)})
    fit(table, tmp_path / "model", INLINE | SETTINGS)
    assert data_of(tmp_path, "model")["input"]["path"] == "a table in memory"
