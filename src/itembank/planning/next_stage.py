"""The verb `next_stage`: choose the items of a model's next stage from its answers."""

from dataclasses import replace

import numpy as np
import polars as pl

from itembank.bank.arguments import (
    GivenBank,
    GivenResponses,
    GivenSelection,
    as_bank,
    as_new_responses,
    as_selection,
)
from itembank.bank.bank_views import repeatable
from itembank.bank.selections import Selection
from itembank.errors import DataError, remedy, shown
from itembank.estimation.observations import bank_positions, known_items, observe
from itembank.estimation.stages import local_design, next_module
from itembank.numerics.threads import one_blas_thread
from itembank.selection.recipes import ROUTING, STAGE, Recipe, read_recipe, stages_of
from itembank.selection.selector_specs import METHODS


@one_blas_thread()
def next_stage(bank: GivenBank, selection: GivenSelection, responses: GivenResponses) -> Selection:
    """Choose the items that a model is to answer in its next stage, from its answers so far.

    Each item is the one that leaves the least uncertainty about this model's scores: at its ability, with what its
    answers have settled, over all scenarios at once. So the model gets most items of those scenarios that are least
    sure for it; with `later_scenarios` it gets items of these alone.

    Parameters
    ----------
    bank : Bank or path
    selection : Selection or path
        Of the stage that the model has answered: made by `select` with `stages`, or by this function.
    responses : ResponseMatrix, path or paths
        Of one model, to the items of this stage and of those before it. Items that it did not answer are not asked
        again.

    Returns
    -------
    Selection
        The items to run now; `earlier` holds those of the stages before, so that `estimate` takes the answers of all
        stages with this selection alone.

    Raises
    ------
    DataError
        When the selection has no next stage, the responses are of several models or of none, or no item is left.

    Examples
    --------
    >>> routing = select(bank, 90, stages=2)  # doctest: +SKIP
    >>> module = next_stage(bank, routing, "runs/m1")  # doctest: +SKIP
    >>> estimate(bank, ["runs/m1", "runs/m1-2"], selection=module)  # doctest: +SKIP
    """
    bank, given = as_bank(bank), as_selection(selection, may_be_later=True)
    recipe, sizes, number = _plan(None if given is None else repeatable(bank, given))
    done = given.whole  # type: ignore[union-attr]
    answers = known_items(bank, as_new_responses(bank, responses, done), done, ignore_unknown=True)
    if answers.n_models != 1:
        raise DataError(
            f"a next stage is chosen for one model, from its own answers, got {answers.n_models} models: "
            f"{shown(answers.model_ids)}. Give the responses of one, and a selection for each."
        )
    observations = observe(bank, answers, done)
    design = local_design(bank, recipe.later_spec, recipe.excluded)
    asked = bank_positions(bank, pl.Series(done.item_ids, dtype=pl.String), "the selection")
    module = next_module(bank, design, observations, sizes[number], asked=asked, most_scenarios=recipe.later_scenarios)
    chosen = np.sort(module)
    if chosen.size == 0:
        raise DataError("a next stage needs items that were not asked before and tell models apart, and none is left.")
    weights = design.weights_of(np.concatenate([asked, chosen]))
    items, name = bank.responses.items[chosen], METHODS.name_of(recipe.later_spec)
    return Selection(
        tuple(items["item_id"].to_list()),
        tuple(items["scenario"].to_list()),
        weights[asked.size :],
        name,
        bank.bank_id,
        done.seed,
        recipe={ROUTING: done.method, **(done.recipe or {}), STAGE: number + 1},
        explanation=f"{name} at the ability of {answers.model_ids[0]}: stage {number + 1} of {len(sizes)}.",
        earlier=replace(done, weights=weights[: asked.size]),
        target=bank.target_id,
        target_digest=bank.target_digest,
    )


def has_next_stage(selection: Selection) -> bool:
    """Whether a selection is of a stage that another one follows."""
    sizes, number = stages_of(selection)
    return number < len(sizes)


def _plan(selection: Selection | None) -> tuple[Recipe, tuple[int, ...], int]:
    """Return the recipe of a selection that has a next stage, the sizes of all stages, and the number of its own."""
    recipe = None if selection is None else read_recipe(selection.whole)
    sizes, number = ((), 1) if recipe is None or selection is None else stages_of(selection)
    if recipe is None or number >= len(sizes):
        stages = remedy("stages=2", "--stages 2")
        raise DataError(
            f"a next stage needs a selection that has one, got {'stage' if sizes else 'one batch'}"
            f"{f' {number} of {len(sizes)}' if sizes else ''}. Choose the first stage with {stages}."
        )
    return recipe, sizes, number
