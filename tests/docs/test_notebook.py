"""The notebook runs from top to bottom, and is kept without outputs."""

import json
from pathlib import Path

from itembank.data import sample_data
from tests.data.few_items import load_few

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "first-steps.ipynb"
CELLS = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]


def test_notebook_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sample_data, "load_builtin", lambda name: load_few(name, every_item=5))
    namespace = {"__name__": "notebook"}
    for number, code in enumerate(CODE, start=1):
        exec(compile(code, f"cell {number}", "exec"), namespace)  # noqa: S102
    assert abs(namespace["estimate"] - namespace["true"]) < 0.15
    assert namespace["low"] < namespace["estimate"] < namespace["high"]


def test_notebook_is_kept_without_outputs():
    assert len(CODE) > 3
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in CELLS if cell["cell_type"] == "code")
