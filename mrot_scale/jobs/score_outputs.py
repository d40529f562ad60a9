"""Scores become visible all at once, as arrays and, where asked for, as a table."""

import json
from dataclasses import dataclass
from typing import Any

from mrot_scale.errors import ConfigError, OutputError
from mrot_scale.jobs.score_tasks import ScoreOptions
from mrot_scale.jobs.staged import Staged
from mrot_scale.running.commit import Record
from mrot_scale.running.publish import (
    Folder,
    check_replaceable,
    is_current,
    publish_generation,
    resolve,
)
from mrot_scale.storing.arrays import METADATA, group_metadata
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import MANIFEST, Entry, read_manifest

SCORES_FORMAT = "mrot-scale-scores"
TABLE_FORMAT = "mrot-scale-scores-parquet"
SCORES_VERSION = 1


@dataclass(frozen=True)
class Outputs:
    """Where scores are to be."""

    scores: Location
    table: Location | None

    @property
    def places(self) -> list[Location]:
        return [self.scores] if self.table is None else [self.scores, self.table]


def check_outputs(target: Location, table: Location | None) -> None:
    """Refuse two outputs at one place, or one inside the other."""
    if table is not None and (table.is_within(target) or target.is_within(table)):
        raise ConfigError(
            f"Zarr scores at {target} and Parquet scores at {table} need places of their own, "
            "neither inside the other."
        )


def is_done(outputs: Outputs, folder: Location, terms: Any, new_run: bool) -> bool:
    """Tell whether these scores are there already; refuse to replace what is not to be."""
    was_done = is_current(outputs.scores, folder, terms, new_run=new_run)
    if outputs.table is None:
        return was_done
    if was_done and not outputs.table.exists():
        raise OutputError(
            f"{outputs.table} was removed, {outputs.scores} was not. Remove {outputs.scores} as "
            "well to score again."
        )
    check_replaceable(outputs.table)
    return was_done


def publish_scores(staged: Staged, outputs: Outputs, generation: str) -> None:
    """Publish the Parquet folder first: scores that are there are there in all forms."""
    run, facts = staged.run, _facts(staged)
    if outputs.table is not None:
        folder = _table_folder(staged.records, facts, generation)
        publish_generation(folder, outputs.table, run, generation)
    folder = _array_folder(staged, facts)
    run.commit_published(Entry.of(folder.manifest()).sha256)  # first: see publish_once
    publish_generation(folder, outputs.scores, run, generation)
    run.commit_finished()


def _facts(staged: Staged) -> dict[str, Any]:
    return {
        "rows": staged.store.n_rows,
        "flagged": staged.total("flagged"),
        "missing": staged.total("missing"),
        "method": staged.options.method,
        "threshold": staged.options.threshold,
        "store": staged.store.identity(),
        "model": staged.run.fingerprint["inputs"]["model"],
    }


def _array_folder(staged: Staged, facts: dict[str, Any]) -> Folder:
    store, options = staged.store, staged.options
    folder = Folder(SCORES_FORMAT, SCORES_VERSION, facts=facts)
    attributes = {"made_by": "mrot-scale", "columns": list(store.schema.features)}
    folder.small[METADATA] = group_metadata(attributes)
    for name, spec in options.arrays(store.n_rows, store.chunks.chunk_rows).items():
        folder.small[f"{name}/{METADATA}"] = spec.metadata()
        below = (0,) * (len(spec.shape) - 1)
        for chunk, record in enumerate(staged.records):
            folder.objects[f"{name}/{spec.chunk_name(chunk, *below)}"] = record.objects[name]
    return folder


def _table_folder(records: list[Record], facts: dict[str, Any], generation: str) -> Folder:
    """Return the Parquet files, under names that no other generation has.

    A reader that lists the names as they change may miss a file, but never reads a mixture.
    """
    folder = Folder(TABLE_FORMAT, SCORES_VERSION, facts=facts, list_name=f"_{MANIFEST}")
    for record in records:
        for place, part in record.facts["files"]:
            name = place.removesuffix(".parquet") + f"-{generation[:8]}.parquet"
            folder.objects[name] = record.objects[part]
    return folder


def generation_name(terms: Any) -> str:
    """Return the name of what a run publishes: the same for the same terms."""
    return Entry.of(json.dumps(terms, sort_keys=True).encode()).sha256[:16]


@dataclass(frozen=True)
class Scored:
    """What a scoring run made."""

    out: str
    parquet: str | None
    n_rows: int
    n_flagged: int
    n_missing: int
    """Rows without a score, because a value was missing."""

    threshold: float
    seconds: float
    was_done: bool
    """Whether the same scoring had already finished before."""

    report: str | None = None
    """The page that shows what was found."""


def scored(
    outputs: Outputs, options: ScoreOptions, seconds: float, was_done: bool, report: str | None
) -> Scored:
    found = resolve(outputs.scores)
    facts = read_manifest(found, SCORES_FORMAT, SCORES_VERSION, "scores").facts
    return Scored(
        str(outputs.scores),
        None if outputs.table is None else str(outputs.table),
        facts["rows"],
        facts["flagged"],
        facts["missing"],
        options.threshold,
        seconds,
        was_done,
        report,
    )
