"""Nights as pages: the record, the gates and the rows of a run, whatever became of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from mrot_scale.config.job import ReportConfig
from mrot_scale.errors import GateError, MissingInputError
from mrot_scale.reporting.contents import Contents
from mrot_scale.reporting.page import report_page
from mrot_scale.scheduled.layout import Layout
from mrot_scale.scheduled.night import nightly
from mrot_scale.scheduled.partitions import Partition
from mrot_scale.scheduled.report import night_contents, write_night
from mrot_scale.storing.location import Location
from tests.reporting.made import HOSTILE, Page
from tests.scheduled.lake import SETTINGS, changed, day, night_table, with_incident
from tests.scheduled.lake import write_night as write_rows


def facts(text: str = "plain", **more: Any) -> dict[str, Any]:
    """The record of a run in which everything that can come from outside is the text."""
    return {
        "partition": {"key": text, "value": text},
        "status": "published",
        "reason": text,
        "run_id": f"20261114T020000Z-{text}",
        "started": "2026-11-14T02:00:00.000+00:00",
        "seconds": 12.34,
        "model": {"id": text, "why": f"promoted from {text}"},
        "rows": {"rows": 12_345, "flagged": 120, "missing": 3},
        "gates": [
            {"gate": "ks", "level": "ok", "message": "fine"},
            {"gate": f"columns.{text}", "level": "warn", "message": f"{text!r} is odd"},
            {"gate": "psi", "level": "fail", "message": text},
        ],
        "stages": {text: 1.5},
    } | more


def made(**found: Any) -> Contents:
    return night_contents(facts(**found), None, [], ReportConfig())


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_records_stay_text(text: str) -> None:
    plain, hostile = Page(report_page(made())), Page(report_page(made(text=text)))
    assert [name for name, _ in hostile.tags] == [name for name, _ in plain.tags]
    for shown in (f"{text}={text}", f"columns.{text}", f"promoted from {text}"):
        assert shown in hostile.text


def test_gates_come_with_the_worst_first() -> None:
    assert [found["level"] for found in made().notices] == ["fail", "warn", "ok"]


def test_a_run_that_failed_at_once_has_a_page() -> None:
    """What a run holds that found no input: no rows, no model, no gates."""
    bare = {
        "partition": {"key": "date", "value": "2026-11-14"},
        "status": "failed",
        "reason": "No date=2026-11-14 in /lake.",
        "run_id": "r",
        "started": "2026-11-14T02:00:00.000+00:00",
    }
    page = Page(report_page(night_contents(bare, None, [], ReportConfig())))
    assert "No date=2026-11-14 in /lake." in page.text
    assert "No gate was reached." in page.text


def test_a_reason_that_names_a_redacted_column_is_kept_back() -> None:
    config = ReportConfig(redact=("wage",))
    rule = {"gate": "columns.wage", "level": "fail", "message": "'wage' has 7771, above 100"}
    told = facts(status="failed", reason="Row 3: 'wage' is '12x'.", gates=[rule])
    found = night_contents(told, None, [], config)
    for content in (found.to_bytes(), report_page(found)):
        assert b"7771" not in content
        assert b"12x" not in content


def test_the_nights_before_are_lined_up() -> None:
    from dataclasses import replace

    lines = [{"name": "a", "psi": 0.3, "ks": 0.1, "nulls": 0.0, "is_score": False}]
    looked = replace(made(), drift=[lines[0] | {"previous_psi": None, "past": []}])
    past = [{"drift": [{"name": "a", "psi": 0.1}]}, {}, {"drift": [{"name": "a", "psi": 0.2}]}]
    found = night_contents(facts(), looked, past, ReportConfig())
    assert found.drift[0]["past"] == [0.1, None, 0.2]


def test_a_report_is_written_under_its_partitions_name(tmp_path: Path) -> None:
    layout, partition = Layout(Location(tmp_path)), Partition("site", "north/west")
    write_night(layout, partition, made())
    path = tmp_path / "reports" / "site=north%2Fwest.html"
    assert path.read_bytes() == report_page(made())


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four nights, the last of which a gate refuses."""
    root = tmp_path_factory.mktemp("job")
    for number in (1, 2, 3):
        write_rows(root / "lake", number)
        nightly(root / "lake", root / "out", date=day(number), config=SETTINGS)
    write_rows(root / "lake", 4, with_incident(night_table(4), 0.2))
    settings = SETTINGS | {"gates": {"psi": {"fail": 0.01}}}
    with pytest.raises(GateError):
        nightly(root / "lake", root / "out", date=day(4), config=settings)
    return root


def data_of(job: Path, number: int) -> dict[str, Any]:
    state = json.loads((job / f"out/runs/partitions/date={day(number)}.json").read_text())
    found = json.loads((job / f"out/runs/{state['run_id']}/report.json").read_text())
    assert isinstance(found, dict)
    return found


def test_a_night_shows_its_rows_and_the_nights_before(job: Path) -> None:
    found = data_of(job, 3)
    assert (found["kind"], found["title"]) == ("nightly", f"date={day(3)}")
    assert found["rows"]["rows"] == 1_200
    assert found["flagged"]
    assert all(row["id"].startswith("n03-") for row in found["flagged"])
    line = next(line for line in found["drift"] if line["name"] == "temperature")
    assert len(line["past"]) == 2
    assert line["previous_psi"] is not None
    assert (job / f"out/reports/date={day(3)}.html").exists()


def test_a_night_that_was_refused_shows_why(job: Path) -> None:
    found = data_of(job, 4)
    assert found["run"]["status"] == "gated"
    assert found["notices"][0]["level"] == "fail"
    assert found["flagged"]
    assert found["columns"]
    page = (job / f"out/reports/date={day(4)}.html").read_text()
    assert "A gate failed: nothing is published." in page


def test_a_skipped_night_leaves_its_report_and_brings_a_lost_one_back(job: Path) -> None:
    page = job / f"out/reports/date={day(2)}.html"
    content = page.read_bytes()
    page.write_bytes(b"mine")
    nightly(job / "lake", job / "out", date=day(2), config=SETTINGS)
    assert page.read_bytes() == b"mine"
    page.unlink()
    nightly(job / "lake", job / "out", date=day(2), config=SETTINGS)
    assert page.read_bytes() == content


def test_reports_can_be_switched_off(tmp_path: Path) -> None:
    write_rows(tmp_path / "lake", 1)
    settings = SETTINGS | {"report": {"enabled": False}}
    night = nightly(tmp_path / "lake", tmp_path / "out", date=day(1), config=settings)
    assert night.report is None
    assert not (tmp_path / "out/reports").exists()
    assert not (tmp_path / "out/history.html").exists()


def test_a_model_of_each_site_explains_its_own_rows(tmp_path: Path) -> None:
    write_rows(tmp_path / "lake", 1)
    by_site = {"nightly": {"id": "reading", "by": "site", "group_rows": 300}}
    nightly(tmp_path / "lake", tmp_path / "out", date=day(1), config=SETTINGS | by_site)
    found = data_of(tmp_path, 1)
    assert found["rows"]["flagged"] == len(found["flagged"]) > 0
    assert all(row["columns"] for row in found["flagged"])


def test_redacted_columns_stay_out_of_a_night(tmp_path: Path) -> None:
    wages = changed(night_table(1), "wage", [77_123.5 + n for n in range(1_200)])
    write_rows(tmp_path / "lake", 1, wages)
    settings = SETTINGS | {
        "report": {"redact": ["wage", "reading"]},
        "gates": {"columns": {"wage": {"max": 77_200.0}}},
    }
    with pytest.raises(GateError):
        nightly(tmp_path / "lake", tmp_path / "out", date=day(1), config=settings)
    page = (tmp_path / f"out/reports/date={day(1)}.html").read_text()
    history = (tmp_path / "out/history.html").read_text()
    for text in (page, history, json.dumps(data_of(tmp_path, 1))):
        for value in ("77123", "77,123", "78322", "78,322", "n01-0-"):
            assert value not in text


def test_a_night_without_input_has_a_page(tmp_path: Path) -> None:
    write_rows(tmp_path / "lake", 1)
    with pytest.raises(MissingInputError):
        nightly(tmp_path / "lake", tmp_path / "out", date=day(9), config=SETTINGS)
    page = Page((tmp_path / f"out/reports/date={day(9)}.html").read_bytes())
    assert "failed" in page.text
