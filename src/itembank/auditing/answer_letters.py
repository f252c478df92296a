"""Which answers models gave: what the best of them say instead of the key."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from itembank.auditing.panel import Panel
from itembank.errors import DataError, shown
from itembank.numerics.ties import rounded
from itembank.responses.responses import ResponseMatrix

COLUMNS = ("model_id", "item_id", "choice")
BEST_SHARE, LEAST_BEST = 0.25, 5
"""Share of the models that are asked for their answer, and how many at least."""


def own_answers(choices: pl.DataFrame, responses: ResponseMatrix) -> pl.DataFrame:
    """Return the answers that belong to these models and items, as text.

    Parameters
    ----------
    choices : table
        Columns `model_id`, `item_id` and `choice`, one row an answer.
    responses : ResponseMatrix

    Raises
    ------
    DataError
        When a column is missing, a model answers an item twice, or no answer belongs to a response.
    """
    _check(choices)
    texts = choices.select(pl.col(name).cast(pl.String) for name in COLUMNS).drop_nulls()
    ours = texts.filter(
        pl.col("model_id").is_in(responses.models["model_id"].implode())
        & pl.col("item_id").is_in(responses.items["item_id"].implode())
    )
    if not ours.height:
        raise DataError(
            f"answers must belong to responses, got none of {texts.height} that does: their models are "
            f"{shown(texts['model_id'].unique().sort().to_list())}. Check that both use the same ids."
        )
    return ours


def rival_answers(answers: pl.DataFrame, responses: ResponseMatrix, panel: Panel) -> pl.DataFrame:
    """Find the wrong answer that the best models give most often.

    Parameters
    ----------
    answers : table
        Of `own_answers`.
    responses : ResponseMatrix
        Which of these answers are right.
    panel : Panel
        Abilities of the same models.

    Returns
    -------
    table of one row an item that has answers
        `item_id`, `rival`, `n_rival` (best models that give it), `n_key` (best models that give the key).
    """
    n_best = max(LEAST_BEST, round(BEST_SHARE * responses.n_models))
    best = np.argsort(-rounded(panel.overall), kind="stable")[:n_best]
    rows, columns = np.nonzero(panel.observed[best])
    known = pl.DataFrame(
        {
            "model_id": responses.models["model_id"][best[rows]],
            "item_id": responses.items["item_id"][columns],
            "is_right": panel.values[best[rows], columns] >= 0.5,
        }
    )
    told = known.join(answers, on=["model_id", "item_id"])
    n_key = told.group_by("item_id").agg(n_key=pl.col("is_right").sum())
    wrong = told.filter(~pl.col("is_right")).group_by("item_id", "choice").agg(n_rival=pl.len())
    rivals = (
        wrong.sort(["n_rival", "choice"], descending=[True, False]).group_by("item_id", maintain_order=True).first()
    )
    return n_key.join(rivals.rename({"choice": "rival"}), on="item_id", how="left").select(
        "item_id", "rival", pl.col("n_rival").fill_null(0), "n_key"
    )


def _check(choices: pl.DataFrame) -> None:
    missing: Sequence[str] = [name for name in COLUMNS if name not in choices.columns]
    if missing:
        raise DataError(
            f"a table of answers must have the columns {shown(COLUMNS)}, got {shown(choices.columns, 10)}. Rename them."
        )
    twice = choices.filter(pl.struct("model_id", "item_id").is_duplicated())
    if twice.height:
        first = twice.row(0, named=True)
        raise DataError(
            f"a model must have one answer an item, got {twice.height} rows that share model and item: "
            f"{first['model_id']!r} on {first['item_id']!r}. Keep one run."
        )
