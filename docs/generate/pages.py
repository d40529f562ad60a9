"""Pages have marks where generated text goes; here they are filled."""

import re
from collections.abc import Callable

from docs.generate.commands import command_line
from docs.generate.configuration import configuration
from docs.generate.exit_codes import exit_codes
from docs.generate.files import files
from docs.generate.notebooks import notebooks
from docs.generate.python import python_reference

PARTS: dict[str, Callable[[], str]] = {
    "configuration": configuration,
    "command-line": command_line,
    "exit-codes": exit_codes,
    "files": files,
    "python": python_reference,
    "notebooks": notebooks,
}
_MARK = re.compile(r"^<!-- generated: ([\w-]+) -->$", re.MULTILINE)


def filled(text: str) -> str:
    """Return a page with every mark replaced by what it stands for."""
    return _MARK.sub(lambda found: PARTS[found[1]](), text)
