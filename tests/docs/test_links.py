"""Links lead somewhere, within pages too."""

import re
from pathlib import Path

import pytest

from docs.generate.pages import filled
from tests.docs.test_blocks import PAGES, ROOT, name_of

EXTERNAL = re.compile(r"https?://[\w.-]+\.[a-z]{2,}(/\S*)?")
CHECKED = [*PAGES, ROOT / "CHANGELOG.md"]


def text_of(path: Path) -> str:
    """A page as the site has it, without its code."""
    return re.sub(r"```.*?```", "", filled(path.read_text()), flags=re.DOTALL)


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings."""
    heads = re.findall(r"^#+ (.+)$", text_of(path), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", head.lower()) for head in heads]
    return {head.strip().replace(" ", "-") for head in plain}


@pytest.mark.parametrize("path", CHECKED, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(path)):
        if "://" in target:
            assert EXTERNAL.fullmatch(target), f"{target} is no address"
            continue
        name, _, anchor = target.partition("#")
        place = (path.parent / name).resolve() if name else path
        assert place.exists(), f"{name_of(path)}: nothing is at {target}"
        assert not anchor or anchor in anchors(place), f"{name_of(path)}: no heading at {target}"


def test_headings_become_anchors() -> None:
    assert "what-transport-adds" in anchors(ROOT / "docs" / "quality.md")
    assert "mrot-scale-models-promote" in anchors(ROOT / "docs" / "reference" / "command-line.md")


def test_every_page_is_in_the_contents() -> None:
    docs = ROOT / "docs"
    listed = set(re.findall(r"^([\w/-]+)$", (docs / "index.md").read_text(), re.MULTILINE))
    pages = {str(p.relative_to(docs).with_suffix("")) for p in PAGES if p.is_relative_to(docs)}
    assert listed == pages - {"index"}


def test_the_readme_leads_to_the_documentation() -> None:
    text = (ROOT / "README.md").read_text()
    for page in ("tutorial", "how-it-works", "limits", "citing", "reference/configuration"):
        assert f"](docs/{page}.md)" in text, page
