"""Runs: folders whose journal records what was committed to them."""

import json

from mrot_scale.errors import DamagedDataError
from mrot_scale.jobs.opening import RUN_CONFIG, RUN_PLAN
from mrot_scale.reporting.writing import DATA
from mrot_scale.running.commit import STAGES, Journal, Record
from mrot_scale.running.run_log import LAST_ERROR, LOG, LOGS
from mrot_scale.verifying.findings import NEW_RUN, sentence
from mrot_scale.verifying.folder import Folder

RUN_FILE, JOURNAL, SEGMENTS = "run.json", "journal.jsonl", "journal"


def check_run(folder: Folder) -> None:
    """Check what a run committed; objects only as long as they are kept."""
    _check_run_file(folder)
    records, is_published = _read_journal(folder)
    stages = {name for name in folder.files if name.startswith(f"{STAGES}/")}
    refs = [ref for record in records.values() for ref in record.objects.values()]
    for ref in refs if stages or not is_published else ():
        folder.listed[ref.name] = ref.entry
        if ref.spec is not None and 0 not in ref.spec.shape:
            folder.parsed(ref.name, ref.spec.decode)
        else:
            folder.sound(ref.name)
    folder.n_left_over = len(stages - {ref.name for ref in refs})
    folder.check_names(_is_of_runs)


def _check_run_file(folder: Folder) -> None:
    try:
        sound = isinstance(json.loads(folder.read(RUN_FILE) or b"")["fingerprint"], dict)
    except (ValueError, KeyError, TypeError, RecursionError):
        sound = False
    if not sound:
        folder.note("damaged", RUN_FILE, "it does not say what was asked of the run.", NEW_RUN)


def _read_journal(folder: Folder) -> tuple[dict[str, Record], bool]:
    """Return the records of a journal and whether it ends in an output, as far as it is sound."""
    records: dict[str, Record] = {}
    is_published, n_read, n_lines = False, 0, _n_lines(folder)
    name = JOURNAL if folder.location.is_local else SEGMENTS
    try:
        for value in Journal(folder.location).values():
            n_read += 1
            if not isinstance(value, dict):
                raise TypeError
            if "objects" in value:
                record = Record.from_json(value)
                records[record.key] = record
            is_published = is_published or "published" in value
    except DamagedDataError as error:
        folder.note("damaged", name, sentence(error), "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        folder.note("damaged", name, f"line {n_read + 1} is none that we write.", NEW_RUN)
    else:
        if n_read < n_lines:
            what = "its last line is cut short or damaged, and does not count."
            folder.note("damaged", name, what, "The same command again repeats that task.")
    return records, is_published


def _n_lines(folder: Folder) -> int:
    """Return how many lines a journal has; note those that are gone."""
    if folder.location.is_local:
        content = folder.read(JOURNAL)
        if content is None and (folder.location / STAGES).exists():
            folder.note("missing", JOURNAL, "there are stages, but no record of them.")
        return len((content or b"").splitlines())
    there = [name for name in folder.files if name.startswith(f"{SEGMENTS}/")]
    expected = {f"{SEGMENTS}/{number:08d}.json" for number in range(len(there))}
    for name in sorted(expected - set(there)):
        folder.note("missing", name, "later parts of the journal are there.", NEW_RUN)
    for name in there:
        folder.read(name)
    return len(there)


def _is_of_runs(name: str) -> bool:
    """Tell whether a file may be in a run folder without any record of it."""
    below = (f"{STAGES}/", f"{SEGMENTS}/", f"{LOGS}/")
    told = (LOG, LAST_ERROR, RUN_CONFIG, RUN_PLAN, DATA)
    return name in told or name.startswith(below)
