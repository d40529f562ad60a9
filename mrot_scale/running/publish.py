"""A finished folder appears all at once, or not at all.

Stores and models are written once: a staging folder is renamed. Scores are generations: each is a
folder under `_gen/` that never changes, and the visible name leads to one, as a symbolic link on
disk and as a pointer object on object stores, where names cannot be moved.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from mrot_scale.errors import (
    ConfigError,
    DamagedDataError,
    LockedError,
    MissingInputError,
    OutputError,
)
from mrot_scale.faults import reach
from mrot_scale.running.commit import ObjectRef, RunFolder, differences, is_run_folder
from mrot_scale.storing.location import Location, sync_folder
from mrot_scale.storing.manifest import MANIFEST, Entry, Manifest, safe_name

POINTER = "CURRENT"
GENERATIONS = "_gen"
HISTORY = "HISTORY.json"


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
    """Return the folder behind a name: itself, or the generation it leads to now.

    Whoever reads several files resolves once, and so reads all of them from one generation.
    """
    if visible.is_local:
        return Location(visible.path.resolve()) if visible.path.is_symlink() else visible
    found = _read_pointer(visible)
    return visible if found is None else visible / GENERATIONS / found.generation


@dataclass(frozen=True)
class _Pointer:
    """What the visible name on an object store leads to, and has led to."""

    generation: str
    history: tuple[str, ...]
    mark: str

    def to_bytes(self) -> bytes:
        found = {"generation": self.generation, "history": list(self.history)}
        return json.dumps(found).encode()


def _read_pointer(visible: Location) -> _Pointer | None:
    place = visible / POINTER
    read = place.read_marked()
    if read is None:
        return None
    content, mark = read
    try:
        found = json.loads(content)
        generation, history = found["generation"], found.get("history", [])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedDataError(f"{place} is damaged ({error}).") from None
    for name in (generation, *history):
        _check_name(name, place)
    return _Pointer(generation, tuple(history), mark)


def _check_name(name: Any, place: Location) -> None:
    if not isinstance(name, str) or not re.fullmatch(r"\w[\w.-]*", name):
        raise DamagedDataError(f"{place} names {name!r}, no generation of ours.")


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
    raise _exists(visible)


def _exists(visible: Location) -> OutputError:
    return OutputError(f"{visible} exists already. Choose another path or remove it.")


def is_current(visible: Location, run: Location, terms: Any, *, new_run: bool) -> bool:
    """Tell whether a run on these terms has published the generation that is visible.

    Where it has not, the next generation may be made only by a run that was told to, or by one
    that had begun to.
    """
    if not visible.exists() or _lost_its_data(visible):
        return False
    check_replaceable(visible)
    known = RunFolder.read(run) if is_run_folder(run) else None
    same_terms = known is not None and known.is_on(terms)
    if known is not None and same_terms:
        if Entry.of(_manifest_at(visible)).sha256 == known.published:
            return True
        if not known.finished:
            return False
    if new_run:
        return False
    if known is None or same_terms:
        raise OutputError(
            f"{visible} holds other scores. --new-run puts new ones in their place and keeps these "
            "for `mrot-scale rollback`."
        )
    raise ConfigError(
        f"{visible} was made with other settings ({differences(known, terms)}). --new-run puts new "
        "scores in their place and keeps these for `mrot-scale rollback`."
    )


def _manifest_at(visible: Location) -> bytes:
    return _manifest_of(resolve(visible))


def _manifest_of(folder: Location) -> bytes:
    try:
        return (folder / MANIFEST).read()
    except MissingInputError:
        return b""


def _lost_its_data(visible: Location) -> bool:
    """Tell whether a link of ours leads to a generation that somebody removed."""
    return _is_our_link(visible) and not visible.path.exists()


def _is_our_link(visible: Location) -> bool:
    if not visible.is_local or not visible.path.is_symlink():
        return False
    return str(visible.path.readlink()).startswith(f"{GENERATIONS}/{visible.name}/")


def check_replaceable(visible: Location) -> None:
    """Refuse to replace what is no generation of ours."""
    if visible.exists() and not _is_ours(visible):
        raise _exists(visible)


def _is_ours(visible: Location) -> bool:
    if visible.is_local:
        return _is_our_link(visible)
    return _read_pointer(visible) is not None or visible.names() == [GENERATIONS]


def publish_once(folder: Folder, visible: Location, run: RunFolder) -> None:
    """Publish a store or a model: a plain folder under its own name."""
    # Noted first: a run killed as its output appears must know it for its own.
    run.commit_published(Entry.of(folder.manifest()).sha256)
    reach("publish.committed")
    if visible.is_local:
        _write_at_once(folder, visible, run)
    else:
        folder.write(visible, run.location)
    run.commit_finished()


def publish_generation(folder: Folder, visible: Location, run: RunFolder, name: str) -> None:
    """Publish scores: a new generation, then the visible name moves to it."""
    if visible.is_local:
        _write_generation(folder, _generations(visible) / name, run)
    else:
        folder.write(visible / GENERATIONS / name, run.location)
    reach("publish.written")
    _point(visible, name)
    reach("publish.done")


def _generations(visible: Location) -> Location:
    """Return the folder of the generations behind a name."""
    if visible.is_local:
        return visible.sibling(GENERATIONS) / visible.name
    return visible / GENERATIONS


def history(visible: Location) -> list[str]:
    """Return the generations a name has led to, in their order; the last need not be current."""
    if not visible.is_local:
        found = _read_pointer(visible)
        return [] if found is None else list(found.history)
    place = _generations(visible) / HISTORY
    try:
        names = json.loads(place.read())["generations"] if place.exists() else []
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedDataError(f"{place} is damaged ({error}). Remove it.") from None
    for name in names:
        _check_name(name, place)
    return list(names)


def current(visible: Location) -> str | None:
    """Return the generation a name leads to."""
    if not visible.is_local:
        found = _read_pointer(visible)
        return None if found is None else found.generation
    return visible.path.readlink().name if _is_our_link(visible) else None


def rollback(visible: Location, to: str | None = None, *, dry_run: bool = False) -> tuple[str, str]:
    """Let a name lead to an earlier generation again; return which it was and which it is now."""
    was = current(visible)
    if was is None:
        raise MissingInputError(f"{visible} is no output with generations.")
    known = [n for n in history(visible) if (_generations(visible) / n).exists()]
    earlier = known[: known.index(was)] if was in known else known
    if to is None and not earlier:
        raise MissingInputError(f"{visible} has no generation before {was}.")
    target = earlier[-1] if to is None else to
    if target not in known:
        raise MissingInputError(f"{visible} has no generation {target}: {', '.join(known)}.")
    if not dry_run:
        _move(visible, target, tuple(history(visible)))
    return was, target


def _point(visible: Location, name: str) -> None:
    """Let a name lead to a generation; the one it led to comes just before it in its history."""
    was = current(visible)
    if was == name:
        return
    past = [n for n in history(visible) if n not in (was, name)]
    _move(visible, name, (*past, *([was] if was else []), name))


def _move(visible: Location, name: str, names: tuple[str, ...]) -> None:
    if not visible.is_local:
        _move_pointer(visible, name, names)
        return
    # Before the link: a generation that is visible is always in the history.
    content = json.dumps({"generations": list(names)}).encode()
    (_generations(visible) / HISTORY).write(content)
    reach("publish.noted")
    _point_link(visible, f"{GENERATIONS}/{visible.name}/{name}")


def _move_pointer(visible: Location, name: str, names: tuple[str, ...]) -> None:
    """Replace the pointer object, unless another run has done so since it was read."""
    place, known = visible / POINTER, _read_pointer(visible)
    content = _Pointer(name, names, "").to_bytes()
    reach("publish.noted")
    moved = place.write_new(content) if known is None else place.replace_marked(content, known.mark)
    if not moved:
        raise LockedError(f"{place} was moved by another run. Nothing of this run is visible.")


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
        reach("publish.staged")
        _rename_new(staging, target)
        reach("publish.renamed")
    finally:
        staging.remove()


def _rename_new(staging: Location, target: Location) -> None:
    if target.exists():
        raise _exists(target)
    try:
        staging.path.rename(target.path)
        sync_folder(target.path.parent)
    except OSError as error:
        raise OutputError(f"Cannot write {target}: {error.strerror}.") from error


def _point_link(visible: Location, generation: str) -> None:
    link = visible.path.with_name(f".{visible.name}.link")
    try:
        link.unlink(missing_ok=True)  # left by a run that was killed here
        link.symlink_to(generation, target_is_directory=True)
        reach("publish.linked")
        link.replace(visible.path)
        reach("publish.moved")
        sync_folder(visible.path.parent)
    except OSError as error:
        link.unlink(missing_ok=True)
        raise OutputError(f"Cannot point {visible} to its data: {error.strerror}.") from error
