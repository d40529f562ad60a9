"""What a name leads to: a folder that may have lost what it is known by, or many generations."""

from mrot_scale.digests import Kind
from mrot_scale.errors import DamagedDataError, DataError, MissingInputError, MrotError
from mrot_scale.running.commit import STAGES
from mrot_scale.running.publish import GENERATIONS, HISTORY, POINTER, history, resolve
from mrot_scale.storing.arrays import METADATA
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import MANIFEST
from mrot_scale.storing.store import SCHEMA
from mrot_scale.verifying.findings import NEW_RUN, REMEDY_OF, Problem, sentence
from mrot_scale.verifying.listed import TABLE_LIST
from mrot_scale.verifying.run_folders import JOURNAL, RUN_FILE, SEGMENTS

_TRACE_OF: dict[str, tuple[Kind, str]] = {
    SCHEMA: ("store", MANIFEST),
    "model.json": ("model", MANIFEST),
    f"score/{METADATA}": ("scores", MANIFEST),
    JOURNAL: ("run", RUN_FILE),
    SEGMENTS: ("run", RUN_FILE),
    STAGES: ("run", RUN_FILE),
}
"""Files that tell what a folder was that has lost the one it is known by."""


def unrecognised(visible: Location, error: MrotError) -> Problem:
    """Return what a place of ours has lost that it is known by; raise the error if it is none."""
    if isinstance(error, DamagedDataError):
        place = _to_blame(visible)
        remedy = f" {REMEDY_OF['scores']}" if place.name == POINTER else ""
        return Problem("damaged", str(place), f"{sentence(error)}{remedy}")
    if isinstance(error, MissingInputError) and _is_generation_link(visible):
        target = visible.path.parent / visible.path.readlink()
        return Problem("missing", str(target), f"{visible} leads there. {REMEDY_OF['scores']}")
    trace = _trace(visible) if isinstance(error, DataError) else None
    if trace is None:
        raise error
    kind, name = trace
    remedy = NEW_RUN if kind == "run" else REMEDY_OF[kind]
    what = f"without it, nothing in this {kind} can be checked. {remedy}"
    return Problem("missing", str(resolve(visible) / name), what)


def _to_blame(visible: Location) -> Location:
    """Return the file that keeps a damaged place from being recognised."""
    try:
        folder = resolve(visible)
    except DamagedDataError:
        return visible / POINTER
    return folder / MANIFEST if folder.is_folder() else visible / POINTER


def _is_generation_link(visible: Location) -> bool:
    if not visible.is_local or not visible.path.is_symlink():
        return False
    return visible.path.readlink().parts[0] == GENERATIONS


def _trace(visible: Location) -> tuple[Kind, str] | None:
    """Return what a folder was, and what it has lost, if the rest of it is clearly ours."""
    folder = resolve(visible)
    if not folder.is_folder():
        return None
    traces = [trace for name, trace in _TRACE_OF.items() if (folder / name).exists()]
    if not traces and f"/{GENERATIONS}/" in folder.address:
        return "score table", TABLE_LIST
    return traces[0] if traces else None


def _generations(visible: Location, current: Location) -> tuple[Location, list[str]]:
    """Return where all generations behind a name are, and what is there."""
    below = visible.sibling(f"{GENERATIONS}/{visible.name}")
    if not visible.is_local:
        below = visible / GENERATIONS
    has_others = current != visible and below.exists()
    return below, [name for name in below.names() if name != HISTORY] if has_others else []


def other_generations(visible: Location, current: Location) -> list[Location]:
    """Return the generations that a name does not lead to now."""
    below, names = _generations(visible, current)
    return [below / n for n in names if n != current.name and (below / n).is_folder()]


def history_problems(visible: Location, current: Location) -> list[Problem]:
    """Return what is wrong with the order of generations: some gone, some never seen."""
    below, names = _generations(visible, current)
    if not names:
        return []
    try:
        known = history(visible)
    except DamagedDataError as error:
        place = below / HISTORY if visible.is_local else visible / POINTER
        return [Problem("damaged", str(place), sentence(error))]
    gone = "the history names it, but no rollback can lead there."
    unseen = "it never became visible. The same command again uses it; otherwise remove it."
    return [
        *(Problem("missing", str(below / n), gone) for n in known if n not in names),
        *(
            Problem("unexpected", str(below / n), unseen)
            for n in names
            if n not in (*known, current.name)
        ),
    ]
