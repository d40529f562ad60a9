"""Charts: bars and points where values are, within their picture, names escaped."""

import re
from typing import Any

import pytest

from mrot_scale.reporting import drawing, small_charts, texts
from mrot_scale.reporting.populations import score_json
from mrot_scale.reporting.spreads import even_cells


def bars(picture: str, css: str = 'bar[^"]*') -> list[tuple[float, float, float, float]]:
    found = re.findall(
        rf'<rect class="{css}" x="([-\d.]+)" y="([-\d.]+)" width="([\d.]+)" height="([\d.]+)"',
        picture,
    )
    return [(float(x), float(y), float(w), float(h)) for x, y, w, h in found]


def test_scores_are_drawn_by_their_share_and_those_above_the_threshold_stand_out() -> None:
    counts = [100] * 19 + [80, 18, 2]
    picture = drawing.score_chart(score_json(counts), 0.99)
    assert len(bars(picture)) == 22
    assert len(bars(picture, "bar hot")) == 2
    heights = [h for *_, h in bars(picture)]
    assert heights[0] == heights[18] > heights[19] > heights[20] > heights[21]
    assert "threshold 0.99" in picture
    assert "1% of the rows score above 0.99, 1% would be usual" in picture


@pytest.mark.parametrize("counts", [[5] + [0] * 21, [0] * 21 + [1], [1] * 22, [10**12] + [1] * 21])
def test_bars_stay_within_their_picture(counts: list[int]) -> None:
    for x, y, width, height in bars(drawing.score_chart(score_json(counts), 0.5)):
        assert 0 <= x <= x + width <= 360
        assert y >= 0
        assert y + height == pytest.approx(190, abs=0.2)


def test_without_scores_there_is_no_picture() -> None:
    assert drawing.score_chart(score_json([0] * 22), 0.99) == ""
    assert drawing.effort_chart({"view": "v", "edges": [0, 1], "counts": [0], "cdf": [0]}) == ""
    assert drawing.map_chart({"x": []}, None, set()) == ""
    assert small_charts.night_chart("n", [None], ["ok"], ["a"], texts.brief) == ""


def test_a_map_draws_flagged_rows_one_by_one_and_others_by_shade() -> None:
    found: dict[str, Any] = {"x": [0.0, 1.0, 2.0], "y": [0.0, 1.0, 0.0], "score": [0.1, 0.97, 1.0]}
    found |= {"id": ["a", "b", "<c>"], "row": [4, 5, 6], "explained": []}
    picture = drawing.map_chart(found, 0.99, {6})
    assert picture.count("<circle") == 1
    assert 'data-row="6"' in picture
    assert "&lt;c&gt;: 1" in picture
    assert set(re.findall(r"dots (s\d)", picture)) == {"s0", "s3"}


def test_a_curve_of_efforts_ends_where_all_rows_are() -> None:
    effort = {"view": "robust", "edges": [-1.0, 0.0, 1.0], "counts": [3, 1], "cdf": [0.75, 1.0]}
    picture = drawing.effort_chart(effort)
    assert [h for *_, h in bars(picture)] == pytest.approx([134.0, 44.7], abs=0.1)
    assert "half are below 1, 99% below 10" in picture


def test_labels_are_escaped() -> None:
    spread = {"kind": "number", "edges": [0.0, 1.0], "training": [1, 2, 1, 0], "now": None}
    assert '"Distribution of &quot;&gt;&lt;b&gt;' in small_charts.spread_chart('"><b>', spread)
    picture = small_charts.night_chart("n", [1.0, 2.0], ["ok", "fail"], ["<a>", "b"], texts.brief)
    assert "<a>" not in picture
    assert len(bars(picture, "bar fail")) == 1


def test_cells_of_equal_width_keep_every_row() -> None:
    edges, counts = [0.0, 0.0, 1.0, 10.0], [2, 3, 5, 9, 1, 99]
    found = even_cells(edges, counts, 10)
    assert sum(found) == pytest.approx(20)  # rows without a value are in no cell
    assert found[0] == pytest.approx(2 + 3 + 5)
    assert found[1] == pytest.approx(1)
    assert found[-1] == pytest.approx(1 + 1)
    assert even_cells([], [], 3) == [0, 0, 0]
    assert even_cells([2.0, 2.0], [0, 7, 0, 0], 4) == [7, 0, 0, 0]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (1_234_567, "1,234,567"),
        (0.1234567, "0.1235"),
        (12_345.6, "12,346"),
        (1.5e12, "1.5e12"),
        (-2e-9, "-2e-9"),
        (0.0, "0"),
        ("word", "word"),
    ],
)
def test_numbers_are_short(value: object, shown: str) -> None:
    assert texts.number(value) == shown


def test_shares_times_and_axes_are_short() -> None:
    assert [texts.share(x) for x in (0, 0.00001, 0.0123, 0.5, 0.123)] == [
        "0%",
        "0.001%",
        "1.23%",
        "50%",
        "12.3%",
    ]
    assert [texts.seconds(x) for x in (0.5, 12.34, 245, 7_800)] == [
        "0.50 s",
        "12.3 s",
        "4 min 05 s",
        "2 h 10 min",
    ]
    assert [texts.brief(x) for x in (0.02, 1e-6, 1_500, 2.5e6)] == ["0.02", "1e-6", "1.5k", "2.5M"]
    assert texts.moment("2026-11-14T02:00:00+00:00") == "2026-11-14 02:00:00 UTC"
