"""The code blocks of a page.

Blocks of `python` and `sh` are run, in order, in one folder; the Python blocks of a page share
their names. A comment directly above a block says otherwise:

- `<!-- not run: reason -->`: it is shown only;
- `<!-- output -->`: it is what the block before it prints;
- `<!-- new folder -->`: it is run in an empty folder, as are those after it.
"""

import re
from dataclasses import dataclass
from textwrap import dedent

RUN = ("python", "sh")
CHECKED = ("yaml", "toml")
"""Settings: they are read, not run."""

SHOWN = ("text", "console")
INSTALLING = "python3 -m venv "
"""How commands begin that make an environment of their own; `.ci/run` runs those of the README."""

_BLOCK = re.compile(
    r"(?:^[ ]*<!--[ ](?P<mark>[^\n]*?)[ ]-->\n\s*?)?"
    r"^(?P<indent>[ ]*)(?P<fence>`{3,})(?P<language>[^\s`]*)[^\n]*\n"
    r"(?P<code>.*?)^(?P=indent)(?P=fence)[ ]*$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One block of code."""

    language: str
    code: str
    line: int
    """Line of the page that opens it, counted from 1."""

    mark: str
    """What a comment directly above says, or nothing."""

    span: tuple[int, int]
    """Where its code begins and ends in the page."""

    @property
    def is_output(self) -> bool:
        return self.mark == "output"

    @property
    def not_run(self) -> str:
        """Why it is not run, or nothing."""
        return self.mark.removeprefix("not run:").strip() if self.mark[:8] == "not run:" else ""

    @property
    def is_directive(self) -> bool:
        return self.language.startswith("{")

    @property
    def is_run(self) -> bool:
        installs = self.code.startswith(INSTALLING)
        return self.language in RUN and not self.not_run and not installs


def blocks(text: str) -> list[Block]:
    """Return the blocks of a page in order."""
    return [
        Block(
            found["language"],
            dedent(found["code"]),
            text.count("\n", 0, found.start("fence")) + 1,
            found["mark"] or "",
            found.span("code"),
        )
        for found in _BLOCK.finditer(text)
    ]
