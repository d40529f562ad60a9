"""The notebooks run, and nothing of a run is stored in them."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from docs.generate.notebooks import notebook_paths, notebooks

PATHS = notebook_paths()


@pytest.fixture
def jupyter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel of this very interpreter, and all of Jupyter's files in a temporary folder."""
    kernel = tmp_path / "share" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    words = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    told = {"argv": words, "display_name": "Python 3", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(told))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share"))
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "matplotlib"))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    root = str(Path(__file__).parent.parent.parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def test_there_are_three_notebooks_and_a_page_of_them() -> None:
    page = notebooks()
    assert len(PATHS) == 3
    for path in PATHS:
        assert f"](notebooks/{path.name})" in page


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.name)
def test_notebooks_store_no_outputs_and_nothing_of_a_machine(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    for cell in notebook.cells:
        assert cell.metadata == {}
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


@pytest.mark.slow
# zmq's tornado loop, and sockets that Jupyter's client leaves to the collector
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.name)
def test_notebooks_run(path: Path, jupyter: Path) -> None:
    from nbclient import NotebookClient

    notebook: Any = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(jupyter)}})
    client.execute()
    outputs = [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs]
    assert not [out for out in outputs if out.output_type == "error"]
    assert not [out.text for out in outputs if out.get("name") == "stderr"]
    assert any(out.output_type == "stream" for out in outputs)
