"""What the documentation says is so; `tests/docs` has what it shows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mrot_scale import errors

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
DOCUMENTS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs").glob("[!_]*/*.md")),
]


def test_the_two_commands_stand_in_the_readme_word_for_word() -> None:
    start = "python3 -m venv .venv && .venv/bin/pip install"
    assert f"\n{start} . && .venv/bin/mrot-scale demo\n" in README
    assert f"\n{start} '.[test]' && .venv/bin/pytest\n" in README


def test_ci_runs_the_test_command_of_the_readme() -> None:
    found = [line for line in README.splitlines() if "pip install '.[test]'" in line]
    assert len(found) == 1
    assert "grep -F \"pip install '.[test]'\" README.md" in (ROOT / ".ci" / "run").read_text()


def test_the_module_map_names_every_module_and_no_other() -> None:
    named = set(re.findall(r"^\| `([\w/]+\.py)` \|", README, re.MULTILINE))
    package = ROOT / "mrot_scale"
    there = {str(p.relative_to(package)) for p in package.rglob("*.py") if p.name != "__init__.py"}
    assert named == there


def test_every_exit_code_is_documented() -> None:
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    raised = {e.exit_code for e in vars(errors).values() if hasattr(e, "exit_code")}
    assert raised <= documented


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_benchmark_commands_named_exist(path: Path) -> None:
    for module in re.findall(r"python -m (benchmarks\.\w+)", path.read_text()):
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file(), module


def test_the_faults_listed_name_tests_that_exist() -> None:
    text = (ROOT / "docs" / "reliability.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ") and "::" in line]
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", text)
    assert len(named) == len(rows) > 40
    for path, name in named:
        assert f"def {name}(" in (ROOT / path).read_text(), f"{path} has no {name}"


def test_docstring_examples_hold() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "doctest", str(ROOT / "mrot_scale" / "estimator.py")],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
