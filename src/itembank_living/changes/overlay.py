"""What was added to a bank laid over it: models and items of both in one bank, nothing fitted anew."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.errors import DataError, shown
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.readers.agreement import check_same_content
from itembank.responses.prompts import with_prompts
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets
from itembank.tables import plural


def overlaid(whole: Bank, part: Bank) -> Bank:
    """Lay a part on the scale of a whole bank over it: models and items of both, nothing fitted, no history.

    What is known of an item or a model of both is the whole bank's, and so is an answer that both have.

    Raises
    ------
    DataError
        When an item of both has another content, or a model of both answered it otherwise.
    """
    items_in_whole = _places(whole.item_ids, part.item_ids)
    models_in_whole = _places(whole.responses.model_ids, part.responses.model_ids)
    _check_alike(whole, part, items_in_whole, models_in_whole)
    new_items, new_models = np.flatnonzero(items_in_whole < 0), np.flatnonzero(models_in_whole < 0)
    # the row and the column of each cell of the part in the bank of both
    rows, columns = models_in_whole.copy(), items_in_whole.copy()
    rows[new_models] = whole.n_models + np.arange(new_models.size)
    columns[new_items] = whole.n_items + np.arange(new_items.size)

    def laid_over(ours: FloatArray | None, theirs: FloatArray | None) -> FloatArray:
        result = np.full((whole.n_models + new_models.size, whole.n_items + new_items.size), np.nan)
        if theirs is not None:
            result[np.ix_(rows, columns)] = theirs
        if ours is not None:
            known = ~np.isnan(ours)
            result[: whole.n_models, : whole.n_items][known] = ours[known]
        return result

    one, other = whole.responses, part.responses
    items = pl.concat([one.items, other.items[new_items]], how="diagonal_relaxed")
    trials = None
    if one.n_trials is not None or other.n_trials is not None:  # where only one counts, one an answer of the other
        counts = [each.observed.astype(np.int64) if each.n_trials is None else each.n_trials for each in (one, other)]
        trials = np.nan_to_num(laid_over(*(np.where(count > 0, count, np.nan) for count in counts))).astype(np.int64)
    matrix = ResponseMatrix.create(
        laid_over(one.responses, other.responses),
        models=pl.concat([one.models, other.models[new_models]], how="diagonal_relaxed"),
        items=with_prompts(items, [one.items, other.items]),
        n_trials=trials,
        costs={
            unit: laid_over(one.costs.get(unit), other.costs.get(unit)) for unit in sorted({*one.costs, *other.costs})
        },
    )
    ours, theirs = whole.calibration, part.calibration
    calibration = replace(
        ours,
        parameters=joined_parameters(ours.parameters, theirs.parameters.take(new_items)),
        item_covariance=np.concatenate([ours.item_covariance, theirs.item_covariance[new_items]]),
        abilities=np.concatenate([ours.abilities, theirs.abilities[new_models]]),
        ability_covariance=np.concatenate([ours.ability_covariance, theirs.ability_covariance[new_models]]),
        is_degenerate=np.concatenate([ours.is_degenerate, theirs.is_degenerate[new_items]]),
    )
    targets = ScoreTargets.create(matrix.items, within=whole.targets.within, across=whole.targets.across)
    return replace(
        whole,
        responses=matrix,
        calibration=calibration,
        targets=targets,
        item_model_bias=_by_scenario(whole, part, targets.scenarios, "item_model_bias"),
        response_variance=_by_scenario(whole, part, targets.scenarios, "response_variance"),
    )


def _places(known: Sequence[str], wanted: Sequence[str]) -> IntArray:
    """Place of each name among those that are known, -1 where it has none."""
    index = {name: place for place, name in enumerate(known)}
    return np.array([index.get(name, -1) for name in wanted], dtype=np.int64)


def _check_alike(whole: Bank, part: Bank, items_in_whole: IntArray, models_in_whole: IntArray) -> None:
    """Refuse items that are not the same in both, and answers of one model that differ."""
    one, other = whole.responses, part.responses
    theirs, models = np.flatnonzero(items_in_whole >= 0), np.flatnonzero(models_in_whole >= 0)
    ours = items_in_whole[theirs]
    check_same_content(other.items, one.items)
    a, b = one.responses[np.ix_(models_in_whole[models], ours)], other.responses[np.ix_(models, theirs)]
    differs = (a != b) & ~(np.isnan(a) | np.isnan(b))
    if differs.any():
        names = [other.model_ids[k] for k in models[differs.any(axis=1)].tolist()]
        raise DataError(
            f"a model must have answered an item as it did in the bank, and {len(names)} did not in "
            f"{plural(int(differs.sum()), 'cell')}: {shown(names)}. If these are other runs, give the models other ids."
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


def _by_scenario(one: Bank, other: Bank, scenarios: Sequence[str], name: str) -> FloatArray:
    """Return what was measured of each scenario, in the bank if it has it, else in the part."""
    known: dict[str, float] = {}
    for bank in (other, one):
        known |= dict(zip(bank.targets.scenarios, getattr(bank, name).tolist(), strict=True))
    return np.array([known[scenario] for scenario in scenarios])
