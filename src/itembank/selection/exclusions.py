"""Items that a caller wants left out."""

from collections.abc import Collection

import numpy as np
import polars as pl

from itembank.data.banks import Bank
from itembank.errors import DataError, did_you_mean, shown
from itembank.numerics.arrays import BoolArray


def not_excluded(bank: Bank, excluded: Collection[str]) -> BoolArray:
    """Whether each item is not among the excluded ids, (n_items,); `DataError` names ids that are not in the bank."""
    if not excluded:
        return np.ones(bank.n_items, dtype=bool)
    wanted = pl.Series(list(excluded), dtype=pl.String)
    known = bank.responses.items["item_id"]
    absent = wanted.filter(~wanted.is_in(known.implode()))
    if absent.len():
        raise DataError(
            f"every excluded item must be in bank {bank.bank_id}: {shown(absent.to_list())} are not."
            f"{did_you_mean(absent.to_list(), known)} Check the spelling."
        )
    result: BoolArray = ~known.is_in(wanted.implode()).to_numpy()
    return result
