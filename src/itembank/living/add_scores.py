"""The verb `add_scores`: external scores of a bank's models, to be estimated for new ones."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.bank_views import whole_bank
from itembank.bank.banks import Bank
from itembank.bank.headlines import check_external_names, with_external_scores
from itembank.errors import ParameterError
from itembank.living.descendants import Operation, descendant
from itembank.readers.matrix import read_known


def add_scores(bank: GivenBank, scores: str | Path | pl.DataFrame, names: Sequence[str], *, note: str = "") -> Bank:
    """Keep scores of a bank's models that its items do not make: a leaderboard's own, over items the bank lacks.

    `estimate`, `select`, `compare`, `plan` and studies then take each name as their target. Nothing else changes.

    Parameters
    ----------
    bank : Bank or path
    scores : path or DataFrame
        One row a model, with `model_id`; fractions of one, or points up to 100. Models that it lacks, and empty cells,
        have no such score.
    names : sequence of str
        Columns to keep.
    note : str

    Raises
    ------
    ParameterError
        Without a name, or for one that a score of the bank's items has.
    DataError
        When a column is absent or holds other things than scores, or no model of the bank is there.

    Examples
    --------
    >>> bank = add_scores(bank, "leaderboard.csv", ["mmlu_full"])  # doctest: +SKIP
    >>> estimate(bank, "new-model.csv", target="mmlu_full")  # doctest: +SKIP
    """
    bank = as_bank(bank)
    bank.check_responses("External scores are of")
    if isinstance(names, str) or not names:
        raise ParameterError(f"names must be columns of the scores, at least one, got {names!r}.")
    check_external_names(names, bank.targets.scenarios)
    table = scores if isinstance(scores, pl.DataFrame) else read_known(Path(scores), "model_id")[0]
    whole = whole_bank(bank)
    models = with_external_scores(whole.responses.models, table, names)
    changed = replace(whole, responses=whole.responses.with_tables(models=models))
    return descendant(bank, changed, Operation("add-scores", note, {"scores": list(names)}))
