"""Items that a caller wants left out, or in."""

from collections.abc import Collection

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.errors import DataError, ParameterError, did_you_mean, shown
from itembank.numerics.arrays import BoolArray


def not_excluded(bank: Bank, excluded: Collection[str]) -> BoolArray:
    """Whether each item is not among the excluded ids, (n_items,); `DataError` names ids that are not in the bank."""
    result: BoolArray = ~_named(bank, excluded, "excluded")
    return result


def is_included(bank: Bank, included: Collection[str], excluded: Collection[str]) -> BoolArray:
    """Whether each item must be among the chosen ones, (n_items,).

    Raises
    ------
    DataError
        When an id is not in the bank.
    ParameterError
        When an item is to be left out as well, or does not count in the score.
    """
    result = _named(bank, included, "included")
    both = sorted(set(included) & set(excluded))
    if both:
        raise ParameterError(f"items must not be both included and excluded, got {len(both)} of them: {shown(both)}.")
    idle = bank.responses.items["item_id"].filter(pl.Series(result & (bank.targets.weights <= 0.0), dtype=pl.Boolean))
    if idle.len():
        raise ParameterError(
            f"items that must be included must count in the score, and {shown(idle.to_list())} have no weight in it."
        )
    return result


def _named(bank: Bank, ids: Collection[str], kind: str) -> BoolArray:
    """Whether each item is among these ids, (n_items,); `DataError` names ids that are not in the bank."""
    if not ids:
        return np.zeros(bank.n_items, dtype=bool)
    wanted = pl.Series(list(ids), dtype=pl.String)
    known = bank.responses.items["item_id"]
    absent = wanted.filter(~wanted.is_in(known.implode()))
    if absent.len():
        raise DataError(
            f"every {kind} item must be in bank {bank.bank_id}: {shown(absent.to_list())} are not."
            f"{did_you_mean(absent.to_list(), known)} Check the spelling."
        )
    result: BoolArray = known.is_in(wanted.implode()).to_numpy()
    return result
