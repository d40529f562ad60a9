"""Every block of code in README and documentation runs, or says why it does not."""

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from docs.generate.blocks import CHECKED, INSTALLING, RUN, SHOWN, blocks
from docs.generate.outputs import with_outputs
from mrot_scale import fit, ingest, score
from mrot_scale.config.job import Config
from mrot_scale.synthetic import log_block
from tests.jobs.made import TINY
from tests.servers import s3_server

ROOT = Path(__file__).parent.parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "pipelines" / "schedulers" / "README.md",
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts),
]
RUN_ELSEWHERE = {
    "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/mrot-scale demo\n",
    "python3 -m venv .venv && .venv/bin/pip install '.[test]' && .venv/bin/pytest\n",
}
"""The README's first commands; `.ci/run` runs them, the demo with fewer rows."""

QUICK = {
    "MROT_CLUSTER__KIND": "inline",
    "MROT_LABEL_ROWS": "200",
    "MROT_BATCH_ROWS": "64",
    "MROT_REPEATS": "1",
    "MROT_ANCHOR_SETS": "1",
    "MROT_VIEWS": '[{"scaling": "robust"}]',
    "MROT_FOLDS": "2",
    "MROT_HYBRID": "never",
}
"""Settings that change no command: a page is tried on few rows, without worker processes."""

AS_SHOWN = {"tutorial.md", "zone-and-threshold.md"}
"""Pages with outputs: they run with the settings they show."""

AT_ONCE = {"security.md", "cluster-tls.md"}
"""Pages that take no more than a few seconds."""


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def running(path: Path) -> Any:
    """A page as a parameter, slow unless it is known to be quick."""
    marks = [] if path.name in AT_ONCE else [pytest.mark.slow]
    return pytest.param(path, marks=marks, id=name_of(path))


def readings(seed: int = 1) -> pa.Table:
    return pa.Table.from_batches([log_block(600, 0, seed=seed)])


def make_table(folder: Path) -> None:
    pq.write_table(readings(), folder / "readings.parquet")


def make_lake(folder: Path) -> None:
    """Two nights without gaps: pages that do not say what to do about them expect none."""
    for seed, day in enumerate(("2026-11-13", "2026-11-14")):
        rows = readings(seed).to_pandas().dropna()
        place = folder / "data" / "lake" / f"date={day}"
        place.mkdir(parents=True)
        pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), place / "part.parquet")


def make_both(folder: Path) -> None:
    make_table(folder)
    make_lake(folder)


def make_partitions(folder: Path) -> None:
    table = readings().drop_columns(["site"])
    for site, part in (("north", table.slice(0, 300)), ("south", table.slice(300))):
        place = folder / "readings" / f"site={site}"
        place.mkdir(parents=True)
        pq.write_table(part, place / "part.parquet")


def make_scored(folder: Path) -> None:
    """A model, tonight's table and store, and scores, with the row that pages ask about."""
    table = readings()
    reading = pa.array(range(4_200, 4_200 + len(table)))
    table = table.set_column(table.schema.get_field_index("reading"), "reading", reading)
    pq.write_table(table, folder / "tonight.parquet")
    settings = TINY | {"non_finite": "impute"}
    store, model = folder / "tonight.store", folder / "pumps.model"
    ingest(folder / "tonight.parquet", store, id="reading", exclude=["planted"], config=settings)
    fit(store, model, settings)


def make_published(folder: Path) -> None:
    make_scored(folder)
    places = (folder / "pumps.model", folder / "tonight.store", folder / "scores")
    score(*places, TINY, parquet=folder / "scores-parquet")


NEEDS: dict[str, Callable[[Path], None]] = {
    "docs/explanations.md": make_scored,
    "docs/thresholds.md": make_published,
    "README.md": make_both,
    "docs/nightly.md": make_lake,
    "docs/howto/schedulers.md": make_lake,
    "docs/howto/big-parquet.md": make_partitions,
    "docs/howto/memory.md": make_table,
    "docs/howto/s3.md": make_table,
}
"""What a page expects to be there."""


@contextmanager
def bucket(folder: Path) -> Iterator[dict[str, str]]:
    """An object store with the table in it; how to reach it."""
    import s3fs

    with s3_server() as store:
        endpoint = store.environment["AWS_ENDPOINT_URL"]
        files = s3fs.S3FileSystem(key="testing", secret="testing", endpoint_url=endpoint)
        files.mkdir("bucket")
        files.put(str(folder / "readings.parquet"), "bucket/pumps/readings.parquet")
        yield store.environment


def put_program(folder: Path) -> None:
    """Put mrot-scale, run by this very interpreter, where a shell finds it."""
    program = folder / "mrot-scale"
    folder.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mrot_scale "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def run_page(path: Path, folder: Path, bin_folder: Path) -> dict[int, str]:
    """Run a page in a folder; return what each block prints, by its line."""
    if name_of(path) in NEEDS:
        NEEDS[name_of(path)](folder)
    (folder / "configs").symlink_to(ROOT / "configs")
    put_program(bin_folder)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MROT_", "AWS_"))}
    environment |= {"PYTHONPATH": str(ROOT), "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    environment |= {} if path.name in AS_SHOWN else QUICK
    places = [f"/data/={folder}/data/", f"/etc/mrot/tls={folder}/tls"]
    with ExitStack() as stack:
        if path.name == "s3.md":
            environment |= stack.enter_context(bucket(folder))
        done = subprocess.run(
            [sys.executable, "-m", "docs.generate.run_page", path, "printed.json", *places],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
        )
    assert done.returncode == 0, done.stderr[-3_000:]
    found = json.loads((folder / "printed.json").read_text())
    return {int(line): text for line, text in found.items()}


def near(shown: str, printed: str) -> bool:
    """Tell whether two texts are the same but for small differences of numbers."""
    number = re.compile(r"\d+(?:\.\d+)?")
    if number.sub("#", shown).split() != number.sub("#", printed).split():
        return False
    pairs = zip(map(float, number.findall(shown)), map(float, number.findall(printed)), strict=True)
    return all(abs(a - b) <= max(0.02, 0.1 * abs(a)) for a, b in pairs)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_blocks_are_run_or_say_why_not(path: Path) -> None:
    before = None
    for block in blocks(path.read_text()):
        where = f"{name_of(path)}, line {block.line}"
        known = (*RUN, *CHECKED, *SHOWN)
        assert block.is_directive or block.language in known, f"{where}: use one of {known}"
        if block.mark.startswith("not run"):
            assert len(block.not_run.split()) > 1, f"{where}: say why it is not run"
        if block.is_output:
            assert before is not None, where
            assert before.is_run, f"{where}: this is the output of no block that runs"
        before = block


def test_the_commands_run_elsewhere_are_those_of_the_readme() -> None:
    for path in PAGES:
        installing = {b.code for b in blocks(path.read_text()) if b.code.startswith(INSTALLING)}
        marked = {b.code for b in blocks(path.read_text()) if b.not_run}
        expected = RUN_ELSEWHERE if path == ROOT / "README.md" else set()
        assert installing - marked == expected, name_of(path)


def runs(path: Path) -> bool:
    return any(block.is_run for block in blocks(path.read_text()))


@pytest.mark.parametrize("path", [running(p) for p in PAGES if runs(p)])
def test_pages_run_and_print_what_they_show(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    text = path.read_text()
    printed = run_page(path, folder, tmp_path / "bin")
    for code, output in pairwise(blocks(text)):
        if output.is_output:
            found = printed[code.line]
            assert near(output.code, found), (
                f"{name_of(path)}, line {output.line} shows\n{output.code}\nbut prints\n{found}\n"
                f"python -m docs.generate.outputs {name_of(path)} writes it anew."
            )


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_settings_shown_are_settings(path: Path) -> None:
    for block in blocks(path.read_text()):
        if block.language == "yaml" and not block.not_run:
            Config.model_validate(yaml.safe_load(block.code))


def test_figures_in_the_text_of_the_tutorial_are_printed_by_it() -> None:
    text = (ROOT / "docs" / "tutorial.md").read_text()
    shown = " ".join(block.code for block in blocks(text))
    prose = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", text, flags=re.DOTALL)
    figures = set(re.findall(r"(?<![\w.])\d*\.?\d+(?![\w])", prose)) - {"0", "1", "3.11"}
    missing = {f for f in figures if f not in shown and f"0{f}" not in shown}
    assert not missing, f"figures that nothing prints: {sorted(missing)}"


def test_texts_are_near_where_only_numbers_differ_a_little() -> None:
    assert near("a 0.99  b 38\n", "a 0.98 b 37")
    assert not near("a 0.99 b 38", "a 0.99 b 60")
    assert not near("a 0.99 malignant", "a 0.99 benign")


def test_outputs_are_written_below_the_blocks_that_print_them() -> None:
    page = "```python\nprint(1)\n```\n\n<!-- output -->\n```text\nold\n```\nend\n"
    assert with_outputs(page, {1: "1\n"}) == page.replace("old", "1")


def test_blocks_in_lists_and_marks_above_them_are_found() -> None:
    page = "1. a\n\n   <!-- not run: because of it -->\n   ```sh\n   one\n     two\n   ```\n"
    (found,) = blocks(page)
    assert (found.language, found.code, found.line) == ("sh", "one\n  two\n", 4)
    assert found.not_run == "because of it"
    assert not found.is_run
