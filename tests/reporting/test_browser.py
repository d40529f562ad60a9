"""Pages in a real browser: they work by mouse and keyboard, on any screen, and ask for nothing.

Needs Chromium: `apt-get install chromium`.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mrot_scale.reporting.history_page import history_page
from mrot_scale.reporting.page import report_page
from tests.reporting.made import HOSTILE, contents, night
from tests.reporting.test_page import nights

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDTHS = (375, 1440)
SCHEMES = ("light", "dark")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield made
        made.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One page of each kind, and the same with hostile text everywhere."""
    folder = tmp_path_factory.mktemp("pages")
    made = {
        "fit": report_page(contents(kind="fit", n_rows=200)),
        "score": report_page(contents(n_rows=200)),
        "nightly": report_page(night()),
        "history": history_page("/data/out", nights(), 8),
    }
    for number, text in enumerate(HOSTILE):
        made[f"hostile{number}"] = report_page(contents(text, kind="nightly"))
        made[f"hostile-history{number}"] = history_page(f"/data/{text}", nights(text), 8)
    for name, content in made.items():
        (folder / f"{name}.html").write_bytes(content)
    return {name: folder / f"{name}.html" for name in made}


@dataclass
class Watched:
    """A page being looked at, and what it did besides."""

    page: Any
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def dialog(self, dialog: Any) -> None:
        self.complaints.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def quiet(self, path: Path) -> bool:
        return self.requests == [path.as_uri()] and not self.complaints


@pytest.fixture
def look(browser: Any) -> Iterator[Any]:
    contexts = []

    def opened(path: Path, width: int = 1440, scheme: str = "light") -> Watched:
        size = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, color_scheme=scheme)
        contexts.append(context)
        watched = Watched(context.new_page())
        page = watched.page
        page.on("request", lambda request: watched.requests.append(request.url))
        page.on("console", lambda message: watched.complaints.append(message.text))
        page.on("pageerror", lambda error: watched.complaints.append(str(error)))
        page.on("dialog", watched.dialog)
        page.goto(path.as_uri())
        return watched

    yield opened
    for context in contexts:
        context.close()


def shown_ids(page: Any) -> list[str]:
    found: list[str] = page.locator("#rows tbody tr[data-row]:visible th").all_inner_texts()
    return found


def test_the_table_sorts_by_any_column(look: Any, pages: dict[str, Path]) -> None:
    page = look(pages["score"]).page
    first = shown_ids(page)
    assert first[:2] == ["plain 000", "plain 001"]
    assert len(first) == 25
    score, row = (
        page.locator("#rows thead button").nth(1),
        page.locator("#rows thead button").nth(0),
    )
    score.click()
    assert page.locator("th[aria-sort=ascending]").inner_text().startswith("Score")
    assert shown_ids(page)[:2] == ["plain 199", "plain 198"]
    row.click()
    assert shown_ids(page) == first
    row.press("Enter")
    assert shown_ids(page)[0] == "plain 199"
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("Row")


def test_the_table_filters_and_shows_more(look: Any, pages: dict[str, Path]) -> None:
    page = look(pages["score"]).page
    page.locator("#filter").fill("plain 19")
    assert shown_ids(page) == [f"plain 19{n}" for n in range(10)]
    assert page.locator("#count").inner_text() == "10 of 200 rows"
    page.locator("#filter").fill("nowhere")
    assert shown_ids(page) == []
    page.locator("#filter").fill("")
    page.locator("#more").click()
    assert len(shown_ids(page)) == 125


def test_a_row_opens_by_click_and_by_keyboard(look: Any, pages: dict[str, Path]) -> None:
    watched = look(pages["score"])
    page = watched.page
    page.locator("#rows tbody tr[data-row] td").nth(1).click()
    detail = page.locator("tr.detail")
    assert detail.count() == 1
    assert detail.locator("li b").all_inner_texts() == ["plain.n", "plain.c"]
    assert "raised the score by 1.5" in detail.inner_text()
    assert "Above 99% of the training rows." in detail.inner_text()
    pictures = detail.locator("svg[role=img]")
    assert pictures.count() == 2
    assert all(label.get_attribute("aria-label") for label in pictures.all())
    page.locator("button.open").first.focus()
    page.keyboard.press("Enter")
    assert detail.count() == 0
    page.keyboard.press("Space")
    assert detail.count() == 1
    assert page.locator("button.open").first.get_attribute("aria-expanded") == "true"
    assert watched.quiet(pages["score"])


def test_a_point_of_the_map_leads_to_its_row(look: Any, pages: dict[str, Path]) -> None:
    page = look(pages["score"]).page
    page.locator("circle[data-row='70']").dispatch_event("click")
    assert page.locator("tr.detail").count() == 1
    assert page.evaluate("document.activeElement.textContent") == "plain 010"


def test_every_control_is_reached_by_the_tab_key(look: Any, pages: dict[str, Path]) -> None:
    page = look(pages["nightly"]).page
    seen = []
    for _ in range(16):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate("document.activeElement.id || document.activeElement.textContent")
        )
    for wanted in ("Skip to the report", "all nights", "filter", "Score", "plain 000", "plain 001"):
        assert wanted in seen, seen


@pytest.mark.parametrize("name", ["fit", "score", "nightly", "history"])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_page_asks_for_nothing_and_fits_its_window(
    look: Any, pages: dict[str, Path], name: str, width: int
) -> None:
    watched = look(pages[name], width)
    if name != "history":
        watched.page.locator("button.open").first.click()
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
    assert watched.quiet(pages[name]), (watched.requests, watched.complaints)


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_text_does_nothing(look: Any, pages: dict[str, Path], number: int) -> None:
    text = HOSTILE[number]
    watched = look(pages[f"hostile{number}"], 375)
    page = watched.page
    page.locator("button.open").first.click()
    shown = page.locator("tr.detail li b").first.evaluate("element => element.textContent")
    assert shown == f"{text}.n"
    page.locator("#filter").fill(text)
    page.locator("#rows thead button").first.click()
    assert page.locator("#rows tbody tr[data-row]:visible").count() == 25
    assert page.locator("img, iframe, object, [onload], [onerror], [onmouseover]").count() == 0
    assert page.locator("script").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert watched.quiet(pages[f"hostile{number}"]), watched.complaints
    watched = look(pages[f"hostile-history{number}"])
    assert watched.page.locator("img, script, [onload], [onerror], [onmouseover]").count() == 0
    assert watched.quiet(pages[f"hostile-history{number}"]), watched.complaints


@pytest.mark.parametrize("name", ["fit", "score", "nightly", "history"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_nothing_stands_in_the_way_of_anybody(
    look: Any, pages: dict[str, Path], name: str, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = look(pages[name], scheme=scheme).page
    if name != "history":
        page.locator("button.open").first.click()
        page.locator("details").evaluate("element => element.open = true")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_without_scripts_the_table_is_there(browser: Any, pages: dict[str, Path]) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(pages["score"].as_uri())
    assert page.locator("#rows tbody tr").count() == 200
    assert not page.locator("#filter").is_visible()
    context.close()


def test_on_paper_controls_are_gone_and_all_is_dark_on_white(
    look: Any, pages: dict[str, Path]
) -> None:
    page = look(pages["score"], scheme="dark").page
    page.emulate_media(media="print", color_scheme="dark")
    assert not page.locator("#filter").is_visible()
    colours = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    assert colours == ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]
