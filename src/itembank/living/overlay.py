"""What was added to a bank laid over it: models and items of both in one bank, nothing fitted anew."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from itembank.bank.banks import Bank, Calibration
from itembank.errors import DataError, shown
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.readers.agreement import check_same_content
from itembank.responses.prompts import with_prompts
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets


def overlaid(whole: Bank, part: Bank) -> Bank:
    """Lay a part on the scale of a whole bank over it: models and items of both, nothing fitted, no history.

    What is known of an item or a model of both is the whole bank's, and so is an answer that both have.

    Raises
    ------
    DataError
        When an item of both has another scenario or content, or a model of both answered it otherwise.
    """
    both = _Both.of(whole, part)
    _check_items(both)
    return _joined(both)


@dataclass(frozen=True, slots=True)
class _Both:
    """A whole bank, a part, and where the models and items of the part are in the bank."""

    one: Bank
    other: Bank
    item_places: IntArray  # (n_items,) of the part: Position in the bank, -1 where it has none
    model_places: IntArray  # (n_models,) of the part

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
        """Items of the part alone, as its positions."""
        return np.flatnonzero(self.item_places < 0)

    @property
    def new_models(self) -> IntArray:
        """Models of the part alone, as its positions."""
        return np.flatnonzero(self.model_places < 0)

    @property
    def common_items(self) -> tuple[IntArray, IntArray]:
        """Positions of the common items in the bank, and in the part."""
        theirs = np.flatnonzero(self.item_places >= 0)
        return self.item_places[theirs], theirs

    @property
    def columns(self) -> IntArray:
        """Column of each item of the part in the bank of both."""
        columns = self.item_places.copy()
        columns[self.new_items] = self.one.n_items + np.arange(self.new_items.size)
        return columns

    @property
    def rows(self) -> IntArray:
        """Row of each model of the part in the bank of both."""
        rows = self.model_places.copy()
        rows[self.new_models] = self.one.n_models + np.arange(self.new_models.size)
        return rows


def _places(known: Sequence[str], wanted: Sequence[str]) -> IntArray:
    index = {name: place for place, name in enumerate(known)}
    return np.array([index.get(name, -1) for name in wanted], dtype=np.int64)


def _check_items(both: _Both) -> None:
    """Refuse items that are not the same in both, and answers of one model that differ."""
    one, other = both.one, both.other
    ours, theirs = both.common_items
    scenarios = one.responses.items["scenario"].gather(ours) != other.responses.items["scenario"].gather(theirs)
    moved = np.array(one.item_ids, dtype=object)[ours[scenarios.to_numpy()]].tolist()
    if moved:
        raise DataError(
            f"an item must belong to one scenario, and {len(moved)} belong to another in bank {one.bank_id}: "
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
            f"a model must have answered an item as it did in the bank, and {len(names)} did not in "
            f"{int(differs.sum())} cells: {shown(names)}. If these are other runs, give the models other ids."
        )


def _joined(both: _Both) -> Bank:
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
    return replace(
        one,
        parameters=joined_parameters(one.parameters, other.parameters.take(items)),
        item_covariance=np.concatenate([one.item_covariance, other.item_covariance[items]]),
        abilities=np.concatenate([one.abilities, other.abilities[models]]),
        ability_covariance=np.concatenate([one.ability_covariance, other.ability_covariance[models]]),
        is_degenerate=np.concatenate([one.is_degenerate, other.is_degenerate[items]]),
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
    """Lay the cells of both over each other; where both have one it is the bank's."""
    result = np.full((both.one.n_models + both.new_models.size, both.one.n_items + both.new_items.size), np.nan)
    if theirs is not None:
        result[np.ix_(both.rows, both.columns)] = theirs
    if ours is not None:
        known = ~np.isnan(ours)
        result[: both.one.n_models, : both.one.n_items][known] = ours[known]
    return result


def _trials(both: _Both) -> IntArray | None:
    """Return the attempts behind each answer; where only one counts them, one an answer of the other."""
    counts = [
        bank.responses.observed.astype(np.int64) if bank.responses.n_trials is None else bank.responses.n_trials
        for bank in (both.one, both.other)
    ]
    if both.one.responses.n_trials is None and both.other.responses.n_trials is None:
        return None
    known = [np.where(count > 0, count, np.nan) for count in counts]
    return np.nan_to_num(_over(both, known[0], known[1])).astype(np.int64)


def _by_scenario(one: Bank, other: Bank, scenarios: Sequence[str], name: str) -> FloatArray:
    """Return what was measured of each scenario, in the bank if it has it, else in the part."""
    known: dict[str, float] = {}
    for bank in (other, one):
        known |= dict(zip(bank.targets.scenarios, getattr(bank, name).tolist(), strict=True))
    return np.array([known[scenario] for scenario in scenarios])
