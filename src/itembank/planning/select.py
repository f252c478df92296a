"""The verbs `select` and `next_stage`: choose the items that a model should answer."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import polars as pl

from itembank.bank.arguments import GivenBank, GivenResponses, GivenSelection, as_bank, as_new_responses, as_selection
from itembank.bank.bank_views import repeatable
from itembank.bank.selections import Selection
from itembank.checks import check_whole, is_whole, list_of_ids
from itembank.errors import DataError, DataWarning, ParameterError, remedy, says_instead, shown, warn
from itembank.estimation.asked import Asked, known_items
from itembank.estimation.folds import MINIMUM_FOR_FOLDS
from itembank.estimation.method_trials import local_design, next_module
from itembank.estimation.observations import bank_positions
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.random import as_generator
from itembank.planning.auto import (
    AUTO,
    aimed_at_headline,
    check_stages,
    choose_selection,
    first_of_stages,
    stage_sizes,
    with_widths,
)
from itembank.planning.predicting import items_never_asked, with_prediction
from itembank.progress import ProgressCallback, silent
from itembank.selection.recipes import ROUTING, STAGE, read_recipe, stages_of
from itembank.selection.select import select as select_by
from itembank.selection.selector_specs import METHODS, Drawn, SelectionSpec


@says_instead(
    n_items="n",
    seed="rng",
    random_state="rng",
    target="method=selectors.VOptimal(target=...), or bank=banks.with_target(...)",
)
def select(
    bank: GivenBank,
    n: int,
    *,
    method: SelectionSpec | str = AUTO,
    stages: int = 1,
    per_scenario: bool = False,
    rng: np.random.Generator | int | None = 0,
    excluded: Collection[str] = (),
    included: Collection[str] = (),
    predict: str | Collection[str] = (),
    progress: ProgressCallback = silent,
) -> Selection:
    """Choose the items whose responses represent the full benchmark.

    Parameters
    ----------
    bank : Bank or path
    n : int
        Items in all, spread equally over the scenarios (counts differ by at most one; a scenario with too
        few items gives what it cannot take to the others); 'drawn', 'v-optimal' and 'optimal-design' spread them as
        the score wants. With fewer items than scenarios 'auto', 'v-optimal' and the designs leave some scenarios out. A
        `DataWarning` names scenarios without items.
    method : spec or str
        'auto': 'drawn', items drawn at random, more of those of which the bank is unsure, whose intervals hold for any
        model; 'v-optimal' where no draw can speak for the score (`choose_selection`). 'v-optimal': few items that say
        most of models like past ones. The `explanation` of the selection says how wide intervals from both will be. Or
        'random', 'stratified', 'anchor-correctness', 'anchor-irt', 'optimal-design', or a spec with its choices.
    stages : int
        With 2 or 3, choose the routing stage of a multistage test of `n` in all: a third of them, by the method
        (with 'auto' by 'v-optimal'). What a model answers to them decides its next stage (`next_stage`).
    per_scenario : bool
        Make `n` the number for each scenario instead, whatever the method.
    rng : Generator, int or None
        An int is kept in the selection as its seed. None draws anew each time.
    excluded : collection of item ids
        Items that must not be chosen. Their weight in the score is still represented by the others. Of a scenario whose
        items are all excluded nothing is asked.
    included : collection of item ids
        Items that must be chosen, among the `n`, whatever the method. Where each scenario is chosen from by
        itself they represent themselves alone, with inclusion probability 1, and the other chosen items for the rest.
    predict : scenario or collection of scenarios
        Whose items are never asked. 'auto', 'v-optimal' and 'optimal-design' choose, of the other scenarios, the items
        that leave the least uncertainty about the scores of these, and owe no scenario an item, unless the spec names
        another score or number. Whatever the method, `explanation` and `never_asked` of the selection say how well this
        predicts past models, as if they were new, and how well their mean alone does.
    progress : ProgressCallback
        Items are tried on past models, for which the item model is fitted anew without some of them the first time.

    Returns
    -------
    Selection
        Items in the order of the bank, with weights that sum to one in each scenario. Items with no weight
        in their score are never chosen. Items that every past model answered the same way come where items are drawn
        at random, where a scenario has no other or where a spec allows it, else not.

    Raises
    ------
    ParameterError
        When the number of items or stages is not one that can be, stages are asked for with `per_scenario`, or there
        are fewer items to choose from than wanted; for less than one item for each scenario by a method that draws
        from each by itself; when an included item is excluded, too, or does not count in the score; when a scenario
        that is to be predicted is not in the bank, an item of it is included, or no other is left to be asked.
    DataError
        When an excluded or included item is not in the bank.

    Examples
    --------
    >>> selection = select(bank, 100, rng=0)  # doctest: +SKIP
    >>> selection.save("selection.json")  # doctest: +SKIP
    """
    bank = as_bank(bank)
    check_whole("the number of items", n, least=1)
    check_stages(bank, stages, per_scenario=per_scenario)
    excluded, included = list_of_ids("excluded items", excluded), list_of_ids("included items", included)
    predicted = (predict,) if isinstance(predict, str) else tuple(list_of_ids("predicted scenarios", predict))
    if predicted:
        excluded = [*{*excluded, *items_never_asked(bank, predicted, included)}]
    about = {"per_scenario": per_scenario, "excluded": excluded, "included": included}
    seed = rng if method != AUTO or is_whole(rng) else int(as_generator(rng).integers(2**31))

    def choose(n_items: int, method: SelectionSpec | str) -> Selection:
        if isinstance(method, str) and method == AUTO:
            return choose_selection(bank, n_items, predicted=predicted, seed=int(seed), **about)  # type: ignore[arg-type]
        if isinstance(method, str) and method not in METHODS.kinds:
            raise ParameterError(METHODS.refusal(method, [AUTO]))
        if bank.rest is not None:
            raise ParameterError(
                f"bank {bank.bank_id} holds only the items of its own selections: method must be 'auto', got "
                f"{METHODS.name_of(METHODS.resolve(method))!r}. Leave it out, or take the whole bank."
            )
        spec = METHODS.resolve(method).aimed_at(predicted) if predicted else method
        return select_by(bank, n_items, method=spec, rng=seed, **about)  # type: ignore[arg-type]

    if stages == 1:
        chosen = choose(n, method)
    else:
        sizes = stage_sizes(bank, n, stages, excluded=excluded, n_included=len(included))
        first = method
        if method == AUTO:  # a headline score's first stage is chosen for it, later ones for the score of the first
            first = Drawn() if bank.distinct_models.size < MINIMUM_FOR_FOLDS else aimed_at_headline(bank)
        chosen = first_of_stages(choose(sizes[0], first), sizes)
    if predicted:
        return with_prediction(bank, chosen, predicted, progress)
    if without := [name for name in bank.targets.scenarios if name not in chosen.scenarios]:
        least = bank.targets.n_scenarios
        is_short = isinstance(method, str) and n < least and not (excluded or included)
        each = f" For an item of each of the {least}: {remedy(f'n={least}', f'-n {least}')}." if is_short else ""
        warn(
            f"None of the {chosen.n_items} items is of {shown(without)}. Scores of scenarios without items are "
            f"predicted from the answers to the others, and the overall score still covers all.{each}",
            DataWarning,
        )
    return chosen if stages > 1 else with_widths(bank, chosen, progress=progress)  # of all stages nothing is known


@one_blas_thread()
def next_stage(bank: GivenBank, selection: GivenSelection, responses: GivenResponses) -> Selection:
    """Choose the items that a model is to answer in its next stage, from its answers so far.

    Each item is the one that leaves the least uncertainty about this model's scores: at its ability, with what its
    answers have settled, over all scenarios at once. So the model gets most items of those scenarios that are least
    sure for it.

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
    own = None if given is None else repeatable(bank, given)
    recipe = None if own is None else read_recipe(own.whole)
    sizes, number = ((), 1) if recipe is None or own is None else stages_of(own)
    if given is None or recipe is None or number >= len(sizes):
        stages = remedy("stages=2", "--stages 2")
        raise DataError(
            f"a next stage needs a selection that has one, got {'stage' if sizes else 'one batch'}"
            f"{f' {number} of {len(sizes)}' if sizes else ''}. Choose the first stage with {stages}."
        )
    done = given.whole
    answers = known_items(bank, as_new_responses(bank, responses, done), done, ignore_unknown=True)
    if answers.n_models != 1:
        raise DataError(
            f"a next stage is chosen for one model, from its own answers, got {answers.n_models} models: "
            f"{shown(answers.model_ids)}. Give the responses of one, and a selection for each."
        )
    observations = Asked.of(bank, answers, done).observations
    design = local_design(bank, recipe.later_spec, recipe.excluded)
    asked = bank_positions(bank, pl.Series(done.item_ids, dtype=pl.String), "the selection")
    module = next_module(bank, design, observations, sizes[number], asked=asked)
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
