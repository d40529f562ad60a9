"""The registry: models that never change, and facts of which the first to be written holds."""

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrot_scale.errors import ConfigError, DamagedDataError, MissingInputError, MrotError
from mrot_scale.scheduled.layout import Layout
from mrot_scale.scheduled.partitions import Partition
from mrot_scale.scheduled.policy import Promotion
from mrot_scale.scheduled.registry import (
    ENTRY,
    MODEL,
    Registry,
    check_same_key,
    listed_models,
    model_id,
    promote_model,
)
from mrot_scale.storing.location import Location
from tests.places import KINDS, fresh_place
from tests.strategies import examples

DAMAGED = [b"", b"{", b"[]", b"null", b"7", b"\xff\xfe", b'{"a": ' * 100_000]
NIGHT = Partition("date", "2026-11-14")


@pytest.fixture(params=KINDS)
def layout(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Layout]:
    with fresh_place(request.param, tmp_path) as found:
        yield Layout(found)


@pytest.fixture
def registry(layout: Layout) -> Registry:
    return Registry(layout)


def added(registry: Registry, value: str, **facts: Any) -> str:
    """Put a model for a partition into the registry; return its id."""
    id = model_id(value, facts)
    (registry.folder(id) / MODEL / "manifest.json").write(b"{}")
    registry.add(id, {"id": id, "partition": value, **facts})
    return id


# --- ids


def test_an_id_is_of_a_partition_and_of_all_that_decides_what_is_learnt() -> None:
    terms = {"inputs": [["a.parquet", 1, 2]], "method": {"alpha": 0.1}}
    id = model_id("2026-11-14", terms)
    assert re.fullmatch(r"2026-11-14-[0-9a-f]{10}", id)
    assert id == model_id("2026-11-14", dict(reversed(terms.items()))), "in whatever order"
    others = [
        model_id("2026-11-15", terms),
        model_id("2026-11-14", terms | {"method": {"alpha": 0.2}}),
        model_id("2026-11-14", terms | {"inputs": [["a.parquet", 1, 3]]}),
    ]
    assert len({id, *others}) == 4


def test_an_id_is_the_same_on_every_machine() -> None:
    """printf '{"a": null, "b": [1, "x"]}' | sha256sum"""
    assert model_id("2026-11-14", {"b": [1, "x"], "a": None}) == "2026-11-14-7c2e4f0779"


@examples(60)
@given(st.text(min_size=1, max_size=80))
def test_an_id_of_any_value_is_one_plain_name(value: str) -> None:
    id = model_id(value, {})
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,60}-[0-9a-f]{10}", id)
    assert id not in (".", "..")


# --- entries


def test_a_model_is_there_once_it_is_declared_finished(registry: Registry) -> None:
    id = model_id("2026-11-14", {})
    (registry.folder(id) / MODEL / "manifest.json").write(b"{}")
    assert not registry.has(id)
    assert registry.ids() == []
    with pytest.raises(MissingInputError):
        registry.entry(id)
    registry.add(id, {"partition": "2026-11-14", "rows": 5})
    assert registry.has(id)
    assert registry.ids() == [id]
    entry = registry.entry(id)
    assert entry.facts == {"partition": "2026-11-14", "rows": 5}
    assert entry.location == registry.folder(id) / MODEL
    assert (entry.by, entry.groups()) == (None, [])


def test_a_finished_model_never_changes(registry: Registry) -> None:
    id = added(registry, "2026-11-14", rows=5)
    with suppress(MrotError):  # it may be refused
        registry.add(id, {"id": id, "partition": "2026-11-15", "rows": 6})
    assert registry.entry(id).facts["rows"] == 5
    assert registry.entry(id).facts["partition"] == "2026-11-14"


def test_groups_lie_beside_the_model_of_all(registry: Registry) -> None:
    groups = [
        {"value": "north", "rows": 9, "folder": "0000"},
        {"value": 7, "rows": 8, "folder": "0001"},
    ]
    entry = registry.entry(added(registry, "2026-11-14", by="site", groups=groups))
    folder = registry.folder(entry.id) / "groups"
    assert entry.by == "site"
    assert entry.groups() == [("north", folder / "0000"), (7, folder / "0001")]


def test_models_are_listed_by_the_partitions_they_are_for(registry: Registry) -> None:
    ids = {value: added(registry, value) for value in ("10", "9", "100")}
    again = added(registry, "9", rows=1)
    assert registry.ids() == [*sorted([ids["9"], again]), ids["10"], ids["100"]]
    assert registry.named("latest").id == ids["100"]


def test_facts_are_no_models(registry: Registry) -> None:
    id = added(registry, "2026-11-14")
    registry.record_fit(NIGHT, id)
    registry.promote(id, NIGHT)
    registry.record_decision(NIGHT, {"psi": 0.1})
    assert registry.ids() == [id]


def test_what_lies_among_the_models_is_overlooked(layout: Layout, registry: Registry) -> None:
    id = added(registry, "2026-11-14")
    (layout.models / ".DS_Store").write(b"x")
    (layout.models / "README.md").write(b"x")
    (layout.models / "unfinished-0123456789/model/x").write(b"x")
    assert registry.ids() == [id]


@pytest.mark.parametrize("name", ["2026-11-14-0000000000", "x", "", "..", "fits", "../models/x"])
def test_an_unknown_id_is_told_with_those_there_are(name: str, registry: Registry) -> None:
    with pytest.raises(MissingInputError, match=r"No model '.*' in .*models; it has: none yet\."):
        registry.entry(name)
    ids = [added(registry, f"2026-11-{day}") for day in range(10, 17)]
    with pytest.raises(MissingInputError) as caught:
        registry.entry(name)
    assert str(caught.value).endswith(f"it has: {', '.join(ids[-5:])}.")
    assert caught.value.exit_code == 66


@pytest.mark.parametrize("name", ["fits", "../other", "../other/2026-11-14-0123456789", "."])
def test_an_id_leads_nowhere_but_to_models(name: str, layout: Layout, registry: Registry) -> None:
    (layout.models / name / ENTRY).write(b'{"partition": "2026-11-14"}')
    with pytest.raises(MissingInputError, match="No model"):
        registry.entry(name)


def test_a_model_is_named_by_id_as_latest_or_by_path(registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match=r"no model in .* yet"):
        registry.named("latest")
    old, new = added(registry, "2026-11-13"), added(registry, "2026-11-14")
    assert registry.named(old).id == old
    assert registry.named("latest").id == new
    (tmp_path / "own model").mkdir()
    (tmp_path / "own model" / "MANIFEST.json").write_text("{}")
    own = registry.named(f"{tmp_path}/own model")
    assert own.location == Location(tmp_path / "own model")
    assert own.groups() == []
    with pytest.raises(MissingInputError, match=r"No model at .*absent"):
        registry.named(f"{tmp_path}/absent")
    with pytest.raises(MissingInputError, match="No model 'oldest'"):
        registry.named("oldest")


# --- facts


def test_the_first_to_say_which_model_a_partition_has_is_right(registry: Registry) -> None:
    first, second = added(registry, "2026-11-14"), added(registry, "2026-11-14", rows=2)
    assert registry.fits() == {}
    assert registry.record_fit(NIGHT, first) == first
    assert registry.record_fit(NIGHT, second) == first
    assert registry.record_fit(NIGHT, first) == first
    assert registry.fits() == {"2026-11-14": first}


def test_of_writers_at_the_same_time_all_get_the_same_model(tmp_path: Path) -> None:
    layout = Layout(Location(tmp_path))
    ids = [added(Registry(layout), "2026-11-14", writer=n) for n in range(8)]
    for night in range(5):
        partition, barrier = Partition("date", f"2026-11-{night + 10}"), Barrier(len(ids))

        def record(id: str, partition: Partition = partition, barrier: Barrier = barrier) -> str:
            barrier.wait(10)
            return Registry(layout).record_fit(partition, id)

        with ThreadPoolExecutor(len(ids)) as pool:
            found = set(pool.map(record, ids))
        assert len(found) == 1
        assert found <= set(ids)
        assert Registry(layout).fits()[partition.value] in found


def test_facts_of_a_partition_do_not_depend_on_how_it_is_written(registry: Registry) -> None:
    id = added(registry, "x")
    values = ["north/west", "a b", "100%", "ä=ö", ".", ".."]
    for value in values:
        registry.record_fit(Partition("site", value), id)
    assert registry.fits() == dict.fromkeys(values, id)


def test_a_model_is_chosen_from_a_partition_on_until_another_is(registry: Registry) -> None:
    old, new = added(registry, "2026-11-13"), added(registry, "2026-11-14")
    assert registry.promotions() == []
    registry.promote(old, NIGHT)
    registry.promote(new, Partition("date", "2026-12-01"))
    both = {Promotion("2026-11-14", old), Promotion("2026-12-01", new)}
    assert set(registry.promotions()) == both
    registry.promote(new, NIGHT)
    assert Promotion("2026-11-14", new) in registry.promotions()
    assert len(registry.promotions()) == 2


def test_a_model_that_is_not_there_cannot_be_chosen(registry: Registry) -> None:
    with pytest.raises(MissingInputError, match="No model"):
        registry.promote("2026-11-14-0123456789", NIGHT)
    assert registry.promotions() == []


def test_what_was_found_once_of_a_partition_holds(registry: Registry) -> None:
    assert registry.decision(NIGHT) is None
    registry.record_decision(NIGHT, {"psi": 0.1})
    registry.record_decision(NIGHT, {"psi": 0.9})
    assert registry.decision(NIGHT) == {"value": "2026-11-14", "psi": 0.1}


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
@pytest.mark.parametrize("folder", ["fits", "promotions", "decisions", "entry"])
def test_damaged_facts_are_told_and_not_taken(
    folder: str, content: bytes, layout: Layout, registry: Registry
) -> None:
    id = added(registry, "2026-11-14")
    place = registry.folder(id) / ENTRY
    if folder != "entry":
        place = layout.models / folder / f"{NIGHT.name}.json"
    place.write(content)
    asked: dict[str, Callable[[], Any]] = {
        "fits": registry.fits,
        "promotions": registry.promotions,
        "decisions": lambda: registry.decision(NIGHT),
        "entry": lambda: registry.entry(id),
    }
    with pytest.raises(DamagedDataError, match="damaged") as caught:
        asked[folder]()
    assert caught.value.exit_code == 74
    assert place.name in str(caught.value)


@pytest.mark.parametrize("folder", ["fits", "promotions"])
def test_facts_that_lack_something_are_damaged(
    folder: str, layout: Layout, registry: Registry
) -> None:
    (layout.models / folder / "date=2026-11-14.json").write(b'{"value": "2026-11-14"}')
    with pytest.raises(DamagedDataError, match=r"without 'model'"):
        getattr(registry, folder)()


def test_an_entry_that_does_not_say_what_it_is_for_is_damaged(registry: Registry) -> None:
    (registry.folder("2026-11-14-0123456789") / ENTRY).write(b"{}")
    with pytest.raises(DamagedDataError):
        registry.ids()


# --- for people


def test_models_are_listed_with_the_partitions_they_were_chosen_from(tmp_path: Path) -> None:
    registry = Registry(Layout(Location(tmp_path)))
    assert listed_models(tmp_path) == []
    old, new = added(registry, "2026-11-13"), added(registry, "2026-11-14", rows=7)
    promote_model(tmp_path, old, "2026-12-01")
    promote_model(str(tmp_path), old, "2026-12-05")
    found = listed_models(tmp_path)
    assert [model["id"] for model in found] == [old, new]
    assert [sorted(model["promoted"]) for model in found] == [["2026-12-01", "2026-12-05"], []]
    assert found[1]["rows"] == 7
    json.dumps(found)


def test_the_latest_model_is_chosen_by_its_id(tmp_path: Path) -> None:
    registry = Registry(Layout(Location(tmp_path)))
    id = added(registry, "2026-11-14")
    expected = {"model": id, "from": "2026-12-01", "dry_run": False}
    assert promote_model(tmp_path, "latest", "2026-12-01") == expected
    added(registry, "2026-11-20")
    assert registry.promotions() == [Promotion("2026-12-01", id)], "whatever comes later"


def test_a_dry_run_chooses_nothing(tmp_path: Path) -> None:
    registry = Registry(Layout(Location(tmp_path)))
    id = added(registry, "2026-11-14")
    before = sorted(tmp_path.rglob("*"))
    assert promote_model(tmp_path, id, "2026-12-01", dry_run=True)["model"] == id
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(MissingInputError):
        promote_model(tmp_path, "2026-11-14-0000000000", "2026-12-01", dry_run=True)


def test_a_dry_run_refuses_what_a_run_would(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    with pytest.raises(MissingInputError):
        promote_model(tmp_path / "out", str(tmp_path / "own"), "2026-12-01")
    with pytest.raises(MissingInputError):
        promote_model(tmp_path / "out", str(tmp_path / "own"), "2026-12-01", dry_run=True)


def test_a_partition_of_another_key_is_refused_with_what_to_set() -> None:
    check_same_key(NIGHT, "date")
    with pytest.raises(ConfigError, match=r"week=46 .* by 'date'\. Set nightly.key to 'week'"):
        check_same_key(Partition("week", "46"), "date")
