"""What the benchmarks' command lines share: errors as exit codes, lists of names."""

import argparse
import sys
from collections.abc import Callable

from mrot_scale.errors import ConfigError, MrotError


def exit_code(run: Callable[[argparse.Namespace], None], given: argparse.Namespace) -> int:
    """Run a benchmark and return its exit code, an error told in one line."""
    try:
        run(given)
    except MrotError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def chosen_names(names: str | None, known: list[str], option: str) -> list[str]:
    """Return those of the known names that are asked for, in order; all when none is."""
    wanted = known if names is None else [name.strip() for name in names.split(",")]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ConfigError(f"{option}: {unknown[0]!r} is not one of {', '.join(known)}.")
    return [name for name in known if name in wanted]
