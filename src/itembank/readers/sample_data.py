"""Results of past models and of a new one as CSV files, to try the commands on."""

from pathlib import Path

import numpy as np
import polars as pl

from itembank.errors import DataError, shown
from itembank.files.atomic import replacing_file
from itembank.readers.builtin import load_builtin
from itembank.responses.responses import ResponseMatrix

PAST, NEW = "past.csv", "new-model.csv"
TASKS = ("addition", "comparison", "copying", "spelling", "code")
CHECKPOINTS = (0.5, 1.0)
"""Of each training run: half way, and at its end."""
NEW_MODEL = "balanced/1.2M/1"
"""The end of a run of which no other checkpoint is among the past models."""


def sample_data() -> tuple[ResponseMatrix, ResponseMatrix]:
    """Return past models and a new one: part of the built-in small language models."""
    everyone = load_builtin("bytelms")
    models = everyone.models
    items = np.flatnonzero(everyone.items["scenario"].is_in(list(TASKS)).to_numpy())
    run = models["model_id"].str.replace(r"/[^/]*$", "")
    new_run = NEW_MODEL.rpartition("/")[0]
    is_past = models["share_of_run"].is_in(list(CHECKPOINTS)) & (run != new_run)
    past = everyone.take(models=np.flatnonzero(is_past.to_numpy()), items=items)
    return past, everyone.take(models=everyone.model_indices([NEW_MODEL]), items=items)


def write_sample_data(folder: str | Path) -> tuple[ResponseMatrix, ResponseMatrix]:
    """Write `past.csv` and `new-model.csv` into a folder, each with columns model_id, item_id, scenario, response.

    Returns
    -------
    tuple of ResponseMatrix
        Past models and the new one.

    Raises
    ------
    DataError
        When another file of that name is there: it may be somebody's own.
    """
    past, new = sample_data()
    content = {Path(folder) / name: _csv(responses) for name, responses in ((PAST, past), (NEW, new))}
    others = [str(path) for path, text in content.items() if path.exists() and path.read_bytes() != text]
    if others:
        raise DataError(f"{shown(others)} must not be there yet, or be as this writes it. Choose another folder (-o).")
    for path, text in content.items():
        with replacing_file(path) as temporary:
            temporary.write_bytes(text)
    return past, new


def _csv(responses: ResponseMatrix) -> bytes:
    """Write one row an answer."""
    n_models, n_items = responses.responses.shape
    items = responses.items.select("item_id", "scenario")
    table = pl.DataFrame(
        {
            "model_id": np.repeat(responses.model_ids, n_items),
            "item_id": np.tile(items["item_id"].to_numpy(), n_models),
            "scenario": np.tile(items["scenario"].to_numpy(), n_models),
            "response": responses.responses.ravel().astype(np.int64),
        }
    )
    return table.write_csv().encode()
