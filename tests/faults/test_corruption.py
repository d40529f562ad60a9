"""Damage at rest, everywhere: `verify` names the file, and no wrong number ever comes of it.

What is damaged is input (a store), intermediates (stages and journals of runs that were stopped),
output (scores as Zarr and Parquet) and a model. Whoever reads it through the product is refused
with a documented error, or gets the same numbers: the damaged file plays no part in them, or was
made again.
"""

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.random import Generator

import mrot_scale
from mrot_scale.digests import digest
from mrot_scale.errors import MrotError
from mrot_scale.model.persist import load_model
from mrot_scale.running import tasks
from mrot_scale.storing.location import Location
from mrot_scale.verifying.everything import verify
from mrot_scale.verifying.findings import Verified
from tests.running.jobs import SETTINGS, make_table

SEED = 20_261_116
CODES = {65, 74, 78}
CONFIG: dict[str, Any] = SETTINGS | {
    "cluster": {"kind": "inline"},
    "run": {"keep_stages": True},
    "label_rows": 300,
    "batch_rows": 64,
    "views": [{"scaling": "robust"}],
    "hybrid": "never",
}
LISTS = ("MANIFEST.json", "_MANIFEST.json", "journal.jsonl")
KEPT_RECORDS = {"score": 3, "fit": 12}
"""Tasks that the stopped runs had finished."""


@dataclass
class Artefact:
    """Something at rest, an older version of it, and what reading it gives."""

    visible: Path
    files: dict[str, bytes]
    """Content of each file that may be damaged, by path below the folder."""

    older: dict[str, bytes]
    """What the same files held in an older version."""

    use: Callable[[], str]
    """Reads it as users do; returns the digest of what came of it."""

    expected: str = ""

    def __post_init__(self) -> None:
        self.folder = self.visible.resolve()
        self.expected = self.use()
        self.restore(self.files)

    def restore(self, names: Any) -> None:
        for name in names:
            (self.folder / name).write_bytes(self.files[name])


# Damage: each changes one file or two, and returns which


def flip(found: Artefact, rng: Generator) -> list[str]:
    name = _any(found, rng)
    content = bytearray(found.files[name])
    content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
    (found.folder / name).write_bytes(content)
    return [name]


def truncate(found: Artefact, rng: Generator) -> list[str]:
    name = _any(found, rng)
    content = found.files[name]
    length = int(rng.integers(len(content)))
    # A journal that ends with a whole line is the sound journal of a moment ago.
    while name == "journal.jsonl" and content[:length].endswith(b"\n"):
        length -= 1
    (found.folder / name).write_bytes(content[:length])
    return [name]


def delete(found: Artefact, rng: Generator) -> list[str]:
    name = _any(found, rng)
    (found.folder / name).unlink()
    return [name]


def swap(found: Artefact, rng: Generator) -> list[str]:
    one = other = _any(found, rng)
    while found.files[one] == found.files[other]:
        other = _any(found, rng)
    (found.folder / one).write_bytes(found.files[other])
    (found.folder / other).write_bytes(found.files[one])
    return [one, other]


def stale(found: Artefact, rng: Generator) -> list[str]:
    names = [n for n in found.older if found.older[n] != found.files[n]]
    name = names[int(rng.integers(len(names)))]
    (found.folder / name).write_bytes(found.older[name])
    return [name]


Damage = Callable[[Artefact, Generator], list[str]]
OTHERS: tuple[Damage, ...] = (truncate, delete, swap, stale)


def _any(found: Artefact, rng: Generator) -> str:
    names = list(found.files)
    return names[int(rng.integers(len(names)))]


# What is damaged


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder that holds anything."""
    root = folder.resolve()
    found = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    return {name: found[name] for name in sorted(found) if found[name]}


def older_by_name(now: dict[str, bytes], then: dict[str, bytes]) -> dict[str, bytes]:
    """The older content of each file; names may end in what only their version has."""

    def key(name: str) -> str:
        is_numbered = name.startswith(("stages/", "part-"))
        return name.rpartition("-" if name.startswith("part-") else ".")[0] if is_numbered else name

    known = {key(name): content for name, content in then.items()}
    return {name: known[key(name)] for name in now if key(name) in known}


def make_version(work: Path, seed: int) -> None:
    """Ingest, fit and score one of two versions of the same things."""
    table = pq.read_table(make_table(work / "table.parquet"))
    if seed:
        table = table.take(np.random.default_rng(seed).permutation(table.num_rows))
    pq.write_table(table, work / "table.parquet")
    config = CONFIG | {"seed": seed}
    mrot_scale.ingest(work / "table.parquet", work / "store", id="reading", config=config)
    mrot_scale.fit(work / "store", work / "model", config)
    score(work, config)


def score(work: Path, config: dict[str, Any]) -> None:
    out, parquet = work / "scores", work / "scores.parquet"
    mrot_scale.score(work / "model", work / "store", out, config, parquet=parquet)


def remove(work: Path, *names: str) -> None:
    for name in (*names, *(f"_gen/{name}" for name in names)):
        place = work / name
        if place.is_symlink():
            place.unlink()
        shutil.rmtree(place, ignore_errors=True)


def stopped_run(run: Path, n_records: int) -> None:
    """Make of a finished run what it was when it had committed so many tasks."""
    lines = (run / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (run / "journal.jsonl").write_bytes(b"".join(lines[:n_records]))
    text = (run / "journal.jsonl").read_text()
    for path in (run / "stages").rglob("*"):
        if path.is_file() and str(path.relative_to(run)) not in text:
            path.unlink()


@pytest.fixture(scope="module")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Artefact]:
    base = tmp_path_factory.mktemp("corruption")
    then, now = base / "then", base / "now"
    for place, seed in ((then, 1), (now, 0)):
        place.mkdir()
        make_version(place, seed)
    found = {
        name: Artefact(
            now / name,
            contents(now / name),
            older_by_name(contents(now / name), contents(then / name)),
            use,
        )
        for name, use in uses_of(now).items()
    }
    for command, name in (("score", "scores"), ("fit", "model")):
        found[f"{command} run"] = stopped(base, command, name)
    return found


def uses_of(now: Path) -> dict[str, Callable[[], str]]:
    """How each finished thing is read by the product."""

    def score_the_store() -> str:
        work = now.parent / "from the store"
        shutil.rmtree(work, ignore_errors=True)
        out, parquet = work / "scores", work / "scores.parquet"
        mrot_scale.score(now / "model", now / "store", out, CONFIG, parquet=parquet)
        return digest(out) + digest(parquet)

    def load_the_model() -> str:
        model, _ = load_model(Location(now / "model"))
        rows = np.random.default_rng(0).normal(size=(5, model.n_features))
        return str([model.score(rows, method).tolist() for method in ("model", "effort")])

    return {
        "store": score_the_store,
        "model": load_the_model,
        "scores": lambda: digest(now / "scores"),
        "scores.parquet": lambda: digest(now / "scores.parquet"),
    }


def stopped(base: Path, command: str, name: str) -> Artefact:
    """A run that was stopped: the same command again goes on with what it has."""
    work, n_records = base / f"stopped {command}", KEPT_RECORDS[command]
    shutil.copytree(base / "now", work, symlinks=True)
    remove(work, "scores", "scores.parquet", *(["model"] if command == "fit" else []))
    run, template = work / f"{name}.run", base / f"{command}.run"
    if command == "score":  # where its Parquet files go is among its terms
        shutil.rmtree(run)
        score(work, CONFIG)
        remove(work, "scores", "scores.parquet")
    stopped_run(run, n_records)
    stopped_run(base / f"then/{name}.run", n_records)
    shutil.copytree(run, template)

    def go_on() -> str:
        tasks._HELD._arrays.clear()
        try:
            if command == "score":
                score(work, CONFIG)
                return digest(work / "scores") + digest(work / "scores.parquet")
            mrot_scale.fit(work / "store", work / "model", CONFIG)
            return digest(work / "model")
        finally:
            remove(work, name, *(["scores.parquet"] if command == "score" else []))
            shutil.rmtree(run)
            shutil.copytree(template, run)

    files = {n: c for n, c in contents(run).items() if n.startswith(("stages/", "journal"))}
    return Artefact(run, files, older_by_name(files, contents(base / f"then/{name}.run")), go_on)


# What must hold


def is_named(found: Verified, place: Path) -> bool:
    """Tell whether a file is named; a list may be so by what it says that is not so."""
    if any(problem.file == str(place) for problem in found.problems):
        return True
    said = "the journal" if place.name == "journal.jsonl" else place.name
    return place.name in LISTS and any(said in problem.what for problem in found.problems)


def damage_and_read(found: Artefact, damage: Damage, rng: Generator, of: str) -> str:
    """Damage an artefact once; return whether its reader was refused or got the same."""
    names = damage(found, rng)
    of = f"{of}: {damage.__name__} {names}"
    try:
        seen = verify(found.visible)
        # Without its list of files, nothing else in a folder can be told from damage.
        for name in [n for n in names if n in LISTS] or names:
            assert is_named(seen, found.folder / name), f"{of}: {seen.text()}"
        try:
            result = found.use()
        except MrotError as error:
            if error.exit_code not in CODES:
                raise AssertionError(f"{of}: error[{error.exit_code}]: {error}") from error
            return "refused"
        assert result == found.expected, f"{of}: other numbers"
        return "the same numbers"
    finally:
        found.restore(names)


def damage_often(artefacts: dict[str, Artefact], n_flips: int, n_others: int, seed: int) -> None:
    """Spread damage of all kinds evenly; of runs, few are fits, which take longest."""
    print(f"seed {seed}")
    rng, counts = np.random.default_rng(seed), Counter[str]()
    order = ["store", "score run", "scores", "model", "scores.parquet"]
    todo: list[Damage] = [flip] * n_flips + [one for one in OTHERS for _ in range(n_others)]
    for number, damage in enumerate(todo):
        name = order[number % len(order)]
        if name == "score run" and number % 50 == 1:
            name = "fit run"
        came = damage_and_read(
            artefacts[name], damage, rng, f"seed {seed}, number {number}, {name}"
        )
        counts[f"{name}: {came}"] += 1
        counts[damage.__name__] += 1
    for name, found in artefacts.items():
        verify(found.visible).check()
        assert found.use() == found.expected, name
    print(
        {kind.__name__: counts[kind.__name__] for kind in (flip, *OTHERS)}, "all found and named;"
    )
    print({name: n for name, n in sorted(counts.items()) if ":" in name}, "0 wrong numbers")


def test_damage_is_found_and_no_wrong_number_comes_of_it(artefacts: dict[str, Artefact]) -> None:
    damage_often(artefacts, n_flips=40, n_others=4, seed=SEED)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_a_thousand_flips_and_four_hundred_other_damages_are_found(
    artefacts: dict[str, Artefact],
) -> None:
    damage_often(artefacts, n_flips=1_000, n_others=100, seed=SEED + 1)


def test_what_a_run_was_asked_cannot_change_its_numbers(artefacts: dict[str, Artefact]) -> None:
    """No digest guards `run.json`: another text is another run, which is refused."""
    found, rng = artefacts["score run"], np.random.default_rng(SEED)
    place = found.folder / "run.json"
    original, refused = place.read_bytes(), 0
    for _ in range(12):
        content = bytearray(original)
        content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        place.write_bytes(content)
        try:
            assert found.use() == found.expected
        except MrotError as error:
            refused += error.exit_code in CODES
        place.write_bytes(original)
    assert refused > 0
