"""Results of past models and of a new one as CSV files, to try the commands on."""

from pathlib import Path

import numpy as np
import polars as pl

from itembank.data.atomic import replacing_file
from itembank.data.builtin import load_builtin
from itembank.data.responses import ResponseMatrix
from itembank.errors import DataError, shown

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
        When one of the files is there already: it may be somebody's own.
    """
    there = [str(Path(folder) / name) for name in (PAST, NEW) if (Path(folder) / name).exists()]
    if there:
        raise DataError(f"{shown(there)} must not be there yet. Use what is there, or choose another folder (-o).")
    past, new = sample_data()
    for name, responses in ((PAST, past), (NEW, new)):
        with replacing_file(Path(folder) / name) as temporary:
            _long_table(responses).write_csv(temporary)
    return past, new


def _long_table(responses: ResponseMatrix) -> pl.DataFrame:
    """One row an answer."""
    n_models, n_items = responses.responses.shape
    items = responses.items.select("item_id", "scenario")
    return pl.DataFrame(
        {
            "model_id": np.repeat(responses.model_ids, n_items),
            "item_id": np.tile(items["item_id"].to_numpy(), n_models),
            "scenario": np.tile(items["scenario"].to_numpy(), n_models),
            "response": responses.responses.ravel().astype(np.int64),
        }
    )
