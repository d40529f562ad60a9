"""The four questions about steadiness, as units of work over labelled sets."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import embedding_rows
from benchmarks.quality_peers import PEERS
from benchmarks.quality_runs import Task, Unit
from benchmarks.quality_sets import load_set
from benchmarks.smaller_splits import load_smaller, training_rows
from benchmarks.steadiness_methods import both_methods, headroom_families

GROWING_SETS = ("donors", "cover", "shuttle", "campaign")
WIDE_SETS = ("InternetAds", "mnist")
LEFT_OUT_PEERS = ("ocsvm", "bagging")
"""Too slow on wide tables for what they add."""


@dataclass(frozen=True)
class Sizes:
    """How much work there is; the defaults are the benchmark, tests use less."""

    train_rows: tuple[int, ...] = (20_000, 100_000)
    """Training sizes before all rows (growth)."""

    draws: int = 3
    """Samples of each of these sizes: chance in what one holds is not growth (growth)."""

    label_rows: int = 200_000
    """Rows that are given an effort (growth)."""

    test_rows: int = 100_000
    """Most test rows (growth)."""

    large: int = 5_000
    """Sets with more rows are fitted again with other seeds (repeat)."""

    repeats: int = 5
    """Seeds of the method (repeat)."""

    splits: int = 2
    """Seeds of splits (wide, headroom)."""

    wide_rows: int = embedding_rows.N_ROWS
    """Rows of the generated wide set."""

    wide_columns: int = embedding_rows.N_COLUMNS
    small_rows: int = 4_000
    """Most training and most test rows (headroom)."""

    alphas: tuple[float, ...] = (0.01, 0.02, 0.04, 0.08, 0.16, 0.3)
    """Zone masses tried one at a time (headroom)."""


@dataclass(frozen=True)
class Part:
    """One question: its work, and what must agree for cells to stand together."""

    units: Callable[[dict[str, Path], Sizes], list[Unit]]
    settings: tuple[str, ...]
    """Sizes that its cells depend on beyond their own fields."""

    fields: tuple[str, ...] = ("dataset", "method", "seed")
    """What tells its cells apart."""

    sets: tuple[str, ...] | None = None
    """Sets it is about, as far as they are there; all when None."""


def growth_units(paths: dict[str, Path], sizes: Sizes) -> list[Unit]:
    """Fit on more and more rows of the same split, drawn several times where they are not all."""
    units = []
    for name, path in paths.items():
        n_all = training_rows(len(load_set(path)[1]))
        for n_rows in sorted({n for n in sizes.train_rows if n < n_all} | {n_all}):
            load = partial(load_smaller, path, 0, test_rows=sizes.test_rows)
            for seed in range(sizes.draws if n_rows < n_all else 1):
                task = Task(name, seed, load, n_rows, {"train_rows": n_rows})
                units.append(Unit(task, both_methods(sizes.label_rows), n_rows))
    return units


def repeat_units(paths: dict[str, Path], sizes: Sizes) -> list[Unit]:
    """Fit on one split with several seeds of the method."""
    large = {name: path for name, path in paths.items() if _n_rows(path) > sizes.large}
    return [
        Unit(Task(name, seed, partial(load_smaller, path, 0), 1), both_methods())
        for name, path in large.items()
        for seed in range(sizes.repeats)
    ]


def wide_units(paths: dict[str, Path], sizes: Sizes) -> list[Unit]:
    """Compare with peers on wide tables."""
    generated = (sizes.wide_rows, sizes.wide_columns)
    peers = [family for name, family in PEERS.items() if name not in LEFT_OUT_PEERS]
    tasks = [
        Task(name, seed, partial(load_smaller, path, seed), 1)
        for name, path in paths.items()
        for seed in range(sizes.splits)
    ]
    for seed in range(sizes.splits):
        load = partial(embedding_rows.embedding_split, seed, *generated)
        tasks.append(Task(embedding_rows.NAME, seed, load, 1))
    return [Unit(task, family) for task in tasks for family in (both_methods(), *peers)]


def headroom_units(paths: dict[str, Path], sizes: Sizes) -> list[Unit]:
    """Fit the default and every single setting on small samples of each set."""
    rows = sizes.small_rows
    families = headroom_families(sizes.alphas, rows)
    return [
        Unit(Task(name, seed, partial(load_smaller, path, seed, test_rows=rows), 1), family, rows)
        for name, path in paths.items()
        for seed in range(sizes.splits)
        for family in families
    ]


PARTS = {
    "growth": Part(
        growth_units,
        ("label_rows", "test_rows"),
        ("dataset", "method", "seed", "train_rows"),
        GROWING_SETS,
    ),
    "repeat": Part(repeat_units, ()),
    "wide": Part(wide_units, ("wide_rows", "wide_columns"), sets=WIDE_SETS),
    "headroom": Part(headroom_units, ("small_rows",)),
}
"""All parts, in the order they are run and reported."""


def part_settings(part: Part, sizes: Sizes) -> dict[str, Any]:
    """Return what cells of the part must agree on."""
    return {name: getattr(sizes, name) for name in part.settings}


def _n_rows(path: Path) -> int:
    return len(load_set(path)[1])
