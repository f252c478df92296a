"""Try methods on the calibration models as they will be used on new ones: items chosen, fitted and weighted unseen."""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import DataError, ParameterError
from itembank.estimation.estimator_specs import PointSpec
from itembank.estimation.folds import Fold, folds
from itembank.estimation.members_out_of_fold import MembersOutOfFold, members_out_of_fold, members_out_of_fold_each
from itembank.estimation.observations import Observations, bank_positions
from itembank.estimation.stages import SEED, answered_in_stages
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.splits import first_of_each
from itembank.progress import ProgressCallback, silent
from itembank.selection.recipes import Recipe, read_recipe
from itembank.selection.select import select_by_recipe


def try_methods(
    bank: Bank,
    observations: Observations,
    selection: Selection | None,
    specs: Sequence[PointSpec],
    *,
    progress: ProgressCallback = silent,
) -> MembersOutOfFold:
    """Estimate each calibration model's scores by several methods, as if it were new.

    Items that were chosen by looking at the calibration models tell more of these than of others: on those items
    even left-out models seem better predicted than new ones will be (by a half, where few models and V-optimal
    items met). So where the selection says how it was made, each fold chooses its own items in the same way from the
    bank that has not seen its models. Where some chosen items were not answered, each fold leaves out as many, of
    the same scenarios, by chance. Items that chance chose, or that nothing is known of, are taken as they are.

    Parameters
    ----------
    bank : Bank
    observations : Observations
        The items that were answered; the responses themselves are not used.
    selection : Selection or None
    specs : sequence of PointSpec
    progress : ProgressCallback
        The fits without some models take time once for a bank, the selections once for a selection.
    """
    folds(bank, progress=progress)
    recipe = None if selection is None or selection.is_random else read_recipe(selection)
    if recipe is not None and recipe.stages:
        return try_stages(bank, recipe, specs, answered=_share_answered(bank, observations), progress=progress)

    def choose(fold: Fold) -> Observations:
        return observations if recipe is None else _items_of_fold(bank, fold, recipe, observations)

    return members_out_of_fold(bank, specs, choose, observations, *([] if recipe is None else [repr(recipe)]))


def try_stages(
    bank: Bank,
    recipe: Recipe,
    specs: Sequence[PointSpec],
    *,
    answered: FloatArray | None = None,
    progress: ProgressCallback = silent,
) -> MembersOutOfFold:
    """Estimate each calibration model's scores by several methods after all stages of a recipe, as if it were new.

    The bank that has not seen a model chooses the routing stage and, from the model's answers, its later stages.

    Parameters
    ----------
    bank : Bank
    recipe : Recipe
        With stages.
    specs : sequence of PointSpec
    answered : (n_scenarios,), optional
        Fraction of the items of each scenario that new models answered; by default all of them.
    progress : ProgressCallback
    """

    def answers(fold: Fold) -> Iterator[Observations]:
        for one in answered_in_stages(bank, fold, recipe):
            columns = np.arange(one.positions.size) if answered is None else _as_many(bank, one.positions, answered)
            yield one.take(models=np.arange(1), columns=columns)

    about = (*recipe.name, *([] if answered is None else [answered]))
    return members_out_of_fold_each(bank, specs, answers, *about, progress=progress)


def sample_of(bank: Bank, selection: Selection) -> Observations:
    """Align the calibration responses of a bank with the items of a selection made from it, in the bank's order."""
    positions = bank_positions(bank, pl.Series(selection.item_ids, dtype=pl.String), "the selection")
    order = np.argsort(positions)  # as `observe`, so that what was found for a selection is found again
    positions, weights = positions[order], selection.weights[order]
    answered = bank.responses.of_items(positions)
    return Observations.of_items(answered, positions, weights, is_random=selection.is_random)


def _items_of_fold(bank: Bank, fold: Fold, recipe: Recipe, observations: Observations) -> Observations:
    """Choose a fold's own items, and leave out as many of each scenario as new models left unanswered."""
    sample = fold.bank.cache.remember(("sample", repr(recipe)), lambda: _chosen_by(fold.bank, recipe))
    if sample is None:
        return observations
    answered = _share_answered(bank, observations)
    if answered is None:
        return sample
    columns = _as_many(bank, sample.positions, answered)
    return sample.take(models=np.arange(sample.responses.shape[0]), columns=columns)


def _chosen_by(bank: Bank, recipe: Recipe) -> Observations | None:
    """Follow a recipe on a bank of fewer models; None where too few items are left that tell these apart."""
    try:
        chosen = select_by_recipe(bank, recipe, SEED)
    except (ParameterError, DataError):  # or where an item to leave out is of another bank
        return None
    return sample_of(bank, chosen)


def _share_answered(bank: Bank, observations: Observations) -> FloatArray | None:
    """Fraction of the items of each scenario that were answered, (n_scenarios,); None where all were."""
    if observations.positions.size == observations.selected.size:
        return None
    scenario_index, n_scenarios = bank.targets.scenario_index, bank.targets.n_scenarios
    answered = np.bincount(scenario_index[observations.positions], minlength=n_scenarios)
    selected = np.bincount(scenario_index[observations.selected], minlength=n_scenarios)
    # a scenario of which this model was asked nothing, others may be asked something
    everywhere = np.full(n_scenarios, answered.sum() / selected.sum())
    result: FloatArray = np.divide(answered, selected, out=everywhere, where=selected > 0)
    return result


def _as_many(bank: Bank, positions: IntArray, answered: FloatArray) -> IntArray:
    """Columns to keep so that this fraction of each scenario (n_scenarios,) is left; at least one."""
    scenario = bank.targets.scenario_index[positions]
    counts = np.rint(answered * np.bincount(scenario, minlength=answered.size)).astype(np.int64)
    order = np.random.default_rng(SEED).permutation(positions.size)
    columns = np.sort(first_of_each(order, scenario, counts))
    return columns if columns.size else np.arange(1)
