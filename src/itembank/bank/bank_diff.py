"""What differs between two banks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.bank_views import history_of, whole_bank
from itembank.bank.banks import Bank
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.responses.how_read import CONTENT
from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True, repr=False)
class BankDiff(Tabular):
    """What differs between a first and a second bank.

    Attributes
    ----------
    banks, versions, targets : pairs of str
        Ids, versions, and ids of the targets.
    is_same_score : bool
        Whether both give the score of the same items with the same weights, so that their scores can be compared.
    is_same_scale : bool
        Whether abilities are known to mean the same: same prior, common items, and same parameters of all of these.
    is_descendant : bool
        Whether the second came from the first.
    ids : mapping of what differs to the ids
        Items, models: only in the first, only in the second, changed.
    """

    header = ("banks", "versions", "targets", "is_same_score", "is_same_scale", "is_descendant")

    banks: tuple[str, str]
    versions: tuple[str, str]
    targets: tuple[str, str]
    is_same_score: bool
    is_same_scale: bool
    is_descendant: bool
    ids: Mapping[str, tuple[str, ...]]

    @property
    def table(self) -> pl.DataFrame:
        """One row for each kind of difference that there is."""
        return pl.DataFrame([{"what": what, "n": len(ids), "ids": list(ids)} for what, ids in self.ids.items() if ids])


def diff(first: GivenBank, second: GivenBank) -> BankDiff:
    """Compare two banks: their scores, scales, items and models.

    Items are those of the whole banks, also those kept aside; their status tells which count.

    Parameters
    ----------
    first, second : Bank or path

    Examples
    --------
    >>> diff("bank", "bank-2").is_same_score  # doctest: +SKIP
    """
    first, second = as_bank(first), as_bank(second)
    one, other = whole_bank(first), whole_bank(second)
    places = {name: place for place, name in enumerate(other.item_ids)}
    ours = np.array([place for place, name in enumerate(one.item_ids) if name in places], dtype=np.int64)
    theirs = np.array([places[one.item_ids[place]] for place in ours.tolist()], dtype=np.int64)
    ids = np.array(one.item_ids, dtype=object)[ours]
    has_changed = {
        "items with another status": history_of(first).status[ours] != history_of(second).status[theirs],
        "items with another scenario": _differs(one, other, "scenario", ours, theirs),
        "items with another content": _differs(one, other, CONTENT, ours, theirs),
        "items with other parameters": other_parameters(one, other, ours, theirs),
        "items answered otherwise by a model of both": other_responses(one, other, ours, theirs),
    }
    models = (one.responses.model_ids, other.responses.model_ids)
    found = {
        "items only in the first": _without(one.item_ids, other.item_ids),
        "items only in the second": _without(other.item_ids, one.item_ids),
        **{what: tuple(ids[rows].tolist()) for what, rows in has_changed.items()},
        "models only in the first": _without(models[0], models[1]),
        "models only in the second": _without(models[1], models[0]),
    }
    return BankDiff(
        banks=(first.bank_id, second.bank_id),
        versions=(first.version, second.version),
        targets=(first.target_id, second.target_id),
        is_same_score=first.target_digest == second.target_digest,
        is_same_scale=is_same_prior(one, other) and ours.size > 0 and not found["items with other parameters"],
        is_descendant=second.history is not None and first.bank_id in second.history.ancestors,
        ids=found,
    )


def _without(ids: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    known = set(others)
    return tuple(one for one in ids if one not in known)


def _differs(one: Bank, other: Bank, column: str, ours: IntArray, theirs: IntArray) -> BoolArray:
    """Where both know a column of the items and it differs."""
    tables = (one.responses.items, other.responses.items)
    if any(column not in table.columns for table in tables):
        return np.zeros(ours.size, dtype=bool)
    a, b = tables[0][column].gather(ours), tables[1][column].gather(theirs)
    return (a != b).fill_null(False).to_numpy()


def is_same_prior(one: Bank, other: Bank) -> bool:
    """Whether two banks have the same prior of ability."""
    ours, theirs = one.calibration.prior, other.calibration.prior
    return np.array_equal(ours.mean, theirs.mean) and np.array_equal(ours.covariance, theirs.covariance)


def other_parameters(one: Bank, other: Bank, ours: IntArray, theirs: IntArray) -> BoolArray:
    """Whether items of one bank have other parameters in another, (n_common,); by their positions in both.

    Of a bank published without responses, which has them in single precision, as far as that tells.
    """
    kind = np.float64 if one.published is None and other.published is None else np.float32
    a, b = _coefficients(one)[ours].astype(kind), _coefficients(other)[theirs].astype(kind)
    if a.shape != b.shape:
        return np.ones(ours.size, dtype=bool)
    result: BoolArray = (a != b).any(axis=1)
    return result


def other_responses(one: Bank, other: Bank, ours: IntArray, theirs: IntArray) -> BoolArray:
    """Whether a model of both banks answered items otherwise, (n_common,); by their positions in both."""
    place = {model: row for row, model in enumerate(other.responses.model_ids)}
    rows = [(row, place[model]) for row, model in enumerate(one.responses.model_ids) if model in place]
    result = np.zeros(ours.size, dtype=bool)
    for row, same in rows:  # a row at a time: whole copies of the matrix would fill the memory
        a, b = one.responses.responses[row, ours], other.responses.responses[same, theirs]
        result |= (a != b) & ~(np.isnan(a) & np.isnan(b))
    return result


def _coefficients(bank: Bank) -> FloatArray:
    """Every parameter of each item, (n_items, n_parameters)."""
    parameters = bank.parameters
    columns = [parameters.intercept, parameters.lower_asymptote, parameters.upper_asymptote]
    if parameters.precision is not None:
        columns.append(parameters.precision)
    return np.column_stack([parameters.loadings, *columns])
