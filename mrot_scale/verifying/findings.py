"""What is wrong at a place, and what to do about it."""

from dataclasses import dataclass
from typing import Any, Literal

from mrot_scale.digests import Kind
from mrot_scale.errors import DamagedDataError

ProblemKind = Literal["missing", "damaged", "unexpected", "mismatch"]

REMEDY_OF: dict[Kind, str] = {
    "store": "Restore it from a copy, or ingest again.",
    "model": "Copy or fit the model again.",
    "scores": "Restore it from a copy, or score again.",
    "score table": "Restore it from a copy, or score again.",
    "run": "The same command again makes it anew.",
}
NEW_RUN = "Start over with --new-run."


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong."""

    kind: ProblemKind
    file: str
    what: str
    """What is wrong with the file, and what to do."""

    def __str__(self) -> str:
        return f"{self.kind}: {self.file}: {self.what}"

    def to_json(self) -> dict[str, str]:
        return {"kind": self.kind, "file": self.file, "what": self.what}


@dataclass(frozen=True)
class Verified:
    """What was found at a path after reading all of it."""

    path: str
    kind: Kind | None
    """What it is; None where too little is left to tell."""

    n_files: int
    n_bytes: int
    """What was read, damaged files included."""

    n_left_over: int
    """Objects of a run that no record names: attempts that were cut short, or came second."""

    problems: tuple[Problem, ...]

    def check(self) -> None:
        """Raise if anything is wrong."""
        if self.problems:
            count = len(self.problems)
            raise DamagedDataError(
                f"{self.path} has {count} problem{'s' if count > 1 else ''}, the first is "
                f"{self.problems[0]}"
            )

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "kind": self.kind,
            "files": self.n_files,
            "bytes": self.n_bytes,
            "left_over": self.n_left_over,
            "problems": [problem.to_json() for problem in self.problems],
        }

    def text(self) -> str:
        """Return a line for each problem, or one that says how much is sound."""
        if self.problems:
            return "\n".join(map(str, self.problems))
        left = f", {self.n_left_over:,} left over" if self.n_left_over else ""
        read = f"{self.n_files:,} files, {self.n_bytes:,} bytes{left}"
        return f"{self.kind} {self.path} is sound: {read}"


def sentence(error: BaseException) -> str:
    """Return what an error says as one line that ends like a sentence."""
    text = " ".join(str(error).split())
    return text if text.endswith(".") else f"{text}."
