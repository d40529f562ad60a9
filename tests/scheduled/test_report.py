"""Reports: one page that runs nothing, loads nothing, and shows what it was given as text."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrot_scale.profiles import Profile, count_scores
from mrot_scale.scheduled.layout import Layout
from mrot_scale.scheduled.partitions import Partition
from mrot_scale.scheduled.report import report_page, write_report
from mrot_scale.storing.location import Location

HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></style><script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}{# #}",
    "<!-- ]]> &lt;b&gt;",
]
VOID = {"meta", "br"}


class Page(HTMLParser):
    """A page taken apart: tags with their attributes, texts, and whether tags are closed."""

    def __init__(self, content: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.rows: list[list[str]] = []
        self._open: list[str] = []
        self.feed(content.decode("utf-8"))
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._open and self._open[-1] in ("td", "th"):
            self.rows[-1][-1] += data

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.tags}


def facts(text: str = "plain", **more: Any) -> dict[str, Any]:
    """A run in which everything that can come from outside is the text."""
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
        "drift": [
            {"name": text, "psi": 0.1, "ks": 0.2, "chance": 0.0, "nulls": 0.05},
            {"name": "moved", "psi": 0.9, "ks": 0.3, "chance": 0.0, "nulls": -0.01},
        ],
        "stages": {text: 1.5},
    } | more


def spread(scores: list[float]) -> Profile:
    counts = count_scores(np.array(scores, dtype=np.float32))
    return Profile(len(scores), np.zeros((0, 0), dtype=np.int64), counts, {})


EVEN = spread([(n + 0.5) / 1_000 for n in range(1_000)])


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    plain, hostile = Page(report_page(facts(), EVEN)), Page(report_page(facts(text), EVEN))
    assert [name for name, _ in hostile.tags] == [name for name, _ in plain.tags]
    for (_, mine), (_, theirs) in zip(hostile.tags, plain.tags, strict=True):
        assert mine == theirs, "not even an attribute differs"
    cells = [cell for row in hostile.rows for cell in row]
    assert {text, f"columns.{text}", f"{text!r} is odd"} <= set(cells)
    assert f"{text}={text}: published" in hostile.text
    assert f"published: {text}" in hostile.text
    assert f"model {text} (promoted from {text})" in hostile.text


def test_a_page_runs_nothing_and_loads_nothing() -> None:
    content = report_page(facts(), EVEN)
    page = Page(content)
    assert not page.names & {"script", "img", "link", "iframe", "object", "embed", "a", "form"}
    loading = {"src", "href", "srcset", "action", "data", "style", "background"}
    for _, attributes in page.tags:
        assert not any(name.startswith("on") or name in loading for name in attributes)
    assert not re.search(rb"url\(|@import|https?://|//", content.replace(b"xmlns", b""))


def test_the_policy_of_a_page_lets_nothing_but_its_own_style() -> None:
    policies = [
        attributes["content"]
        for name, attributes in Page(report_page(facts(), EVEN)).tags
        if name == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_the_policy_comes_before_all_that_it_rules() -> None:
    names = [(n, a.get("http-equiv")) for n, a in Page(report_page(facts(), EVEN)).tags]
    place = names.index(("meta", "Content-Security-Policy"))
    assert {name for name, _ in names[:place]} <= {"html", "head", "meta"}


def test_gates_are_listed_with_the_worst_first() -> None:
    rows = Page(report_page(facts(), EVEN)).rows
    assert [row[0] for row in rows if row[0] in ("ok", "warn", "fail")] == ["fail", "warn", "ok"]


def test_drifts_are_listed_with_the_largest_first() -> None:
    rows = Page(report_page(facts(), EVEN)).rows
    assert ["moved", "0.900", "0.300", "-1.0%"] in rows
    names = [row[0] for row in rows]
    assert names.index("moved") < names.index("plain")


def test_of_many_drifts_the_largest_are_shown_and_the_rest_is_counted() -> None:
    drifts = [
        {"name": f"c{n}", "psi": n / 100, "ks": 0.0, "chance": 0.0, "nulls": 0.0} for n in range(60)
    ]
    page = Page(report_page(facts(drift=drifts), EVEN))
    shown = [row[0] for row in page.rows if re.fullmatch(r"c\d+", row[0])]
    assert shown == [f"c{n}" for n in range(59, 9, -1)]
    assert "The 50 largest of 60." in page.text


def test_figures_are_shown_for_people() -> None:
    text = Page(report_page(facts(), EVEN)).text
    for shown in ("12,345", "flagged (0.97%)", "12.3 s"):
        assert shown in text


def test_bars_are_as_high_as_scores_are_frequent() -> None:
    """Twice as many rows below .05 as training would give, and half as many above."""
    scores = [0.02] * 100 + [0.07] * 25 + [(n + 0.5) / 1_000 for n in range(100, 1_000)]
    page = Page(report_page(facts(), spread(scores)))
    heights = [float(a["height"] or "") for name, a in page.tags if name == "rect"]
    assert len(heights) == 22
    total = 1_025 * 0.05
    assert heights[0] / heights[1] == pytest.approx(100 / 25)
    assert heights[0] / heights[2] == pytest.approx(100 / 50)
    top = 140 / (100 / total)
    (line,) = [a for name, a in page.tags if name == "line"]
    assert float(line["y1"] or "") == pytest.approx(150 - top)
    assert heights[0] == pytest.approx(140)
    assert "0 to 0.05: 9.76% of the rows, 5.00% expected" in page.text


def test_bars_stay_within_the_picture() -> None:
    for profile in (EVEN, spread([0.9995] * 10), spread([0.5]), spread([0.0, 1.0])):
        page = Page(report_page(facts(), profile))
        for name, attributes in page.tags:
            if name == "rect":
                y, height = (float(attributes[n] or "") for n in ("y", "height"))
                assert 0 <= height <= 140
                assert y >= 0
                assert y + height == pytest.approx(150)


@pytest.mark.parametrize("profile", [None, spread([]), spread([float("nan")] * 3)])
def test_without_scores_there_is_no_picture(profile: Profile | None) -> None:
    assert "svg" not in Page(report_page(facts(), profile)).names


def test_a_run_that_failed_at_once_has_a_page() -> None:
    """What a run holds that found no input: no rows, no model, no gates."""
    bare = {
        "partition": {"key": "date", "value": "2026-11-14"},
        "status": "failed",
        "reason": "No date=2026-11-14 in /lake.",
        "run_id": "r",
        "started": "2026-11-14T02:00:00.000+00:00",
    }
    page = Page(report_page(bare, None))
    assert "failed: No date=2026-11-14 in /lake." in page.text
    assert "No gate was reached." in page.text


def test_a_page_of_no_rows_divides_by_nothing() -> None:
    page = Page(report_page(facts(rows={"rows": 0, "flagged": 0, "missing": 0}), None))
    assert "flagged (0.00%)" in page.text


def test_a_page_can_be_read_aloud() -> None:
    page = Page(report_page(facts(), EVEN))
    assert page.tags[0] == ("html", {"lang": "en"})
    assert {"main", "header", "h1", "title"} <= page.names
    headers = [a for name, a in page.tags if name == "th"]
    assert headers
    assert all(attributes.get("scope") == "col" for attributes in headers)
    (picture,) = [a for name, a in page.tags if name == "svg"]
    assert picture["role"] == "img"
    assert picture["aria-label"]


def test_a_report_is_written_under_its_partitions_name(tmp_path: Path) -> None:
    layout, partition = Layout(Location(tmp_path)), Partition("site", "north/west")
    write_report(layout, partition, facts(), EVEN)
    path = tmp_path / "reports" / "site=north%2Fwest.html"
    assert path.read_bytes() == report_page(facts(), EVEN)
