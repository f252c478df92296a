"""Two banks: what differs between them (`diff`), and one made of both (`merge`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.bank_history import STATUSES
from itembank.bank.bank_views import whole_bank
from itembank.bank.banks import Bank, Calibration
from itembank.errors import DataError, DataWarning, shown, warn
from itembank.irt.parameters import ItemParameters
from itembank.living.descendants import (
    Operation,
    descendant,
    history_of,
    is_same_prior,
    other_parameters,
    other_responses,
)
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.readers.agreement import check_same_content
from itembank.responses.prompts import prompt_differences, with_prompts
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets
from itembank.tabular import Tabular


def merge(first: GivenBank, second: GivenBank, *, note: str = "") -> Bank:
    """Merge two banks that are on one scale: what either knows of models and items.

    They must have some items in common, with the same parameters, or come from one bank: then no linking is needed, and
    nothing is fitted anew. Items of the first come first; an item, or a model, of both is one, and answers that only
    one bank has are taken from it. Abilities of models of both are those of the first bank.

    Parameters
    ----------
    first, second : Bank or path
        The new bank goes on from the first: its name, its history, its rule of scores, its prior.
    note : str
        Kept in the history.

    Returns
    -------
    Bank
        With the items of both that count in either; what the first retired stays retired.

    Raises
    ------
    DataError
        When the banks are on different scales (other parameters of common items, another prior, family or number of
        abilities), models answered common items differently, or an item has another scenario or content. Of banks on
        different scales, one must be linked to the other first, by adding its items or models.

    Examples
    --------
    >>> both = merge("bank-of-law", "bank-of-medicine")  # doctest: +SKIP
    """
    first, second = as_bank(first), as_bank(second)
    for bank in (first, second):
        bank.check_responses("Merging needs")
    one, other = whole_bank(first), whole_bank(second)
    both = _Both.of(one, other)
    _check_scale(both, first, second)
    _check_items(both)
    words = prompt_differences(other.responses.items, one.responses.items, whose=f"those of bank {one.bank_id}")
    if words:
        warn(f"{words} (bank {other.bank_id}). The merged bank says of these items that prompts differ.", DataWarning)
    whole = _merged(both)
    ids, status = other.item_ids, history_of(second).status
    statuses = {ids[k]: STATUSES[status[k]] for k in both.new_items.tolist()}
    arguments = {"first": first.bank_id, "second": second.bank_id}
    operation = Operation("merge", note.strip(), arguments, other_parents=(second.bank_id,))
    return descendant(first, whole, operation, statuses=statuses)


def overlaid(one: Bank, other: Bank) -> Bank:
    """Lay a whole bank over another of its own scale: models and items of both, nothing fitted, no history."""
    both = _Both.of(one, other)
    _check_items(both)
    return _merged(both)


@dataclass(frozen=True, slots=True)
class _Both:
    """Two whole banks, and where the models and items of the second are in the first."""

    one: Bank
    other: Bank
    item_places: IntArray  # (n_items,) and (n_models,) of the second: Position in the first, -1 where it has none
    model_places: IntArray  # (n_items,) and (n_models,) of the second

    @classmethod
    def of(cls, one: Bank, other: Bank) -> "_Both":
        return cls(
            one,
            other,
            _places(one.item_ids, other.item_ids),
            _places(one.responses.model_ids, other.responses.model_ids),
        )

    @property
    def new_items(self) -> IntArray:
        """Items of the second alone, as its positions."""
        return np.flatnonzero(self.item_places < 0)

    @property
    def new_models(self) -> IntArray:
        """Models of the second alone, as its positions."""
        return np.flatnonzero(self.model_places < 0)

    @property
    def common_items(self) -> tuple[IntArray, IntArray]:
        """Positions of the common items in the first bank, and in the second."""
        theirs = np.flatnonzero(self.item_places >= 0)
        return self.item_places[theirs], theirs

    @property
    def columns(self) -> IntArray:
        """Column of each item of the second in the merged bank."""
        columns = self.item_places.copy()
        columns[self.new_items] = self.one.n_items + np.arange(self.new_items.size)
        return columns

    @property
    def rows(self) -> IntArray:
        """Row of each model of the second in the merged bank."""
        rows = self.model_places.copy()
        rows[self.new_models] = self.one.n_models + np.arange(self.new_models.size)
        return rows


def _places(known: Sequence[str], wanted: Sequence[str]) -> IntArray:
    index = {name: place for place, name in enumerate(known)}
    return np.array([index.get(name, -1) for name in wanted], dtype=np.int64)


def _check_scale(both: _Both, first: Bank, second: Bank) -> None:
    """Refuse banks whose abilities do not mean the same."""
    one, other = both.one, both.other
    ours, theirs = both.common_items
    changed, theirs_at = other_parameters(one, other, ours, theirs), other.calibration.thresholds
    lines = [{bank.bank_id, *(() if bank.history is None else bank.history.ancestors)} for bank in (first, second)]
    reason = ""
    if one.parameters.family != other.parameters.family:
        reason = f"their families differ, {one.parameters.family} and {other.parameters.family}"
    elif one.parameters.n_dims != other.parameters.n_dims:
        reason = f"they have {one.parameters.n_dims} and {other.parameters.n_dims} abilities"
    elif changed.any():
        names = np.array(one.item_ids, dtype=object)[ours[changed]].tolist()
        reason = f"{len(names)} of {ours.size} common items have other parameters, {shown(names)}"
    elif not is_same_prior(one, other):
        reason = "their priors of ability differ"
    elif any(theirs_at.get(name, at) != at for name, at in one.calibration.thresholds.items()):
        reason = "they call other responses right (their thresholds differ)"
    elif ours.size == 0 and not set.intersection(*lines):
        reason = "they have no item in common and no common ancestor"
    if reason:
        raise DataError(
            f"banks that are merged must be on one scale, and {first.bank_id} and {second.bank_id} do not: "
            f"{reason}. Link one to the other first: add its items, or its models, to the other."
        )


def _check_items(both: _Both) -> None:
    """Refuse items that are not the same in both banks, and answers of one model that differ."""
    one, other = both.one, both.other
    ours, theirs = both.common_items
    scenarios = one.responses.items["scenario"].gather(ours) != other.responses.items["scenario"].gather(theirs)
    moved = np.array(one.item_ids, dtype=object)[ours[scenarios.to_numpy()]].tolist()
    if moved:
        raise DataError(
            f"an item must belong to one scenario, and {len(moved)} belong to another in bank {other.bank_id}: "
            f"{shown(moved)}. Rename the items, or the scenarios."
        )
    check_same_content(other.responses.items, one.responses.items)
    models = np.flatnonzero(both.model_places >= 0)
    a = one.responses.responses[np.ix_(both.model_places[models], ours)]
    b = other.responses.responses[np.ix_(models, theirs)]
    differs = (a != b) & ~(np.isnan(a) | np.isnan(b))
    if differs.any():
        names = [other.responses.model_ids[k] for k in models[differs.any(axis=1)].tolist()]
        raise DataError(
            f"a model must have answered an item alike in both banks, and {len(names)} did not in {int(differs.sum())} "
            f"cells: {shown(names)}. If these are other runs, give the models other ids."
        )


def _merged(both: _Both) -> Bank:
    """Put all models and items into one bank."""
    one, other = both.one, both.other
    items = pl.concat([one.responses.items, other.responses.items[both.new_items]], how="diagonal_relaxed")
    items = with_prompts(items, [one.responses.items, other.responses.items])
    models = pl.concat([one.responses.models, other.responses.models[both.new_models]], how="diagonal_relaxed")
    values = _over(both, one.responses.responses, other.responses.responses)
    units = {*one.responses.costs, *other.responses.costs}
    costs = {
        unit: _over(both, one.responses.costs.get(unit), other.responses.costs.get(unit)) for unit in sorted(units)
    }
    matrix = ResponseMatrix.create(values, models=models, items=items, n_trials=_trials(both), costs=costs)
    targets = ScoreTargets.create(matrix.items, within=one.targets.within, across=one.targets.across)
    return replace(
        one,
        responses=matrix,
        calibration=_calibration(both),
        targets=targets,
        item_model_bias=_by_scenario(one, other, targets.scenarios, "item_model_bias"),
        response_variance=_by_scenario(one, other, targets.scenarios, "response_variance"),
    )


def _calibration(both: _Both) -> Calibration:
    """Put parameters and abilities together; nothing is fitted."""
    one, other = both.one.calibration, both.other.calibration
    items, models = both.new_items, both.new_models
    errors = (one.log_precision_error, other.log_precision_error)
    return replace(
        one,
        parameters=joined_parameters(one.parameters, other.parameters.take(items)),
        item_covariance=np.concatenate([one.item_covariance, other.item_covariance[items]]),
        abilities=np.concatenate([one.abilities, other.abilities[models]]),
        ability_covariance=np.concatenate([one.ability_covariance, other.ability_covariance[models]]),
        is_degenerate=np.concatenate([one.is_degenerate, other.is_degenerate[items]]),
        thresholds={**other.thresholds, **one.thresholds},
        log_precision_error=None
        if errors[0] is None or errors[1] is None
        else np.concatenate([errors[0], errors[1][items]]),
    )


def joined_parameters(a: ItemParameters, b: ItemParameters) -> ItemParameters:
    """Put the parameters of some items after those of others of the same family."""
    precision = None if a.precision is None or b.precision is None else np.concatenate([a.precision, b.precision])
    return ItemParameters.create(
        np.concatenate([a.loadings, b.loadings]),
        np.concatenate([a.intercept, b.intercept]),
        np.concatenate([a.lower_asymptote, b.lower_asymptote]),
        np.concatenate([a.upper_asymptote, b.upper_asymptote]),
        family=a.family,
        precision=precision,
    )


def _over(both: _Both, ours: FloatArray | None, theirs: FloatArray | None) -> FloatArray:
    """Lay the cells of both banks over each other; where both have one it is the first's."""
    result = np.full((both.one.n_models + both.new_models.size, both.one.n_items + both.new_items.size), np.nan)
    if theirs is not None:
        result[np.ix_(both.rows, both.columns)] = theirs
    if ours is not None:
        known = ~np.isnan(ours)
        result[: both.one.n_models, : both.one.n_items][known] = ours[known]
    return result


def _trials(both: _Both) -> IntArray | None:
    """Return the attempts behind each answer; where only one bank counts them, one an answer of the other."""
    counts = [
        bank.responses.observed.astype(np.int64) if bank.responses.n_trials is None else bank.responses.n_trials
        for bank in (both.one, both.other)
    ]
    if both.one.responses.n_trials is None and both.other.responses.n_trials is None:
        return None
    known = [np.where(count > 0, count, np.nan) for count in counts]
    return np.nan_to_num(_over(both, known[0], known[1])).astype(np.int64)


def _by_scenario(one: Bank, other: Bank, scenarios: Sequence[str], name: str) -> FloatArray:
    """Return what was measured of each scenario, by the first bank that knows it."""
    known: dict[str, float] = {}
    for bank in (other, one):
        known |= dict(zip(bank.targets.scenarios, getattr(bank, name).tolist(), strict=True))
    return np.array([known[scenario] for scenario in scenarios])


CONTENT = "content_hash"


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

    banks: tuple[str, str]
    versions: tuple[str, str]
    targets: tuple[str, str]
    is_same_score: bool
    is_same_scale: bool
    is_descendant: bool
    ids: Mapping[str, tuple[str, ...]]

    def rows(self) -> list[dict[str, Any]]:
        """One record for each kind of difference that there is."""
        return [{"what": what, "n": len(ids), "ids": list(ids)} for what, ids in self.ids.items() if ids]

    def to_dict(self) -> dict[str, Any]:
        """Return all but the rows."""
        return {
            "banks": list(self.banks),
            "versions": list(self.versions),
            "targets": list(self.targets),
            "is_same_score": self.is_same_score,
            "is_same_scale": self.is_same_scale,
            "is_descendant": self.is_descendant,
        }


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
    theirs, ours = _Both.of(other, one).common_items  # in the order of the first
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
