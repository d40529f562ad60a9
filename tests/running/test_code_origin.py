"""Code that a configuration names runs only where the user's own file or flags ask for it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import mrot_scale
from mrot_scale.storing.manifest import MANIFEST, Entry, Manifest
from tests.running.jobs import SETTINGS
from tests.servers import mrot, run

SPYING = """
from pathlib import Path
Path(__file__).with_name("ran").touch()
"""
CLUSTER = {"kind": "spying:Cluster", "allow_class": True}


@pytest.fixture(scope="module")
def made(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store and a model."""
    folder = tmp_path_factory.mktemp("made")
    settings = SETTINGS | {"cluster": {"kind": "inline"}}
    mrot_scale.ingest(table, str(folder / "store"), id="reading", config=settings)
    mrot_scale.fit(str(folder / "store"), str(folder / "model"), settings)
    return folder


@pytest.fixture
def spied(tmp_path: Path) -> Path:
    """An empty folder beside a module that tells when it is loaded."""
    (tmp_path / "spying.py").write_text(SPYING)
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def work(made: Path, spied: Path) -> Path:
    """A copy of store and model there."""
    return Path(shutil.copytree(made, spied, dirs_exist_ok=True))


def scored(work: Path, *options: str, **environment: str) -> tuple[int, str, bool]:
    """Return the exit code, what was said, and whether the module was loaded."""
    places = [str(work / name) for name in ("model", "store", "scores")]
    done = run(mrot("score", *places, *options), {"PYTHONPATH": str(work.parent), **environment})
    return done.returncode, done.stderr, (work.parent / "ran").exists()


def forge(folder: Path, name: str, change: Callable[[Any], None]) -> None:
    """Change a file of a store or a model, and its list of files so that it agrees."""
    found = json.loads((folder / name).read_bytes())
    change(found)
    (folder / name).write_text(json.dumps(found))
    listed = json.loads((folder / MANIFEST).read_bytes())
    files = {n: Entry.of((folder / n).read_bytes()) for n in listed["files"]}
    facts = listed.get("facts", {})
    forged = Manifest(listed["format"], listed["format_version"], files, facts)
    (folder / MANIFEST).write_bytes(forged.to_bytes())


@pytest.mark.slow
def test_a_class_of_the_users_own_file_is_loaded_when_allowed(work: Path) -> None:
    file = work / "settings.yaml"
    file.write_text(yaml.safe_dump({"cluster": {"kind": "spying:Cluster"}}))
    code, told, loaded = scored(work, "-c", str(file))
    assert (code, loaded) == (78, False)
    assert "--allow-class" in told
    code, told, loaded = scored(work, "-c", str(file), "--allow-class")
    assert (code, loaded) == (78, True)
    assert "has no attribute 'Cluster'" in told


@pytest.mark.parametrize(
    "variables",
    [
        {"MROT_CLUSTER__KIND": "spying:Cluster"},
        {"MROT_CLUSTER__KIND": "spying:Cluster", "MROT_CLUSTER__ALLOW_CLASS": "true"},
        {"MROT_CLUSTER": json.dumps(CLUSTER)},
    ],
    ids=["kind", "allowed", "block"],
)
def test_no_variable_of_the_environment_names_a_class(
    variables: dict[str, str], spied: Path
) -> None:
    code, told, loaded = scored(spied, **variables)
    assert (code, loaded) == (78, False)
    assert len(told.splitlines()) == 1


def test_a_flag_allows_no_class_of_the_environment(spied: Path) -> None:
    variables = {"MROT_CLUSTER__KIND": "spying:Cluster"}
    code, told, loaded = scored(spied, "--allow-class", **variables)
    assert (code, loaded) == (78, False)
    assert "not taken from the environment" in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "name"),
    [("model", "model.json"), ("model", "schema.json"), ("store", "schema.json")],
)
def test_a_model_or_store_names_no_class(folder: str, name: str, work: Path) -> None:
    def change(found: Any) -> None:
        found["cluster"] = CLUSTER
        if "config" in found:
            found["config"]["cluster"] = CLUSTER

    forge(work / folder, name, change)
    code, told, loaded = scored(work, "--workers", "1")
    assert not loaded
    assert code in ((74,) if name == "model.json" else (0, 74)), told
