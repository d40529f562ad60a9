"""The reference has everything that the code has, and everything that real runs write."""

import os
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from docs.generate import commands, configuration, exit_codes, files, python
from docs.generate.pages import PARTS, filled
from docs.generate.tables import table
from mrot_scale import errors, fit, ingest, nightly, score
from mrot_scale.config.job import Config
from tests.jobs.made import TINY, mixed_table
from tests.scheduled.lake import SETTINGS, Job, day

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))


def test_every_part_has_its_page_and_every_mark_is_filled() -> None:
    text = "".join(page.read_text() for page in (*PAGES, ROOT / "docs" / "notebooks.md"))
    assert set(re.findall(r"<!-- generated: ([\w-]+) -->", text)) == set(PARTS)
    assert "<!-- generated" not in filled("a\n<!-- generated: exit-codes -->\nb\n")


def leaves(schema: dict[str, object], model: str, prefix: str = "") -> set[str]:
    """Names of all settings by the JSON schema, which knows nothing of the reference."""
    definitions: dict[str, dict[str, object]] = schema["$defs"]  # type: ignore[assignment]
    holder = definitions[model] if model else schema
    found: set[str] = set()
    for name, value in holder["properties"].items():  # type: ignore[attr-defined]
        block = str(value.get("$ref", "")).rpartition("/")[2]
        is_block = not prefix and block.endswith("Config")
        found |= leaves(schema, block, f"{name}.") if is_block else {f"{prefix}{name}"}
    return found


def test_every_setting_is_in_the_reference_with_its_meaning() -> None:
    text = configuration.configuration()
    names = leaves(Config.model_json_schema(), "")
    assert names == set(configuration.setting_names())
    for name in names:
        line = next((row for row in text.splitlines() if row.startswith(f"| `{name}` |")), "")
        assert line, f"{name} is not in docs/reference/configuration.md"
        assert len(line.split(" | ")[-1]) > 10, f"{name} has no docstring in mrot_scale/config/"


@pytest.mark.parametrize(
    "line",
    [
        "| `alpha` | `0.04` | number, more than 0, less than 0.5 |",
        '| `store.chunk_bytes` | `"16MiB"` | size, at least 1 byte, at most 256MiB |',
        "| `cluster.memory_limit` | `null` | size or null |",
        '| `scoring.method` | `"model"` | `model` or `effort` |',
        "| `nulls` | `null` | number or null, at least 0, at most 1 |",
        '| `gates.nulls` | `{"warn": 0.05, "fail": 0.5}` | [limit](#limit) |',
    ],
)
def test_settings_have_type_default_and_range(line: str) -> None:
    assert f"\n{line}" in configuration.configuration()


def test_every_command_argument_and_option_is_in_the_reference() -> None:
    text = commands.command_line()
    found = dict(commands.commands())
    assert {("ingest",), ("nightly",), ("config", "init"), ("models", "promote")} <= set(found)
    for words, command in found.items():
        start = text.index(f"\n## `mrot-scale {' '.join(words)}`\n")
        section = text[start : text.find("\n## ", start + 1) % len(text)]
        for param in command.params:
            names = (
                param.opts if param.param_type_name == "option" else [param.metavar or param.name]
            )
            for name in names:
                shown = name if name.startswith("-") else name.upper()
                assert f"`{shown}`" in section or f"`[{shown}]`" in section, (words, name)
            assert param.help or param.hidden, f"{' '.join(words)} {param.name} has no help"


def test_options_have_values_and_defaults() -> None:
    text = commands.command_line()
    assert "| `--method` | `model` or `effort` |" in text
    assert "| `--max-active` | whole number, at least 1 | `1` |" in text
    assert "| `--reprocess` | `none` or `failed` or `all` | `none` |" in text
    assert "Example: `mrot-scale inspect readings.store`" in text


def test_every_exit_code_is_in_the_reference_and_no_other() -> None:
    text = exit_codes.exit_codes()
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    readme = (ROOT / "README.md").read_text()
    assert listed == {int(code) for code in re.findall(r"^\| (\d+) \|", readme, re.MULTILINE)}
    for name, error in vars(errors).items():
        if isinstance(error, type) and issubclass(error, errors.MrotError):
            own = error is errors.MrotError
            assert own or f"| {error.exit_code} | `{name}` | {error.__doc__} |" in text


def test_every_public_name_is_in_the_reference() -> None:
    text = python.python_reference()
    for name in python.python_names():
        assert f":: {name}\n" in text, name
    assert {"mrot_scale.MROT", "mrot_scale.fit"} <= set(python.python_names())


def test_empty_columns_of_tables_are_left_out() -> None:
    assert table(("a", "b"), [("1", ""), ("2|3", "")]) == "| a |\n| --- |\n| 1 |\n| 2\\|3 |"


@pytest.fixture(scope="module")
def real_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Folders of each kind, as small runs of ingest, fit, score and nightly leave them."""
    folder = tmp_path_factory.mktemp("runs")
    pq.write_table(mixed_table(300), folder / "t.parquet")
    asked = {"percentile": True, "top_columns": 1}
    settings = TINY | {"scoring": asked, "hybrid": "always"}
    views = [{"scaling": "robust"}, {"scaling": "robust", "separate": True, "alpha": 0.1}]
    ingest(folder / "t.parquet", folder / "t.store", id="reading", config=settings)
    fit(folder / "t.store", folder / "model", settings | {"views": views})
    score(
        folder / "model",
        folder / "t.store",
        folder / "scores",
        settings,
        parquet=folder / "parquet",
    )
    job = Job.of(folder, 1, 2)
    for number in (1, 2):
        nightly(job.lake, job.output, date=day(number), config=SETTINGS)
    return {
        "store": [folder / "t.store"],
        "model": [folder / "model"],
        "scores": [folder / "scores"],
        "table of scores": [folder / "parquet"],
        "generations": [folder / "_gen" / "scores", folder / "_gen" / "parquet"],
        "run": [folder / f"{name}.run" for name in ("t.store", "model", "scores")],
        "job": [job.output],
    }


def written(folder: Path) -> list[str]:
    """Files below a folder, links within it followed."""
    found = [
        Path(top) / name for top, _, names in os.walk(folder, followlinks=True) for name in names
    ]
    return sorted(str(path.relative_to(folder)) for path in found)


def test_every_file_of_real_runs_is_in_the_reference(real_runs: dict[str, list[Path]]) -> None:
    unknown = [
        f'docs/generate/files.py: add an entry for "{path}" to FILES["{kind}"]'
        for kind, folders in real_runs.items()
        for folder in folders
        for path in written(folder)
        if files.entry_of(kind, path) is None
    ]
    assert not unknown, "\n".join(["files that no page describes:", *unknown])


def test_real_runs_write_nowhere_else(real_runs: dict[str, list[Path]]) -> None:
    folder = real_runs["store"][0].parent
    known = [f for folders in real_runs.values() for f in folders] + [folder / "lake"]
    beside = [
        f'docs/generate/files.py: say in FOLDERS and FILES what "{path}" is, and add its folder to '
        "real_runs in tests/docs/test_reference.py"
        for path in written(folder)
        if path != "t.parquet"
        and files.entry_of("beside outputs", path) is None
        and not any((folder / path).is_relative_to(f) for f in known)
    ]
    assert not beside, "\n".join(["files beside those that are described:", *beside])


def test_every_file_in_the_reference_is_written_by_real_runs(
    real_runs: dict[str, list[Path]],
) -> None:
    gone = []
    for kind, folders in real_runs.items():
        paths = [path for folder in folders for path in written(folder)]
        seen = {files.entry_of(kind, path) for path in paths}
        gone += [
            f'docs/generate/files.py: no run writes {entry.names} of FILES["{kind}"]: remove it, '
            "or say with `when` where it is found"
            for entry in files.FILES[kind]
            if entry not in seen and not entry.when
        ]
    assert not gone, "\n".join(["files that are described but not written:", *gone])


def test_files_of_all_kinds_of_folder_are_described() -> None:
    assert set(files.FOLDERS) == set(files.FILES)
    for path in ("nonsense.bin", "view0.nonsense.npy", "x/model.json"):
        assert files.entry_of("model", path) is None, path
