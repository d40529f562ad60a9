"""Reports on their way to disk; whatever goes wrong is one warning, and the run is as it is."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from glob import escape

from mrot_scale.config.job import Config
from mrot_scale.errors import UnwrittenReportWarning
from mrot_scale.reporting.contents import Contents
from mrot_scale.reporting.page import report_page
from mrot_scale.running.commit import STAGES, RunFolder
from mrot_scale.storing.location import Location

DATA = "report.json"


def report_place(output: Location) -> Location:
    """Return where people find the report of an output: beside it."""
    return output.sibling(f"{output.name}.report.html")


@contextmanager
def never_failing() -> Iterator[None]:
    """Turn any error into a warning of one line: no report is worth a run."""
    try:
        yield
    except Exception as error:
        told = " ".join(str(error).split()) or type(error).__name__
        warnings.warn(f"There is no report: {told}", UnwrittenReportWarning, stacklevel=3)


def write_report(contents: Contents, page: Location, data: Location) -> None:
    """Write the page and the data behind it; the data first, for a page that is lost."""
    data.write(contents.to_bytes())
    page.write(report_page(contents))


@dataclass(frozen=True)
class Ran:
    """What a job knows of its own run."""

    source: str
    """The input, as people know it."""

    started: str
    seconds: float | None
    stages: dict[str, float] = field(default_factory=dict)


def is_lost(output: Location, run: RunFolder, config: Config) -> bool:
    """Tell whether a finished run has no report, but still all that one is made of."""
    if not config.report.enabled or report_place(output).exists():
        return False
    return not (run.location / DATA).exists() and (run.location / STAGES).exists()


def found_report(output: Location, run: Location, config: Config) -> str | None:
    """Return where the report of an output is; a page that was lost is written again."""
    page, data = report_place(output), run / DATA
    if not config.report.enabled:
        return None
    found: list[str] = []
    with never_failing():
        if not page.exists() and data.exists():
            page.write(report_page(Contents.from_bytes(data.read(), str(data))))
        _remove_left_over(page)
        found += [str(page)] if page.exists() else []
    return next(iter(found), None)


def _remove_left_over(page: Location) -> None:
    """Remove what a run that was killed as it wrote the page left beside it; we hold its lock."""
    folder = page.path.parent if page.is_local else None
    if folder is None or not folder.is_dir():
        return
    for path in folder.glob(f".{escape(page.name)}.*.tmp"):
        path.unlink(missing_ok=True)
