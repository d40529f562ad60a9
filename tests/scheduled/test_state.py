"""States: how each partition's last run ended, read back as written, and what a change is."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrot_scale.config.job import full_config
from mrot_scale.errors import DamagedDataError
from mrot_scale.profiles import Profile
from mrot_scale.scheduled.inputs import InputFile
from mrot_scale.scheduled.layout import Layout
from mrot_scale.scheduled.partitions import Partition
from mrot_scale.scheduled.state import (
    PartitionState,
    all_states,
    read_profile,
    read_state,
    settings_digest,
    write_profile,
    write_state,
)
from mrot_scale.storing.location import Location
from tests.places import KINDS, fresh_place
from tests.strategies import examples

NIGHT = Partition("date", "2026-11-14")
FILES = [InputFile("a.parquet", 5, 1_794_000_000_000_000_000, "0" * 64)]
STATE = PartitionState(
    value="2026-11-14",
    status="published",
    run_id="20261114T020000Z-2026-11-14-abcdef",
    attempts=2,
    level="warn",
    exit_code=0,
    reason="",
    published={"inputs": [FILES[0].to_json()], "model": "m-0123456789", "rows": 7},
)


@pytest.fixture(params=KINDS)
def layout(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Layout]:
    with fresh_place(request.param, tmp_path) as found:
        yield Layout(found)


def test_a_state_is_read_as_it_was_written(layout: Layout) -> None:
    assert read_state(layout, NIGHT) is None
    write_state(layout, NIGHT, STATE)
    found = read_state(layout, NIGHT)
    assert found == STATE
    assert found.inputs == FILES


def test_the_last_state_replaces_the_one_before(layout: Layout) -> None:
    write_state(layout, NIGHT, STATE)
    later = replace(STATE, status="gated", attempts=3, level="fail", exit_code=3, reason="psi")
    write_state(layout, NIGHT, later)
    assert read_state(layout, NIGHT) == later
    assert all_states(layout, "date") == {"2026-11-14": later}


def test_a_partition_that_was_never_published_has_no_inputs(layout: Layout) -> None:
    write_state(layout, NIGHT, PartitionState("2026-11-14", "failed", "r", 1))
    found = read_state(layout, NIGHT)
    assert found is not None
    assert (found.inputs, found.published, found.level) == ([], {}, "ok")


def test_states_of_all_partitions_of_a_key_are_found(layout: Layout) -> None:
    assert all_states(layout, "date") == {}
    values = ["2026-11-14", "north/west", "a b", "100%", "ä=ö", "x.json"]
    for value in values:
        write_state(layout, Partition("site", value), replace(STATE, value=value))
    write_state(layout, NIGHT, STATE)
    (layout.runs / "partitions" / "notes.txt").write(b"x")
    assert {value: state.value for value, state in all_states(layout, "site").items()} == {
        value: value for value in values
    }
    assert list(all_states(layout, "date")) == ["2026-11-14"]
    assert all_states(layout, "dat") == {}


@examples(60)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12))
def test_states_of_any_value_are_found(value: str) -> None:
    with fresh_place("memory", Path()) as place:
        layout = Layout(place)
        write_state(layout, Partition("site", value), replace(STATE, value=value))
        assert list(all_states(layout, "site")) == [value]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff", b"{}", b'{"value": "x"}', b'{"who": 1}']
)
def test_a_damaged_state_is_told_with_its_file(content: bytes, layout: Layout) -> None:
    layout.state(NIGHT).write(content)
    for ask in (lambda: read_state(layout, NIGHT), lambda: all_states(layout, "date")):
        with pytest.raises(DamagedDataError, match=r"date=2026-11-14\.json is damaged") as caught:
            ask()
        assert caught.value.exit_code == 74


def test_inputs_that_are_none_are_told(layout: Layout) -> None:
    write_state(layout, NIGHT, replace(STATE, published={"inputs": [{"name": "a"}]}))
    found = read_state(layout, NIGHT)
    assert found is not None
    with pytest.raises(DamagedDataError, match="no input file"):
        _ = found.inputs


# --- which settings decide scores


def digest(**settings: Any) -> str:
    return settings_digest(full_config(settings))


@pytest.mark.parametrize(
    "settings",
    [
        {"scoring": {"method": "effort"}},
        {"scoring": {"contamination": 0.02}},
        {"scoring": {"top_columns": 3}},
        {"scoring": {"percentile": True}},
        {"non_finite": "impute"},
        {"nightly": {"id": "reading"}},
        {"nightly": {"keep": ["site"]}},
        {"nightly": {"by": "site"}},
    ],
)
def test_settings_that_decide_scores_are_told_apart(settings: dict[str, Any]) -> None:
    assert digest(**settings) != digest()


@pytest.mark.parametrize(
    "settings",
    [
        {"cluster": {"kind": "inline"}},
        {"cluster": {"workers": 7}},
        {"gates": {"psi": {"fail": 1.0}}},
        {"nightly": {"alert_command": ["mail"]}},
        {"nightly": {"metrics": "/var/lib/node_exporter"}},
        {"nightly": {"training_partitions": 7}},
        {"run": {"keep_stages": True}},
        {"seed": 5},
    ],
)
def test_settings_that_decide_no_scores_of_a_model_change_nothing(
    settings: dict[str, Any],
) -> None:
    assert digest(**settings) == digest()


# --- profiles that are kept


def a_profile() -> Profile:
    return Profile(
        9, np.array([[4, 5, 0], [9, 0, 0]]), np.array([9, 0]), {"kind": np.array([8, 1, 0])}
    )


def test_a_profile_is_read_for_the_same_rows_as_the_same_model_sees_them(layout: Layout) -> None:
    assert read_profile(layout, NIGHT, "m", FILES) is None
    write_profile(layout, NIGHT, "m", FILES, a_profile())
    found = read_profile(layout, NIGHT, "m", [replace(FILES[0], digest=None)])
    assert found is not None
    assert found.to_json() == a_profile().to_json()


@pytest.mark.parametrize(
    ("model", "files"),
    [
        ("other", FILES),
        ("m", []),
        ("m", FILES * 2),
        ("m", [replace(FILES[0], size=6)]),
        ("m", [replace(FILES[0], stamp=7)]),
        ("m", [replace(FILES[0], name="b.parquet")]),
    ],
)
def test_a_profile_of_other_rows_or_another_model_is_not_taken(
    model: str, files: list[InputFile], layout: Layout
) -> None:
    write_profile(layout, NIGHT, "m", FILES, a_profile())
    assert read_profile(layout, NIGHT, model, files) is None


@pytest.mark.parametrize("profile", [None, {}, {"n_rows": 1}, []])
def test_a_damaged_profile_is_told(profile: Any, layout: Layout) -> None:
    write_profile(layout, NIGHT, "m", FILES, a_profile())
    kept = json.loads(layout.profile(NIGHT).read())
    layout.profile(NIGHT).write(json.dumps(kept | {"profile": profile}).encode())
    with pytest.raises(DamagedDataError, match="no profile"):
        read_profile(layout, NIGHT, "m", FILES)


def test_files_of_partitions_lie_where_they_are_looked_for(tmp_path: Path) -> None:
    layout, odd = Layout(Location(tmp_path)), Partition("site", "../../etc/passwd")
    for place in (layout.scores(odd), layout.work(odd), layout.state(odd), layout.report(odd)):
        assert place.path.resolve().is_relative_to(tmp_path.resolve())
        assert place.path.name.startswith("site=")
