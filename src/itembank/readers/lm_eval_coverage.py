"""What the runs of lm-evaluation-harness tell of each model, and whether it was run on all items."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from itembank.errors import DataWarning, first_few, warn
from itembank.readers.lm_eval_samples import Samples
from itembank.responses.labels import Labels


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a task a model was run on; `n_full` and `is_partial` are None where nobody tells."""

    model_id: str
    task: str
    n_run: int
    n_full: int | None
    is_partial: bool | None


def model_table(samples: Sequence[Samples], models: Labels, items: Labels, tasks: pl.Series) -> pl.DataFrame:
    """Return one row a model: what its latest run tells, `n_items_run`, `n_items_full`, `is_partial`.

    Parameters
    ----------
    samples : sequence of Samples
    models, items : Labels of n_rows rows
    tasks : (n_items,)
        Task of each item.
    """
    covered = _coverages(samples, models, items, tasks)
    about: dict[str, dict[str, Any]] = {}
    for one in samples:  # in order of date: later runs overwrite
        about.setdefault(one.file.model_id, {}).update(one.file.run.about)
    rows = [{"model_id": name, **about[name], **_summary(name, covered)} for name in about]
    return pl.DataFrame(rows, infer_schema_length=None)


def warn_of_partial_runs(models: pl.DataFrame) -> None:
    """Warn of models that were run on a part of their tasks, as their table says; of new models that is no fault.

    The harness's ``--limit`` takes the first items of a task, not random ones.
    """
    columns = ("model_id", "n_items_run", "n_items_full", "is_partial")
    if not {*columns} <= {*models.columns} or models.schema["is_partial"] != pl.Boolean:
        return
    partial = models.filter("is_partial").select(columns[:3]).rows()
    if partial:
        names = [f"{model!r} ({n_run} of {n_full or 'unknown'} items)" for model, n_run, n_full in partial]
        message = (
            f"{len(names)} models were run on a part of their tasks only: {first_few(names)}. Calibrated on them, a "
            "full score is the score over the items that were run."
        )
        warn(message, DataWarning)


def _coverages(samples: Sequence[Samples], models: Labels, items: Labels, tasks: pl.Series) -> list[Coverage]:
    """Coverage of each model and task, over all its runs."""
    task_of = pl.DataFrame({"item": np.arange(items.n_names), "task": tasks})
    pairs = pl.DataFrame({"model": models.index, "item": items.index}).unique().join(task_of, on="item")
    counts = {(models.names[model], task): n for model, task, n in pairs.group_by("model", "task").len().iter_rows()}
    sizes: dict[tuple[str, str], int] = {}
    limited: dict[tuple[str, str], bool | None] = {}
    for one in samples:
        key = (one.file.model_id, one.file.task)
        size = one.file.run.n_items.get(one.file.task)
        if size is not None:
            sizes[key] = max(size, sizes.get(key, 0))
        limited[key] = one.file.run.is_limited
    covered = []
    for (model, task), is_limited in limited.items():
        n_run, n_full = counts.get((model, task), 0), sizes.get((model, task))
        covered.append(Coverage(model, task, n_run, n_full, is_limited if n_full is None else n_run < n_full))
    return covered


def _summary(model_id: str, covered: Sequence[Coverage]) -> dict[str, Any]:
    """Coverage of one model over its tasks."""
    own = [one for one in covered if one.model_id == model_id]
    sizes = [one.n_full for one in own]
    known = [one.is_partial for one in own if one.is_partial is not None]
    return {
        "n_items_run": sum(one.n_run for one in own),
        "n_items_full": None if None in sizes else sum(size for size in sizes if size is not None),
        "is_partial": any(known) if len(known) == len(own) or any(known) else None,
    }
