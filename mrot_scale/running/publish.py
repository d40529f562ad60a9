"""A finished folder appears all at once, or not at all.

Stores and models are written once: a staging folder is renamed. Scores are generations: each is a
folder under `_gen/` that never changes, and the visible name leads to one, as a symbolic link on
disk and as a pointer object on object stores, where names cannot be moved.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from mrot_scale.errors import DamagedDataError, MissingInputError, OutputError
from mrot_scale.running.commit import ObjectRef, RunFolder, is_run_folder
from mrot_scale.storing.location import Location, sync_folder
from mrot_scale.storing.manifest import MANIFEST, Entry, Manifest, safe_name

POINTER = "CURRENT"
GENERATIONS = "_gen"


@dataclass
class Folder:
    """What a finished folder is to hold: objects of the run, and small files."""

    format: str
    version: int
    objects: dict[str, ObjectRef] = field(default_factory=dict)
    small: dict[str, bytes] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    list_name: str = MANIFEST
    """Name of the list of files; plain Parquet readers overlook names that begin with `_`."""

    def manifest(self) -> bytes:
        entries = {name: ref.entry for name, ref in self.objects.items()}
        entries |= {name: Entry.of(content) for name, content in self.small.items()}
        return Manifest(self.format, self.version, entries, self.facts).to_bytes()

    def write(self, target: Location, run: Location) -> None:
        """Write everything below an unfinished folder, the list last."""
        for name, ref in self.objects.items():
            (run / ref.name).copy_to(target / safe_name(name))
        for name, content in self.small.items():
            (target / name).write(content)
        (target / self.list_name).write(self.manifest())


def resolve(visible: Location) -> Location:
    """Return the folder behind a name: itself, or the generation a pointer names."""
    if visible.is_local or not (visible / POINTER).exists():
        return visible
    try:
        generation = json.loads((visible / POINTER).read())["generation"]
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedDataError(f"{visible / POINTER} is damaged ({error}).") from None
    if not isinstance(generation, str) or not re.fullmatch(r"\w[\w.-]*", generation):
        raise DamagedDataError(f"{visible / POINTER} names {generation!r}, no generation of ours.")
    return visible / GENERATIONS / generation


def is_finished(visible: Location, run: Location, terms: Any) -> bool:
    """Tell whether a run on these terms has already published what is at the visible name.

    Anything else there is somebody's data, which no run overwrites.
    """
    if not visible.exists() or _lost_its_data(visible):
        return False
    known = RunFolder.read(run) if is_run_folder(run) else None
    if known is not None and known.published is not None and known.is_on(terms):
        manifest = _manifest_at(visible)
        if Entry.of(manifest).sha256 == known.published:
            return True
        if not manifest and not visible.is_local:
            return False  # objects appear one by one: this run was killed before it wrote the list
    raise OutputError(f"{visible} exists already. Choose another path or remove it.")


def _manifest_at(visible: Location) -> bytes:
    try:
        return (resolve(visible) / MANIFEST).read()
    except MissingInputError:
        return b""


def _lost_its_data(visible: Location) -> bool:
    """Tell whether a link of ours leads to a generation that somebody removed."""
    if not visible.is_local or not visible.path.is_symlink() or visible.path.exists():
        return False
    return str(visible.path.readlink()).startswith(f"{GENERATIONS}/{visible.name}/")


def check_generation(visible: Location, name: str) -> None:
    """Refuse to replace what another run, or nobody we know, has put at the visible name."""
    if visible.exists() and not _lost_its_data(visible) and resolve(visible).real_name() != name:
        raise OutputError(f"{visible} exists already. Choose another path or remove it.")


def publish_once(folder: Folder, visible: Location, run: RunFolder) -> None:
    """Publish a store or a model: a plain folder under its own name."""
    # Noted first: a run killed as its output appears must know it for its own.
    run.commit_published(Entry.of(folder.manifest()).sha256)
    if visible.is_local:
        _write_at_once(folder, visible, run)
    else:
        folder.write(visible, run.location)


def publish_generation(folder: Folder, visible: Location, run: RunFolder, name: str) -> None:
    """Publish scores: a new generation, then the visible name moves to it."""
    if visible.is_local:
        generations = visible.sibling(GENERATIONS) / visible.name
        _write_generation(folder, generations / name, run)
        _point_link(visible, f"{GENERATIONS}/{visible.name}/{name}")
    else:
        folder.write(visible / GENERATIONS / name, run.location)
        (visible / POINTER).write(json.dumps({"generation": name}).encode())


def _write_generation(folder: Folder, target: Location, run: RunFolder) -> None:
    """Write a generation, unless an interrupted run has already: readers may be in it."""
    place = target / folder.list_name
    if place.exists() and place.read() == folder.manifest():
        return
    target.remove()
    _write_at_once(folder, target, run)


def _write_at_once(folder: Folder, target: Location, run: RunFolder) -> None:
    """Write beside the target and rename; what a kill left beside it goes first."""
    staging = target.sibling(f".{target.name}.tmp")
    staging.remove()
    try:
        folder.write(staging, run.location)
        for path in (staging.path, *staging.path.rglob("*")):
            if path.is_dir():
                sync_folder(path)
        _rename_new(staging, target)
    finally:
        staging.remove()


def _rename_new(staging: Location, target: Location) -> None:
    if target.exists():
        raise OutputError(f"{target} exists already. Choose another path or remove it.")
    try:
        staging.path.rename(target.path)
        sync_folder(target.path.parent)
    except OSError as error:
        raise OutputError(f"Cannot write {target}: {error.strerror}.") from error


def _point_link(visible: Location, generation: str) -> None:
    link = visible.path.with_name(f".{visible.name}.{uuid4().hex[:12]}.link")
    try:
        link.symlink_to(generation, target_is_directory=True)
        link.replace(visible.path)
        sync_folder(visible.path.parent)
    except OSError as error:
        link.unlink(missing_ok=True)
        raise OutputError(f"Cannot point {visible} to its data: {error.strerror}.") from error
