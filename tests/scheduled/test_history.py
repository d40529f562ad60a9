"""All nights on one page: every run is a line, whoever wrote last."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mrot_scale.cli import app
from mrot_scale.errors import MissingInputError
from mrot_scale.reporting.history_page import history_page
from mrot_scale.scheduled import history as module
from mrot_scale.scheduled.history import NIGHTS_SHOWN, history, write_history
from mrot_scale.scheduled.layout import Layout, json_bytes
from mrot_scale.scheduled.partitions import Partition
from mrot_scale.scheduled.run_record import FORMAT, RUN_FILE
from mrot_scale.scheduled.state import PartitionState, write_state
from mrot_scale.storing.location import Location
from tests.places import KINDS, fresh_place
from tests.reporting.made import Page


def end(layout: Layout, value: str, status: Any = "published", code: int = 0) -> None:
    """Leave what a run of a partition leaves."""
    id = f"run-{value.replace('/', '_')}-{status}"
    record = {"format": FORMAT, "run_id": id, "seconds": 2.5, "status": status}
    record |= {"rows": {"rows": 1_000, "flagged": 20, "missing": 0}, "model": {"id": "m-1"}}
    record |= {"drift": [{"name": "a", "psi": 0.2}, {"name": "score", "psi": 9, "is_score": True}]}
    (layout.runs / id / RUN_FILE).write(json_bytes(record))
    published = {"run_id": id, "rows": 1_000, "flagged": 20, "model": "m-1"}
    found = published if status == "published" else {}
    state = PartitionState(value, status, id, 1, "fail" if code else "ok", code, "", found)
    write_state(layout, Partition("date", value), state)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(Location(tmp_path / "out"))


def test_every_night_is_a_line_with_its_figures(layout: Layout) -> None:
    end(layout, "2026-11-01")
    end(layout, "2026-11-02", "gated", 3)
    found = history(layout.root.address)
    first, second = found.nights
    assert first["partition"] == "date=2026-11-01"
    assert (first["rows"], first["flagged"], first["seconds"]) == (1_000, 20, 2.5)
    assert (first["drift"], first["drifted"], first["model"]) == (0.2, "a", "m-1")
    assert (second["status"], second["exit_code"]) == ("gated", 3)
    page = Page(layout.history.read())
    lines = [row for row in page.rows if row[0].startswith("date=")]
    assert [row[0] for row in lines] == ["date=2026-11-02", "date=2026-11-01"]
    assert lines[1][1:8] == ["published", "0", "1,000", "20", "2%", "0.200 a", "2.5 s"]


def test_links_lead_to_reports_whatever_a_partition_is_called(layout: Layout) -> None:
    for value in ("north/west", "50% & more?", "#1"):
        end(layout, value)
        layout.report(Partition("date", value)).write(b"page")
    history(layout.root.address)
    from urllib.parse import unquote

    links = [a["href"] for name, a in Page(layout.history.read()).tags if name == "a"]
    reports = [link for link in links if link and link.startswith("reports/")]
    assert len(reports) == 3
    for link in reports:
        assert not set(link) & set("?#& ")
        assert (layout.root / unquote(link)).exists()


@pytest.mark.parametrize("kind", KINDS)
def test_records_are_read_once(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fresh_place(kind, tmp_path) as place:
        layout = Layout(place)
        for number in range(1, 6):
            end(layout, f"2026-11-0{number}")
        write_history(layout, "date")
        seen: list[str] = []
        monkeypatch.setattr(module, "read_night", lambda place: seen.append(place.name))
        end(layout, "2026-11-06")
        assert len(write_history(layout, "date")) == 6
        assert seen == ["run-2026-11-06-published"]


def test_a_damaged_list_of_what_is_known_is_done_without(layout: Layout) -> None:
    end(layout, "2026-11-01")
    for content in (b"", b"[]", b'{"nights": 3}', b'{"nights": [1, {}]}'):
        (layout.runs / "history.json").write(content)
        assert write_history(layout, "date")[0]["drift"] == 0.2


def test_a_night_that_ends_meanwhile_is_seen(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another night ends, and writes its page, just before ours replaces it."""
    end(layout, "2026-11-01")
    drawn, late = history_page, ["2026-11-02", "2026-11-03"]

    def slow(*given: Any) -> bytes:
        content = drawn(*given)
        if late:
            end(layout, late.pop(0))
        return content

    monkeypatch.setattr(module, "history_page", slow)
    write_history(layout, "date")
    assert Page(layout.history.read()).text.count("date=2026-11-0") == 3


def test_many_writers_at_once_leave_a_page_of_all(layout: Layout) -> None:
    def run(number: int) -> None:
        end(layout, f"2026-11-{number:02d}")
        write_history(layout, "date")

    threads = [threading.Thread(target=run, args=[n]) for n in range(1, 13)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Page(layout.history.read()).text.count("date=2026-11-") == 12


def test_only_the_last_nights_are_listed(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NIGHTS_SHOWN", 3)
    assert NIGHTS_SHOWN >= 300
    for number in range(1, 6):
        end(layout, f"2026-11-0{number}")
    history(layout.root.address)
    page = Page(layout.history.read())
    assert "The last 3 of 5." in page.text
    assert page.text.count("date=") == 3


def test_a_place_without_nights_is_told(tmp_path: Path, layout: Layout) -> None:
    with pytest.raises(MissingInputError, match="holds no runs"):
        history(tmp_path)
    end(layout, "2026-11-01")
    with pytest.raises(MissingInputError, match="no partitions by 'day'"):
        history(layout.root.address, key="day")


def test_the_command_writes_the_page_or_shows_what_it_would(layout: Layout) -> None:
    end(layout, "2026-11-01")
    words = ["history", layout.root.address]
    shown = CliRunner().invoke(app, [*words, "--dry-run"])
    assert shown.output == f"would write {layout.history}: 1 nights\n"
    assert not layout.history.exists()
    done = CliRunner().invoke(app, [*words, "--output", "json"])
    assert json.loads(done.output)["nights"][0]["partition"] == "date=2026-11-01"
    assert layout.history.exists()
