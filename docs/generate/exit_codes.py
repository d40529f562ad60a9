"""What each exit code means, from the errors that have it."""

import signal
from collections.abc import Iterator

from docs.generate.tables import table
from mrot_scale import errors
from mrot_scale.commands.nightly import NOTHING_TO_DO

_WITHOUT_ERROR = {
    0: "Done.",
    1: "An error that nobody expected: a bug. `--debug` shows where.",
    2: "Wrong usage: an unknown command, argument or option.",
    NOTHING_TO_DO: "Nothing was to do; only with `--skip-exit-code`.",
    128 + signal.SIGINT: "Interrupted (Ctrl-C). The same command again goes on.",
    128 + signal.SIGTERM: "Terminated. The same command again goes on.",
}
_AGAIN = {75, 77, 128 + signal.SIGINT, 128 + signal.SIGTERM}


def exit_codes() -> str:
    """Return the table of exit codes; each line an error, or a way to end without one."""
    named = [(code, f"`{name}`", text) for code, name, text in raised()]
    plain = [(code, "", text) for code, text in _WITHOUT_ERROR.items()]
    rows = sorted(named + plain, key=lambda row: (row[0], row[1]))
    return table(
        ("code", "error in Python", "meaning", "the same command again"),
        [(str(code), name, text, "goes on" if code in _AGAIN else "") for code, name, text in rows],
    )


def raised() -> Iterator[tuple[int, str, str]]:
    """Give exit code, name and meaning of each error that is raised on purpose."""
    for name, error in vars(errors).items():
        is_ours = isinstance(error, type) and issubclass(error, errors.MrotError)
        if is_ours and error is not errors.MrotError:
            yield error.exit_code, name, error.__doc__ or ""
