"""Every file a command writes. Tests hold this table to what real runs leave behind.

A name in angle brackets stands for one part of a path: `part-<chunk>.parquet`. To describe a new
file, add an entry to the folder it is in; `holds` says that a folder is described elsewhere.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from docs.generate.tables import table
from mrot_scale.jobs.opening import RUN_CONFIG, RUN_PLAN
from mrot_scale.reporting.writing import DATA
from mrot_scale.running.publish import GENERATIONS, HISTORY, POINTER
from mrot_scale.running.run_log import LAST_ERROR, LOG
from mrot_scale.scheduled.history import KNOWN_NIGHTS
from mrot_scale.scheduled.layout import TERMS
from mrot_scale.scheduled.metrics import JSON, TEXT
from mrot_scale.scheduled.registry import ENTRY
from mrot_scale.storing.arrays import METADATA
from mrot_scale.storing.manifest import MANIFEST
from mrot_scale.storing.store import SCHEMA


@dataclass(frozen=True)
class Entry:
    """One line of the table: some names, and what is in them."""

    names: tuple[str, ...]
    meaning: str
    when: str = ""
    """Where not every run leaves it: when it is there."""

    holds: str = ""
    """The kind of folder this is, for names that end in a slash."""


def _file(*names: str, is_: str, when: str = "", holds: str = "") -> Entry:
    return Entry(names, is_, when, holds)


def _each(stem: str, *parts: str) -> tuple[str, ...]:
    return tuple(f"{stem}.{part}.npy" for part in parts)


_MAP = ("knots", "rarity", "tail-scale")
_LISTED = "Size and sha256 of every other file here. Written last."

FOLDERS: dict[str, str] = {
    "store": "`mrot-scale ingest SOURCE STORE` writes `STORE`, a Zarr v3 group.",
    "model": "`mrot-scale fit STORE MODEL` and `MROT.save` write `MODEL`. It can run no code.",
    "scores": "`mrot-scale score MODEL STORE SCORES` writes a Zarr v3 group; `SCORES` is a "
    f"link to a generation of it below `{GENERATIONS}/SCORES/`.",
    "table of scores": "`--parquet` writes Parquet in the same way; so does `nightly`.",
    "generations": f"`{GENERATIONS}/NAME`, beside each output `NAME` that has generations. In an "
    f"object store, which has no links, `NAME/{POINTER}` says which of them is current.",
    "run": "`OUTPUT.run`, or what `run.folder` names: what a run was asked, and what it has done.",
    "beside outputs": "Files that people look for beside what a command made, not in it.",
    "job": "`mrot-scale nightly INPUT OUTPUT` and `backfill` write below `OUTPUT`.",
}
"""Kinds of folder, and who writes them."""

FILES: dict[str, tuple[Entry, ...]] = {
    "store": (
        _file(METADATA, is_="Says that this is a Zarr group, and of which format."),
        _file(f"features/{METADATA}", is_="Shape, chunks and codecs of the features."),
        _file("features/c/<chunk>/<column>", is_="Whole rows, float32, less each column's origin."),
        _file("ids/part-<chunk>.parquet", is_="Row identifiers and carried columns."),
        _file(
            SCHEMA,
            is_="Columns, kinds, categories with counts, origins, statistics, what was left out.",
        ),
        _file(MANIFEST, is_=_LISTED),
    ),
    "model": (
        _file("model.json", is_="Settings, column names, kind of score model, library versions."),
        _file("schema.json", is_="The columns, as `--like` follows them.", when="`fit` made it"),
        _file("fill.npy", is_="Medians, for missing values."),
        _file("origin.npy", is_="What columns are shifted by before they are rounded."),
        _file(
            *_each("view<view>", "center", "scale", "squash", "mean", "components"),
            is_="How rows become points of a view.",
        ),
        _file(
            *_each("view<view>", "anchor-rows", "anchor-v", "anchor-ids", "anchor-eps"),
            is_="Anchor sets: points, prices, row numbers in the sample.",
        ),
        _file(
            "view<view>.anchor-slack.npy",
            is_="For each set, what difference between priced routes is rounding.",
        ),
        _file(
            "view<view>.anchor-columns.npy",
            is_="The column that each set sees.",
            when="the view is `separate`",
        ),
        _file(
            "view<view>.anchor-efforts.npy",
            is_="The effort of each anchor among the others.",
            when="the view is `relative`",
        ),
        _file("view<view>.floor.npy", is_="What efforts count at least."),
        _file(*_each("view<view>.calibration", *_MAP), is_="From effort to rarity."),
        _file(
            *_each("view<view>.set<set>", *_MAP),
            is_="The same for each anchor set.",
            when="the view is `separate`",
        ),
        _file(
            *_each("company", "rows", "rarity", "reach"),
            is_="Rows that others share their rarity with: points, rarity in each view, reach.",
            when="rows keep company",
        ),
        _file(
            *_each("company.loneliness", *_MAP),
            is_="From how far apart rows lie to how rare that is.",
            when="rows keep company and `loneliness` is not 0",
        ),
        _file(*_each("last.<method>", *_MAP), is_="From raw value to score, for each method."),
        _file(
            *_each("bins", "edges", "counts"), is_="How the training rows were spread, for drift."
        ),
        _file(
            "training-scores.<method>.npy", is_="Scores of training rows, thinned, for thresholds."
        ),
        _file("booster.txt", is_="The trees, as LightGBM text.", when="the score model is trees"),
        _file(
            "plain-booster.txt",
            is_="Trees over plain columns, which explain.",
            when="`booster.txt` is a hybrid",
        ),
        _file(
            "training-rows.npy",
            "training-targets.npy",
            is_="What the score model is fitted on when loaded.",
            when="the score model is not trees",
        ),
        _file(
            "validation.json",
            is_="How far to trust it; [its keys](../pipeline.md#what-is-on-disk).",
            when="`fit` made it",
        ),
        _file(MANIFEST, is_=_LISTED),
    ),
    "scores": (
        _file(
            METADATA, is_="Says that this is a Zarr group; its attributes name the columns scored."
        ),
        _file(
            f"score/{METADATA}",
            "score/c/<chunk>",
            is_="float32 in [0, 1], higher = more anomalous.",
        ),
        _file(
            f"flag/{METADATA}", "flag/c/<chunk>", is_="Above the threshold?", when="`scoring.flag`"
        ),
        _file(
            f"percentile/{METADATA}",
            "percentile/c/<chunk>",
            is_="Share of training rows that score lower.",
            when="`scoring.percentile`",
        ),
        _file(
            f"top_columns/{METADATA}",
            "top_columns/c/<chunk>/<column>",
            is_="Positions of the columns that raised a flagged row's score most.",
            when="`scoring.top_columns`",
        ),
        _file(
            f"top_contributions/{METADATA}",
            "top_contributions/c/<chunk>/<column>",
            is_="How much of a flagged row's rarity each of these columns accounts for.",
            when="`scoring.top_columns`",
        ),
        _file(MANIFEST, is_=_LISTED),
    ),
    "table of scores": (
        _file(
            "part-<chunk>-<generation>.parquet",
            is_="Identifiers, score, what else was asked for, kept columns.",
        ),
        _file(
            "<key>=<value>/part-<chunk>-<generation>.parquet",
            is_="The same.",
            when="the input is partitioned",
        ),
        _file(f"_{MANIFEST}", is_=_LISTED),
    ),
    "generations": (
        _file("<generation>/", is_="One result that never changes.", holds="scores"),
        _file(HISTORY, is_="Which generations were current, in order; `rollback` goes back in it."),
    ),
    "run": (
        _file("run.json", is_="What was asked: inputs, settings, versions."),
        _file(RUN_CONFIG, is_="Every setting of the last attempt, without secrets."),
        _file(RUN_PLAN, is_="What it was to do.", when="`fit` and `score`"),
        _file("journal.jsonl", is_="What has been done, a line for each task, with digests."),
        _file("journal/<part>", is_="The same in parts.", when="in an object store"),
        _file(LOG, is_="What happened when."),
        _file(
            DATA,
            is_="What the report shows, as data; `mrot_scale.plots` draws it.",
            when="`report.enabled`, `fit` and `score`",
        ),
        _file(LAST_ERROR, is_="How the last attempt ended.", when="it failed"),
        _file(
            "stages/<stage>/<file>",
            is_="Arrays between stages.",
            when="unfinished, or `run.keep_stages`",
        ),
    ),
    "beside outputs": (
        _file("<output>.report.html", is_="The run as a page.", when="`report.enabled`"),
        _file(
            "<model>.threshold.json",
            is_="How to choose what is flagged; [more](../thresholds.md).",
            when="`threshold --set`",
        ),
    ),
    "job": (
        _file(
            "scores/<key>=<value>/",
            is_="The scores of one partition: a link to a generation. `scores` is one dataset.",
            holds="table of scores",
        ),
        _file(
            f"scores/{GENERATIONS}/<key>=<value>/",
            is_="Generations of that, the current one among them.",
            holds="generations",
        ),
        _file(f"models/<id>/{ENTRY}", is_="What the model was fitted on, and when."),
        _file("models/<id>/model/", is_="The model itself, which never changes.", holds="model"),
        _file("models/<id>/model.run/", is_="The run that made it.", holds="run"),
        _file("models/<id>/model.report.html", is_="The model as a page.", when="`report.enabled`"),
        _file(
            "models/<id>/groups/<group>.run/",
            is_="The runs that made these.",
            when="`nightly.by`",
            holds="run",
        ),
        _file(
            "models/<id>/groups/<group>/",
            is_="Models of single values of a column.",
            when="`nightly.by`",
            holds="model",
        ),
        _file("models/fits/<key>=<value>.json", is_="Which model was fitted for which partition."),
        _file(
            "models/decisions/<key>=<value>.json",
            is_="What was found when a partition was compared with its model.",
            when="`nightly.refit_drift`",
        ),
        _file(
            "models/promotions/<key>=<value>.json",
            is_="Which model was chosen by hand from there on.",
            when="`models promote`",
        ),
        _file("reports/<key>=<value>.html", is_="The night as a page.", when="`report.enabled`"),
        _file("history.html", is_="All nights as a page.", when="`report.enabled`"),
        _file(f"runs/{KNOWN_NIGHTS}", is_="The same as data.", when="`report.enabled`"),
        _file(f"runs/<run>/{DATA}", is_="What the night's page shows.", when="`report.enabled`"),
        _file(
            "runs/<run>/run.json", is_="What a run was asked, did and found; [more](../nightly.md)."
        ),
        _file(f"runs/{TEXT}", f"runs/{JSON}", is_="Figures for Prometheus, and for anything else."),
        _file("runs/partitions/<key>=<value>.json", is_="How the last run of a partition ended."),
        _file("runs/profiles/<key>=<value>.json", is_="How the rows of a partition are spread."),
        _file(
            "runs/work/<key>=<value>/<path...>",
            f"runs/work/<key>=<value>/{TERMS}",
            is_="What an unfinished run goes on with, and the terms it was begun on.",
            when="unfinished",
        ),
    ),
}
"""What is in each kind of folder."""


def files() -> str:
    """Return a section for each kind of folder."""
    parts = []
    for kind, who in FOLDERS.items():
        parts += [f"## {kind.capitalize()}\n", f"{who}\n", _listed(FILES[kind]), ""]
    return "\n".join(parts)


def _listed(entries: Iterable[Entry]) -> str:
    rows = [
        (
            ", ".join(f"`{name}`" for name in e.names),
            e.meaning + (f" See [{e.holds}](#{e.holds.replace(' ', '-')})." if e.holds else ""),
            e.when,
        )
        for e in entries
    ]
    return table(("file", "what it holds", "only where"), rows)


def entry_of(kind: str, path: str) -> Entry | None:
    """Return the entry that describes a file, given its path within a folder of that kind."""
    for entry in FILES[kind]:
        for name in entry.names:
            found = _pattern(name).match(path)
            if found is None:
                continue
            if name.endswith("/") and entry.holds:
                below = path[found.end() :]
                kinds = ("scores", "table of scores") if entry.holds == "scores" else (entry.holds,)
                if any(entry_of(k, below) for k in kinds):
                    return entry
            elif found.end() == len(path):
                return entry
    return None


def _pattern(name: str) -> re.Pattern[str]:
    parts = re.split(r"(<[^>]+>)", name)
    return re.compile(
        "".join(
            (".+" if p.endswith("...>") else "[^/]+") if p[:1] == "<" else re.escape(p)
            for p in parts
        )
    )
