"""The notebooks run from the first cell to the last, each in an empty folder."""

import os
import pathlib

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "notebooks"


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.ipynb")))
def test_a_notebook_runs(name, tmp_path, monkeypatch):
    program = os.environ.get("GEPOLAB")
    if program is None:
        pytest.skip("GEPOLAB does not name the program")
    monkeypatch.setenv("PATH", f"{pathlib.Path(program).parent}{os.pathsep}{os.environ['PATH']}")
    notebook = nbformat.read(FOLDER / name, as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs]
    assert outputs and not any(out.output_type == "error" for out in outputs)
