"""What people are told about a store, a model, scores and a run."""

import datetime
import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mrot_scale.describe import Description, describe
from mrot_scale.description_text import description_text
from mrot_scale.errors import DamagedDataError, DataError, LeftOutWarning, MissingInputError
from mrot_scale.jobs.fit_job import fit
from mrot_scale.jobs.ingest_job import ingest
from mrot_scale.jobs.score_job import score
from mrot_scale.storing.manifest import Entry
from mrot_scale.terminal_text import printable

N_ROWS = 600
CONFIG: dict[str, Any] = {
    "cluster": {"kind": "inline"},
    "label_rows": 400,
    "repeats": 2,
    "anchor_rows": 32,
    "anchor_sets": 2,
    "batch_rows": 32,
    "non_finite": "impute",
    "store": {"chunk_bytes": "8KiB", "vocabulary": 4},
}
GOLDEN = Path(__file__).parent / "golden" / "model-v1"


def table() -> Any:
    rng = np.random.default_rng(0)
    start = datetime.datetime(2024, 3, 1, tzinfo=datetime.UTC)
    amount = rng.normal(size=N_ROWS)
    amount[5] = np.nan
    return pa.table(
        {
            "key": [f"row-{i}" for i in range(N_ROWS)],
            "amount": amount,
            "evil\x1b[2J\nname": rng.normal(size=N_ROWS),
            "when": [start + datetime.timedelta(hours=i) for i in range(N_ROWS)],
            "city": rng.choice(["Ulm", "Bonn", "\x1b]0;Köln\x07"], size=N_ROWS, p=[0.6, 0.3, 0.1]),
            "code": [f"code-{i % 6}" for i in range(N_ROWS)],
            "blob": [b"\0"] * N_ROWS,
            "comment": ["none"] * N_ROWS,
        }
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store, a model, scores in both forms, and the runs that made them."""
    base = tmp_path_factory.mktemp("described")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)
        ingest(
            table(), base / "store", id="key", exclude=["comment"], keep=["comment"], config=CONFIG
        )
    fit(base / "store", base / "model", CONFIG)
    config = CONFIG | {"scoring": {"top_columns": 2}}
    score(base / "model", base / "store", base / "scores", config, parquet=base / "table")
    return base


def facts_of(place: Path) -> dict[str, Any]:
    found = describe(place)
    assert found.path == str(place)
    facts: dict[str, Any] = json.loads(json.dumps(found.to_json(), allow_nan=False))
    return facts


def test_a_store_tells_its_columns(made: Path) -> None:
    facts = facts_of(made / "store")
    assert (facts["kind"], facts["rows"], facts["id_column"]) == ("store", N_ROWS, "key")
    assert facts["chunks"] == -(-N_ROWS // facts["chunk_rows"]) > 1
    assert facts["carried"] == ["comment"]
    assert facts["overflowed"] == ["code"]
    reasons = {c["column"]: c["reason"] for c in facts["left_out"]}
    assert reasons == {"blob": "type binary has no numbers", "comment": "excluded"}
    size = sum(p.stat().st_size for p in (made / "store").rglob("*") if p.is_file())
    assert facts["bytes"] == size - (made / "store" / "MANIFEST.json").stat().st_size


def test_a_store_tells_its_features(made: Path) -> None:
    features = {f["name"]: f for f in facts_of(made / "store")["features"]}
    amount = np.array(table()["amount"])
    assert features["amount"]["count"] == N_ROWS - 1
    assert features["amount"]["missing"] == 1
    assert features["amount"]["median"] == pytest.approx(np.nanmedian(amount))
    assert features["amount"]["max"] == np.nanmax(amount)
    assert features["when.day_sin"]["column"] == "when"
    city = features["city"]
    assert city["categories"] == 3
    assert city["most_frequent"][0]["value"] == "Ulm"
    assert sum(f["rows"] for f in city["most_frequent"]) == N_ROWS
    assert (features["code"]["categories"], features["code"]["beyond_vocabulary"]) == (4, 200)


def test_a_model_tells_how_it_was_fitted(made: Path) -> None:
    facts = facts_of(made / "model")
    assert (facts["rows"], facts["score_model"]) == (N_ROWS, "hybrid")
    assert [c["kind"] for c in facts["columns"]] == [
        "number",
        "number",
        "datetime",
        "category",
        "category",
    ]
    assert [v["scaling"] for v in facts["views"]] == ["auto", "gentle", "robust"]
    assert [v["decided"] for v in facts["views"]] == ["gentle", None, None]
    assert [v["separate"] for v in facts["views"]] == [False, False, True]
    assert sum(v["weight"] for v in facts["views"]) == pytest.approx(1)
    assert (facts["views"][0]["anchor_sets"], facts["views"][0]["anchors"]) == (2, 64)
    changed = {
        "label_rows": 400,
        "repeats": 2,
        "anchor_rows": 32,
        "anchor_sets": 2,
        "batch_rows": 32,
        "non_finite": "impute",
    }
    assert facts["settings"] == changed
    assert facts["validation"]["held_out_rows"] == 200
    assert facts["versions"]["numpy"] == np.__version__
    assert facts["threshold"]["contamination"] == 0.01
    assert facts["threshold"]["score"] == facts_of(made / "scores")["threshold"]


def test_an_older_model_of_rows_in_memory_is_told_as_well() -> None:
    found = describe(GOLDEN)
    assert found.facts["rows"] is None
    assert found.facts["validation"] is None
    assert "Columns" in description_text(found)


def test_scores_tell_what_made_them(made: Path) -> None:
    facts = facts_of(made / "scores")
    assert (facts["rows"], facts["method"], facts["missing"]) == (N_ROWS, "model", 0)
    assert facts["flagged"] > 0
    assert facts["model"] == facts_of(made / "model")["identity"]
    assert facts["store"] == facts_of(made / "store")["identity"]
    assert facts["generation"] == (made / "scores").resolve().name
    arrays = {a["name"]: (a["dtype"], a["shape"]) for a in facts["arrays"]}
    assert arrays == {
        "score": ("float32", [N_ROWS]),
        "flag": ("bool", [N_ROWS]),
        "top_columns": ("int32", [N_ROWS, 2]),
        "top_contributions": ("float32", [N_ROWS, 2]),
    }


def test_a_score_table_tells_its_columns(made: Path) -> None:
    facts = facts_of(made / "table")
    assert (facts["kind"], facts["rows"]) == ("score table", N_ROWS)
    tops = [f"top_{place}{part}" for place in (1, 2) for part in ("", "_contribution")]
    assert [c["name"] for c in facts["columns"]] == ["key", "score", "flag", *tops]
    assert facts["files"] == facts_of(made / "store")["chunks"]
    assert facts["partitions"] == 0


def test_a_run_tells_how_far_it_is(made: Path, tmp_path: Path) -> None:
    facts = facts_of(made / "model.run")
    assert (facts["command"], facts["keeps_stages"]) == ("fit", False)
    assert facts["published"] == facts_of(made / "model")["identity"]
    assert facts["records"]["views"] == facts["records"]["anchors"] == 3
    assert facts["settings"]["repeats"] == 2
    assert "alpha" not in facts["settings"]
    shutil.copytree(made / "model.run", tmp_path / "run")
    lines = (tmp_path / "run" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "run" / "journal.jsonl").write_bytes(b"".join(lines[:3]))
    assert facts_of(tmp_path / "run")["published"] is None
    assert "not yet" in description_text(describe(tmp_path / "run"))


def test_score_runs_tell_what_was_asked(made: Path) -> None:
    settings = facts_of(made / "scores.run")["settings"]
    assert settings["top_columns"] == 2
    assert settings["parquet"] == str(made / "table")
    assert settings["threshold"] == facts_of(made / "scores")["threshold"]
    assert "keep" not in settings


@pytest.mark.parametrize(
    "name", ["store", "model", "scores", "table", "store.run", "model.run", "scores.run"]
)
def test_no_text_can_command_a_terminal(made: Path, name: str) -> None:
    text = description_text(describe(made / name))
    assert all(line.isprintable() for line in text.split("\n"))
    assert text.startswith(("store ", "model ", "scores ", "score table ", "run "))


def test_names_are_escaped_and_columns_aligned(made: Path) -> None:
    lines = description_text(describe(made / "store")).splitlines()
    header = next(line for line in lines if line.startswith("  name") and "median" in line)
    evil = next(line for line in lines if r"evil\x1b[2J\nname" in line)
    assert header.index("kind") == evil.index("number")
    assert len(evil) == len(header)
    assert any("2024-03-01 00:00:00" in line for line in lines)
    assert any(r"\x1b]0;Köln\x07 (" in line for line in lines)
    assert any(line.split() == ["too", "many", "categories", "code"] for line in lines)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain äé漢", "plain äé漢"),
        ("\x1b[31m", r"\x1b[31m"),
        ("a\nb\tc", r"a\nb\tc"),
        ("right\u202eleft", r"right\u202eleft"),
        ("\ud800", r"\ud800"),
        (7, "7"),
    ],
)
def test_printable(given: Any, shown: str) -> None:
    assert printable(given) == shown


def test_wide_tables_are_cut_in_text_only(made: Path) -> None:
    found = describe(made / "store")
    one = next(f for f in found.facts["features"] if f["name"] == "amount")
    wide = [{**one, "name": f"c{i}"} for i in range(1_000)]
    text = description_text(Description("store", "wide", {**found.facts, "features": wide}))
    assert "c49 " in text
    assert "c50 " not in text
    assert "and 950 more" in text


def test_close_values_are_told_apart(made: Path) -> None:
    found = describe(made / "store")
    one = next(f for f in found.facts["features"] if f["name"] == "amount")
    close = {**one, "min": 1e9, "median": 1e9 + 1, "max": 1e9 + 2}
    text = description_text(Description("store", "x", {**found.facts, "features": [close]}))
    assert "1000000001" in text


def test_dates_beyond_the_calendar_stay_numbers(made: Path) -> None:
    found = describe(made / "store")
    one = next(f for f in found.facts["features"] if f["name"] == "when")
    far = {**one, "min": -1e9, "median": None, "max": 1e300}
    text = description_text(Description("store", "x", {**found.facts, "features": [far]}))
    assert "1e+300" in text


def test_odd_facts_in_a_list_of_files_are_shown_as_they_are(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "scores", tmp_path / "scores")
    place = tmp_path / "scores" / "MANIFEST.json"
    listed = json.loads(place.read_text())
    listed["facts"] = {"rows": "\x1b[2J", "flagged": [1], "method": None}
    place.write_text(json.dumps(listed))
    text = description_text(describe(tmp_path / "scores"))
    assert r"\x1b[2J" in text
    assert "[1]" in text


def test_a_table_that_ends_too_early_is_damage(made: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(made / "table", tmp_path / "table"))
    part = min(place.glob("*.parquet"))
    content = part.read_bytes()
    listed = json.loads((place / "_MANIFEST.json").read_text())
    told = []
    for cut in range(len(content) - 200, len(content) - 8, 10):
        part.write_bytes(content[:cut] + content[cut + 3 :])
        entry = Entry.of(part.read_bytes())
        listed["files"][part.name] = {"bytes": entry.n_bytes, "sha256": entry.sha256}
        (place / "_MANIFEST.json").write_text(json.dumps(listed))
        try:
            describe(place)
        except DamagedDataError as damage:
            told.append(str(damage))
    # Parquet's footer has no checksum: what is left of one may, by chance, be one.
    assert len(told) > 10
    assert all("cannot be decoded" in line and "\n" not in line for line in told)


def test_what_cannot_be_described(made: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingInputError):
        describe(tmp_path / "nowhere")
    with pytest.raises(DataError, match="no store, model"):
        describe(tmp_path)
    shutil.copytree(made / "store", tmp_path / "store")
    (tmp_path / "store" / "schema.json").write_text("{}")
    with pytest.raises(DamagedDataError, match=r"schema\.json"):
        describe(tmp_path / "store")
