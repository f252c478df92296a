"""Multistage testing: items of later stages are chosen for a model from its answers to those before.

A routing stage asks every model the same items. Each later stage asks the module of items that leaves the least
uncertainty about the scores of this one model (`selection.local_design`). Trials on calibration models left out go
through all stages, so that weights of methods and widths of intervals belong to models that were asked so.
"""

from collections.abc import Collection, Iterator

import numpy as np

from itembank.bank.banks import Bank
from itembank.estimation.basis import score_basis
from itembank.estimation.folds import Fold
from itembank.estimation.observations import Observations
from itembank.irt.newton import map_abilities
from itembank.numerics.arrays import IntArray
from itembank.selection.local_design import LocalDesign
from itembank.selection.recipes import Recipe
from itembank.selection.select import select_by_recipe
from itembank.selection.selector_specs import VOptimal

SEED = 30
"""Of a routing stage that chance chooses, in trials."""


def local_design(bank: Bank, spec: VOptimal, excluded: Collection[str]) -> LocalDesign:
    """Return what later stages are chosen by; it is made once for a bank in memory."""
    key = ("local design", repr(spec), tuple(sorted(excluded)))
    return bank.cache.remember(key, lambda: LocalDesign.of_bank(bank, spec, excluded))


def next_module(
    bank: Bank,
    design: LocalDesign,
    answers: Observations,
    n_items: int,
    *,
    asked: IntArray,
    most_scenarios: int | None = None,
) -> IntArray:
    """Choose the items that one model is asked next.

    Parameters
    ----------
    bank : Bank
    design : LocalDesign
    answers : Observations
        Of the one model.
    n_items : int
        How many to choose; fewer come where no more can.
    asked : (n_asked,)
        Positions of the items that it was asked: none of them is asked again, answered or not.
    most_scenarios : int or None
        How many scenarios they are of at most.

    Returns
    -------
    (n_items,)
        Positions in the bank, in the order of choice.
    """
    basis, positions = score_basis(bank), answers.positions
    ability = map_abilities(
        basis.parameters.take(positions),
        basis.answers(answers.responses, positions),
        basis.prior,
        n_trials=answers.n_trials,
    )
    answered = positions[~np.isnan(answers.responses[0])]
    return design.next_items(
        ability.theta[0], ability.covariance[0], answered, n_items, asked=asked, most_scenarios=most_scenarios
    )


def answered_in_stages(bank: Bank, fold: Fold, recipe: Recipe) -> Iterator[Observations]:
    """Yield what each model that a fold leaves out answers in all stages of a recipe, by the fold's bank alone.

    Parameters
    ----------
    bank : Bank
        The whole bank, which holds the answers.
    fold : Fold
    recipe : Recipe
        With stages.

    Raises
    ------
    ParameterError, DataError
        Where the fold's bank cannot follow the recipe, as with too few items left that tell models apart.
    """
    routing = fold.bank.cache.remember(
        ("routing stage", repr(recipe)), lambda: select_by_recipe(fold.bank, recipe, SEED)
    )
    first = np.sort(bank.responses.item_indices(routing.item_ids))
    design = local_design(fold.bank, recipe.later_spec, recipe.excluded)
    for row in fold.held_out.tolist():
        asked = first
        for size in recipe.stages[1:]:
            answers = _recorded(bank, row, asked, design)
            module = next_module(fold.bank, design, answers, size, asked=asked, most_scenarios=recipe.later_scenarios)
            asked = np.sort(np.concatenate([asked, module]))
        yield _recorded(bank, row, asked, design)


def _recorded(bank: Bank, row: int, asked: IntArray, design: LocalDesign) -> Observations:
    """Return what the calibration model at this row answered to some items."""
    nobody = np.zeros((0, asked.size))
    items = Observations.of_items(nobody, asked, design.weights_of(asked), is_random=False)
    return items.answered_by_calibration_models(bank, np.array([row]))
