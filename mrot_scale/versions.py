"""Which version of a library is installed, for records and comparisons."""

from importlib.metadata import PackageNotFoundError, version


def version_of(distribution: str) -> str:
    """Return the installed version."""
    try:
        return version(distribution)
    except PackageNotFoundError:  # installed under another name, as by conda
        return "unknown"
