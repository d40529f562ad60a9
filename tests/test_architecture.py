"""Rules of the house that no single module can keep alone."""

import ast
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "mrot_scale"
MODULES = sorted(PACKAGE.rglob("*.py"))
ONE_IMPORTER = {
    "cryptography": "certificates.py",
    "dask": "running/cluster.py",
    "distributed": "running/cluster.py",
    "fsspec": "storing/location.py",
    "faiss": "method/neighbours.py",
    "jinja2": "reporting/page.py",
    "numba": "compiling.py",
    "ot": "method/transport.py",
    "lightgbm": "model/lightgbm_model.py",
    "prometheus_client": "scheduled/metrics.py",
    "threadpoolctl": "threads.py",
    "zarr": "storing/arrays.py",
}
HEAVY = {"matplotlib", "numpy", "pandas", "pyarrow", "scipy", "sklearn"} | set(ONE_IMPORTER)
NEVER_IN_METHOD = {"dask", "distributed", "fsspec", "zarr", "pyarrow", "lightgbm"}
CAN_RUN_CODE = {"pickle", "joblib", "cloudpickle", "dill", "marshal", "shelve"}


def imported(path: Path) -> set[str]:
    """Names of everything a module imports, wherever in it."""
    return imported_by(ast.walk(ast.parse(path.read_text())))


def imported_by(nodes: Iterable[ast.AST]) -> set[str]:
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def top_level(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize(("library", "home"), ONE_IMPORTER.items())
def test_each_heavy_library_has_one_importer(library: str, home: str) -> None:
    importers = [str(p.relative_to(PACKAGE)) for p in MODULES if library in top_level(imported(p))]
    assert importers == [home]


def test_plots_alone_know_matplotlib() -> None:
    importers = {
        str(p.relative_to(PACKAGE)) for p in MODULES if "matplotlib" in top_level(imported(p))
    }
    assert "plots.py" in importers
    assert importers <= {"plots.py", "plots_explanation.py"}
    assert not any("pyplot" in name for p in MODULES for name in imported(p)), "its global state"


def test_matplotlib_is_loaded_only_to_draw() -> None:
    importers = {p.name for p in MODULES if "matplotlib" in top_level(imported(p))}
    assert all(name.startswith("plots") for name in importers)
    for path in MODULES:
        top = ast.parse(path.read_text()).body
        loaded = [n for n in top if isinstance(n, ast.Import | ast.ImportFrom)]
        assert "matplotlib" not in top_level(imported_by(loaded)), path


def test_method_modules_know_no_storage_and_no_scheduler() -> None:
    for path in (PACKAGE / "method").glob("*.py"):
        assert not top_level(imported(path)) & NEVER_IN_METHOD, path
        inside = {n for n in imported(path) if n.startswith("mrot_scale.")}
        allowed = tuple(f"mrot_scale.{name}" for name in ("compiling", "method", "errors", "seeds"))
        assert all(name.startswith(allowed) for name in inside), path


def test_imports_have_no_cycle() -> None:
    graph = {
        _module_name(p): {n for n in imported(p) if n.startswith("mrot_scale.")}
        for p in MODULES
        if p.name != "__init__.py"
    }
    done: set[str] = set()
    while ready := {
        m for m, needs in graph.items() if m not in done and needs & set(graph) <= done
    }:
        done |= ready
    assert done == set(graph), f"cycle among {sorted(set(graph) - done)}"


def test_nothing_that_can_run_stored_code_is_used() -> None:
    for path in MODULES:
        assert not top_level(imported(path)) & CAN_RUN_CODE, path
        assert "allow_pickle=True" not in path.read_text(), path


@pytest.mark.parametrize(
    "statement", ["import mrot_scale", "from mrot_scale.cli import main; main()"]
)
def test_starting_up_loads_no_heavy_library(statement: str) -> None:
    code = (
        "import sys; sys.argv = ['mrot-scale', '--help']\n"
        f"try:\n    {statement}\nexcept SystemExit:\n    pass\n"
        f"print('loaded:', sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "loaded: []"


def _module_name(path: Path) -> str:
    return ".".join(["mrot_scale", *path.relative_to(PACKAGE).with_suffix("").parts])
