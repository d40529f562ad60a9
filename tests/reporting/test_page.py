"""Pages: one file that loads nothing, shows what it was given as text, and stays small."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from mrot_scale.reporting.contents import Contents
from mrot_scale.reporting.history_page import history_page
from mrot_scale.reporting.page import MOST_BYTES, report_page, script_json
from tests.reporting.made import HOSTILE, Page, contents, night


def nights(text: str = "plain") -> list[dict[str, Any]]:
    found = []
    for number in range(8):
        status = ("published", "gated", "failed", "running", "empty")[number % 5]
        line: dict[str, Any] = {
            "partition": f"date={text}{number}",
            "status": status,
            "level": "ok",
        }
        line |= {"exit_code": 3, "rows": 1_000, "flagged": number, "model": text, "run_id": text}
        line |= {"attempts": 1, "report": f"reports/{number}.html", "seconds": 1.5 * number}
        found.append(line | {"drift": None if number == 3 else 0.1 * number, "drifted": text})
    return found


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("kind", ["fit", "score", "nightly"])
def test_hostile_text_stays_text(kind: str, text: str) -> None:
    plain = Page(report_page(contents(kind=kind)))
    hostile = Page(report_page(contents(text, kind=kind)))
    assert [name for name, _ in hostile.tags] == [name for name, _ in plain.tags]
    for (_, mine), (_, theirs) in zip(hostile.tags, plain.tags, strict=True):
        assert mine.keys() == theirs.keys()
        assert {n: v for n, v in mine.items() if n != "aria-label"} == {
            n: v for n, v in theirs.items() if n != "aria-label"
        }
    cells = [cell for row in hostile.rows for cell in row]
    assert {f"{text}.n", f"{text}.c", f"{text} 000"} <= set(cells)
    assert text in hostile.text


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_nights_stay_text(text: str) -> None:
    plain = Page(history_page("/data/out", nights(), 8))
    hostile = Page(history_page(f"/data/{text}", nights(text), 8))
    assert [name for name, _ in hostile.tags] == [name for name, _ in plain.tags]
    assert f"date={text}0" in hostile.text


@pytest.mark.parametrize("text", HOSTILE)
def test_data_for_the_script_cannot_end_it(text: str) -> None:
    found = script_json({text: [text, float("nan")]})
    assert not re.search("[<>&\u2028\u2029]", found)
    assert json.loads(found) == {text: [text, None]}


def test_the_policy_lets_only_the_pages_own_blocks_through() -> None:
    for content in (report_page(night()), history_page("/data/out", nights(), 8)):
        text = content.decode()
        policy = Page(content).tags[3][1]["content"] or ""
        assert policy.startswith("default-src 'none'; ")
        assert "unsafe" not in policy
        assert "http" not in policy
        style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
        script = re.search(r"<script>(.*?)</script>", text, re.DOTALL)
        assert style is not None
        assert f"style-src {digest(style[1])};" in policy
        assert f"script-src {digest(script[1]) if script else repr('none')};" in policy


def digest(text: str) -> str:
    found = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{found}'"


def test_the_policy_comes_before_all_that_it_rules() -> None:
    names = [(n, a.get("http-equiv")) for n, a in Page(report_page(contents())).tags]
    place = names.index(("meta", "Content-Security-Policy"))
    assert {name for name, _ in names[:place]} <= {"html", "head", "meta"}


def test_a_page_loads_nothing() -> None:
    for content in (report_page(night()), history_page("/data/out", nights(), 8)):
        page = Page(content)
        assert not page.names & {"img", "link", "iframe", "object", "embed", "form", "base"}
        for name, attributes in page.tags:
            assert not any(n.startswith("on") or n in ("src", "style") for n in attributes), name
            target = attributes.get("href") or "#"
            assert target.startswith(("#", "../history.html", "reports/"))
        outside = content.replace(b"http://www.w3.org/2000/svg", b"")
        assert not re.search(rb"url\(|@import|https?://|innerHTML|eval\(", outside)


def test_warnings_come_first_and_what_passed_is_folded() -> None:
    page = Page(report_page(night()))
    places = [page.text.index(text) for text in ("columns.plain", "'plain' is odd", "fine")]
    assert places == sorted(places)
    assert "1 passed" in page.text


def test_drifts_are_listed_and_the_rest_is_counted() -> None:
    line = contents().drift[0]
    many = [line | {"name": f"c{n}", "psi": 1 - n / 100} for n in range(60)]
    page = Page(report_page(replace(contents(), drift=many)))
    assert [row[0] for row in page.rows if re.fullmatch(r"c\d+", row[0])] == [
        f"c{n}" for n in range(50)
    ]
    assert "The 50 largest of 60." in page.text


def test_figures_are_shown_for_people() -> None:
    text = Page(report_page(contents())).text
    for shown in ("12,345", "flagged, 0.97%", "12.3 s", "2026-11-14 02:00:00 UTC", "1e9"):
        assert shown in text


def test_every_picture_has_words() -> None:
    pages = [report_page(contents()), history_page("/data/out", nights(), 8)]
    for page in map(Page, pages):
        pictures = [a for name, a in page.tags if name == "svg"]
        assert pictures
        for picture in pictures:
            told = picture.get("role") == "img" and picture.get("aria-label")
            assert told or picture.get("aria-hidden") == "true"
        assert page.tags[0] == ("html", {"lang": "en"})
        assert all(a.get("scope") for name, a in page.tags if name == "th")


@pytest.mark.parametrize("kind", ["fit", "score", "nightly"])
def test_a_run_that_found_nothing_has_a_page(kind: str) -> None:
    run = {"command": "nightly", "status": "failed", "reason": "No such lake.", "seconds": None}
    bare = Contents(kind, "date=1", run | {"started": "", "version": "0"})  # type: ignore[arg-type]
    page = Page(report_page(bare))
    assert "No such lake." in page.text
    assert "svg" not in page.names


def test_a_page_of_no_rows_divides_by_nothing() -> None:
    none = {"rows": 0, "flagged": 0, "missing": 0}
    page = Page(report_page(replace(contents(), rows=none, flagged=[])))
    assert "flagged, 0%" in page.text
    assert "No row is above the threshold." in page.text


def test_a_page_stays_small_whatever_it_is_given() -> None:
    long = "&" * 119
    wide = [f"{long}{n}" for n in range(6)]
    row = contents().flagged[0]
    columns = [row["columns"][0] | {"name": name, "value": long} for name in wide]
    rows = [row | {"row": n, "id": long, "columns": columns} for n in range(2_000)]
    whole = replace(contents(), flagged=rows)
    page = report_page(whole)
    assert len(page) <= MOST_BYTES
    assert "more would not fit this page" in Page(page).text


def test_contents_come_back_from_their_bytes() -> None:
    found = contents()
    assert Contents.from_bytes(found.to_bytes(), "report.json") == found
    assert report_page(Contents.from_bytes(found.to_bytes(), "x")) == report_page(found)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b'{"format": "mrot-scale-report"}', b"\xff"]
)
def test_what_is_no_report_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="is no report"):
        Contents.from_bytes(content, "report.json")
