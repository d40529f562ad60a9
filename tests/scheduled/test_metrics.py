"""Metrics: what Prometheus itself reads back, and figures of a success that outlive a failure."""

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from mrot_scale.errors import DamagedDataError
from mrot_scale.scheduled.layout import Layout
from mrot_scale.scheduled.metrics import JSON, TEXT, prometheus_text, write_metrics
from mrot_scale.scheduled.telling import figures
from mrot_scale.storing.location import Location
from tests.strategies import examples

HOSTILE = [
    "plain",
    "",
    "two\nlines",
    'a "quoted" name',
    "back\\slash",
    "\\n is no line break",
    'ends in a backslash\\"',
    'x"} 1\nmrot_last_exit_code{output="out"} 0\n#',
    "a,b={c}",
    "größe 😀",
    "tab\tand\rreturn",
    "</script><img src=x onerror=alert(1)>",
]
FIGURES: dict[str, Any] = {
    "last_success_timestamp_seconds": 1_794_000_000.25,
    "last_run_timestamp_seconds": 1_794_000_001.5,
    "last_exit_code": 0,
    "rows_scored": 12_345_678,
    "flagged_ratio": 0.0125,
    "missing_ratio": 0.0,
    "drift_psi": {"temperature": 0.31, "score": 0.02},
    "drift_ks": {"temperature": 0.2, "score": 0.01},
    "gate_level": {"psi": 1, "rows_below": 0, "columns.temperature": 2},
    "stage_seconds": {"model": 3.25, "audit": 0.001},
    "run_seconds": 61.5,
    "attempts": 2,
    "partitions": {"published": 29, "gated": 1},
    "group_flagged_ratio": {"north": 0.5, "(shared)": 0.01},
}
LABELS = {
    "drift_psi": "feature",
    "drift_ks": "feature",
    "gate_level": "gate",
    "stage_seconds": "stage",
    "partitions": "status",
    "group_flagged_ratio": "group",
}


def read_back(text: bytes) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """What Prometheus sees: the value of each metric by its labels."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text.decode()):
        assert family.type == "gauge"
        assert family.documentation
        samples = {tuple(sorted(s.labels.items())): s.value for s in family.samples}
        assert len(samples) == len(family.samples), "no two of the same labels"
        found[family.name] = samples
    return found


def of_label(text: bytes, name: str) -> dict[str, float]:
    """The values of a metric by its own label."""
    found = read_back(text)[f"mrot_{name}"]
    return {dict(labels)[LABELS[name]]: value for labels, value in found.items()}


def test_prometheus_reads_back_every_figure() -> None:
    found = read_back(prometheus_text(FIGURES, "pumps"))
    assert set(found) == {f"mrot_{name}" for name in FIGURES}
    for name, figure in FIGURES.items():
        if name in LABELS:
            expected = {
                tuple(sorted({"output": "pumps", LABELS[name]: label}.items())): float(value)
                for label, value in figure.items()
            }
        else:
            expected = {(("output", "pumps"),): float(figure)}
        assert found[f"mrot_{name}"] == expected


def test_names_and_labels_are_lawful() -> None:
    for name, samples in read_back(prometheus_text(FIGURES, "pumps")).items():
        assert name.replace("_", "").isalnum()
        for labels in samples:
            assert all(not label.startswith("__") for label, _ in labels)


@pytest.mark.parametrize("name", sorted(LABELS))
def test_hostile_labels_come_back_as_they_were(name: str) -> None:
    values = {label: float(number) for number, label in enumerate(HOSTILE)}
    text = prometheus_text({name: values, "last_exit_code": 3}, "pumps")
    assert of_label(text, name) == values
    assert read_back(text)["mrot_last_exit_code"] == {(("output", "pumps"),): 3.0}


@pytest.mark.parametrize("job", HOSTILE)
def test_a_hostile_output_is_a_label_like_any_other(job: str) -> None:
    found = read_back(prometheus_text({"attempts": 1}, job))
    assert found == {"mrot_attempts": {(("output", job),): 1.0}}


@examples(60)
@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from('\n"\\{},= ')),
        st.floats(-1e9, 1e9),
        max_size=5,
    )
)
def test_any_names_of_columns_come_back_as_they_were(values: dict[str, float]) -> None:
    assert of_label(prometheus_text({"drift_psi": values}, "pumps"), "drift_psi") == values


def test_what_is_not_known_is_left_out() -> None:
    assert read_back(prometheus_text({}, "pumps")) == {}
    assert set(read_back(prometheus_text({"attempts": 1}, "pumps"))) == {"mrot_attempts"}


def test_a_metric_without_any_label_value_has_no_samples() -> None:
    assert read_back(prometheus_text({"drift_psi": {}}, "pumps")) == {"mrot_drift_psi": {}}


# --- files


def layout_at(folder: Path) -> Layout:
    return Layout(Location(folder / "pumps"))


def written(layout: Layout) -> dict[str, Any]:
    """What the two files say, which must be the same."""
    found: dict[str, Any] = json.loads((layout.runs / JSON).read())
    text = (layout.runs / TEXT).read()
    for name, samples in read_back(text).items():
        figure = found[name.removeprefix("mrot_")]
        values = list(figure.values()) if isinstance(figure, dict) else [figure]
        assert sorted(samples.values()) == sorted(map(float, values))
    assert len(read_back(text)) == len(found)
    return found


def test_both_files_say_the_same(tmp_path: Path) -> None:
    layout = layout_at(tmp_path)
    write_metrics(layout, FIGURES, None)
    assert written(layout) == FIGURES


def test_figures_of_the_last_success_outlive_a_failing_run(tmp_path: Path) -> None:
    layout = layout_at(tmp_path)
    write_metrics(layout, FIGURES, None)
    failed = {
        "last_run_timestamp_seconds": 1_794_086_400.0,
        "last_exit_code": 75,
        "run_seconds": 2.0,
        "attempts": 3,
        "stage_seconds": {},
        "partitions": {"published": 29, "failed": 1},
        "gate_level": {},
        "drift_psi": {},
    }
    lasting = ("last_success_timestamp_seconds", "rows_scored", "flagged_ratio", "missing_ratio")
    for _ in range(2):  # and a second one
        write_metrics(layout, failed, None)
        assert written(layout) == failed | {name: FIGURES[name] for name in lasting}
    text = (layout.runs / TEXT).read()
    (moment,) = read_back(text)["mrot_last_success_timestamp_seconds"].values()
    assert moment == 1_794_000_000.25
    write_metrics(layout, FIGURES | {"rows_scored": 7}, None)
    assert written(layout)["rows_scored"] == 7, "and not the next success"


def test_a_job_that_never_succeeded_has_no_figures_of_a_success(tmp_path: Path) -> None:
    layout = layout_at(tmp_path)
    write_metrics(layout, {"last_exit_code": 1}, None)
    assert written(layout) == {"last_exit_code": 1}


def test_a_shared_folder_gets_copies_named_after_the_job(tmp_path: Path) -> None:
    layout, shared = layout_at(tmp_path), tmp_path / "textfile"
    write_metrics(layout, FIGURES, str(shared))
    found = {path.suffix: path for path in shared.iterdir()}
    assert sorted(found) == [".json", ".prom"]
    assert all(path.name.startswith("mrot_scale_pumps") for path in found.values())
    assert found[".prom"].read_bytes() == (layout.runs / TEXT).read()
    assert found[".json"].read_bytes() == (layout.runs / JSON).read()


def test_jobs_of_the_same_name_do_not_overwrite_each_other(tmp_path: Path) -> None:
    shared = tmp_path / "textfile"
    for number, site in enumerate(("north", "south")):
        layout = Layout(Location(tmp_path / site / "scores"))
        write_metrics(layout, FIGURES | {"attempts": number}, str(shared))
    texts = [path.read_text() for path in shared.glob("*.prom")]
    samples = [
        (sample.name, tuple(sorted(sample.labels.items())))
        for text in texts
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]
    assert len(texts) == 2, "one file hides the other job"
    assert len(samples) == len(set(samples)), "Prometheus refuses two samples of the same labels"


def test_damaged_figures_are_told(tmp_path: Path) -> None:
    layout = layout_at(tmp_path)
    (layout.runs / JSON).write(b"{")
    with pytest.raises(DamagedDataError, match=r"metrics\.json is damaged"):
        write_metrics(layout, FIGURES, None)


# --- from a run to its figures


def run_facts(**facts: Any) -> dict[str, Any]:
    gates = [
        {"gate": "psi", "level": "warn", "message": ""},
        {"gate": "nulls", "level": "fail", "message": ""},
        {"gate": "ks", "level": "ok", "message": ""},
    ]
    return {
        "status": "published",
        "exit_code": 0,
        "seconds": 2.5,
        "attempts": 1,
        "stages": {"audit": 0.5},
        "gates": gates,
        "rows": {"rows": 200, "flagged": 3, "missing": 1},
        "drift": [{"name": "x", "psi": 0.25, "ks": 0.125, "chance": 0.0, "nulls": 0.0}],
        "groups": {"north": [100, 2], "(shared)": [0, 0]},
    } | facts


def test_the_figures_of_a_night() -> None:
    found = figures(run_facts(), Counter(published=3, failed=1))
    assert found["last_success_timestamp_seconds"] == found["last_run_timestamp_seconds"]
    assert math.isclose(found["flagged_ratio"], 3 / 200)
    assert math.isclose(found["missing_ratio"], 1 / 200)
    assert found["rows_scored"] == 200
    assert found["gate_level"] == {"psi": 1, "nulls": 2, "ks": 0}
    assert (found["drift_psi"], found["drift_ks"]) == ({"x": 0.25}, {"x": 0.125})
    assert found["group_flagged_ratio"] == {"north": 0.02, "(shared)": 0.0}
    assert found["partitions"] == {"published": 3, "failed": 1}
    assert set(read_back(prometheus_text(found, "pumps"))) == {f"mrot_{name}" for name in found}


@pytest.mark.parametrize("status", ["gated", "failed", "empty"])
def test_a_night_that_is_not_published_is_no_success(status: str) -> None:
    found = figures(run_facts(status=status, exit_code=3), Counter())
    assert found["last_exit_code"] == 3
    assert not found.keys() & {"last_success_timestamp_seconds", "rows_scored", "flagged_ratio"}


def test_a_night_with_nothing_to_do_is_a_success_and_leaves_the_rows_as_they_were(
    tmp_path: Path,
) -> None:
    layout = layout_at(tmp_path)
    write_metrics(layout, FIGURES, None)
    facts = run_facts()
    for name in ("rows", "drift", "groups", "gates"):
        del facts[name]
    write_metrics(layout, figures(facts, Counter(published=1)), None)
    now = written(layout)
    assert now["rows_scored"] == FIGURES["rows_scored"]
    assert now["last_success_timestamp_seconds"] == now["last_run_timestamp_seconds"]
