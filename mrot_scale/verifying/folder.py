"""A folder that is read once, file by file, and held against its list."""

from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa

from mrot_scale.digests import Kind
from mrot_scale.errors import MrotError
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import Entry, shown
from mrot_scale.verifying.findings import REMEDY_OF, Problem, ProblemKind, sentence

Found = TypeVar("Found")


class Folder:
    """A folder as it is read, file by file; what is wrong is noted on the way."""

    def __init__(self, location: Location, kind: Kind) -> None:
        self.location, self.kind = location, kind
        self.problems: list[Problem] = []
        self.n_files = self.n_bytes = self.n_left_over = 0
        self.files = location.files_below()
        self.odd = _odd_names(location)
        self.list_name = "the journal"
        self.listed: dict[str, Entry] = {}
        """What each file must be, as far as it is known."""

        self.is_understood = True
        """Whether it is known which files there should be."""

        self._seen: set[str] = set()

    def note(self, kind: ProblemKind, name: str, what: str, remedy: str | None = None) -> None:
        file = str(self.location / name) if name else str(self.location)
        remedy = REMEDY_OF[self.kind] if remedy is None else remedy
        self.problems.append(Problem(kind, file, f"{what} {remedy}".strip()))

    def read(self, name: str) -> bytes | None:
        """Return the content of a plain file, None where there is none."""
        self._seen.add(name)
        if name not in self.files or name in self.odd:
            return None
        content = (self.location / name).read()
        self.n_files, self.n_bytes = self.n_files + 1, self.n_bytes + len(content)
        return content

    def sound(self, name: str) -> bytes | None:
        """Return the content of a file that is what the list says; note it otherwise."""
        entry, content = self.listed.get(name), self.read(name)
        if entry is None:
            self.note("mismatch", name, f"{self.list_name} does not list it.")
        elif content is None and name not in self.odd:  # those are noted together
            self.note("missing", name, f"{self.list_name} lists it.")
        elif content is not None and Entry.of(content) != entry:
            what = f"it is not what was written: size or sha256 is not as in {self.list_name}."
            self.note("damaged", name, what)
        elif content is not None:
            return content
        return None

    def parsed(self, name: str, parse: Callable[[bytes, str], Found]) -> Found | None:
        """Return what a sound file says; note it where that makes no sense."""
        content = self.sound(name)
        if content is None:
            return None
        try:
            return parse(content, str(self.location / name))
        except (MrotError, pa.ArrowException, OSError) as error:  # Arrow raises both
            self.note("mismatch", name, sentence(error))
            return None

    def check_facts(self, told: dict[str, Any], found: dict[str, int]) -> None:
        """Note facts of the list that the files do not bear out."""
        for name, value in found.items():
            if told.get(name) != value:
                what = f"it says {name}: {shown(told.get(name))}, but the files say {value}."
                self.note("mismatch", self.list_name, what)

    def check_rest(self) -> None:
        """Read what is listed beyond what such a folder has."""
        for name in sorted(set(self.listed) - self._seen):
            if self.sound(name) is not None and self.is_understood:
                what = f"{self.list_name} lists it, but it is no part of a {self.kind}."
                self.note("mismatch", name, what)

    def check_names(self, is_known: Callable[[str], bool] = lambda _: False) -> None:
        """Note every file that nobody listed, and what is no plain file."""
        for name in sorted(self.odd):
            what = "it is a link, or no plain file; mrot-scale makes none here."
            self.note("unexpected", name, what, "Put a plain file in its place, or remove it.")
        for name in sorted(set(self.files) - self._seen - self.odd):
            if not is_known(name):
                self.note("unexpected", name, "nobody listed it.", "Move it elsewhere.")


def _odd_names(location: Location) -> set[str]:
    """Return what is neither a plain file nor a folder: links, pipes, sockets."""
    if not location.is_local:
        return set()
    root = location.path
    return {
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_symlink() or not (path.is_file() or path.is_dir())
    }
