"""The notebook runs from top to bottom, and is kept without outputs."""

import json
from pathlib import Path

import pytest

import itembank
from tests.bank.few_items import load_few

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "first-steps.ipynb"
CELLS = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def run_cells():
    """All cells share one namespace; returns it."""
    namespace = {"__name__": "notebook"}
    for number, cell in enumerate(CELLS, start=1):
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), namespace)  # noqa: S102
    return namespace


def test_notebook_runs_on_few_items(monkeypatch, few_folds):
    monkeypatch.setattr(itembank, "load_builtin", lambda name: load_few(name, every_item=14, every_model=3))
    assert run_cells()["error"] < 0.15


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::itembank.errors.DataWarning")  # some of the built-in models answer alike
def test_notebook_runs():
    found = run_cells()
    assert found["error"] < 0.03
    assert found["held"] > 0.85


def test_notebook_is_kept_without_outputs():
    assert len(CELLS) > 3
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in CELLS)
