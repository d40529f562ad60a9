"""The pictures of how-it-works.md are those that the script draws."""

import re
from pathlib import Path

import pytest

from docs.generate.pictures import PICTURES, draw

DOCS = Path(__file__).parent.parent.parent / "docs"
LARGEST = 200_000


def test_each_picture_is_shown_and_small() -> None:
    shown = re.findall(r"\]\(pictures/([\w-]+)\.svg\)", (DOCS / "how-it-works.md").read_text())
    assert shown == list(PICTURES)
    stored = {path.stem: path.stat().st_size for path in (DOCS / "pictures").iterdir()}
    assert set(stored) == set(PICTURES)
    assert max(stored.values()) < LARGEST


def test_each_picture_says_in_words_what_it_shows() -> None:
    text = (DOCS / "how-it-works.md").read_text()
    words = re.findall(r"!\[([^\]]+)\]", text)
    assert len(words) == len(PICTURES)
    assert all(len(alternative.split()) > 8 for alternative in words)


def words_of(picture: str) -> list[str]:
    """What is written in a picture, numbers left out: matplotlib chooses those of axes."""
    written = re.findall(r"<!-- (.*?) -->", picture)
    return [re.sub(r"[\d.]+", "#", text) for text in written if re.search("[a-z]{3}", text)]


@pytest.mark.slow
def test_the_script_draws_them(tmp_path: Path) -> None:
    for path in draw(tmp_path):
        stored = (DOCS / "pictures" / path.name).read_text()
        assert path.read_text().count("<path") > 20
        assert words_of(path.read_text()) == words_of(stored) != [], path.name
