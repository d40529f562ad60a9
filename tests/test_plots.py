"""Plots of a report: the right figures, texts as they are, and nothing left behind."""

import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import style
from matplotlib.figure import Figure

from mrot_scale import plots
from mrot_scale.errors import (
    ConfigError,
    DamagedDataError,
    MissingInputError,
    MissingLibraryError,
)
from mrot_scale.plots_data import even_density
from mrot_scale.storing.location import Location
from tests.places import KINDS, fresh_place
from tests.report_example import HOSTILE, ROWS, STAGES, example_nights, example_report

Plot = Callable[..., Any]

PLOTS: dict[str, Plot] = {
    "score_distribution": plots.score_distribution,
    "effort_distribution": plots.effort_distribution,
    "contributions": lambda report, ax=None: plots.contributions(report, 0, ax),
    "column_distribution": lambda report, ax=None: plots.column_distribution(
        report, next(iter(report["columns"])), 0 if report["flagged"] else None, ax
    ),
    "row_map": plots.row_map,
    "drift": plots.drift,
    "quality": plots.quality,
    "stage_times": plots.stage_times,
    "history": lambda report, ax=None: plots.history(example_nights(), ax),
}


@pytest.fixture
def report() -> dict[str, Any]:
    return example_report()


def drawn(ax: Any) -> bytes:
    """Return the picture; what cannot be drawn raises, and warnings are errors."""
    content = io.BytesIO()
    ax.figure.savefig(content, format="png")
    return content.getvalue()


def texts(ax: Any) -> list[Any]:
    """Return all texts of a figure that are seen."""
    from matplotlib.text import Text

    ax.figure.canvas.draw()
    return [text for text in ax.figure.findobj(Text) if text.get_text()]


def widths(ax: Any) -> list[float]:
    return [float(bar.get_width()) for bar in ax.patches]


def names(ax: Any) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def test_every_function_is_looked_at() -> None:
    assert set(plots.__all__) == {*PLOTS, "read_report"}


@pytest.mark.parametrize("name", PLOTS)
@pytest.mark.parametrize("look", ["default", "dark_background"])
def test_a_plot_draws_on_axes_of_its_own_or_on_those_given(
    name: str, look: str, report: dict[str, Any]
) -> None:
    with style.context(look):
        own = PLOTS[name](report)
        assert drawn(own).startswith(b"\x89PNG")
        given = Figure().add_subplot()
        assert PLOTS[name](report, given) is given
        assert given.get_title(loc="left") == own.get_title(loc="left") != ""


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_changes_nothing_in_the_report(name: str, report: dict[str, Any]) -> None:
    PLOTS[name](report)
    assert report == example_report()


def test_scores_are_told_as_multiples_of_what_is_expected(report: dict[str, Any]) -> None:
    ax = plots.score_distribution(report)
    heights = [float(bar.get_height()) for bar in ax.patches]
    counts, expected = report["scores"]["counts"], report["scores"]["expected"]
    assert heights[-1] == pytest.approx(counts[-1] / ROWS / expected[-1])
    assert heights[-1] > 3 > heights[0] == pytest.approx(1.0, abs=0.05)
    assert f"{counts[-1]:,}" in [text.get_text() for text in ax.texts]
    assert "flagged above 0.99012" in legend_texts(ax)


def legend_texts(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_plain_scores_are_counted_alike() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random(10_000).astype(np.float32)
    scores[:3] = np.nan
    ax = plots.score_distribution(scores, threshold=0.95)
    assert ax.get_title(loc="left") == "Scores of 9,997 rows"
    assert "flagged above 0.95" in legend_texts(ax)
    with pytest.raises(ConfigError, match="between 0 and 1"):
        plots.score_distribution([0.5, 1.5])


def test_scores_that_tower_get_a_logarithmic_axis(report: dict[str, Any]) -> None:
    assert plots.score_distribution(report).get_yscale() == "linear"
    assert plots.score_distribution(np.full(1_000, 0.9999)).get_yscale() == "log"


def test_efforts_come_with_their_share_of_rows(report: dict[str, Any]) -> None:
    both = plots.effort_distribution(report)
    assert legend_texts(both) == [view["view"] for view in report["efforts"]]
    below = both.figure.axes[1]
    for line, view in zip(below.get_lines(), report["efforts"], strict=True):
        np.testing.assert_array_equal(line.get_ydata(), view["cdf"])
        np.testing.assert_array_equal(line.get_xdata(), view["edges"][1:])
    one = plots.effort_distribution(report, view="quantile")
    assert legend_texts(one) == legend_texts(plots.effort_distribution(report, view=1))
    with pytest.raises(ConfigError, match="no view 'square'; it has 'robust'"):
        plots.effort_distribution(report, view="square")


def test_contributions_are_those_of_the_row(report: dict[str, Any]) -> None:
    row = report["flagged"][3]
    ax = plots.contributions(report, 3)
    assert widths(ax) == [column["contribution"] for column in row["columns"]]
    assert names(ax)[-3:] == ["site = Weir", "read_at = 2024-10-05T03:20:00Z", "noise_db = missing"]
    assert row["id"] in ax.get_title(loc="left")
    by_id = plots.contributions(report, row["id"])
    assert by_id.get_title(loc="left") == ax.get_title(loc="left")
    for wrong in (99, -1, "nobody"):
        with pytest.raises(ConfigError, match="The report shows"):
            plots.contributions(report, wrong)


def test_contributions_nobody_knows_and_values_not_to_be_shown(report: dict[str, Any]) -> None:
    columns = report["flagged"][0]["columns"]
    columns[0]["contribution"] = None
    columns[1] |= {"value": None, "redacted": True}
    ax = plots.contributions(report)
    assert "not known" in [text.get_text() for text in ax.texts]
    assert names(ax)[1].endswith("= (not shown)")


def test_a_value_stands_beside_the_population(report: dict[str, Any]) -> None:
    column = report["flagged"][0]["columns"][0]
    ax = plots.column_distribution(report, column["name"], 0)
    assert ax.get_lines()[0].get_xdata()[0] == column["value"]
    assert legend_texts(ax) == ["training rows", "rows now", "this row"]
    assert legend_texts(plots.column_distribution(report, column["name"])) == legend_texts(ax)[:2]
    with pytest.raises(ConfigError, match="no column 'nothing'; it has 'speed_rpm'"):
        plots.column_distribution(report, "nothing")


def test_a_value_far_out_does_not_make_the_population_thin(report: dict[str, Any]) -> None:
    column = report["flagged"][0]["columns"][0]
    column["value"] = 1e12
    ax = plots.column_distribution(report, column["name"], 0)
    assert ax.get_xlim()[1] < 1e6
    assert "this row: 1e+12" in [text.get_text() for text in ax.texts]


def test_moments_are_dates_on_the_axis(report: dict[str, Any]) -> None:
    ax = plots.column_distribution(report, "read_at", 0)
    assert ax.get_lines()[0].get_xdata()[0] == pytest.approx(20_001 + 200 / 1_440)
    drawn(ax)
    assert any(label.get_text().startswith("2024-10-") for label in ax.get_xticklabels())


def test_categories_are_named_with_the_row_among_them(report: dict[str, Any]) -> None:
    ax = plots.column_distribution(report, "site", 0)
    assert names(ax)[:2] == ["Brook", "Dale"]
    assert widths(ax)[0] == pytest.approx(6_100 / 20_000)
    colours = {name: bar.get_facecolor() for name, bar in zip(names(ax), ax.patches, strict=True)}
    assert colours["Weir"] != colours["Brook"] == colours["Dale"]


def test_cells_hold_all_rows_whatever_the_bins() -> None:
    bounds, share, beyond = even_density([0.0, 1.0, 1.0, 1.0, 4.0], [5, 10, 20, 5, 50, 10, 7])
    assert share.sum() + beyond == pytest.approx(1.0)
    assert beyond == pytest.approx(15 / 100)
    spike = int(np.argmax(share))
    assert bounds[spike] <= 1.0 <= bounds[spike + 1]
    _, constant, _ = even_density([3.0] * 5, [0, 0, 100, 0, 0, 0, 0])
    assert constant.sum() == pytest.approx(1.0)
    _, between, none = even_density([0.0, 1.0, 2.0], [30, 70])
    assert (between.sum(), none) == (pytest.approx(1.0), 0.0)


def test_the_map_has_every_row_and_names_the_highest(report: dict[str, Any]) -> None:
    ax = plots.row_map(report)
    others, high = (len(points.get_offsets()) for points in ax.collections)
    assert (others, high) == (1_000, 10)
    assert [text.get_text() for text in ax.texts] == ["r001000", "r001008", "r001009"]
    assert ax.get_xlabel() == "first direction (41% of the variance)"


def test_drift_is_sorted_and_beside_the_run_before(report: dict[str, Any]) -> None:
    report["drift"].reverse()
    ax = plots.drift(report)
    assert names(ax)[:3] == ["flow_l_min", "score", "site"]
    assert widths(ax)[0] == 0.31
    assert legend_texts(ax) == ["the run before"]
    report["drift"] = [{"name": f"c{n}", "psi": 0.01 * n, "ks": 0, "nulls": 0} for n in range(99)]
    many = plots.drift(report)
    assert names(many)[0] == "c98"
    assert many.get_title(loc="left") == "Drift since training: 20 of 99 columns"


def test_quality_is_the_share_that_is_missing(report: dict[str, Any]) -> None:
    ax = plots.quality(report)
    assert names(ax) == ["noise_db", "valve_open_pct", "inlet_pressure_bar"]
    assert widths(ax)[0] == pytest.approx(100 * 5_400 / ROWS)


def test_stages_are_in_their_order(report: dict[str, Any]) -> None:
    ax = plots.stage_times(report)
    assert dict(zip(names(ax), widths(ax), strict=True)) == STAGES
    assert ax.get_title(loc="left") == "Time: 55 s in all"


def test_nights_that_failed_are_told_from_others() -> None:
    ax = plots.history(example_nights())
    assert legend_texts(ax) == ["flagged", "failed", "largest drift"]
    (failed,) = ax.collections
    assert failed.get_offsets()[:, 0].tolist() == [12, 22]
    assert len(ax.patches) == 30


EMPTY: dict[str, Any] = {
    "rows": {"rows": None, "flagged": None, "missing": None},
    "threshold": None,
    "scores": {"edges": [], "counts": [], "expected": []},
    "efforts": [],
    "columns": {"x": {"kind": "number", "edges": [], "training": [], "now": None}},
    "map": {"x": [], "y": [], "score": [], "id": [], "explained": []},
    "drift": [],
    "quality": [],
    "stages": {},
}


@pytest.mark.parametrize("name", sorted(set(PLOTS) - {"contributions", "history"}))
def test_a_part_that_is_not_there_is_told(name: str, report: dict[str, Any]) -> None:
    ax = PLOTS[name](report | EMPTY | {"flagged": []})
    assert len(ax.texts) == 1
    assert not ax.axison
    drawn(ax)


def test_rows_and_nights_that_are_not_there_are_told(report: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="shows 0 rows"):
        plots.contributions(report | {"flagged": []})
    report["flagged"][0]["columns"] = []
    assert "no column" in plots.contributions(report).texts[0].get_text()
    assert plots.history([]).texts[0].get_text() == "no night has run"


@pytest.fixture
def hostile(report: dict[str, Any]) -> dict[str, Any]:
    """The report with a name that no page is made for wherever a name can be."""
    for row in report["flagged"]:
        row["id"] = HOSTILE
        for column in row["columns"]:
            column |= {"name": HOSTILE, "value": HOSTILE}
    first = report["columns"].pop("speed_rpm")
    report["columns"] = {HOSTILE: first, **report["columns"]}
    report["columns"]["site"]["edges"] = [f"{HOSTILE}{n}" for n in range(7)]
    report["map"]["id"] = [HOSTILE] * len(report["map"]["id"])
    for part in ("drift", "quality"):
        for line in report[part]:
            line["name"] = HOSTILE
    for view in report["efforts"]:
        view["view"] = HOSTILE
    report["stages"] = {HOSTILE: 1.0}
    return report


@pytest.mark.parametrize("name", PLOTS)
def test_hostile_names_are_drawn_as_they_are(name: str, hostile: dict[str, Any]) -> None:
    nights = [night | {"partition": HOSTILE} for night in example_nights()]
    ax = plots.history(nights) if name == "history" else PLOTS[name](hostile)
    drawn(ax)
    odd = [text for text in texts(ax) if "price" in text.get_text()]
    assert odd or name == "score_distribution"
    for text in odd:
        assert text.get_text().isprintable()
        assert len(text.get_text()) < 90
        assert not text.get_parse_math()
        assert text.get_text().count("$") != 2 or "$x^2$" in text.get_text()


def test_hostile_categories_are_drawn_as_they_are(hostile: dict[str, Any]) -> None:
    drawn(plots.column_distribution(hostile, "site", 0))


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    with fresh_place(request.param, tmp_path) as found:
        yield found


def test_a_report_is_found_by_file_run_and_output(place: Location, report: dict[str, Any]) -> None:
    data = place / "scores.run" / "report.json"
    data.write(json.dumps(report).encode())
    for given in (data, place / "scores.run", place / "scores"):
        assert plots.read_report(given.address) == report
    assert drawn(plots.stage_times(data.address))
    with pytest.raises(MissingInputError, match="has no report"):
        plots.read_report((place / "elsewhere").address)
    with pytest.raises(MissingInputError):
        plots.read_report((place / "no.json").address)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("no json", "is no report"),
        ("[]", "is no report of mrot-scale"),
        ('{"format": "mrot-scale-report", "version": 2}', "version 2, not 1"),
        ('{"format": "mrot-scale-report", "version": 1}', "no whole report: rows, scores"),
        ("[" * 100_000, "is no report"),
    ],
)
def test_what_is_no_report_is_refused(content: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(content)
    with pytest.raises(DamagedDataError, match=told):
        plots.read_report(tmp_path)


def test_a_missing_matplotlib_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingLibraryError, match=r"pip install 'mrot-scale\[plots\]'") as told:
        plots.score_distribution([0.5])
    assert told.value.exit_code == 78


def test_plots_are_there_on_demand_and_know_no_pyplot() -> None:
    code = (
        "import sys, mrot_scale; assert 'matplotlib' not in sys.modules\n"
        "mrot_scale.plots.score_distribution([.5]).figure.savefig(sys.argv[1], format='png')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "import mrot_scale.plots as again; assert again is mrot_scale.plots"
    )
    subprocess.run([sys.executable, "-c", code, "/dev/null"], check=True, timeout=60)
