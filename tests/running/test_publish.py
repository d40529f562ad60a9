"""Publishing: a whole folder or none, never over somebody's data, and the same again is fine."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mrot_scale.errors import (
    ConfigError,
    DamagedDataError,
    LockedError,
    MissingInputError,
    MrotError,
    OutputError,
    StorageError,
)
from mrot_scale.running.commit import Attempt, RunFolder
from mrot_scale.running.publish import (
    GENERATIONS,
    HISTORY,
    POINTER,
    Folder,
    check_replaceable,
    current,
    history,
    is_current,
    is_finished,
    publish_generation,
    publish_once,
    resolve,
    rollback,
)
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import MANIFEST, Entry, read_manifest
from tests.places import KINDS, fresh_place

TERMS = {"command": "ingest"}


def done(visible: Location, run: RunFolder) -> bool:
    """Whether a run, asked on its own terms, finds its output finished."""
    return is_finished(visible, run.location, run.fingerprint)


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    with fresh_place(request.param, tmp_path) as found:
        yield found


def a_run(place: Location) -> RunFolder:
    return RunFolder.open(place / "out.run", TERMS)


def a_folder(run: RunFolder, content: bytes = b"chunk", **options: Any) -> Folder:
    attempt = Attempt(run.location, "stage/00000")
    attempt.put("part", content)
    folder = Folder("a-thing", 1, facts={"rows": 3}, **options)
    folder.objects["deep/c/0"] = attempt.record().objects["part"]
    folder.small["schema.json"] = b"{}"
    return folder


EXPECTED = {"deep/c/0": b"chunk", "schema.json": b"{}"}


def check_whole(place: Location, expected: dict[str, bytes]) -> None:
    """Check that a folder holds these files and a list that agrees with them."""
    manifest = read_manifest(place, "a-thing", 1, "thing")
    assert manifest.facts == {"rows": 3}
    assert manifest.files == {name: Entry.of(content) for name, content in expected.items()}
    found = {name: (place / name).read() for name in place.files_below() if name != MANIFEST}
    assert found == expected


class Crash(BaseException):
    """The process ends here."""


def crash(*_: Any, **__: Any) -> None:
    raise Crash


# --- written once


def test_a_folder_is_published_whole(place: Location) -> None:
    run, out = a_run(place), place / "out"
    assert not done(out, run)
    folder = a_folder(run)
    publish_once(folder, out, run)
    check_whole(out, EXPECTED)
    assert sorted(place.names()) == ["out", "out.run"]
    assert run.published == Entry.of(folder.manifest()).sha256
    assert done(out, run)
    assert done(out, a_run(place))
    assert resolve(out) == out


def test_a_folder_is_published_where_no_folder_is_yet(tmp_path: Path) -> None:
    run = a_run(Location(tmp_path))
    publish_once(a_folder(run), Location(tmp_path / "a/b/out"), run)
    check_whole(Location(tmp_path / "a/b/out"), EXPECTED)


def test_stages_may_go_once_a_folder_is_published(place: Location) -> None:
    run = a_run(place)
    publish_once(a_folder(run), place / "out", run)
    run.remove_stages()
    check_whole(place / "out", EXPECTED)
    assert done(place / "out", a_run(place))


def test_somebodys_data_are_refused_and_left_alone(place: Location) -> None:
    (place / "out/precious").write(b"x")
    run = a_run(place)
    with pytest.raises(OutputError, match=r"out exists already\. Choose another path") as caught:
        done(place / "out", run)
    assert caught.value.exit_code == 73
    assert (place / "out").files_below() == {"precious": 1}


def test_a_finished_folder_of_another_run_is_refused(place: Location) -> None:
    run = a_run(place)
    publish_once(a_folder(run), place / "out", run)
    other = RunFolder.open(place / "other.run", TERMS)
    with pytest.raises(OutputError, match="exists already"):
        done(place / "out", other)
    publish_once(a_folder(other, b"different"), place / "elsewhere", other)
    with pytest.raises(OutputError, match="exists already"):
        done(place / "out", other)


def test_a_published_folder_that_was_removed_is_not_finished(place: Location) -> None:
    run = a_run(place)
    publish_once(a_folder(run), place / "out", run)
    (place / "out").remove()
    assert not done(place / "out", a_run(place))


@pytest.mark.parametrize("kind", ["file", "folder", "link", "link to nowhere"])
def test_nothing_on_disk_is_ever_overwritten(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "out"
    run = a_run(Location(tmp_path))
    if kind == "file":
        out.write_bytes(b"x")
    elif kind == "folder":
        out.mkdir()
    else:
        (tmp_path / "there").mkdir()
        out.symlink_to("there" if kind == "link" else "nowhere")
    with pytest.raises(OutputError) as caught:
        done(Location(out), run)
    assert caught.value.exit_code == 73
    with pytest.raises(OutputError, match="exists already"):
        publish_once(a_folder(run), Location(out), run)
    with pytest.raises(OutputError):
        done(Location(out), a_run(Location(tmp_path)))
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "there") == ["out", "out.run"]


def test_a_publication_that_fails_leaves_nothing_visible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Location(tmp_path)
    run = a_run(place)
    folder = a_folder(run)
    written = Location.write

    def full_at_the_list(self: Location, content: bytes) -> None:
        if self.name == MANIFEST:
            raise StorageError("disk full")
        written(self, content)

    monkeypatch.setattr(Location, "write", full_at_the_list)
    with pytest.raises(StorageError, match="disk full"):
        publish_once(folder, place / "out", run)
    assert place.names() == ["out.run"]
    monkeypatch.undo()
    assert not done(place / "out", a_run(place))
    publish_once(folder, place / "out", run)
    check_whole(place / "out", EXPECTED)


def test_an_object_lost_before_it_is_published_is_noticed(place: Location) -> None:
    run = a_run(place)
    folder = a_folder(run)
    run.remove_stages()
    with pytest.raises(MrotError):
        publish_once(folder, place / "out", run)
    assert not (place / f"out/{MANIFEST}").exists()


def test_a_run_killed_while_it_published_is_gone_on_with(
    place: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = a_run(place)
    folder = a_folder(run)
    written = Location.write

    def die_at_the_list(self: Location, content: bytes) -> None:
        if self.name == MANIFEST:
            raise Crash
        written(self, content)

    monkeypatch.setattr(Location, "write", die_at_the_list)
    with pytest.raises(Crash):
        publish_once(folder, place / "out", run)
    monkeypatch.undo()
    again = a_run(place)
    assert not done(place / "out", again)
    publish_once(folder, place / "out", again)
    check_whole(place / "out", EXPECTED)


@pytest.mark.parametrize(
    "moment",
    [
        "mrot_scale.running.commit.RunFolder.commit_published",
        "mrot_scale.running.publish.sync_folder",
    ],
)
def test_a_run_killed_as_its_output_appears_is_finished_or_gone_on_with(
    place: Location, moment: str
) -> None:
    run = a_run(place)
    folder = a_folder(run)
    with pytest.MonkeyPatch.context() as patch, suppress(Crash):
        patch.setattr(moment, crash)
        publish_once(folder, place / "out", run)
    again = a_run(place)
    if not done(place / "out", again):
        publish_once(folder, place / "out", again)
    check_whole(place / "out", EXPECTED)
    assert done(place / "out", again)


# --- generations


def test_a_generation_is_published_behind_a_name(place: Location) -> None:
    run, out = a_run(place), place / "scores"
    publish_generation(a_folder(run), out, run, "g1")
    check_whole(resolve(out), EXPECTED)
    assert resolve(out).real_name() == current(out) == "g1"
    check_replaceable(out)


def test_a_name_on_disk_is_a_link_to_its_generation(tmp_path: Path) -> None:
    place = Location(tmp_path)
    run = a_run(place)
    publish_generation(a_folder(run), place / "scores", run, "g1")
    link = tmp_path / "scores"
    assert link.is_symlink()
    assert str(link.readlink()) == f"{GENERATIONS}/scores/g1"
    check_whole(place / "scores", EXPECTED)
    tmp_path.rename(tmp_path.with_name("moved"))  # the link is relative
    assert (tmp_path.with_name("moved") / "scores/schema.json").read_bytes() == b"{}"


def test_a_name_elsewhere_is_a_pointer_to_its_generation(place: Location) -> None:
    if place.is_local:
        return
    run = a_run(place)
    publish_generation(a_folder(run), place / "scores", run, "g1")
    assert json.loads((place / "scores" / POINTER).read()) == {
        "generation": "g1",
        "history": ["g1"],
    }
    assert resolve(place / "scores") == place / f"scores/{GENERATIONS}/g1"


def test_the_name_moves_to_the_next_generation_and_the_old_one_stays(place: Location) -> None:
    run, out = a_run(place), place / "scores"
    publish_generation(a_folder(run), out, run, "g1")
    old = resolve(out)
    publish_generation(a_folder(run, b"new chunk"), out, run, "g2")
    check_whole(resolve(out), EXPECTED | {"deep/c/0": b"new chunk"})
    held = place / f"{GENERATIONS}/scores/g1" if place.is_local else old
    check_whole(held, EXPECTED)


def test_the_same_generation_may_be_published_twice(place: Location) -> None:
    run, out = a_run(place), place / "scores"
    folder = a_folder(run)
    for _ in range(2):
        publish_generation(folder, out, run, "g1")
        check_whole(resolve(out), EXPECTED)
    names = (place / GENERATIONS / "scores").names() if place.is_local else ["g1"]
    assert [n for n in names if n != HISTORY] == ["g1"]
    assert history(out) == ["g1"]


def test_what_an_interrupted_run_left_of_a_generation_is_made_anew(tmp_path: Path) -> None:
    place = Location(tmp_path)
    run = a_run(place)
    (place / f"{GENERATIONS}/scores/g1/left-over").write(b"x")
    publish_generation(a_folder(run), place / "scores", run, "g1")
    check_whole(place / "scores", EXPECTED)


def test_a_generation_that_fails_leaves_the_old_one_visible(
    place: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, out = a_run(place), place / "scores"
    publish_generation(a_folder(run), out, run, "g1")
    folder = a_folder(run, b"new chunk")
    for failing in (MANIFEST, "schema.json"):
        written = Location.write

        def fail(self: Location, content: bytes, name: str = failing, write: Any = written) -> None:
            if self.name == name:
                raise StorageError("disk full")
            write(self, content)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Location, "write", fail)
            with pytest.raises(StorageError, match="disk full"):
                publish_generation(folder, out, run, "g2")
        check_whole(resolve(out), EXPECTED)


def test_a_visible_generation_never_goes_away_while_it_is_published_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Location(tmp_path)
    run, out = a_run(place), place / "scores"
    folder = a_folder(run)
    publish_generation(folder, out, run, "g1")
    monkeypatch.setattr("mrot_scale.running.publish._rename_new", crash)
    with suppress(Crash):
        publish_generation(folder, out, run, "g1")
    check_whole(out, EXPECTED)


def test_a_name_that_is_somebodys_folder_is_refused(place: Location) -> None:
    (place / "scores/precious").write(b"x")
    with pytest.raises(OutputError, match="scores exists already") as caught:
        check_replaceable(place / "scores")
    assert caught.value.exit_code == 73
    if place.is_local:
        run = a_run(place)
        with pytest.raises(OutputError, match=r"Cannot point .*scores"):
            publish_generation(a_folder(run), place / "scores", run, "g1")
        assert sorted(n for n in place.names() if n.startswith(".")) == []
    assert (place / "scores/precious").read() == b"x"


# --- which generation, and whose


OTHER = {"command": "ingest", "seed": 1}


def published(place: Location, terms: dict[str, Any], content: bytes, name: str) -> RunFolder:
    """Return a run that has published a generation, as a scoring run does."""
    run = RunFolder.open(place / "out.run", terms, new_run=True)
    folder = a_folder(run, content)
    run.commit_published(Entry.of(folder.manifest()).sha256)
    publish_generation(folder, place / "scores", run, name)
    run.commit_finished()
    return run


def is_now(place: Location, terms: dict[str, Any], *, new_run: bool = False) -> bool:
    return is_current(place / "scores", place / "out.run", terms, new_run=new_run)


def test_a_run_knows_the_generation_it_published(place: Location) -> None:
    assert not is_now(place, TERMS)
    published(place, TERMS, b"chunk", "g1")
    assert is_now(place, TERMS)
    assert is_now(place, TERMS, new_run=True), "the same terms give the same bytes"


def test_a_run_on_other_terms_is_refused_with_what_differs_unless_it_is_a_new_one(
    place: Location,
) -> None:
    published(place, TERMS, b"chunk", "g1")
    with pytest.raises(
        ConfigError, match=r"other settings \(seed: None -> 1\)\. --new-run"
    ) as found:
        is_now(place, OTHER)
    assert found.value.exit_code == 78
    assert not is_now(place, OTHER, new_run=True)


def test_scores_whose_run_is_gone_are_replaced_by_a_new_run_only(place: Location) -> None:
    published(place, TERMS, b"chunk", "g1").location.remove()
    with pytest.raises(OutputError, match="holds other scores"):
        is_now(place, TERMS)
    assert not is_now(place, TERMS, new_run=True)


def test_a_new_run_that_was_killed_needs_not_be_told_again(place: Location) -> None:
    published(place, TERMS, b"chunk", "g1")
    RunFolder.open(place / "out.run", OTHER, new_run=True)
    assert not is_now(place, OTHER)


@pytest.mark.parametrize("moment", ["publish.written", "publish.noted"])
def test_a_run_killed_before_its_generation_is_visible_goes_on(
    place: Location, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    published(place, TERMS, b"chunk", "g1")
    monkeypatch.setenv("MROT_TEST", "1")
    monkeypatch.setenv("MROT_FAULT", f"{moment}:*:raise")
    with pytest.raises(RuntimeError, match="ordered"):
        published(place, OTHER, b"new", "g2")
    monkeypatch.delenv("MROT_FAULT")
    assert current(place / "scores") == "g1"
    assert not is_now(place, OTHER)
    published(place, OTHER, b"new", "g2")
    assert is_now(place, OTHER)
    check_whole(resolve(place / "scores"), EXPECTED | {"deep/c/0": b"new"})


def test_a_name_goes_back_to_the_generation_before_and_forth_again(place: Location) -> None:
    for number in (1, 2, 3):
        published(place, {"command": "c", "seed": number}, b"%d" % number, f"g{number}")
    scores = place / "scores"
    assert history(scores) == ["g1", "g2", "g3"]
    assert rollback(scores) == ("g3", "g2")
    check_whole(resolve(scores), EXPECTED | {"deep/c/0": b"2"})
    assert rollback(scores) == ("g2", "g1")
    with pytest.raises(MissingInputError, match="no generation before g1"):
        rollback(scores)
    assert rollback(scores, "g3") == ("g1", "g3")
    with pytest.raises(MissingInputError, match=r"no generation g9: g1, g2, g3\."):
        rollback(scores, "g9")
    assert current(scores) == "g3"


def test_what_follows_a_rollback_goes_back_to_what_was_visible(place: Location) -> None:
    for number in (1, 2):
        published(place, {"command": "c", "seed": number}, b"%d" % number, f"g{number}")
    rollback(place / "scores")
    with pytest.raises(OutputError, match="holds other scores"):
        is_now(place, {"command": "c", "seed": 2})
    published(place, {"command": "c", "seed": 3}, b"3", "g3")
    assert history(place / "scores") == ["g2", "g1", "g3"]
    assert rollback(place / "scores") == ("g3", "g1")


def test_where_nothing_was_published_there_is_nothing_to_go_back_to(place: Location) -> None:
    with pytest.raises(MissingInputError, match="no output with generations"):
        rollback(place / "scores")


def test_a_generation_that_was_removed_is_passed_over(tmp_path: Path) -> None:
    place = Location(tmp_path)
    for number in (1, 2, 3):
        published(place, {"command": "c", "seed": number}, b"%d" % number, f"g{number}")
    (place / f"{GENERATIONS}/scores/g2").remove()
    assert rollback(place / "scores") == ("g3", "g1")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"generations": ["../../x"]}'])
def test_a_damaged_history_is_refused(tmp_path: Path, content: bytes) -> None:
    published(Location(tmp_path), TERMS, b"chunk", "g1")
    (tmp_path / GENERATIONS / "scores" / HISTORY).write_bytes(content)
    with pytest.raises(DamagedDataError, match=HISTORY):
        rollback(Location(tmp_path / "scores"))


def test_of_two_runs_that_publish_at_once_one_is_told(
    place: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    if place.is_local:
        return  # there the lock of the output keeps them apart
    published(place, TERMS, b"chunk", "g1")
    replaced = Location.replace_marked

    def overtaken(self: Location, content: bytes, mark: str) -> bool:
        self.write(b'{"generation": "theirs", "history": ["theirs"]}')
        return replaced(self, content, mark)

    monkeypatch.setattr(Location, "replace_marked", overtaken)
    with pytest.raises(LockedError, match="another run"):
        published(place, OTHER, b"new", "g2")
    assert current(place / "scores") == "theirs"


def test_a_folder_that_is_resolved_stays_the_same_generation(tmp_path: Path) -> None:
    published(Location(tmp_path), TERMS, b"chunk", "g1")
    held = resolve(Location(tmp_path / "scores"))
    published(Location(tmp_path), OTHER, b"new", "g2")
    check_whole(held, EXPECTED)


def test_the_list_may_have_a_name_that_table_readers_overlook(place: Location) -> None:
    run = a_run(place)
    publish_generation(a_folder(run, list_name=f"_{MANIFEST}"), place / "table", run, "g1")
    assert f"_{MANIFEST}" in resolve(place / "table").files_below()
    assert MANIFEST not in resolve(place / "table").files_below()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b"\xff",
        b'{"generation": "../../other"}',
        b'{"generation": ".."}',
        b'{"generation": ""}',
        b'{"generation": null}',
    ],
)
def test_a_pointer_that_is_none_of_ours_is_refused(place: Location, content: bytes) -> None:
    (place / "scores" / POINTER).write(content)
    if place.is_local:  # names on disk are links: a file called so is nothing special
        assert resolve(place / "scores") == place / "scores"
        return
    with pytest.raises(DamagedDataError, match="scores/CURRENT"):
        resolve(place / "scores")


def test_the_list_is_the_same_whatever_the_order_of_the_files(place: Location) -> None:
    run = a_run(place)
    folder = a_folder(run)
    other = Folder("a-thing", 1, folder.objects, {"b": b"2", "a": b"1"})
    same = Folder("a-thing", 1, folder.objects, {"a": b"1", "b": b"2"})
    assert other.manifest() == same.manifest()
