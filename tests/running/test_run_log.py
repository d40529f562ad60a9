"""What a run leaves for people: its log, and the error it ended with."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mrot_scale.errors import TemporaryError
from mrot_scale.running.run_log import LAST_ERROR, LOG, LOGS, RunLog, read_last_error, recorded
from mrot_scale.storing.location import Location
from tests.places import KINDS, fresh_place


@pytest.fixture(params=KINDS)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    with fresh_place(request.param, tmp_path) as found:
        (found / "run.json").write(b"{}")
        yield found


def events(run: Location) -> list[str]:
    place = run / LOG if run.is_local else run / LOGS / (run / LOGS).names()[-1]
    return [json.loads(line)["event"] for line in place.read().splitlines()]


def test_an_attempt_that_goes_well_is_logged_and_leaves_no_error(run: Location) -> None:
    (run / LAST_ERROR).write(b"{}")
    with recorded(run, command="fit") as log:
        log.write("stage", stage="sample")
    assert events(run) == ["begun", "stage", "done"]
    assert read_last_error(run) is None
    assert not (run / LAST_ERROR).exists()


def test_an_error_is_kept_with_its_code_and_place(run: Location) -> None:
    error = TemporaryError("the workers went home")
    error.add_note("in task score/00003")
    with pytest.raises(TemporaryError), recorded(run):
        raise error
    assert events(run) == ["begun", "ended"]
    found = read_last_error(run)
    assert found is not None
    assert found["code"] == 75
    assert found["message"] == "the workers went home"
    assert found["where"] == ["in task score/00003"]


@pytest.mark.parametrize(("error", "code"), [(RuntimeError("x"), 1), (KeyboardInterrupt(), 130)])
def test_what_is_no_error_of_ours_has_a_code_too(
    run: Location, error: BaseException, code: int
) -> None:
    with pytest.raises(type(error)), recorded(run):
        raise error
    found = read_last_error(run)
    assert found is not None
    assert found["code"] == code


def test_the_log_of_a_second_attempt_follows_the_first(tmp_path: Path) -> None:
    for _ in range(2):
        with recorded(Location(tmp_path)):
            pass
    assert events(Location(tmp_path)) == ["begun", "done"] * 2


def test_a_log_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / LOG).mkdir()
    RunLog(Location(tmp_path)).write("begun")
    with recorded(Location(tmp_path / "nowhere")) as log:
        log.write("stage")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff"])
def test_an_error_that_cannot_be_read_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / LAST_ERROR).write_bytes(content)
    assert read_last_error(Location(tmp_path)) is None
